//! Row X16: whoever breaks a limit hears which, in time, and nobody else notices.

use std::time::{Duration, Instant};

use serde_json::json;
use toolyard_plugins::sandbox::{Job, Limits, Sandbox, SandboxError};

use crate::world::{run, sandbox, tight};

/// How much later than its limit a call may end here, on a machine that tests
/// keep busy. `bench/src/bin/sandbox.rs` measures it alone: at most 200 ms.
const LATER: Duration = Duration::from_secs(10);

/// Runs hostile code beside a well-behaved neighbour in the same pool.
async fn attack(sandbox: &Sandbox, code: &str, limits: Limits) -> SandboxError {
    // The processes stand before the clock starts.
    let warm = || sandbox.call(Job::body("return 1"));
    let (one, two) = tokio::join!(warm(), warm());
    assert_eq!((one.unwrap().value, two.unwrap().value), (json!(1), json!(1)));
    let neighbour = async {
        for n in 0..20 {
            let job = Job::body("return n * 2").argument("n", n);
            assert_eq!(sandbox.call(job).await.unwrap().value, json!(n * 2));
        }
    };
    let begun = Instant::now();
    let attacker = async {
        let outcome = sandbox.call(Job::body(code).limits(limits)).await;
        (outcome, begun.elapsed())
    };
    let ((outcome, took), ()) = tokio::join!(attacker, neighbour);
    let allowed = Duration::from_millis(limits.time_ms) + LATER;
    assert!(took <= allowed, "{code} took {took:?}, allowed are {allowed:?}");
    // And the pool is as good as before.
    assert_eq!(sandbox.call(Job::body("return 'well'")).await.unwrap().value, json!("well"));
    outcome.expect_err(code)
}

async fn attacked(code: &str) -> SandboxError {
    attack(&sandbox(), code, tight()).await
}

/// For code that must break another limit than its time, however busy the machine is.
async fn attacked_at_leisure(code: &str) -> SandboxError {
    attack(&sandbox(), code, Limits { time_ms: 30_000, ..tight() }).await
}

fn timed_out() -> SandboxError {
    SandboxError::TimedOut { limit_ms: tight().time_ms }
}

fn memory() -> SandboxError {
    SandboxError::Memory { limit_bytes: tight().memory_bytes }
}

fn stack() -> SandboxError {
    SandboxError::Stack { limit_bytes: tight().stack_bytes }
}

#[tokio::test]
async fn x16_a_memory_bomb_ends_at_its_memory() {
    for code in [
        "const a = []; for (;;) a.push(new Array(1000).fill(1))",
        "let s = 'x'; for (;;) s += s + Math.random()",
        "const a = []; for (;;) a.push(new Uint8Array(1 << 20))",
        "const m = new Map(); for (let i = 0;; i++) m.set(i, String(i).repeat(100))",
        "return 'x'.repeat(100 << 20)",
    ] {
        assert_eq!(attacked_at_leisure(code).await, memory(), "{code}");
    }
    assert_eq!(memory().to_string(), "the code used more memory than its limit of 16777216 bytes");
}

#[tokio::test]
async fn x16_an_endless_loop_ends_at_its_time() {
    for code in [
        "for (;;) {}",
        "for (;;) { try { for (;;) {} } catch {} finally { continue } }",
        "const x = { get length() { for (;;) {} } }; return Array.prototype.map.call(x, (y) => y)",
        "return { toJSON() { for (;;) {} } }",
        "throw { get message() { for (;;) {} }, toString() { for (;;) {} } }",
    ] {
        // A process that gets no core cannot stop its own code: then it is stopped.
        let ends = [timed_out(), SandboxError::Killed { limit_ms: tight().time_ms }];
        let end = attacked(code).await;
        assert!(ends.contains(&end), "{code}: {end:?}");
    }
    assert_eq!(timed_out().to_string(), "the code ran longer than its limit of 300 ms");
}

