//! Removes runs that ended long ago, if the operator wants that: a few small
//! transactions, then a rest. Several nodes may do it at once: each looks again
//! under the run's lock, and the second finds nothing. Before that, whatever
//! removal an earlier life left half done is finished.

use std::sync::Arc;
use std::time::Duration;

use toolyard_protocol::{RunId, TenantId, Timestamp};
use toolyard_store::removal::{self, CutShort};
use toolyard_store::{StoreError, failpoint, retention};

use crate::runtime::Runtime;

/// Runs that one look at the database finds.
const LOOK: u32 = 200;
/// Runs that are removed before the next rest.
const BATCH: u64 = 100;
/// How often it is looked for old runs, at most.
const ROUND: Duration = Duration::from_secs(60);

/// Finishes what was cut short, then removes old runs until the runtime stops.
pub(crate) async fn run(runtime: Arc<Runtime>, mut cut_short: Vec<CutShort>) {
    let stop = runtime.stop_token().clone();
    loop {
        let done = round(&runtime, &mut cut_short).await;
        if let Err(e) = &done {
            tracing::warn!(error = %e, "what is to be removed cannot be removed now");
        }
        let failed = done.is_err() || !cut_short.is_empty();
        let removed = done.unwrap_or_default();
        if removed > 0 {
            tracing::info!(runs = removed, "removed runs that ended long ago");
            metrics::counter!("toolyard_runs_removed_total").increment(removed);
        }
        let tick = runtime.settings.tick;
        let rest = match runtime.settings.keep_finished {
            Some(_) if removed >= BATCH => tick,
            Some(keep) => (keep / 4).clamp(tick, ROUND.max(tick)),
            None if failed => ROUND,
            // What an earlier life left behind is gone; there is nothing else to do.
            None => return,
        };
        if stop.run_until_cancelled(tokio::time::sleep(rest)).await.is_none() {
            return;
        }
    }
}

/// Removes at most a batch; answers how many.
async fn round(runtime: &Arc<Runtime>, cut_short: &mut Vec<CutShort>) -> Result<u64, StoreError> {
    for removal in std::mem::take(cut_short) {
        let finishing = removal::finish(&runtime.store, &removal);
        match runtime.stop_token().run_until_cancelled(finishing).await {
            // The next start goes on, then.
            None => return Ok(0),
            Some(Ok(())) => tracing::info!("finished a removal that was cut short"),
            // It must not keep the others waiting.
            Some(Err(e)) => {
                tracing::warn!(error = %e, "a removal that was cut short cannot be finished now");
                cut_short.push(removal);
            }
        }
    }
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
                failpoint::pass("retire.after_commit")?;
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
    {
        failpoint::pass("sweep.after_commit")?;
    }
    Ok(())
}
