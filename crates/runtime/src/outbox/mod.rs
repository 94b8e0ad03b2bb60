//! Delivers what commits left in the outbox: at least once, with the parcel's
//! id as key, from any node.
//!
//! A parcel that is taken comes back by itself after a while, so a node that
//! dies with it in hand loses nothing. What is delivered is removed; what is
//! refused again and again is given up, and the audit says so.

pub(crate) mod announce;
mod mail;
mod push;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use toolyard_egress::{Door, Mailer};
use toolyard_protocol::{Timestamp, limits};
use toolyard_store::outbox::{self, Parcel};
use toolyard_store::{StoreError, audit};
use toolyard_tools::sealer::Sealer;

use crate::runtime::Runtime;

pub use push::NOTICE_HEADER;

/// Parcels in hand at once.
const HANDS: usize = 16;
/// A parcel in hand comes back after this time if nobody says how it went.
const HOLD_MS: u64 = 60_000;
/// One attempt. Shorter than the hold, so that a slow one is not made twice.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(20);

/// By which ways parcels leave.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// For webhooks: guarded, since tenants choose the addresses.
    pub door: Door,
    pub sealer: Arc<Sealer>,
    /// For letters, if the operator has a mail server.
    pub mailer: Option<Mailer>,
    /// Where notifications say that the gateway's files lie.
    pub files: String,
    pub retry: Retry,
}

/// When a parcel is tried again: after `first`, then twice as long each time up
/// to `most`, until `attempts` were made.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    pub first: Duration,
    pub most: Duration,
    pub attempts: i64,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            most: Duration::from_secs(3600),
            attempts: limits::DELIVERY_ATTEMPTS,
        }
    }
}

impl Retry {
    /// The pause after the n-th attempt, up to a fifth longer, so that parcels
    /// which failed together do not come back together.
    fn pause_ms(&self, attempts: i64, id: &str) -> u64 {
        let doublings = u32::try_from(attempts - 1).unwrap_or(0).min(20);
        let pause = self.first.saturating_mul(1 << doublings).min(self.most);
        let ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        let lot = toolyard_protocol::Hash::of(format!("{id} {attempts}").as_bytes());
        let lot = lot.as_str().bytes().fold(0_u64, |sum, b| sum.wrapping_mul(31).wrapping_add(u64::from(b)));
        ms.saturating_add(lot % (ms / 5).max(1))
    }
}

/// How one attempt went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Went {
    Delivered {
        status: Option<i64>,
    },
    Failed {
        status: Option<i64>,
        why: String,
    },
    /// Nobody wants it any more, or nobody ever can take it.
    Dropped {
        why: Option<String>,
    },
}

impl Runtime {
    /// Delivers parcels until the runtime stops.
    pub fn deliver_parcels(self: &Arc<Self>, delivery: Delivery) {
        self.tasks().spawn("outbox", run(self.clone(), delivery));
    }
}

async fn run(runtime: Arc<Runtime>, delivery: Delivery) {
    let stop = runtime.stop_token().clone();
    while !stop.is_cancelled() {
        let rest = match round(&runtime, &delivery).await {
            Ok(rest) => rest,
            Err(e) => {
                tracing::warn!(error = %e, "the outbox cannot reach the database");
                runtime.settings.tick
            }
        };
        if stop.run_until_cancelled(tokio::time::sleep(rest)).await.is_none() {
            return;
        }
    }
}

/// Delivers what is due; answers how long to rest.
async fn round(runtime: &Arc<Runtime>, delivery: &Delivery) -> Result<Duration, StoreError> {
    let tick = runtime.settings.tick;
    // A look costs nothing; taking is a commit.
    let due = runtime.store.read::<_, StoreError, _>(|tx| {
        Box::pin(async move {
            let now = tx.now().await?;
            Ok(outbox::next_due(tx).await?.map(|due| (due <= now, due.since(now))))
        })
    });
    match due.await? {
        None => return Ok(tick),
        Some((false, ms)) => return Ok(tick.min(Duration::from_millis(ms.max(5)))),
        Some((true, _)) => {}
    }
    let taken = runtime.store.write::<_, StoreError, _>(|tx| {
        Box::pin(async move {
            let now = tx.now().await?;
            Ok((now, outbox::take(tx, now.plus_millis(HOLD_MS), HANDS as u32).await?))
        })
    });
    let (now, parcels) = taken.await?;
    let all = parcels.into_iter().map(|parcel| hand_over(runtime, delivery, parcel, now));
    futures::stream::iter(all).buffer_unordered(HANDS).collect::<Vec<()>>().await;
    Ok(Duration::ZERO)
}

async fn hand_over(runtime: &Arc<Runtime>, delivery: &Delivery, parcel: Parcel, now: Timestamp) {
    let went = match parcel.kind.as_str() {
        toolyard_store::webhooks::PARCEL => webhook::deliver(runtime, delivery, &parcel, now).await,
        toolyard_store::push_configs::PARCEL => push::deliver(runtime, delivery, &parcel, now).await,
        mail::PARCEL => mail::deliver(delivery, &parcel).await,
        kind => {
            // A newer release may know it: it stays for its node.
            tracing::warn!(kind, "the outbox holds something that this release cannot deliver");
            Went::Failed { status: None, why: format!("unknown kind {kind}") }
        }
    };
    let (retry, id) = (delivery.retry, parcel.id.clone());
    if let Err(e) = settle(runtime, retry, parcel, went).await {
        // It comes back by itself.
        tracing::warn!(parcel = id, error = %e, "could not write down how a delivery went");
    }
}

/// Writes down how it went: gone, later, or given up.
async fn settle(runtime: &Runtime, retry: Retry, parcel: Parcel, went: Went) -> Result<(), StoreError> {
    let settled = runtime.store.write::<_, StoreError, _>(move |tx| {
        Box::pin(async move {
            let Parcel { tenant, id, kind, attempts, .. } = parcel;
            let spent = attempts >= retry.attempts;
            webhook::note(tx, &tenant, &kind, &id, &went, spent).await?;
            let given_up = match went {
                Went::Delivered { .. } | Went::Dropped { why: None } => None,
                Went::Dropped { why: Some(why) } => Some(why),
                Went::Failed { why, .. } if spent => Some(why),
                Went::Failed { .. } => {
                    let until = tx.now().await?.plus_millis(retry.pause_ms(attempts, &id));
                    return outbox::postpone(tx, &tenant, &id, until).await;
                }
            };
            if let Some(why) = given_up {
                let detail = format!("after {attempts} attempts: {why}");
                audit::write(tx, &tenant, "outbox", &format!("{kind}.given_up"), &id, Some(&detail)).await?;
            }
            outbox::delivered(tx, &tenant, &id).await
        })
    });
    settled.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_most_and_are_never_all_alike() {
        let retry = Retry::default();
        let at = |n: i64| retry.pause_ms(n, "a");
        for (n, least) in
            [(1, 1_000), (2, 2_000), (5, 16_000), (12, 2_048_000), (13, 3_600_000), (99, 3_600_000)]
        {
            assert!((least..least + least / 5).contains(&at(n)), "{n}: {}", at(n));
        }
        let lots: std::collections::HashSet<u64> =
            (0..20).map(|i| retry.pause_ms(9, &format!("parcel {i}"))).collect();
        assert!(lots.len() > 10, "{lots:?}");
    }
}
