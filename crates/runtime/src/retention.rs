//! Removes runs that ended long ago, if the operator wants that: a few small
//! transactions, then a rest. Several nodes may do it at once: each looks again
//! under the run's lock, and the second finds nothing.

use std::sync::Arc;
use std::time::Duration;

use toolyard_protocol::{RunId, TenantId, Timestamp};
use toolyard_store::{StoreError, retention};

use crate::runtime::Runtime;

/// Runs that one look at the database finds.
const LOOK: u32 = 200;
/// Runs that are removed before the next rest.
const BATCH: u64 = 100;
/// How often it is looked for old runs, at most.
const ROUND: Duration = Duration::from_secs(60);

/// Removes old runs until the runtime stops.
pub(crate) async fn run(runtime: Arc<Runtime>) {
    let stop = runtime.stop_token().clone();
    loop {
        let removed = match round(&runtime).await {
            Ok(removed) => removed,
            Err(e) => {
                tracing::warn!(error = %e, "old runs cannot be removed now");
                0
            }
        };
        if removed > 0 {
            tracing::info!(runs = removed, "removed runs that ended long ago");
            metrics::counter!("toolyard_runs_removed_total").increment(removed);
        }
        // What an earlier life left behind is gone; there is nothing else to do.
        let Some(keep) = runtime.settings.keep_finished else { return };
        let tick = runtime.settings.tick;
        let rest = if removed >= BATCH { tick } else { (keep / 4).clamp(tick, ROUND.max(tick)) };
        if stop.run_until_cancelled(tokio::time::sleep(rest)).await.is_none() {
            return;
        }
    }
}

/// Removes at most a batch; answers how many.
async fn round(runtime: &Arc<Runtime>) -> Result<u64, StoreError> {
    sweep(runtime).await?;
    let Some(keep) = runtime.settings.keep_finished else { return Ok(0) };
    let now = runtime.store.read(|tx| Box::pin(async move { tx.now().await })).await?;
    let kept = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    let before = Timestamp::from_millis(now.millis().saturating_sub(kept));
    let (mut removed, mut tenant) = (0, None);
    while let Some(next) = next_tenant(runtime, tenant).await? {
        removed += of_tenant(runtime, &next, before, BATCH - removed).await?;
        if removed >= BATCH || runtime.stop_token().is_cancelled() {
            break;
        }
        tenant = Some(next);
    }
    Ok(removed)
}

async fn next_tenant(runtime: &Runtime, after: Option<TenantId>) -> Result<Option<TenantId>, StoreError> {
    let found = runtime
        .store
        .read(move |tx| Box::pin(async move { retention::next_tenant(tx, after.as_ref()).await }));
    found.await
}

async fn of_tenant(
    runtime: &Arc<Runtime>,
    tenant: &TenantId,
    before: Timestamp,
    most: u64,
) -> Result<u64, StoreError> {
    let (mut removed, mut after): (u64, Option<RunId>) = (0, None);
    loop {
        let (of, from) = (tenant.clone(), after.take());
        let page = runtime.store.read(move |tx| {
            Box::pin(async move { retention::ended_before(tx, &of, before, from.as_ref(), LOOK).await })
        });
        let page = page.await?;
        for run in page.old {
            if removed >= most || runtime.stop_token().is_cancelled() {
                return Ok(removed);
            }
            let of = tenant.clone();
            let retired = runtime
                .store
                .write(move |tx| Box::pin(async move { retention::retire(tx, &of, &run, before).await }));
            if retired.await? {
                removed += 1;
                sweep(runtime).await?;
            }
        }
        let Some(next) = page.next else { return Ok(removed) };
        after = Some(next);
    }
}

/// Removes what retired runs left, piece by piece.
async fn sweep(runtime: &Arc<Runtime>) -> Result<(), StoreError> {
    while !runtime.stop_token().is_cancelled()
        && runtime.store.write(|tx| Box::pin(async move { retention::sweep(tx).await })).await?
    {}
    Ok(())
}
