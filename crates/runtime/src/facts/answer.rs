//! Answers to questions (approvals, inputs, credentials), and claims.

use std::sync::Arc;

use toolyard_engine::facts::{self, Answer, Refusal};
use toolyard_engine::permission::{Grant, GrantEffect, GrantScope};
use toolyard_protocol::agent::execution::McpCall;
use toolyard_protocol::event::{Asked, Event};
use toolyard_protocol::wait::{WaitKind, may_answer};
use toolyard_protocol::{ApiError, ClientId, ErrorCode, GrantId, Hash, Timestamp, WaitId, limits};
use toolyard_schema::{Limits, ToolSchema};
use toolyard_store::grants::GrantRow;
use toolyard_store::runs::RunRow;
use toolyard_store::waits::{self, WaitRow};
use toolyard_store::{Tx, audit, failpoint, grants, log, mcp_pins};

use super::results::forbidden;
use super::{Caller, Held, Manner, Submitted};
use crate::refused::Refused;
use crate::runtime::Runtime;
use crate::starting::Desk;

/// An answer, and whether to remember it.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerIn {
    pub answer: Answer,
    pub remember: Option<Remember>,
    /// Of the arguments that the answerer saw.
    pub args_hash: Option<Hash>,
}

/// How long a decision holds beyond its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remember {
    /// For this space.
    Session,
    /// Until it is taken back.
    Always,
    /// Until it is taken back, for calls with these arguments.
    AlwaysThese,
}

impl Runtime {
    /// Answers a question. The first answer wins; the same one again is fine.
    pub async fn answer(
        self: &Arc<Self>,
        caller: Caller,
        wait: WaitId,
        answer: AnswerIn,
    ) -> Result<(), ApiError> {
        self.fact(move |tx, desk| {
            Box::pin(async move {
                give(tx, &caller, &wait, answer, Manner::Told, desk).await?;
                failpoint::pass("submit.before_commit")?;
                Ok(())
            })
        })
        .await?;
        failpoint::pass("submit.after_commit").map_err(Refused::from)?;
        Ok(())
    }

    /// Says "mine" for a client, for a while. Advisory: the first result wins
    /// whoever holds the claim.
    pub async fn claim(
        self: &Arc<Self>,
        caller: Caller,
        wait: WaitId,
        client: ClientId,
    ) -> Result<Timestamp, ApiError> {
        let until = self
            .store
            .write(move |tx| {
                Box::pin(async move {
                    let (Held { row, .. }, found) = lock(tx, &caller, &wait).await?;
                    if found.ended_seq.is_some() {
                        return Err(Refusal::WaitEnded.into());
                    }
                    let until = tx.now().await?.plus_millis(limits::CLAIM_SECONDS * 1000);
                    if !waits::claim(tx, &row.tenant, &row.id, &wait, &client, until).await? {
                        let text = "Another client has claimed this call";
                        return Err(Refused::Api(ApiError::new(ErrorCode::Conflict, text)));
                    }
                    Ok(until)
                })
            })
            .await?;
        Ok(until)
    }
}

/// Answers a question within a transaction.
pub(crate) async fn give(
    tx: &mut Tx<'_>,
    caller: &Caller,
    wait: &WaitId,
    answer: AnswerIn,
    manner: Manner,
    desk: &mut Desk,
) -> Result<Submitted, Refused> {
    let (held, found) = lock(tx, caller, wait).await?;
    let row = &held.row;
    if let Some(seq) = found.ended_seq {
        let stored = log::event(tx, &row.tenant, &row.id, seq).await?;
        if stored.is_some_and(|e| facts::same_answer(&e, &answer.answer)) {
            return Ok(Submitted::Repeated);
        }
        if manner == Manner::History {
            return Ok(Submitted::Late);
        }
        let ended = row.status.is_final();
        return Err(if ended { Refusal::RunEnded } else { Refusal::WaitEnded }.into());
    }
    let asked = question(tx, row, &found).await?;
    let shown = asked.payload.shown().map(|p| &p["argsHash"]);
    if let (Some(seen), Some(shown)) = (&answer.args_hash, shown)
        && shown.as_str() != Some(seen.as_str())
    {
        let text = "The answer is for other arguments than the ones asked about";
        return Err(ApiError::new(ErrorCode::Conflict, text).into());
    }
    check_value(&asked, &answer.answer)?;
    let mut events = facts::answer(&found.wait, answer.answer.clone(), caller.actor.clone())?;
    manner.mark(&mut events);
    // What is known to a tenant is its backend's word, not one user's.
    if matches!(answer.answer, Answer::Allow { .. }) && caller.viewer.sees_all() {
        pin(tx, row, &asked).await?;
    }
    if let Some(remember) = answer.remember {
        keep(tx, caller, row, asked, &answer.answer, remember).await?;
    }
    let open = waits::open_of_run(tx, &row.tenant, &row.id).await?.len();
    held.append(tx, events, open - 1, false, desk).await?;
    audit::write(tx, &caller.tenant, &who(caller), "wait.answered", wait.as_str(), None).await?;
    Ok(Submitted::Accepted)
}