#[tokio::test]
async fn x16_a_native_loop_that_never_polls_is_killed() {
    let killed = SandboxError::Killed { limit_ms: tight().time_ms };
    assert_eq!(attacked("return new Array(1e9) + ''").await, killed);
    let text = "the code did not stop at its limit of 300 ms and its process was killed";
    assert_eq!(killed.to_string(), text);
}

#[tokio::test]
async fn x16_an_endless_promise_ends_at_its_time_and_a_dead_one_at_once() {
    for code in [
        "for (;;) await null",
        "const again = async () => { for (;;) await Promise.resolve() }; return again()",
        "const again = () => queueMicrotask(again); again(); await new Promise(() => {})",
        "await new Promise(() => setInterval(() => {}, 1))",
        "await new Promise((resolve) => setTimeout(resolve, 1e9))",
    ] {
        assert_eq!(attacked(code).await, timed_out(), "{code}");
    }
    assert_eq!(attacked("await new Promise(() => {})").await, SandboxError::NeverSettles);
}

#[tokio::test]
async fn x16_a_stack_overflow_ends_at_its_stack() {
    for code in [
        "const f = () => f() + 1; return f()",
        "const a = []; a[0] = a; let p = a; for (let i = 0; i < 1e5; i++) p = [p]; return JSON.stringify(p)",
        "const p = new Proxy({}, { get: (t, k, r) => r[k] }); return p.x",
    ] {
        assert_eq!(attacked_at_leisure(code).await, stack(), "{code}");
    }
    let text = "the code nested its calls deeper than its stack of 524288 bytes allows";
    assert_eq!(stack().to_string(), text);
}

#[tokio::test]
async fn x16_a_hundred_megabytes_of_result_end_at_the_result_limit() {
    let limit_bytes = Limits::default().result_bytes;
    let too_large = SandboxError::ResultTooLarge { limit_bytes };
    // Many references to one text: small in memory, 100 MB as JSON.
    let shared = "return new Array(1e5).fill('x'.repeat(1000))";
    let roomy = Limits { time_ms: 30_000, memory_bytes: 256 << 20, ..tight() };
    assert_eq!(attack(&sandbox(), shared, roomy).await, too_large);
    assert_eq!(attack(&sandbox(), shared, Limits { time_ms: 30_000, ..tight() }).await, too_large);
    assert_eq!(attacked_at_leisure("return 'x'.repeat(1 << 20)").await, too_large);
    assert_eq!(too_large.to_string(), "the result is larger than its limit of 1048576 bytes of JSON");
    // One byte less than the limit is fine.
    let fits = run("return 'x'.repeat((1 << 20) - 2)").await.unwrap();
    assert_eq!(fits.value.as_str().unwrap().len(), (1 << 20) - 2);
}

#[tokio::test]
async fn x16_a_console_flood_ends_at_the_console_limit() {
    let flood = SandboxError::ConsoleFlood { limit_bytes: Limits::default().console_bytes };
    for code in [
        "for (;;) console.log('x'.repeat(1000))",
        "for (;;) { try { console.log('\\u0000'.repeat(1000)) } catch {} }",
        "for (;;) { try { console.error({}) } catch {} await null }",
        "console.log('x'.repeat(1 << 20))",
    ] {
        assert_eq!(attacked_at_leisure(code).await, flood, "{code}");
    }
    assert_eq!(flood.to_string(), "the console got more than its limit of 65536 bytes");
}

#[tokio::test]
async fn x16_a_catastrophic_regex_ends_at_its_time() {
    assert_eq!(attacked("return /^(a+)+$/.test('a'.repeat(40) + '!')").await, timed_out());
}

#[tokio::test]
async fn x16_too_much_input_is_refused_before_it_runs() {
    let job = Job::body("return 1").argument("text", "x".repeat(5 << 20));
    let refused = sandbox().call(job).await.unwrap_err();
    assert!(matches!(refused, SandboxError::InputTooLarge { limit_bytes: 4_194_304, .. }), "{refused}");
}

#[tokio::test]
async fn x16_too_many_timers_are_refused() {
    let error = attacked("for (let i = 0; i < 1001; i++) setTimeout(() => {}, 50)").await;
    assert_eq!(error.to_string(), "RangeError: too many timers");
}
