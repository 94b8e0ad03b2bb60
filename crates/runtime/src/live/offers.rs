//! Offers calls of the ledger to the programs of this node. One call goes to
//! one program: whoever the database lets claim it. It is offered again when
//! the claim lapses or the connection is gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::MissedTickBehavior;
use toolyard_protocol::event::Event;
use toolyard_protocol::wait::{AnswerRule, may_answer};
use toolyard_protocol::{ClientId, ConnectionId, EntityId, RunId, TenantId, limits};
use toolyard_store::waits::{self, Claim, Offerable, WaitRow};
use toolyard_store::{CallsOf, StoreError, Tx, log, presences};

use super::present::{self, Wanted};
use super::{Live, LiveNews, OfferedCall};
use crate::runtime::Runtime;

/// Pages of the ledger that one look reads; the next look begins anew.
const PAGES: usize = 25;
/// Looks between two sweeps of what dead nodes left.
const SWEEP: u32 = 60;
/// Looks between two that ask about every held call, in case news got lost.
const ENDS: u32 = 10;
/// Looks between two hand-overs of the tally.
const COUNTS: u32 = 5;

/// Why to look.
enum Reason {
    /// Somebody came or went, or it is time.
    Offers,
    /// News may have been missed.
    Everything,
    News(CallsOf),
}

/// A program that may take a call.
#[derive(Debug, Clone)]
struct Candidate {
    connection: ConnectionId,
    client: ClientId,
    entity: Option<EntityId>,
}

/// Offers until the runtime stops.
pub(crate) async fn run(runtime: Arc<Runtime>) {
    let stop = runtime.stop_token().clone();
    let mut calls = runtime.store.feed().watch_calls();
    let mut tick = tokio::time::interval(runtime.settings.tick);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ticks = 0u32;
    loop {
        let reason = tokio::select! {
            () = stop.cancelled() => return,
            () = runtime.live.changed.notified() => Reason::Offers,
            heard = calls.recv() => match heard {
                Ok(news) => Reason::News(news),
                Err(RecvError::Lagged(_)) => Reason::Everything,
                Err(RecvError::Closed) => return,
            },
            _ = tick.tick() => {
                ticks = ticks.wrapping_add(1);
                upkeep(&runtime, ticks).await;
                if ticks.is_multiple_of(ENDS) { Reason::Everything } else { Reason::Offers }
            }
        };
        if runtime.live.is_idle() {
            continue;
        }
        if let Err(e) = look(&runtime, reason).await {
            tracing::warn!(error = %e, "calls cannot be offered: the database does not answer");
        }
    }
}

/// What is done now and then, whether anybody is connected or not.
async fn upkeep(runtime: &Arc<Runtime>, ticks: u32) {
    if ticks.is_multiple_of(COUNTS)
        && let Err(e) = runtime.hand_over_counts().await
    {
        tracing::warn!(error = %e, "the counts of tools cannot be stored");
    }
    if ticks.is_multiple_of(SWEEP) && !runtime.store.is_sqlite() {
        let swept = runtime.store.write(|tx| Box::pin(async move { presences::sweep(tx).await })).await;
        if let Err(e) = swept {
            tracing::warn!(error = %e, "what dead nodes left cannot be removed");
        }
    }
}

async fn look(runtime: &Arc<Runtime>, reason: Reason) -> Result<(), StoreError> {
    let left = farewell(runtime).await?;
    match &reason {
        Reason::News(news) if !left => {
            if news.news.ended {
                tell_ends(runtime, &news.tenant, &news.run).await?;
            }
            if news.news.parked {
                offer_run(runtime, &news.tenant, &news.run).await?;
            }
            Ok(())
        }
        Reason::News(_) | Reason::Everything | Reason::Offers => {
            if !matches!(reason, Reason::Offers) {
                for (tenant, run) in runtime.live.held_runs() {
                    tell_ends(runtime, &tenant, &run).await?;
                }
            }
            for tenant in runtime.live.tenants() {
                offer_all(runtime, &tenant).await?;
            }
            Ok(())
        }
    }
}

