//! What hooks cost: one in Rust that does nothing, for each piece of text, and
//! one in JavaScript, for an answer of a hundred pieces. Processor time of this
//! process and of the sandbox together. A goal that is missed is an exit code of
//! its own.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolyard_plugins::bundle::{Bundle, Candidate, Keyring, Moment, Policy};
use toolyard_plugins::hooks::{Chain, Hook, Nature, Points, Scene, Stage, State, Step};
use toolyard_plugins::sandbox::{Sandbox, Settings, WORKER, worker};
use toolyard_plugins::scripted::Scripted;
use toolyard_protocol::manifest::HookName;
use toolyard_protocol::{RunId, Timestamp};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PIECES: usize = 1_000_000;
const ANSWER: usize = 100;
const ANSWERS: u32 = 200;

/// Looks at every piece and leaves it as it is.
#[derive(Debug)]
struct Idle;

impl Hook for Idle {
    fn id(&self) -> &str {
        "idle"
    }
    fn nature(&self) -> Nature {
        Nature { points: Points::of(&[HookName::OnTextChunk]), ..Nature::default() }
    }
    fn on_text_chunk<'a>(&'a self, _: &'a mut Stage<'_>, _: &'a mut Vec<String>) -> Step<'a> {
        Box::pin(std::future::ready(Ok(())))
    }
}

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|argument| argument == WORKER) {
        return worker::main();
    }
    let measured = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(measure()));
    match measured {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("hooks: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every goal was reached.
async fn measure() -> Result<bool, String> {
    println!("| what | measured | goal | |\n|---|---|---|---|");
    let mut reached = true;
    for together in [1, 8] {
        let per_piece = idle(together).await?;
        reached &= row(
            &format!("a Rust hook that does nothing, ns a piece, {together} at a time"),
            per_piece,
            1_000.0,
        );
    }
    for together in [1, 10] {
        let spent = scripted(together).await?;
        reached &= row(
            &format!("a JavaScript hook on {ANSWER} pieces, ms in all, {together} at a time"),
            spent,
            5.0,
        );
    }
    Ok(reached)
}

async fn idle(together: usize) -> Result<f64, String> {
    let mut chain = Chain::new([Arc::new(Idle) as Arc<dyn Hook>].into(), scene(), State::new());
    let mut pieces = vec!["word ".to_owned(); together];
    let begun = own_time();
    for _ in 0..PIECES / together {
        chain.text_chunks(&mut pieces).await.map_err(|error| error.to_string())?;
    }
    Ok((own_time() - begun).as_secs_f64() * 1e9 / PIECES as f64)
}

/// Milliseconds of an answer, with the start and the end of its runtime.
async fn scripted(together: usize) -> Result<f64, String> {
    let bundle = Arc::new(bundle()?);
    let sandbox = Sandbox::new(Settings { places: 1, ..Settings::this_program() });
    answer(&bundle, &sandbox, together).await?;
    let process = sandbox.idle_processes().first().copied().ok_or("no process is left")?;
    let (own, others) = (own_time(), time_of(process)?);
    for _ in 0..ANSWERS {
        answer(&bundle, &sandbox, together).await?;
    }
    if sandbox.idle_processes() != [process] {
        return Err("another process served".to_owned());
    }
    let spent = (own_time() - own) + (time_of(process)? - others);
    Ok((spent / ANSWERS).as_secs_f64() * 1e3)
}

async fn answer(bundle: &Arc<Bundle>, sandbox: &Sandbox, together: usize) -> Result<(), String> {
    let hook = Scripted::new(bundle.clone(), json!(null), Some(sandbox.clone()), None);
    let mut chain = Chain::new([Arc::new(hook) as Arc<dyn Hook>].into(), scene(), State::new());
    for _ in 0..ANSWER / together {
        let mut pieces = vec!["word ".to_owned(); together];
        chain.text_chunks(&mut pieces).await.map_err(|error| error.to_string())?;
        if pieces[0] != "WORD " {
            return Err("the hook did nothing".to_owned());
        }
    }
    Ok(())
}

fn bundle() -> Result<Bundle, String> {
    let document = json!({
        "id": "loud", "name": "Loud", "version": "1.0.0", "tools": [], "rewrites": true,
        "hooks": { "onTextChunk": "return chunk.toUpperCase()" },
    });
    let candidate = Candidate::read(document.to_string().as_bytes()).map_err(|error| error.to_string())?;
    let moment = Moment::at(Timestamp::from_millis(0));
    Keyring::empty().admit(candidate, Policy::Development, moment).map_err(|error| error.to_string())
}

fn scene() -> Scene {
    Scene {
        run: RunId::mint(),
        agent: "bench".to_owned(),
        client: None,
        thread: None,
        provider: "demo".to_owned(),
        model: "demo".to_owned(),
        spoken: None,
        message: "msg_1".to_owned(),
        step: 1,
        trace: None,
    }
}

fn own_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// On the processor so far, to the nanosecond.
fn time_of(process: u32) -> Result<Duration, String> {
    let path = format!("/proc/{process}/schedstat");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let spent = text.split_whitespace().next().and_then(|number| number.parse().ok());
    spent.map(Duration::from_nanos).ok_or_else(|| format!("{path}: {text}"))
}

/// Whether the goal was reached.
#[must_use]
fn row(what: &str, measured: f64, goal: f64) -> bool {
    let reached = measured <= goal;
    let verdict = if reached { "ok" } else { "MISSED" };
    println!("| {what} | {measured:.2} | <= {goal:.0} | {verdict} |");
    reached
}
