//! L4: a database full of runs that wait for their clients, who come,
//! in no order.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::Amounts;
use super::meter::{Meter, count, real, spread};
use super::readers::native;
use crate::clock::now_ns;
use crate::drive::DriveError;
use crate::drive::api::Api;
use crate::drive::errand::Watch;
use crate::drive::fill::{Waiting, fill};
use crate::drive::report::Figures;
use crate::drive::rounds::Plan;
use crate::drive::system::resident_kb;
use crate::drive::target::{Target, used_bytes};

const NAME: &str = "L4 waiting runs";
/// Clients that answer at once.
const CLIENTS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn random(plan: &Plan, amounts: Amounts, figures: &mut Figures) -> Result<(), DriveError> {
    let (programs, folder) = (plan.programs(), plan.folder()?);
    let upstream = programs.start_upstream(folder.path()).await?;
    let mut waiting = fill(&programs, upstream.address, folder.path(), amounts.waiting, 1).await?;
    let server = programs.start(Target::Toolyard, upstream.address, folder.path()).await?;
    let Some(server) = server else { return Ok(()) };
    let mut note = |figure, value| figures.note(NAME, Target::Toolyard, figure, value);
    note("ready_s", server.ready_after.as_secs_f64());
    note("waiting_rss_mb", resident_kb(server.pid())? / 1024.0);
    if let Some(database) = Target::Toolyard.database(folder.path()) {
        note("db_kb_per_run", used_bytes(&database)? / 1024.0 / count(amounts.waiting));
    }
    let api = Arc::new(Target::Toolyard.api(server.address).await?);
    shuffle(&mut waiting);
    waiting.truncate(amounts.answered);
    let meter = Meter::start(NAME, server.pid())?;
    let (heard, ended, errors) = answer(&api, waiting.into()).await;
    let used = meter.stop(figures)?;
    spread(figures, NAME, ["answer_p50_ms", "answer_p99_ms"], &heard);
    spread(figures, NAME, ["to_end_p50_ms", "to_end_p99_ms"], &ended);
    let mut note = |figure, value| figures.note(NAME, Target::Toolyard, figure, value);
    note("cpu_ms_per_answer", used * 1e3 / count(ended.len()));
    note("errors", count(errors));
    Ok(())
}

/// Answers each run and follows it to its end. Gives how long the answers took,
/// how long until the runs had ended, and how many failed.
async fn answer(api: &Arc<Api>, runs: Arc<[Waiting]>) -> (Vec<f64>, Vec<f64>, usize) {
    let mut clients = JoinSet::new();
    for first in 0..CLIENTS {
        let (api, runs) = (api.clone(), runs.clone());
        clients.spawn(async move {
            let (mut heard, mut ended, mut errors) = (Vec::new(), Vec::new(), 0);
            for run in runs.iter().skip(first).step_by(CLIENTS) {
                match tokio::time::timeout(PATIENCE, resume(&api, run)).await {
                    Ok(Ok((answered, end))) => {
                        heard.push(answered);
                        ended.push(end);
                    }
                    Ok(Err(why)) => {
                        if errors == 0 {
                            eprintln!("  {}: {why}", run.run);
                        }
                        errors += 1;
                    }
                    Err(_) => errors += 1,
                }
            }
            (heard, ended, errors)
        });
    }
    let (mut heard, mut ended, mut errors) = (Vec::new(), Vec::new(), 0);
    while let Some(Ok((some_heard, some_ended, some_errors))) = clients.join_next().await {
        heard.extend(some_heard);
        ended.extend(some_ended);
        errors += some_errors;
    }
    (heard, ended, errors)
}

async fn resume(api: &Arc<Api>, waiting: &Waiting) -> Result<(f64, f64), DriveError> {
    let (began, watch) = (now_ns(), Watch::start());
    native(api)?.send_result(&waiting.run, &waiting.call).await?;
    let answered = real(now_ns().saturating_sub(began)) / 1e6;
    let watch = native(api)?.follow(&waiting.run, &waiting.errand, watch).await?;
    Ok((answered, real(watch.ended.unwrap_or_default()) / 1e6))
}

/// Any order will do, and the same each time: a walk with a fixed seed.
fn shuffle(runs: &mut [Waiting]) {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    for at in (1..runs.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(state >> 33).unwrap_or(0) % (at + 1);
        runs.swap(at, other);
    }
}
