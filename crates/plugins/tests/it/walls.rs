//! Row X16: there is nothing to reach from inside.

use serde_json::json;
use toolyard_plugins::sandbox::{Job, SandboxError};

use crate::world::{run, sandbox, value};

#[tokio::test]
async fn x16_files_network_environment_and_processes_have_no_names() {
    for name in [
        "process",
        "require",
        "fetch",
        "XMLHttpRequest",
        "WebSocket",
        "Deno",
        "Bun",
        "module",
        "std",
        "os",
        "bjson",
        "scriptArgs",
        "print",
        "host",
        "native",
        "Worker",
        "SharedWorker",
        "importScripts",
    ] {
        assert_eq!(value(&format!("typeof {name}")).await, json!("undefined"), "{name}");
        let thrown = run(&format!("return {name}.x")).await.unwrap_err();
        let expected = SandboxError::Threw {
            name: "ReferenceError".to_owned(),
            message: format!("{name} is not defined"),
        };
        assert_eq!(thrown, expected);
    }
    let error = run("return Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)").await.unwrap_err();
    assert!(matches!(&error, SandboxError::Threw { name, .. } if name == "TypeError"), "{error}");
    for module in ["fs", "node:fs", "net", "std", "os", "/etc/passwd", "./x.js", "http://127.0.0.1/x.js"] {
        let error = run(&format!("return await import('{module}')")).await.unwrap_err();
        assert!(error.to_string().starts_with("ReferenceError: could not load module"), "{error}");
    }
}

#[tokio::test]
async fn x16_code_cannot_leave_its_function() {
    for code in [
        "}); globalThis.out = 1; (async function () {",
        "} ; { ",
        "}, x() {",
        "return 1 }); (async function anonymous(\n) {\n return 2",
        "*/ } /*",
    ] {
        let outcome = run(code).await;
        assert!(matches!(outcome, Err(SandboxError::Syntax { .. })), "{code}: {outcome:?}");
    }
    for formula in ["1); (2", "1]; [2", "2 3", "1, ", "])(["] {
        let outcome = sandbox().call(Job::formula(formula)).await;
        assert!(matches!(outcome, Err(SandboxError::Syntax { .. })), "{formula}: {outcome:?}");
    }
}

#[tokio::test]
async fn x16_nothing_of_one_call_is_left_for_the_next() {
    let sandbox = sandbox();
    let spoil = "globalThis.left = 1; Object.prototype.left = 2; Array.prototype.map = null;
        JSON.stringify = () => 'forged'; setInterval(() => { globalThis.left++ }, 1);
        (async () => { for (;;) await null })(); return 1";
    for _ in 0..4 {
        assert_eq!(sandbox.call(Job::body(spoil)).await.unwrap().value, json!(1));
        let job =
            Job::formula("[typeof left, {}.left === undefined, [1].map((x) => x + 1), JSON.stringify([])]");
        assert_eq!(sandbox.call(job).await.unwrap().value, json!(["undefined", true, [2], "[]"]));
    }
}

/// The second wall, seen from outside: the kernel's own record of the process.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn x16_the_process_has_given_everything_away() {
    let sandbox = sandbox();
    sandbox.call(Job::body("return 1")).await.unwrap();
    let pid = sandbox.idle_processes()[0];
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let status = read("status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().to_owned()
    };
    assert_eq!(
        (field("NoNewPrivs:"), field("Seccomp:"), field("Threads:")),
        ("1".into(), "2".into(), "1".into())
    );
    assert_eq!(read("environ"), "MIMALLOC_ARENA_RESERVE=65536\0TZ=UTC0\0");
    let limits = read("limits");
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().next().unwrap().to_owned()
    };
    let names = ["Max cpu time", "Max core file size", "Max open files", "Max processes", "Max file size"];
    assert_eq!(names.map(limit), ["300", "0", "4", "0", "0"]);
    assert!(limit("Max address space").parse::<u64>().is_ok());
}

/// What code could do that broke out of the engine: native calls of a confined process.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[test]
fn x16_the_kernel_refuses_what_the_engine_does_not_offer() {
    let worker = env!("CARGO_BIN_EXE_toolyard-js-worker");
    let output = std::process::Command::new(worker).arg("try").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let refused = |line: &&str| !line.ends_with(": error 1");
    // "Not permitted" is error 1. Only memory is left.
    assert_eq!(said.lines().filter(refused).collect::<Vec<_>>(), ["memory: done"], "{said}");
    assert_eq!(said.lines().count(), 13, "{said}");
    assert!(output.status.success());
    assert!(!std::path::Path::new("/tmp/toolyard-sandbox-escape").exists());
}