/// Removes the rows of sockets that are gone. True if there were any: their
/// calls are free.
async fn farewell(runtime: &Arc<Runtime>) -> Result<bool, StoreError> {
    let gone = std::mem::take(&mut *runtime.live.gone());
    if gone.is_empty() {
        return Ok(false);
    }
    let leaving = Arc::new(gone);
    let rows = leaving.clone();
    let done = runtime
        .store
        .write(move |tx| {
            Box::pin(async move {
                for (tenant, connection) in rows.iter() {
                    presences::leave(tx, tenant, connection).await?;
                }
                Ok::<_, StoreError>(())
            })
        })
        .await;
    if let Err(e) = done {
        runtime.live.gone().extend(leaving.iter().cloned());
        return Err(e);
    }
    Ok(true)
}

async fn offer_run(runtime: &Arc<Runtime>, tenant: &TenantId, run: &RunId) -> Result<(), StoreError> {
    if !runtime.live.tenants().contains(tenant) {
        return Ok(());
    }
    let (of, run, owner) = (tenant.clone(), run.clone(), runtime.owner.clone());
    let rows = runtime.store.read(move |tx| {
        Box::pin(
            async move { waits::offerable(tx, &of, &owner, Offerable::Run(&run), limits::PAGE_MAX).await },
        )
    });
    for row in rows.await? {
        offer(runtime, row).await?;
    }
    Ok(())
}

async fn offer_all(runtime: &Arc<Runtime>, tenant: &TenantId) -> Result<(), StoreError> {
    let mut after = None;
    for _ in 0..PAGES {
        let (of, owner) = (tenant.clone(), runtime.owner.clone());
        let page = runtime.store.read(move |tx| {
            Box::pin(async move {
                let behind = Offerable::Behind(after.as_ref());
                waits::offerable(tx, &of, &owner, behind, limits::PAGE_MAX).await
            })
        });
        let page = page.await?;
        after = page.last().map(|row| (row.wait.opened_at, row.wait.id.clone()));
        let full = page.len() == limits::PAGE_MAX as usize;
        for row in page {
            offer(runtime, row).await?;
        }
        if !full {
            break;
        }
    }
    Ok(())
}

/// Gives a call to the first program that may have it.
async fn offer(runtime: &Arc<Runtime>, row: WaitRow) -> Result<(), StoreError> {
    let candidates = runtime.live.candidates(&row);
    if candidates.is_empty() {
        return Ok(());
    }
    let claimed =
        runtime.store.write(move |tx| Box::pin(async move { claim(tx, row, candidates).await })).await?;
    if let Some((connection, call)) = claimed {
        runtime.live.give(&connection, call);
    }
    Ok(())
}

/// Claims a call for the first candidate that may answer it.
async fn claim(
    tx: &mut Tx<'_>,
    row: WaitRow,
    candidates: Vec<Candidate>,
) -> Result<Option<(ConnectionId, OfferedCall)>, StoreError> {
    for Candidate { connection, client, entity } in candidates {
        let viewer = present::viewer(tx, &row.tenant, Wanted::of(&row), entity.as_ref()).await?;
        let Some(viewer) = viewer.filter(|viewer| may_answer(viewer, &row.wait.rule)) else { continue };
        let until = tx.now().await?.plus_millis(limits::CLAIM_SECONDS * 1000);
        let mine = Claim { client: &client, connection: Some(&connection), until };
        let (run, wait) = (&row.wait.run, &row.wait.id);
        if !waits::claim_for(tx, &row.tenant, run, wait, mine).await? {
            // Another node was quicker, or the call has ended.
            return Ok(None);
        }
        let opened = log::event(tx, &row.tenant, run, row.opened_seq).await?;
        let args = match opened {
            Some(Event::ToolCallRequested(call)) => call.args.into_shown(),
            _ => None,
        };
        return Ok(Some((connection, OfferedCall { row, args, viewer, claimed_until: until })));
    }
    Ok(None)
}

