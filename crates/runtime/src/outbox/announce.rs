//! What webhooks hear of a run, written by the transaction that makes it true.
//! Nothing in it is hidden from a public key.

use serde_json::{Value, json};
use toolyard_protocol::event::{Event, RunFinished, RunPaused};
use toolyard_protocol::run::{PauseReason, RunEnd};
use toolyard_protocol::{AgentName, EntityId, RunId, SpaceId, TenantId, Timestamp};
use toolyard_store::push_configs;
use toolyard_store::webhooks::{self, Fact};
use toolyard_store::{StoreError, Tx};

use crate::live::present::all_held;

/// Whose events they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Of<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) run: &'a RunId,
    /// The run that this one works for, or itself.
    pub(crate) root: &'a RunId,
    pub(crate) space: Option<&'a SpaceId>,
    pub(crate) agent: Option<&'a AgentName>,
    pub(crate) trigger: Option<&'a EntityId>,
    /// Somebody follows the run right now.
    pub(crate) watched: bool,
}

/// Tells of the last of these events, if it is one that webhooks hear of.
/// `seq` is its place in the log.
pub(crate) async fn announce(
    tx: &mut Tx<'_>,
    of: Of<'_>,
    events: &[Event],
    seq: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let tells = matches!(events.last(), Some(Event::RunPaused(_) | Event::RunFinished(_)));
    if !tells {
        return Ok(());
    }
    let heard = match events.last() {
        Some(Event::RunPaused(paused)) => wants_somebody(paused.reason),
        _ => true,
    };
    if heard {
        push_configs::announce(tx, of.tenant, of.run, seq, None).await?;
    }
    if !webhooks::any(tx, of.tenant).await? {
        return Ok(());
    }
    let (fact, name, data) = match events.last() {
        // What a child asks shows on its root, which pauses for it: told once, there.
        Some(Event::RunPaused(paused))
            if of.run == of.root && !of.watched && wants_somebody(paused.reason) =>
        {
            if all_held(tx, of.tenant, paused).await? {
                return Ok(());
            }
            (Fact::Waiting { of: of.trigger }, "run.waiting", waiting(paused))
        }
        // The end of a child is told to its parent.
        Some(Event::RunFinished(end)) if of.run == of.root => match end.status {
            RunEnd::Completed => (Fact::Completed, "run.completed", finished(end)),
            RunEnd::Failed => (Fact::Failed, "run.failed", finished(end)),
            RunEnd::Canceled => return Ok(()),
        },
        _ => return Ok(()),
    };
    let payload = json!({
        "type": name,
        "createdAt": at,
        "runId": of.run,
        "rootRunId": of.root,
        "smartSpaceId": of.space,
        "agent": of.agent,
        "data": data,
    });
    webhooks::announce(tx, of.tenant, fact, &format!("{}:{seq}", of.run), &payload).await
}

/// A timer or a child ends without anybody outside.
fn wants_somebody(reason: PauseReason) -> bool {
    match reason {
        PauseReason::Approval | PauseReason::Input | PauseReason::Credential | PauseReason::Client => true,
        PauseReason::Child | PauseReason::Timer => false,
    }
}

fn waiting(paused: &RunPaused) -> Value {
    json!({ "reason": paused.reason, "waits": paused.waits })
}

fn finished(end: &RunFinished) -> Value {
    json!({
        "status": end.status,
        "usage": end.usage,
        "cost": end.cost,
        "error": end.error,
        "message": end.message,
    })
}