/// Finds a wait, holds its run and checks the caller.
async fn lock(tx: &mut Tx<'_>, caller: &Caller, wait: &WaitId) -> Result<(Held, WaitRow), Refused> {
    let missing = || ApiError::not_found("Wait");
    let found = waits::find(tx, &caller.tenant, wait).await?.ok_or_else(missing)?;
    let held = Held::lock(tx, &caller.tenant, &found.wait.run).await?.ok_or_else(missing)?;
    // Read again: it may have ended before the lock was ours.
    let found = waits::find(tx, &caller.tenant, wait).await?.ok_or_else(missing)?;
    if !may_answer(&caller.viewer, &found.wait.rule) {
        return Err(forbidden().into());
    }
    Ok((held, found))
}

/// The question as it was asked.
async fn question(tx: &mut Tx<'_>, row: &RunRow, found: &WaitRow) -> Result<Asked, Refused> {
    match log::event(tx, &row.tenant, &row.id, found.opened_seq).await? {
        Some(Event::Asked(asked)) => Ok(asked),
        _ => Err(Refusal::WrongAnswer { kind: found.wait.kind, given: "an answer" }.into()),
    }
}

/// A value must have the form that was asked for.
fn check_value(asked: &Asked, answer: &Answer) -> Result<(), Refused> {
    let schema = asked.payload.shown().and_then(|p| p.get("schema"));
    let (Answer::Provide(value), Some(schema)) = (answer, schema) else { return Ok(()) };
    let Ok(schema) = ToolSchema::compile(schema, &Limits::request()) else { return Ok(()) };
    let Err(errors) = schema.check(value) else { return Ok(()) };
    let text = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    Err(ApiError::new(ErrorCode::BadRequest, format!("value: {text}")).into())
}

/// Whoever allows a call of an MCP tool has seen the tool as it is.
async fn pin(tx: &mut Tx<'_>, row: &RunRow, asked: &Asked) -> Result<(), Refused> {
    let shown = asked.payload.shown().and_then(|p| p.get("pin"));
    if let Some(call) = shown.and_then(|shown| serde_json::from_value::<McpCall>(shown.clone()).ok()) {
        mcp_pins::put(tx, &row.tenant, &call.server, &call.tool, &call.pin).await?;
    }
    Ok(())
}

/// Remembers a decision for the tool as it was shown.
async fn keep(
    tx: &mut Tx<'_>,
    caller: &Caller,
    row: &RunRow,
    asked: Asked,
    answer: &Answer,
    remember: Remember,
) -> Result<(), Refused> {
    // A person decides for their own runs only; a backend for anybody.
    if !caller.viewer.sees_all() && (row.triggered_by.is_none() || row.triggered_by != caller.viewer.entity) {
        let text = "Only the one this run works for may have an answer remembered";
        return Err(ApiError::new(ErrorCode::Forbidden, text).into());
    }
    // A grant without an owner would speak for everybody.
    if row.triggered_by.is_none() && remember != Remember::Session {
        let text =
            "This run works for nobody: its answers hold for the session at most. Give a grant instead";
        return Err(ApiError::new(ErrorCode::BadRequest, text).into());
    }
    let effect = match (asked.kind, answer) {
        (WaitKind::Approval, Answer::Allow { .. }) => GrantEffect::Allow,
        (WaitKind::Approval, Answer::Deny { .. }) => GrantEffect::Deny,
        _ => {
            let text = "Only an approval can be remembered";
            return Err(ApiError::new(ErrorCode::BadRequest, text).into());
        }
    };
    let scope = match (remember, &row.space) {
        (Remember::Session, Some(space)) => GrantScope::Session { space: space.clone() },
        (Remember::Session, None) => {
            let text = "This run belongs to no conversation: remember it always, or not";
            return Err(ApiError::new(ErrorCode::BadRequest, text).into());
        }
        (Remember::Always | Remember::AlwaysThese, _) => GrantScope::Stored {},
    };
    let shown = asked.payload.into_shown().unwrap_or_default();
    let args = match (remember, answer) {
        (Remember::AlwaysThese, Answer::Allow { edited: Some(edited) }) => Some(edited.clone()),
        (Remember::AlwaysThese, _) => Some(shown["args"].clone()),
        (Remember::Session | Remember::Always, _) => None,
    };
    let Some(fingerprint) = asked.fingerprint.into_shown() else { return Err(Refusal::WaitEnded.into()) };
    let now = tx.now().await?;
    let grant = Grant {
        id: GrantId::mint(),
        tool: shown["key"].as_str().map_or_else(|| asked.tool.to_string(), ToOwned::to_owned),
        effect,
        scope,
        fingerprint,
        max_risk: Some(asked.risk),
        args,
        exact: remember == Remember::AlwaysThese,
        expires_at: None,
    };
    let stored = GrantRow {
        id: grant.id.clone(),
        entity: row.triggered_by.clone(),
        tool: grant.tool.clone(),
        body: serde_json::to_value(&grant).unwrap_or_default(),
        created_at: now,
        expires_at: None,
    };
    grants::insert(tx, &row.tenant, &stored).await?;
    Ok(())
}

fn who(caller: &Caller) -> String {
    caller.viewer.entity.as_ref().map_or_else(|| "secret key".to_owned(), ToString::to_string)
}
