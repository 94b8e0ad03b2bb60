//! Row G14 over the whole gateway: the sample agent computes in processes that
//! the gateway starts from its own binary.

use std::path::Path;

use reqwest::Method;
use serde_json::json;

use crate::gateway::{Gateway, fine};
use crate::samples::{call, with_sample};
use crate::yard::eventually;

async fn with_calculator() -> (Gateway, String) {
    with_sample("calculator").await
}

#[tokio::test]
async fn g14_the_calculator_computes_and_says_what_is_wrong() {
    let (gateway, space) = with_calculator().await;
    let output = call(
        &gateway,
        &space,
        "calculate",
        json!({"expression": "round(price*qty,2)", "data": {"price": 3.333, "qty": 3}}),
    );
    let mut output = output.await.unwrap();
    assert!(output["metadata"]["executionTime"].take().as_f64().unwrap() > 0.0);
    let expected =
        json!({"success": true, "result": 10, "operation": "compute", "metadata": {"executionTime": null}});
    assert_eq!(output, expected);

    let positions = json!([{"price": 2.5, "pieces": 4}, {"price": 0.335, "pieces": 3}]);
    let output =
        call(&gateway, &space, "invoice", json!({"positions": positions, "taxPercent": 19})).await.unwrap();
    assert_eq!(output["result"], json!({"net": 11.01, "tax": 2.09, "total": 13.1}));
    let output = call(&gateway, &space, "time_in", json!({"timeZone": "Asia/Tokyo", "language": "de-DE"}))
        .await
        .unwrap();
    assert!(output["result"].as_str().unwrap().contains(" um "), "{output}");

    for (expression, text) in [
        ("2 3", "Compute failed: the code is not valid JavaScript: "),
        ("process.exit()", "Compute failed: process is not defined"),
        ("a / 0", "Compute failed: the result is Infinity"),
        ("a / b", "Compute failed: b is not defined"),
    ] {
        let input = json!({"expression": expression, "data": {"a": 1}});
        let error = call(&gateway, &space, "calculate", input).await.unwrap_err();
        assert!(error.starts_with(text), "{expression}: {error}");
    }
    let error = call(&gateway, &space, "time_in", json!({"timeZone": "Mars/Base"})).await.unwrap_err();
    assert_eq!(error, "Compute failed: RangeError: Invalid time zone specified: Mars/Base");
}

/// The processes that a process has started.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> Vec<u32> {
    let folders = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = folders.filter_map(|folder| folder.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit(')').next().unwrap_or_default();
        rest.split_whitespace().nth(1) == Some(&parent.to_string())
    })
    .collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn x16_sandbox_processes_die_with_a_gateway_that_is_killed() {
    let (gateway, space) = with_calculator().await;
    // Nothing is started before it is needed.
    assert_eq!(children(gateway.pid()), Vec::<u32>::new());
    call(&gateway, &space, "calculate", json!({"expression": "1 + 1"})).await.unwrap();
    let [idle] = children(gateway.pid())[..] else { panic!("one process serves one call") };
    let command = std::fs::read_to_string(format!("/proc/{idle}/cmdline")).unwrap();
    assert!(command.ends_with("\0js-worker\0"), "{command:?}");

    // One that never looks at its pipe dies too.
    let path = format!("/api/smart-spaces/{space}/messages");
    let content = "call calculate {\"expression\": \"new Array(1e9) + ''\"}";
    fine(gateway.user("ann", Method::POST, &path).json(&json!({"content": content}))).await;
    let busy = || async {
        let stat = std::fs::read_to_string(format!("/proc/{idle}/stat")).unwrap_or_default();
        stat.contains(") R ")
    };
    eventually("the process works", busy).await;
    let _folder = gateway.kill();
    let gone = || async {
        std::fs::read_to_string(format!("/proc/{idle}/stat")).is_ok_and(|s| s.contains(") Z "))
            || !Path::new(&format!("/proc/{idle}")).exists()
    };
    eventually("the process is gone", gone).await;
}
