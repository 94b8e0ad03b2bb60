//! A turn that says nothing new: a continuation after outputs and answers, or
//! a repeat. And readers that come without a turn.

use std::sync::Arc;

use toolyard_dialects::telling::Start;
use toolyard_engine::Run;
use toolyard_protocol::event::Event;
use toolyard_protocol::message::{Message, Part, Speaker};
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::{
    ApiError, CallId, ErrorCode, MessageId, Principal, RunId, SpaceId, TenantId, Viewer, limits,
};
use toolyard_store::runs::{self, RunRow};
use toolyard_store::{StoreError, Tx, log, messages};

use super::Turned;
use super::align::Aligned;
use super::place::find_thread;
use super::speak::{Job, load};
use crate::facts::{Caller, Held};
use crate::refused::Refused;
use crate::runtime::Runtime;
use crate::starting::Desk;

/// A thread's newest run, for a reader.
#[derive(Debug, Clone, PartialEq)]
pub struct Following {
    pub space: SpaceId,
    pub run: RunId,
    pub status: RunStatus,
    /// The current turn.
    pub turn: u32,
    pub viewer: Viewer,
}

impl Runtime {
    pub(super) async fn attach(
        self: &Arc<Self>,
        tx: &mut Tx<'_>,
        job: Job<'_>,
        aligned: Aligned<'_>,
        desk: &mut Desk,
    ) -> Result<Turned, Refused> {
        match aligned.known {
            Some(known) if known.speaker != Speaker::Assistant => self.again(tx, job, known, desk).await,
            Some(known) if known.run.is_some() => self.go_on(tx, job, Some(known), desk).await,
            Some(_) | None if job.taken.run.is_some() => self.go_on(tx, job, None, desk).await,
            Some(_) | None => {
                let text = "messages: there is no new user message in it";
                Err(ApiError::new(ErrorCode::BadRequest, text).into())
            }
        }
    }

    /// The last thing said is a message that was heard before.
    async fn again(
        self: &Arc<Self>,
        tx: &mut Tx<'_>,
        job: Job<'_>,
        known: Message,
        desk: &mut Desk,
    ) -> Result<Turned, Refused> {
        let (tenant, space) = (&job.turn.by.tenant, &job.place.space);
        let reply = messages::reply_after(tx, tenant, &space.id, &space.branch, known.seq).await?;
        if let Some((run, message)) = reply.and_then(|reply| Some((reply.run?, reply.id))) {
            let turn = turn_of(&run, &message);
            return Ok(job.turned(run, message, Start::Turn(turn), false));
        }
        let Some(live) = runs::lock_live(tx, tenant, &space.id, &job.place.agent_entity).await? else {
            return self.give_run(tx, job, Some(known), false, desk).await;
        };
        let run = load(tx, &live).await?;
        let trigger = run.created().and_then(|c| c.trigger.as_ref()).and_then(|t| t.message.as_ref());
        if trigger == Some(&known.id) {
            let message = MessageId::of_turn(&live.id, 1);
            return Ok(job.turned(live.id, message, Start::Turn(1), false));
        }
        let message = MessageId::of_turn(&live.id, run.turn() + 1);
        Ok(job.turned(live.id, message, Start::Taking(known.id), false))
    }

    /// The last thing said is the agent's: outputs and answers of its calls.
    async fn go_on(
        self: &Arc<Self>,
        tx: &mut Tx<'_>,
        job: Job<'_>,
        known: Option<Message>,
        desk: &mut Desk,
    ) -> Result<Turned, Refused> {
        let tenant = job.turn.by.tenant.clone();
        let wanted = known.as_ref().and_then(|k| k.run.clone()).or_else(|| job.taken.run.clone());
        let wanted = wanted.ok_or_else(|| ApiError::not_found("Run"))?;
        let Some(held) = Held::lock(tx, &tenant, &wanted).await? else {
            return Err(ApiError::not_found("Run").into());
        };
        let row = held.row.clone();
        let run = load(tx, &row).await?;
        let message = known.as_ref().map_or_else(|| run.message(), |known| known.id.clone());
        let held_calls = calls_of(&job);
        let (start, more) = after_step(tx, &row, &message, &held_calls).await?;
        check_news(&job, &row, &run, &message, more)?;
        if job.taken.accepted > 0 && !row.status.is_final() {
            let changes = job.changes(tx, &run).await?;
            if !changes.is_empty() {
                // The run is awake by what was taken: this wakes nobody.
                held.append(tx, changes, usize::MAX, false, desk).await?;
            }
        }
        Ok(job.turned(wanted, message, Start::After(start), false))
    }
}

/// The calls that the client's last answer holds.
fn calls_of(job: &Job<'_>) -> Vec<CallId> {
    let last = job.turn.items.iter().rev().find(|item| item.speaker == Speaker::Assistant);
    let parts = last.map(|item| item.parts.as_slice()).unwrap_or_default();
    let told = parts.iter().filter_map(|part| match part {
        Part::ToolCall { call, .. } => Some(call.clone()),
        _ => None,
    });
    told.chain(job.turn.replies.iter().map(|reply| reply.call.clone())).collect()
}

