//! Functions that share a runtime: what they keep, and what they lose.

use serde_json::{Value, json};
use toolyard_plugins::sandbox::{Job, Sandbox, SandboxError, Script, Settings, Sitting};

use crate::world::{settings, tight};

const DRIVER: &str = "return async (call, payload, first) => {
    if (first !== null && !globalThis.begun) { globalThis.begun = true; await first(payload); }
    return call(payload);
};";

fn counting() -> Script {
    Script::new(DRIVER)
        .function("count", &["by"], "globalThis.n = (globalThis.n ?? 0) + by.by; return [n, by.fresh]")
        .function("spin", &["by"], "for (;;) {}")
        .function("broken", &["by"], "return (")
        .function("throws", &["by"], "globalThis.n = 100; throw new Error('no')")
        .limits(tight())
}

async fn count(sitting: &Sitting) -> Value {
    sitting.call("count", &|fresh| json!({ "by": 1, "fresh": fresh }), None).await.unwrap().value
}

async fn fails(sitting: &Sitting, function: &str) -> SandboxError {
    sitting.call(function, &|_| json!({}), None).await.unwrap_err()
}

#[tokio::test]
async fn the_functions_of_a_script_share_one_runtime() {
    let sandbox = Sandbox::new(settings());
    let (one, other) = (sandbox.sitting(counting()).unwrap(), sandbox.sitting(counting()).unwrap());
    assert_eq!(count(&one).await, json!([1, true]));
    assert_eq!(count(&one).await, json!([2, false]));
    assert_eq!(count(&other).await, json!([1, true]), "a runtime of its own");
    assert_eq!(count(&one).await, json!([3, false]));
}

#[tokio::test]
async fn a_process_that_somebody_sat_in_is_fresh_for_the_next() {
    let sandbox = Sandbox::new(Settings { places: 1, ..settings() });
    let sitting = sandbox.sitting(counting()).unwrap();
    assert_eq!(count(&sitting).await, json!([1, true]));
    drop(sitting);
    let left = sandbox.idle_processes();
    assert_eq!(left.len(), 1, "it is not thrown away");
    let seen = sandbox.call(Job::body("return typeof globalThis.n")).await.unwrap();
    assert_eq!(seen.value, "undefined");
    assert_eq!(sandbox.idle_processes(), left, "the same process served both");
}

#[tokio::test]
async fn a_limit_costs_the_runtime_and_a_throw_does_not() {
    let sandbox = Sandbox::new(settings());
    let sitting = sandbox.sitting(counting()).unwrap();
    count(&sitting).await;
    assert!(matches!(fails(&sitting, "broken").await, SandboxError::Syntax { .. }));
    assert!(matches!(fails(&sitting, "throws").await, SandboxError::Threw { .. }));
    assert_eq!(count(&sitting).await, json!([101, false]));
    assert!(matches!(fails(&sitting, "spin").await, SandboxError::TimedOut { limit_ms: 300 }));
    assert_eq!(count(&sitting).await, json!([1, true]), "a fresh one");
    assert!(matches!(fails(&sitting, "nobody").await, SandboxError::Threw { .. }));
}

#[tokio::test]
async fn too_many_who_sit_lose_their_runtime_but_not_their_turn() {
    let sandbox = Sandbox::new(Settings { sittings: 2, ..settings() });
    let sittings: Vec<Sitting> = (0..3).map(|_| sandbox.sitting(counting()).unwrap()).collect();
    for sitting in &sittings {
        assert_eq!(count(sitting).await, json!([1, true]));
    }
    assert!(!sittings[0].is_kept() && sittings[1].is_kept() && sittings[2].is_kept());
    assert_eq!(count(&sittings[0]).await, json!([1, true]));
    assert_eq!(count(&sittings[2]).await, json!([2, false]));
}

#[tokio::test]
async fn who_sits_idle_keeps_nobody_from_working() {
    let sandbox = Sandbox::new(Settings { places: 1, ..settings() });
    let sitting = sandbox.sitting(counting()).unwrap();
    count(&sitting).await;
    assert_eq!(sandbox.call(Job::formula("6 * 7")).await.unwrap().value, 42);
    assert_eq!(count(&sitting).await, json!([2, false]));
}

#[tokio::test]
async fn the_first_function_comes_before_all_others_in_each_fresh_runtime() {
    let sandbox = Sandbox::new(settings());
    let script = counting().function("begin", &["by"], "globalThis.n = 10").first("begin");
    let sitting = sandbox.sitting(script).unwrap();
    assert_eq!(count(&sitting).await, json!([11, true]));
    assert_eq!(count(&sitting).await, json!([12, false]));
    fails(&sitting, "spin").await;
    assert_eq!(count(&sitting).await, json!([11, true]));
}

#[tokio::test]
async fn code_cannot_leave_its_function_here_either() {
    let sandbox = Sandbox::new(settings());
    let escape = Script::new(DRIVER).function("out", &["by"], "}); globalThis.out = 1; (async function () {");
    let sitting = sandbox.sitting(escape).unwrap();
    assert!(matches!(fails(&sitting, "out").await, SandboxError::Syntax { .. }));
    let bad = Script::new(DRIVER).function("f", &["a, b"], "return 1");
    assert!(matches!(sandbox.sitting(bad).unwrap_err(), SandboxError::BadName { .. }));
}
