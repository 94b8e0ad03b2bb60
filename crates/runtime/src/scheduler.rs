//! Wakes what is due: one scan of the ledger, the plans and the queue, by
//! database time. Also this node's heartbeat.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolyard_protocol::RunId;
use toolyard_store::{StoreError, failpoint, nodes, plans, runs, waits};

use crate::runtime::{Runtime, valid_ms};

/// Waits ended in one round, so that a flood does not starve the claims.
const DUE: u32 = 64;
/// Runs claimed in one round.
const CLAIM: usize = 64;

/// Runs of this node without a worker, as the last look found them. A run that
/// has just been committed is about to get its worker, so looks are apart from
/// each other however often the scheduler is rung.
#[derive(Debug, Default)]
pub(crate) struct Lonely {
    runs: HashSet<RunId>,
    looked: Option<Instant>,
}

impl Lonely {
    fn is_time(&mut self, now: Instant, apart: Duration) -> bool {
        let due = self.looked.is_none_or(|last| now.duration_since(last) >= apart);
        if due {
            self.looked = Some(now);
        }
        due
    }

    /// Takes a new look; answers those that were lonely at the last one too.
    pub(crate) fn again(&mut self, found: impl IntoIterator<Item = RunId>) -> HashSet<RunId> {
        let found: HashSet<RunId> = found.into_iter().collect();
        let still = found.intersection(&self.runs).cloned().collect();
        self.runs = found;
        still
    }
}

/// Looks at the ledger and the queue until the runtime stops.
pub(crate) async fn run(runtime: Arc<Runtime>) {
    let stop = runtime.stop_token().clone();
    let mut lonely = Lonely::default();
    while !stop.is_cancelled() {
        let rest = match round(&runtime, &mut lonely).await {
            Ok(rest) => rest,
            Err(e) => {
                tracing::warn!(error = %e, "the scheduler cannot reach the database");
                runtime.settings.tick
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = runtime.slots.freed() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }
}

/// One round; answers how long to rest.
async fn round(runtime: &Arc<Runtime>, lonely: &mut Lonely) -> Result<Duration, StoreError> {
    claim(runtime).await?;
    if lonely.is_time(Instant::now(), runtime.settings.tick) {
        runtime.adopt(lonely).await?;
    }
    let more = expire_due(runtime).await?;
    let planned = runtime.start_due_plans().await?;
    if more || planned {
        return Ok(Duration::ZERO);
    }
    let next = runtime.store.read(|tx| {
        Box::pin(async move {
            let now = tx.now().await?;
            let next = [waits::next_due(tx).await?, plans::next_due(tx).await?];
            Ok::<_, StoreError>(next.into_iter().flatten().min().map(|due| due.since(now)))
        })
    });
    let tick = runtime.settings.tick;
    Ok(next.await?.map_or(tick, |ms| tick.min(Duration::from_millis(ms.max(50)))))
}

/// This node's heartbeat. It beats while runs finish, so that nobody takes
/// them away before. SQLite has one process and needs none.
pub(crate) async fn beat(runtime: Arc<Runtime>) {
    let stop = runtime.heart_stops().clone();
    while !runtime.store.is_sqlite() {
        failpoint!("renew.before");
        let me = runtime.owner.clone();
        let valid = valid_ms(&runtime.store, runtime.settings.lease);
        let beaten =
            runtime.store.beat(move |tx| Box::pin(async move { nodes::beat(tx, &me, valid).await })).await;
        if let Err(e) = beaten {
            tracing::warn!(error = %e, "the heartbeat cannot reach the database");
        }
        if stop.run_until_cancelled(tokio::time::sleep(runtime.settings.tick)).await.is_none() {
            return;
        }
    }
}

/// Ends waits whose moment has come. True if there may be more.
async fn expire_due(runtime: &Arc<Runtime>) -> Result<bool, StoreError> {
    let due = runtime.store.read(|tx| Box::pin(async move { waits::due(tx, DUE).await })).await?;
    let full = due.len() == usize::try_from(DUE).unwrap_or(usize::MAX);
    let mut ended = 0;
    for row in due {
        let wait = row.wait.id.clone();
        match runtime.expire(row).await {
            Ok(()) => ended += 1,
            // One that fails must not keep the others waiting.
            Err(e) => tracing::error!(%wait, error = %e, "a due wait cannot be ended"),
        }
        failpoint::pass("expiry.after_commit")?;
    }
    Ok(full && ended > 0)
}

async fn claim(runtime: &Arc<Runtime>) -> Result<(), StoreError> {
    if runtime.draining.is_cancelled() || runtime.slots.free() == 0 {
        return Ok(());
    }
    runtime.slots.looking();
    if !runtime.store.read(|tx| Box::pin(async move { runs::claimable(tx).await })).await? {
        return Ok(());
    }
    let slots = runtime.slots.take(CLAIM);
    let (me, most) = (runtime.owner.clone(), u32::try_from(slots.len()).unwrap_or(0));
    let claimed =
        runtime.store.write(move |tx| Box::pin(async move { runs::claim(tx, &me, most).await })).await?;
    failpoint::pass("claim.after_commit")?;
    if claimed.len() == slots.len() {
        // There may be more than there was room for.
        runtime.slots.queued();
    }
    for (claimed, slot) in claimed.into_iter().zip(slots) {
        runtime.begin_claimed(claimed, slot).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_lonely_when_two_looks_that_are_apart_find_it_so() {
        let (mut lonely, tick, start) = (Lonely::default(), Duration::from_secs(1), Instant::now());
        let (new, left) = (RunId::mint(), RunId::mint());
        assert!(lonely.is_time(start, tick));
        assert!(lonely.again([new.clone(), left.clone()]).is_empty());
        assert!(!lonely.is_time(start + tick / 2, tick), "however often the scheduler is rung");
        assert!(lonely.is_time(start + tick, tick));
        assert_eq!(lonely.again([left.clone()]), HashSet::from([left]));
        assert!(lonely.again([new]).is_empty());
    }
}
