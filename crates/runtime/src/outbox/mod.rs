//! Delivers what commits left in the outbox: at least once, with the parcel's
//! id as key, from any node.
//!
//! A parcel that is taken comes back by itself after a while, and as soon as
//! the node is dead that has it in hand: nothing is lost with a node. What is delivered is removed; what is
//! refused again and again is given up, and the audit says so.

pub(crate) mod announce;
mod mail;
mod push;
mod webhook;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use toolyard_egress::{Door, Mailer};
use toolyard_protocol::{TenantId, Timestamp, limits};
use toolyard_store::outbox::{self, Parcel};
use toolyard_store::{StoreError, audit, failpoint};
use toolyard_tools::sealer::Sealer;

use crate::runtime::Runtime;

pub use push::NOTICE_HEADER;

/// Parcels in hand at once.
const HANDS: usize = 64;
/// Of them for one address.
const PER_TARGET: usize = 4;
/// When a parcel is looked at again whose address has no hand free.
const LATER_MS: u64 = 1_000;
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
    let mut hands = Hands { at_work: FuturesUnordered::new(), busy: HashMap::new() };
    while !stop.is_cancelled() {
        let rest = match hands.fill(&runtime, &delivery).await {
            Ok(rest) => rest,
            Err(e) => {
                tracing::warn!(error = %e, "the outbox cannot reach the database");
                runtime.settings.tick
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = hands.one_is_free(), if !hands.at_work.is_empty() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }
    // What is on its way may arrive; what does not comes back by itself.
    let over = runtime.handing_back.clone();
    over.run_until_cancelled(async { while hands.at_work.next().await.is_some() {} }).await;
}

/// Deliveries at work. No address takes more than its part of the hands, so
/// that one which answers late keeps only its own parcels waiting.
struct Hands<'a> {
    at_work: FuturesUnordered<BoxFuture<'a, (TenantId, String)>>,
    busy: HashMap<(TenantId, String), usize>,
}

impl<'a> Hands<'a> {
    async fn one_is_free(&mut self) {
        if let Some(target) = self.at_work.next().await
            && let Some(count) = self.busy.get_mut(&target)
        {
            *count -= 1;
            if *count == 0 {
                self.busy.remove(&target);
            }
        }
    }

    /// Takes what is due into free hands; answers how long to rest.
    async fn fill(
        &mut self,
        runtime: &'a Arc<Runtime>,
        delivery: &'a Delivery,
    ) -> Result<Duration, StoreError> {
        let tick = runtime.settings.tick;
        let free = HANDS.saturating_sub(self.at_work.len());
        if free == 0 {
            return Ok(tick);
        }
        // A look costs nothing; taking is a commit.
        let by = runtime.owner.clone();
        let due = runtime.store.read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let now = tx.now().await?;
                Ok(outbox::next_due(tx, &by).await?.map(|due| (due <= now, due.since(now))))
            })
        });
        match due.await? {
            None => return Ok(tick),
            Some((false, ms)) => return Ok(tick.min(Duration::from_millis(ms.max(5)))),
            Some((true, _)) => {}
        }
        let (busy, by) = (self.busy.clone(), runtime.owner.clone());
        let taken = runtime.store.write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let now = tx.now().await?;
                let most = u32::try_from(free).unwrap_or(u32::MAX);
                let parcels = outbox::take(tx, &by, now.plus_millis(HOLD_MS), most).await?;
                let (ours, later) = share(parcels, busy);
                for parcel in later {
                    outbox::put_back(tx, &parcel.tenant, &parcel.id, now.plus_millis(LATER_MS)).await?;
                }
                failpoint::pass("take.before_commit")?;
                Ok((now, ours))
            })
        });
        let (now, parcels) = taken.await?;
        failpoint::pass("take.after_commit")?;
        for parcel in parcels {
            let target = target_of(&parcel);
            *self.busy.entry(target.clone()).or_default() += 1;
            self.at_work.push(Box::pin(async move {
                hand_over(runtime, delivery, parcel, now).await;
                target
            }));
        }
        Ok(Duration::ZERO)
    }
}

/// Where a parcel goes: the end of its id names its webhook; letters share one server.
fn target_of(parcel: &Parcel) -> (TenantId, String) {
    let end = parcel.id.rsplit(':').next().unwrap_or_default();
    let place = if parcel.kind == toolyard_store::webhooks::PARCEL { end } else { parcel.kind.as_str() };
    (parcel.tenant.clone(), place.to_owned())
}

/// What goes out now, and what must wait for its address.
fn share(parcels: Vec<Parcel>, mut busy: HashMap<(TenantId, String), usize>) -> (Vec<Parcel>, Vec<Parcel>) {
    parcels.into_iter().partition(|parcel| {
        let count = busy.entry(target_of(parcel)).or_default();
        *count += 1;
        *count <= PER_TARGET
    })
}

async fn hand_over(runtime: &Arc<Runtime>, delivery: &Delivery, parcel: Parcel, now: Timestamp) {
    failpoint!("delivery.before_attempt");
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
    failpoint!("delivery.after_attempt");
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
                    outbox::postpone(tx, &tenant, &id, until).await?;
                    return failpoint::pass("settle.before_commit");
                }
            };
            if let Some(why) = given_up {
                let detail = format!("after {attempts} attempts: {why}");
                audit::write(tx, &tenant, "outbox", &format!("{kind}.given_up"), &id, Some(&detail)).await?;
            }
            outbox::delivered(tx, &tenant, &id).await?;
            failpoint::pass("settle.before_commit")
        })
    });
    settled.await?;
    failpoint::pass("settle.after_commit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_never_takes_all_hands() {
        let parcel = |n: usize, hook: &str| Parcel {
            tenant: TenantId::default_tenant(),
            id: format!("run:{n}:{hook}"),
            kind: toolyard_store::webhooks::PARCEL.to_owned(),
            payload: serde_json::Value::Null,
            attempts: 1,
        };
        let parcels = (0..10).map(|n| parcel(n, "slow")).chain([parcel(0, "quick")]).collect();
        let busy = HashMap::from([((TenantId::default_tenant(), "slow".to_owned()), PER_TARGET - 1)]);
        let (now, later) = share(parcels, busy);
        let ids: Vec<&str> = now.iter().map(|p| p.id.as_str()).collect();
        assert_eq!((ids, later.len()), (vec!["run:0:slow", "run:0:quick"], 9));
    }

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
