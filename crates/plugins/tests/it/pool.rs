//! The processes: shared, replaced, stopped, and gone with their gateway.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use toolyard_plugins::sandbox::{Host, Job, Limits, Sandbox, SandboxError, Settings};

use crate::world::{sandbox, settings};

#[cfg(target_os = "linux")]
fn peak_resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn x16_a_thousand_calls_at_once_finish_within_400_mb() {
    let sandbox = Sandbox::new(Settings { places: 4, ..settings() });
    let calls = (0..1_000).map(|n| {
        let job = Job::body("const a = Array.from({ length: 1000 }, (_, i) => i + n); return a.at(-1)");
        let sandbox = sandbox.clone();
        async move { sandbox.call(job.argument("n", n)).await.unwrap().value }
    });
    let values = join_all(calls).await;
    assert_eq!(values, (0..1_000).map(|n| json!(n + 999)).collect::<Vec<Value>>());
    let processes = sandbox.idle_processes();
    assert!(!processes.is_empty() && processes.len() <= 4, "{processes:?}");
    let peak: u64 = processes.into_iter().map(peak_resident_kb).sum();
    assert!(peak > 0 && peak <= 400 << 10, "{peak} kB");
}

#[tokio::test]
async fn x16_more_calls_than_the_queue_holds_are_refused() {
    let sandbox = Sandbox::new(Settings { places: 1, queue: 20, ..settings() });
    let calls = (0..30).map(|n| sandbox.call(Job::body("return n").argument("n", n)));
    let outcomes = join_all(calls).await;
    // One runs, twenty wait, the others hear so.
    for (n, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(answer) => assert!(n <= 20 && answer.value == json!(n), "{n}"),
            Err(error) => assert!(n > 20 && error == SandboxError::Busy { limit: 20 }, "{n}: {error}"),
        }
    }
}

/// Kills the process that asks.
#[cfg(target_os = "linux")]
struct Killer(u32);

#[cfg(target_os = "linux")]
impl Host for Killer {
    fn ask<'a>(&'a self, _: &'a str, _: Value) -> BoxFuture<'a, Result<Value, String>> {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.0).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        futures::future::pending().boxed()
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn x16_a_process_that_dies_fails_only_its_call() {
    let sandbox = Sandbox::new(Settings { places: 1, ..settings() });
    sandbox.call(Job::body("return 1")).await.unwrap();
    let pid = sandbox.idle_processes()[0];
    let outcome = sandbox.call_with(Job::body("await host('kill')"), &Killer(pid)).await;
    assert_eq!(outcome.unwrap_err(), SandboxError::Died { how: "signal 9".to_owned() });
    assert_eq!(sandbox.call(Job::body("return 2")).await.unwrap().value, json!(2));
    assert_ne!(sandbox.idle_processes(), [pid]);
}

#[cfg(target_os = "linux")]
async fn until_gone(pid: u32) {
    let gone = async {
        // A process that ended stays visible as a zombie until it is reaped.
        while std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("the process lives on");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn x16_processes_end_when_idle_and_with_their_pool() {
    let short = Sandbox::new(Settings { idle: Duration::ZERO, ..settings() });
    short.call(Job::body("return 1")).await.unwrap();
    let pid = short.idle_processes().first().copied();
    if let Some(pid) = pid {
        until_gone(pid).await;
    }
    assert_eq!(short.idle_processes(), Vec::<u32>::new());
    assert_eq!(short.call(Job::body("return 2")).await.unwrap().value, json!(2));

    let long = sandbox();
    long.call(Job::body("return 1")).await.unwrap();
    let pid = long.idle_processes()[0];
    drop(long);
    until_gone(pid).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn x16_a_call_that_nobody_waits_for_is_killed() {
    let sandbox = Sandbox::new(Settings { places: 1, ..settings() });
    sandbox.call(Job::body("return 1")).await.unwrap();
    let pid = sandbox.idle_processes()[0];
    let job = Job::body("for (;;) {}").limits(Limits { time_ms: 60_000, ..Limits::default() });
    {
        let mut call = Box::pin(sandbox.call(job));
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut call).await.is_err());
    }
    until_gone(pid).await;
    assert_eq!(sandbox.call(Job::body("return 2")).await.unwrap().value, json!(2));
}

#[tokio::test]
async fn a_program_that_is_no_sandbox_process_says_so() {
    let error = Sandbox::new(Settings::program("/bin/false")).call(Job::body("return 1")).await.unwrap_err();
    assert!(matches!(&error, SandboxError::Unavailable { why } if why.contains("exit status: 1")), "{error}");
    let error = Sandbox::new(Settings::program("/nowhere")).call(Job::body("return 1")).await.unwrap_err();
    assert!(matches!(error, SandboxError::Unavailable { .. }), "{error}");
}

/// Doubles numbers, and refuses everything else.
#[derive(Default)]
struct Doubler {
    asked: AtomicUsize,
}

impl Host for Doubler {
    fn ask<'a>(&'a self, name: &'a str, value: Value) -> BoxFuture<'a, Result<Value, String>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        async move {
            match (name, value.as_i64()) {
                ("double", Some(number)) => Ok(json!(number * 2)),
                _ => Err(format!("{name} cannot be done with {value}")),
            }
        }
        .boxed()
    }
}

#[tokio::test]
async fn code_asks_its_gateway_and_waits_for_the_answer() {
    let (sandbox, host) = (sandbox(), Doubler::default());
    let job = Job::body(
        "const doubled = await Promise.all([1, 2, 3].map((n) => host('double', n)));
         const refused = await host('halve', 4).catch((error) => error.message);
         return { doubled, refused }",
    );
    let value = sandbox.call_with(job, &host).await.unwrap().value;
    assert_eq!(value, json!({"doubled": [2, 4, 6], "refused": "halve cannot be done with 4"}));
    assert_eq!(host.asked.load(Ordering::Relaxed), 4);
    let flood = Job::body("for (let i = 0; i < 33; i++) host('double', i); return 1");
    assert_eq!(sandbox.call_with(flood, &host).await.unwrap().value, json!(1));
}
