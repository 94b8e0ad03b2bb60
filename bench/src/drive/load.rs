//! Many clients at once, each with the next errand as soon as the last is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::DriveError;
use super::api::{Api, Seat};
use super::errand::{Errand, Watch};

/// The longest that one run may take.
const RUN_SECONDS: u64 = 300;

/// What a load brought.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) watches: Vec<Watch>,
    pub(super) wall: Duration,
}

/// New conversations, made by many clients.
pub(super) async fn seats(api: &Arc<Api>, count: usize) -> Result<Vec<Seat>, DriveError> {
    let left = Arc::new(AtomicUsize::new(count));
    let mut clients = JoinSet::new();
    for _ in 0..count.min(16) {
        let (api, left) = (api.clone(), left.clone());
        clients.spawn(async move {
            let mut made = Vec::new();
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                made.push(api.seat().await?);
            }
            Ok::<_, DriveError>(made)
        });
    }
    let mut all = Vec::with_capacity(count);
    while let Some(made) = clients.join_next().await {
        all.extend(joined(made)?);
    }
    Ok(all)
}

/// Runs the errand once in every seat, `at_once` at a time. One failure ends it.
/// Client number n takes every seat number n + k × `at_once`, so a list that
/// repeats its seats at that distance never has two runs in one.
pub(super) async fn load(
    api: &Arc<Api>,
    seats: &[Seat],
    errand: Errand,
    at_once: usize,
) -> Result<Load, DriveError> {
    let seats: Arc<[Seat]> = seats.into();
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for first in 0..at_once {
        let (api, seats) = (api.clone(), seats.clone());
        clients.spawn(async move {
            let mut watches = Vec::new();
            for seat in seats.iter().skip(first).step_by(at_once) {
                let run = tokio::time::timeout(Duration::from_secs(RUN_SECONDS), api.run(seat, &errand));
                let watch = run.await.map_err(|_| DriveError::TooSlow { seconds: RUN_SECONDS })??;
                watches.push(watch);
            }
            Ok::<_, DriveError>(watches)
        });
    }
    let mut watches = Vec::with_capacity(seats.len());
    while let Some(done) = clients.join_next().await {
        watches.extend(joined(done)?);
    }
    Ok(Load { watches, wall: began.elapsed() })
}

/// The same, but a failure is counted and its client goes on.
pub(super) async fn try_load(
    api: &Arc<Api>,
    seats: &[Seat],
    errand: Errand,
    at_once: usize,
) -> (Vec<Watch>, usize) {
    let seats: Arc<[Seat]> = seats.into();
    let mut clients = JoinSet::new();
    for first in 0..at_once {
        let (api, seats) = (api.clone(), seats.clone());
        clients.spawn(async move {
            let (mut watches, mut errors) = (Vec::new(), 0);
            for seat in seats.iter().skip(first).step_by(at_once) {
                let run = tokio::time::timeout(Duration::from_secs(RUN_SECONDS), api.run(seat, &errand));
                match run.await {
                    Ok(Ok(watch)) => watches.push(watch),
                    Ok(Err(why)) => {
                        eprintln!("  {why}");
                        errors += 1;
                    }
                    Err(_) => errors += 1,
                }
            }
            (watches, errors)
        });
    }
    let (mut all, mut errors) = (Vec::with_capacity(seats.len()), 0);
    while let Some(Ok((watches, failed))) = clients.join_next().await {
        all.extend(watches);
        errors += failed;
    }
    (all, errors)
}

fn joined<T>(done: Result<Result<T, DriveError>, tokio::task::JoinError>) -> Result<T, DriveError> {
    done.map_err(|e| DriveError::Failed(e.to_string()))?
}
