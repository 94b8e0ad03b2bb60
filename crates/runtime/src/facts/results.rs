//! Results of client tools: the one operation behind every result door.

use std::sync::Arc;

use toolyard_engine::facts::{self, Refusal};
use toolyard_protocol::event::{Event, ToolReturned};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::wait::{WaitKind, may_answer};
use toolyard_protocol::{ApiError, CallId, ErrorCode, RunId, ToolOutcome, limits};
use toolyard_store::runs::RunRow;
use toolyard_store::waits::{self, WaitRow};
use toolyard_store::{Tx, blobs, failpoint, log};

use super::{Caller, Held, Manner};
use crate::blob::{Fitted, fit};
use crate::refused::Refused;
use crate::runtime::Runtime;
use crate::starting::Desk;

/// A result that a client hands in.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultIn {
    pub call: CallId,
    pub outcome: ToolOutcome,
}

/// What became of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    Accepted,
    /// The same result was accepted before.
    Repeated,
    /// Another one came first, or nobody waits for it. Only of histories.
    Late,
}

impl Runtime {
    /// Takes results of client tools: all of the batch, or none of it. First
    /// result wins; an identical repeat is fine, also after the run's end.
    pub async fn submit(
        self: &Arc<Self>,
        caller: Caller,
        run: RunId,
        results: Vec<ResultIn>,
    ) -> Result<Vec<Submitted>, ApiError> {
        check_batch(results.len())?;
        let results: Vec<_> = results.into_iter().map(|r| (r.call, fit(r.outcome))).collect();
        let taken = self
            .fact(move |tx, desk| {
                Box::pin(async move {
                    let held = Held::lock(tx, &caller.tenant, &run).await?;
                    let held = held.ok_or_else(|| ApiError::not_found("Run"))?;
                    let taken = take_all(tx, held, &caller, results, Manner::Told, desk).await?;
                    failpoint::pass("submit.before_commit")?;
                    Ok(taken)
                })
            })
            .await?;
        failpoint::pass("submit.after_commit").map_err(Refused::from)?;
        Ok(taken)
    }
}

fn check_batch(count: usize) -> Result<(), ApiError> {
    let most = limits::RESULT_BATCH;
    if count == 0 {
        return Err(ApiError::missing("results"));
    }
    if count > most {
        let text = format!("{count} results in one request: the limit is {most}");
        return Err(ApiError::limit(ErrorCode::LimitExceeded, u64::try_from(most).unwrap_or(0), text));
    }
    Ok(())
}

/// Takes each result for the run that waits for it: this one, or one below it.
pub(crate) async fn take_all(
    tx: &mut Tx<'_>,
    held: Held,
    caller: &Caller,
    results: Vec<(CallId, Fitted)>,
    manner: Manner,
    desk: &mut Desk,
) -> Result<Vec<Submitted>, Refused> {
    let own = waits::of_run(tx, &held.row.tenant, &held.row.id).await?;
    if results.iter().all(|(call, _)| find(&own, call).is_ok()) {
        // A turn may be refused for something else that it brings.
        if manner == Manner::Told {
            tx.settle();
        }
        return take(tx, held, own, caller, results, manner, desk).await;
    }
    let below = waits::below(tx, &held.row.tenant, &held.row.id).await?;
    let mut taken = Vec::with_capacity(results.len());
    for (call, fitted) in results {
        let wait = find(&own, &call).or_else(|_| find(&below, &call))?;
        let (tenant, run) = (&caller.tenant, &wait.wait.run);
        let held = Held::lock(tx, tenant, run).await?.ok_or_else(|| ApiError::not_found("Run"))?;
        let fresh = waits::of_run(tx, tenant, run).await?;
        taken.extend(take(tx, held, fresh, caller, vec![(call, fitted)], manner, desk).await?);
    }
    Ok(taken)
}

/// Refuses before it changes anything.
async fn take(
    tx: &mut Tx<'_>,
    held: Held,
    all: Vec<WaitRow>,
    caller: &Caller,
    results: Vec<(CallId, Fitted)>,
    manner: Manner,
    desk: &mut Desk,
) -> Result<Vec<Submitted>, Refused> {
    let row = &held.row;
    let mut open = all.iter().filter(|w| w.ended_seq.is_none()).count();
    let mut events: Vec<Event> = Vec::new();
    let mut taken = Vec::with_capacity(results.len());
    let mut large = Vec::new();
    for (call, fitted) in results {
        let wait = find(&all, &call)?;
        if !may_answer(&caller.viewer, &wait.wait.rule) {
            if manner == Manner::History {
                taken.push(Submitted::Late);
                continue;
            }
            return Err(forbidden().into());
        }
        if let Some(stored) = stored_end(tx, row, wait, &events).await? {
            let same = match &stored {
                Event::ToolReturned(stored) => {
                    facts::same_result(stored, &fitted.outcome, fitted.blob_ref().as_ref())
                }
                _ => false,
            };
            taken.push(match (same, manner, &stored) {
                (true, _, _) => Submitted::Repeated,
                (false, Manner::History, _) => Submitted::Late,
                (false, Manner::Told, Event::ToolReturned(stored)) if row.status.is_final() => {
                    return Err(if was_handed_in(stored) {
                        Refusal::RunEndedWithAnother
                    } else {
                        Refusal::RunEnded
                    }
                    .into());
                }
                (false, Manner::Told, Event::ToolReturned(_)) => return Err(Refusal::ResultConflict.into()),
                (false, Manner::Told, _) => return Err(Refusal::WaitEnded.into()),
            });
            continue;
        }
        desk.began(&call, wait.wait.opened_at);
        let blob = fitted.blob_ref();
        events.extend(facts::submit_result(&wait.wait, fitted.outcome, blob, caller.actor.clone())?);
        large.extend(fitted.blob);
        open -= 1;
        taken.push(Submitted::Accepted);
    }
    manner.mark(&mut events);
    for (blob, bytes) in &large {
        blobs::put_of_run(tx, &row.tenant, &row.id, &blob.blob, bytes).await?;
    }
    if !events.is_empty() {
        held.append(tx, events, open, false, desk).await?;
    }
    Ok(taken)
}

/// The wait that a client's result would end. A call that asks for approval,
/// or runs on the gateway, has none.
fn find<'w>(all: &'w [WaitRow], call: &CallId) -> Result<&'w WaitRow, ApiError> {
    all.iter()
        .find(|w| w.wait.call == *call && w.wait.kind == WaitKind::Client)
        .ok_or_else(|| ApiError::not_found("Tool call"))
}

/// Somebody's result ended the call, and not the gateway: its time or its run was over.
fn was_handed_in(stored: &ToolReturned) -> bool {
    matches!(stored.by.shown(), Some(Actor::Caller { .. }))
}

/// How a call ended, if it did: in the log, or earlier in this batch.
async fn stored_end(
    tx: &mut Tx<'_>,
    row: &RunRow,
    wait: &WaitRow,
    batch: &[Event],
) -> Result<Option<Event>, Refused> {
    let earlier = batch.iter().find(|e| matches!(e, Event::ToolReturned(r) if r.call == wait.wait.call));
    match (earlier, wait.ended_seq) {
        (Some(event), _) => Ok(Some(event.clone())),
        (None, Some(seq)) => Ok(log::event(tx, &row.tenant, &row.id, seq).await?),
        (None, None) => Ok(None),
    }
}

pub(super) fn forbidden() -> ApiError {
    ApiError::new(ErrorCode::Forbidden, "This key may not answer this call")
}