/// The last reply of a message that holds one of these calls, and whether the
/// model has said more since.
async fn after_step(
    tx: &mut Tx<'_>,
    row: &RunRow,
    message: &MessageId,
    calls: &[CallId],
) -> Result<(i64, bool), StoreError> {
    let (mut start, mut more, mut after) = (0, false, 0);
    loop {
        let page = log::read(tx, &row.tenant, &row.id, after, limits::LOG_PAGE).await?;
        let Some(last) = page.last() else { return Ok((start, more)) };
        after = last.seq;
        for logged in &page {
            match &logged.event {
                Event::ModelReplied(reply) if reply.message == *message => {
                    let holds = reply.calls.iter().any(|c| calls.contains(&c.call));
                    more = !holds;
                    if holds {
                        start = logged.seq;
                    }
                }
                // Of an earlier turn.
                Event::MessageTaken(_) if start == 0 => start = logged.seq,
                Event::RunFinished(end) => more |= end.error.is_some(),
                _ => {}
            }
        }
    }
}

/// A client whose outputs nobody waits for would send them again for ever.
fn check_news(
    job: &Job<'_>,
    row: &RunRow,
    run: &Run,
    message: &MessageId,
    more: bool,
) -> Result<(), Refused> {
    // What it holds is of nobody's asking.
    let forged = !job.turn.replies.is_empty() && job.taken.kept.is_empty() && job.taken.run.is_none();
    if job.taken.accepted > 0 || (more && !forged) {
        return Ok(());
    }
    let refused = |code, text: &str| Err(ApiError::new(code, text).into());
    if row.status.is_final() {
        return refused(ErrorCode::RunEnded, "The run has ended: there is nothing to continue");
    }
    if run.message() != *message {
        return refused(ErrorCode::WaitEnded, "The conversation has gone on: nobody waits for this");
    }
    if run.is_parked() && row.status == RunStatus::WaitingTool {
        return refused(ErrorCode::WaitEnded, "Nobody waits for these outputs: the run waits for others");
    }
    Ok(())
}

fn turn_of(run: &RunId, message: &MessageId) -> u32 {
    let number = message.as_str().rsplit('_').next().and_then(|n| n.parse().ok());
    number.filter(|n| MessageId::of_turn(run, *n) == *message).unwrap_or(1)
}

impl Runtime {
    /// The live run of a thread, or its newest. None if there is neither.
    pub async fn follow(
        self: &Arc<Self>,
        by: Principal,
        thread: String,
    ) -> Result<Option<Following>, ApiError> {
        let found: Result<_, Refused> =
            self.store.read(move |tx| Box::pin(async move { newest(tx, &by, &thread).await })).await;
        Ok(found?.map(|(following, _)| following))
    }

    /// Stops what runs in a thread. False if nothing does.
    pub async fn stop_thread(
        self: &Arc<Self>,
        by: Principal,
        thread: String,
        reason: Option<String>,
    ) -> Result<bool, ApiError> {
        let asked = by.clone();
        let found: Result<_, Refused> =
            self.store.read(move |tx| Box::pin(async move { newest(tx, &asked, &thread).await })).await;
        let Some((following, row)) = found?.filter(|(following, _)| !following.status.is_final()) else {
            return Ok(false);
        };
        // Whoever may answer a run's questions by default may stop it.
        let viewer = &following.viewer;
        if !viewer.sees_all() && (viewer.entity.is_none() || viewer.entity != row.triggered_by) {
            let text = "Only the one this run works for may stop it";
            return Err(ApiError::new(ErrorCode::Forbidden, text));
        }
        let actor = toolyard_protocol::principal::Actor::caller(&by, None);
        let caller = Caller { tenant: by.tenant, viewer: following.viewer, actor };
        match self.cancel(caller, following.run, reason).await {
            Ok(()) => Ok(true),
            Err(e) if e.code == ErrorCode::RunEnded => Ok(false),
            Err(e) => Err(e),
        }
    }
}

async fn newest(
    tx: &mut Tx<'_>,
    by: &Principal,
    thread: &str,
) -> Result<Option<(Following, RunRow)>, Refused> {
    let Some(thread) = find_thread(tx, by, thread).await? else { return Ok(None) };
    let tenant: &TenantId = &by.tenant;
    let rows = runs::list(tx, tenant, Some(&thread.space.id), None, None, limits::PAGE).await?;
    let roots: Vec<RunRow> = rows.into_iter().filter(|row| row.parent.is_none()).collect();
    let live = roots.iter().find(|row| !row.status.is_final());
    let Some(row) = live.or(roots.first()).cloned() else { return Ok(None) };
    let turn = load(tx, &row).await?.turn();
    let following = Following {
        space: thread.space.id,
        run: row.id.clone(),
        status: row.status,
        turn,
        viewer: thread.viewer,
    };
    Ok(Some((following, row)))
}
