//! Wakes what is due: one scan of the ledger and of the queue, by database
//! time. Also this node's heartbeat.

use std::sync::Arc;
use std::time::Duration;

use toolyard_store::{StoreError, failpoint, nodes, runs, waits};

use crate::runtime::{Runtime, valid_ms};

/// Waits ended in one round, so that a flood does not starve the claims.
const DUE: u32 = 64;
/// Runs claimed in one round.
const CLAIM: usize = 64;

pub(crate) async fn run(runtime: Arc<Runtime>) {
    let stop = runtime.stop_token().clone();
    while !stop.is_cancelled() {
        let rest = match round(&runtime).await {
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
async fn round(runtime: &Arc<Runtime>) -> Result<Duration, StoreError> {
    if !runtime.store.is_sqlite() {
        renew(runtime).await?;
    }
    let more = expire_due(runtime).await?;
    claim(runtime).await?;
    if more {
        return Ok(Duration::ZERO);
    }
    let next = runtime
        .store
        .read(|tx| {
            Box::pin(async move {
                let now = tx.now().await?;
                Ok::<_, StoreError>(waits::next_due(tx).await?.map(|due| due.since(now)))
            })
        })
        .await?;
    let tick = runtime.settings.tick;
    Ok(next.map_or(tick, |ms| tick.min(Duration::from_millis(ms.max(1)))))
}

async fn renew(runtime: &Arc<Runtime>) -> Result<(), StoreError> {
    failpoint!("renew.before");
    let me = runtime.owner.clone();
    let valid = valid_ms(&runtime.store, runtime.settings.lease);
    let held = runtime
        .store
        .write(move |tx| {
            Box::pin(async move {
                let held = nodes::renew(tx, &me, valid).await?;
                if !held {
                    // The row is gone, or of a newer life: announce this one again.
                    nodes::register(tx, &me, valid).await?;
                }
                Ok::<_, StoreError>(held)
            })
        })
        .await?;
    if !held {
        tracing::warn!("this node's heartbeat was lost; its runs may have moved to other nodes");
    }
    Ok(())
}

/// Ends waits whose moment has come. True if there may be more.
async fn expire_due(runtime: &Arc<Runtime>) -> Result<bool, StoreError> {
    let due = runtime.store.read(|tx| Box::pin(async move { waits::due(tx, DUE).await })).await?;
    let more = due.len() == usize::try_from(DUE).unwrap_or(usize::MAX);
    for row in due {
        runtime.expire(row).await?;
        failpoint!("expiry.after_commit");
    }
    Ok(more)
}

async fn claim(runtime: &Arc<Runtime>) -> Result<(), StoreError> {
    if runtime.draining.is_cancelled() || runtime.slots.free() == 0 {
        return Ok(());
    }
    if !runtime.store.read(|tx| Box::pin(async move { runs::claimable(tx).await })).await? {
        return Ok(());
    }
    let slots = runtime.slots.take(CLAIM);
    let (me, most) = (runtime.owner.clone(), u32::try_from(slots.len()).unwrap_or(0));
    let claimed =
        runtime.store.write(move |tx| Box::pin(async move { runs::claim(tx, &me, most).await })).await?;
    failpoint!("claim.after_commit");
    for (claimed, slot) in claimed.into_iter().zip(slots) {
        runtime.begin_claimed(claimed, slot).await;
    }
    Ok(())
}
