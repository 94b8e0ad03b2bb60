//! What the sandbox costs: a warm call beside the code itself, a thousand calls
//! at once, and how late after its limit hostile code is stopped.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures::future::join_all;
use toolyard_plugins::sandbox::{Job, Limits, Sandbox, SandboxError, Settings, WORKER, worker};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CALLS: usize = 3_000;
const AT_ONCE: usize = 1_000;
const LIMIT: u64 = 300;

/// Hostile code, each with the limit it breaks.
const ATTACKS: [(&str, &str); 9] = [
    ("endless loop", "for (;;) {}"),
    ("endless promise", "for (;;) await null"),
    ("native loop that never polls", "return new Array(1e9) + ''"),
    ("catastrophic regex", "return /^(a+)+$/.test('a'.repeat(40) + '!')"),
    ("memory bomb", "const a = []; for (;;) a.push(new Array(1000).fill(1))"),
    ("stack overflow", "const f = () => f() + 1; return f()"),
    ("100 MB of result", "return new Array(1e5).fill('x'.repeat(1000))"),
    ("console flood", "for (;;) console.log('x'.repeat(1000))"),
    ("promise that nobody settles", "await new Promise(() => {})"),
];

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|argument| argument == WORKER) {
        return worker::main();
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("sandbox: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(measure()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sandbox: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure() -> Result<(), SandboxError> {
    println!("| what | measured | goal | |\n|---|---|---|---|");
    warm().await?;
    at_once().await?;
    for (name, code) in ATTACKS {
        attack(name, code).await?;
    }
    Ok(())
}

/// Calls one after another. What the code took is its own; the rest is ours.
async fn warm() -> Result<(), SandboxError> {
    let sandbox = Sandbox::new(Settings::this_program());
    let (mut over, mut whole) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
    for n in 0..CALLS + 100 {
        let begun = Instant::now();
        let job = Job::body("return { n, text: `number ${n}` }").argument("n", n);
        let took = sandbox.call(job).await?.took;
        let call = begun.elapsed();
        if n >= 100 {
            over.push(call.saturating_sub(took));
            whole.push(call);
        }
    }
    over.sort_unstable();
    whole.sort_unstable();
    let at = |list: &[Duration], percent: usize| list[list.len() * percent / 100 - 1].as_secs_f64() * 1000.0;
    row("warm call over the code, p50 ms", at(&over, 50), 1.0);
    row("warm call over the code, p99 ms", at(&over, 99), f64::INFINITY);
    row("warm call as a whole, p50 ms", at(&whole, 50), f64::INFINITY);
    Ok(())
}

async fn at_once() -> Result<(), SandboxError> {
    let sandbox = Sandbox::new(Settings::this_program());
    let begun = Instant::now();
    let calls = (0..AT_ONCE).map(|n| {
        let job = Job::body("const a = Array.from({ length: 10000 }, (_, i) => i + n); return a.at(-1)");
        sandbox.call(job.argument("n", n))
    });
    for outcome in join_all(calls).await {
        outcome?;
    }
    row("1,000 calls at once, seconds", begun.elapsed().as_secs_f64(), f64::INFINITY);
    let processes = sandbox.idle_processes();
    let peak: f64 = processes.iter().map(|pid| peak_megabytes(*pid)).sum();
    row(&format!("peak memory of {} processes, MB", processes.len()), peak, 400.0);
    Ok(())
}

async fn attack(name: &str, code: &str) -> Result<(), SandboxError> {
    let sandbox = Sandbox::new(Settings::this_program());
    sandbox.call(Job::body("return 1")).await?;
    let begun = Instant::now();
    let limits = Limits { time_ms: LIMIT, ..Limits::default() };
    let outcome = sandbox.call(Job::body(code).limits(limits)).await;
    let late = begun.elapsed().saturating_sub(Duration::from_millis(LIMIT));
    let said = outcome.err().map_or_else(|| "NOT STOPPED".to_owned(), |error| error.to_string());
    row(&format!("{name}: ms after its {LIMIT} ms ({said})"), late.as_secs_f64() * 1000.0, 200.0);
    Ok(())
}

fn peak_megabytes(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1024.0
}

fn row(what: &str, measured: f64, goal: f64) {
    let verdict = if measured <= goal { "ok" } else { "MISSED" };
    if goal.is_finite() {
        println!("| {what} | {measured:.2} | <= {goal:.2} | {verdict} |");
    } else {
        println!("| {what} | {measured:.2} | | |");
    }
}
