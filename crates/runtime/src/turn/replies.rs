//! Outputs and answers of a history, through the ledger: what waits for them
//! takes them, everything else is ignored. A forged one runs nothing.

use std::collections::HashMap;

use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{CallId, ErrorCode, RunId, WaitId};
use toolyard_store::Tx;
use toolyard_store::waits::{self, WaitRow};

use super::place::Place;
use super::{Replied, Turn};
use crate::blob::{Fitted, fit};
use crate::facts::{AnswerIn, Held, Manner, Submitted, give, take_all};
use crate::refused::Refused;
use crate::starting::Desk;

/// What became of a history's replies.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) accepted: usize,
    /// Calls whose stored outcome is the one that the client holds.
    pub(super) kept: Vec<CallId>,
    /// The run that a reply was for, if any was known here.
    pub(super) run: Option<RunId>,
}

pub(super) async fn take(
    tx: &mut Tx<'_>,
    turn: &Turn,
    place: &Place,
    desk: &mut Desk,
) -> Result<Taken, Refused> {
    let mut taken = Taken::default();
    let mut results: HashMap<RunId, Vec<(CallId, Fitted)>> = HashMap::new();
    let mut answers: Vec<(WaitId, AnswerIn)> = Vec::new();
    for reply in &turn.replies {
        let waits = here(tx, place, &reply.call).await?;
        match &reply.said {
            Replied::Outcome(outcome) => {
                let Some(row) = waits.iter().find(|w| w.wait.kind == WaitKind::Client) else { continue };
                taken.run = Some(row.wait.root.clone());
                results
                    .entry(row.wait.run.clone())
                    .or_default()
                    .push((reply.call.clone(), fit(outcome.clone())));
            }
            Replied::Answer { wait, answer } => {
                let asked = |w: &&WaitRow| w.wait.kind.wakes_when_answered();
                let named = |w: &&WaitRow| wait.as_ref().is_none_or(|wait| *wait == w.wait.id);
                let Some(row) = waits.iter().filter(asked).rfind(named) else { continue };
                taken.run = Some(row.wait.root.clone());
                let answer = AnswerIn { answer: answer.clone(), remember: None, args_hash: None };
                answers.push((row.wait.id.clone(), answer));
            }
        }
    }
    for (run, results) in results {
        let calls: Vec<CallId> = results.iter().map(|(call, _)| call.clone()).collect();
        let Some(held) = Held::lock(tx, &place.caller.tenant, &run).await? else { continue };
        let fates = take_all(tx, held, &place.caller, results, Manner::History, desk).await?;
        for (call, fate) in calls.into_iter().zip(fates) {
            match fate {
                Submitted::Accepted => {
                    taken.accepted += 1;
                    taken.kept.push(call);
                }
                Submitted::Repeated => taken.kept.push(call),
                Submitted::Late => {}
            }
        }
    }
    for (wait, answer) in answers {
        match give(tx, &place.caller, &wait, answer, Manner::History, desk).await {
            Ok(fate) => taken.accepted += usize::from(fate == Submitted::Accepted),
            // Another member's history holds what only some may answer.
            Err(Refused::Api(e)) if e.code == ErrorCode::Forbidden => {}
            Err(e) => return Err(e),
        }
    }
    Ok(taken)
}

/// The waits of a call, if it belongs to this conversation.
async fn here(tx: &mut Tx<'_>, place: &Place, call: &CallId) -> Result<Vec<WaitRow>, Refused> {
    let mut waits = waits::of_call(tx, &place.caller.tenant, call).await?;
    waits.retain(|w| w.space.as_ref() == Some(&place.space.id));
    Ok(waits)
}