/// Tells the programs that hold calls of a run which of them have ended.
async fn tell_ends(runtime: &Arc<Runtime>, tenant: &TenantId, run: &RunId) -> Result<(), StoreError> {
    if !runtime.live.holds(tenant, run) {
        return Ok(());
    }
    let (of, asked) = (tenant.clone(), run.clone());
    let read = runtime.store.read(move |tx| {
        Box::pin(async move {
            let mut ended = Vec::new();
            for row in waits::of_run(tx, &of, &asked).await? {
                let Some(seq) = row.ended_seq else { continue };
                let outcome = match log::event(tx, &of, &asked, seq).await? {
                    Some(Event::ToolReturned(end)) => Some(end.outcome),
                    _ => None,
                };
                ended.push((row.wait.id, outcome));
            }
            Ok::<_, StoreError>(ended)
        })
    });
    let ended = read.await?;
    let mut seats = runtime.live.seats();
    for seat in seats.values_mut().filter(|seat| seat.tenant == *tenant) {
        for (wait, outcome) in &ended {
            if let Some((run, call, tool)) = seat.held.remove(wait) {
                let _ = seat.outbox.try_send(LiveNews::Ended { run, call, tool, outcome: *outcome });
            }
        }
    }
    Ok(())
}

impl Live {
    fn tenants(&self) -> BTreeSet<TenantId> {
        self.seats().values().map(|seat| seat.tenant.clone()).collect()
    }

    fn held_runs(&self) -> BTreeSet<(TenantId, RunId)> {
        let seats = self.seats();
        let held =
            seats.values().flat_map(|s| s.held.values().map(|(run, ..)| (s.tenant.clone(), run.clone())));
        held.collect()
    }

    fn holds(&self, tenant: &TenantId, run: &RunId) -> bool {
        let seats = self.seats();
        seats.values().any(|s| s.tenant == *tenant && s.held.values().any(|(of, ..)| of == run))
    }

    /// Who holds the tool here and has room: the user whose run it is before
    /// others, then the one with the least to do.
    fn candidates(&self, row: &WaitRow) -> Vec<Candidate> {
        let seats = self.seats();
        let trigger = match &row.wait.rule {
            AnswerRule::Trigger { entity } => Some(entity),
            AnswerRule::Members {}
            | AnswerRule::Admin {}
            | AnswerRule::Backend {}
            | AnswerRule::Gateway {} => None,
        };
        let mut fitting: Vec<_> = seats
            .iter()
            .filter(|(_, seat)| {
                seat.tenant == row.tenant
                    && seat.tools.contains(&row.wait.tool)
                    && !seat.held.contains_key(&row.wait.id)
                    && seat.held.len() < limits::SOCKET_CALLS
                    && seat.outbox.capacity() > limits::SOCKET_CALLS
            })
            .collect();
        fitting.sort_by_key(|(_, seat)| {
            let other = trigger.is_none() || seat.entity.as_ref() != trigger;
            (other, seat.held.len(), seat.order)
        });
        let candidate = |(connection, seat): (&ConnectionId, &super::Seat)| Candidate {
            connection: connection.clone(),
            client: seat.client.clone(),
            entity: seat.entity.clone(),
        };
        fitting.into_iter().map(candidate).collect()
    }

    /// Puts a claimed call into a program's queue. If it has just left, the
    /// claim goes with its row.
    fn give(&self, connection: &ConnectionId, call: OfferedCall) {
        let mut seats = self.seats();
        let Some(seat) = seats.get_mut(connection) else { return };
        let wait = &call.row.wait;
        seat.held.insert(wait.id.clone(), (wait.run.clone(), wait.call.clone(), wait.tool.clone()));
        let _ = seat.outbox.try_send(LiveNews::Call(Box::new(call)));
    }
}
