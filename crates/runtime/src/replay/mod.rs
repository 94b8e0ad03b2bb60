//! Replays: a new run that has what another one had before a step, and does
//! that step and what follows anew.
//!
//! The steps before are copied into the new run's log. So it stands for itself
//! when the old one is removed, and nothing before the step is executed again.
//! It continues a line of messages of its own, as an edit does.

mod copy;

use std::sync::Arc;

use serde_json::Value;
use toolyard_protocol::event::{Event, Replayed, RunCreated, ToolsetReplaced, Trigger};
use toolyard_protocol::message::Speaker;
use toolyard_protocol::principal::Actor;
use toolyard_protocol::{
    ApiError, EntityId, ErrorCode, Guarded, MessageId, Principal, RunId, TenantId, limits,
};
use toolyard_store::messages::{self, NewMessage};
use toolyard_store::runs::{self, NewRun, RunRow};
use toolyard_store::spaces::{self, Space};
use toolyard_store::{StoreError, Tx, blobs, branches, failpoint, log};

use self::copy::{Copied, copy};
use crate::agents::{Found, LoadedAgent};
use crate::command::{Fresh, Once};
use crate::create::CreatedRun;
use crate::once;
use crate::refused::Refused;
use crate::runtime::Runtime;
use crate::starting::Desk;
use crate::worker::step_parts;

/// A run from a step of another one.
#[derive(Debug, Clone)]
pub struct ReplayRun {
    pub by: Principal,
    pub run: RunId,
    /// From 1: the first step that is done anew.
    pub step: u32,
    /// Instead of the model that the old run used.
    pub model: Option<String>,
    pub metadata: Option<Value>,
}

impl Runtime {
    /// Starts a run on what another one had before a step.
    pub async fn replay_run(
        self: &Arc<Self>,
        replay: ReplayRun,
        once: Option<Once<CreatedRun>>,
    ) -> Result<Fresh<CreatedRun>, ApiError> {
        self.check_model(replay.model.as_deref())?;
        let (replay, once) = (Arc::new(replay), once.map(Arc::new));
        self.starting(1, move |rt, mut desk| {
            let (replay, once) = (replay.clone(), once.clone());
            Box::new(move |tx| {
                Box::pin(async move {
                    if let Some(before) = once::begin(tx, once.as_deref()).await? {
                        return Ok((before, desk.starts));
                    }
                    let created = rt.replay(tx, &replay, &mut desk).await?;
                    once::finish(tx, once.as_deref(), &created).await?;
                    failpoint::pass("start.before_commit")?;
                    Ok((Fresh::Done(created), desk.starts))
                })
            })
        })
        .await
    }

    async fn replay(
        &self,
        tx: &mut Tx<'_>,
        replay: &ReplayRun,
        desk: &mut Desk,
    ) -> Result<CreatedRun, Refused> {
        let tenant = &replay.by.tenant;
        let old = runs::get(tx, tenant, &replay.run).await?.ok_or_else(|| ApiError::not_found("Run"))?;
        let (Some(space), Some(agent_entity), None) = (&old.space, &old.agent_entity, &old.parent) else {
            let text = "This run was sent by another one. Replay that one";
            return Err(ApiError::new(ErrorCode::BadRequest, text).into());
        };
        // Runs before their space, as everybody locks.
        if let Some(live) = runs::lock_live(tx, tenant, space, agent_entity).await? {
            let text = format!("This agent has a live run in this space: {}", live.id);
            return Err(ApiError::new(ErrorCode::RunBusy, text).into());
        }
        if !spaces::lock(tx, tenant, space).await? {
            return Err(ApiError::not_found("SmartSpace").into());
        }
        let space = spaces::get(tx, tenant, space).await?.ok_or_else(|| ApiError::not_found("SmartSpace"))?;
        if spaces::seat(tx, tenant, &space.id, agent_entity).await?.is_none() {
            let text = "Entity is not a member of this SmartSpace";
            return Err(ApiError::new(ErrorCode::Forbidden, text).into());
        }
        let agent = self.pinned_agent(tx, &old).await?;
        let events = whole_log(tx, tenant, &old.id).await?;
        let Some(Event::RunCreated(first)) = events.first() else {
            return Err(StoreError::broken("a log without its first event").into());
        };
        let trigger = trigger(tx, replay, &space, first).await?;
        let branch = branches::fork(tx, tenant, &space.id, &first.branch, first.history_to).await?;
        let run = RunId::mint();
        let mut created = RunCreated {
            agent: old.agent.clone(),
            agent_version: Guarded::Shown(agent.hash.clone()),
            trigger: trigger.clone(),
            branch,
            root: run.clone(),
            show_reasoning: space.show_reasoning,
            limits: Guarded::Shown(agent.limits(&self.settings.limits)),
            by: Guarded::Shown(Actor::caller(&replay.by, None)),
            metadata: replay.metadata.clone().map_or(Guarded::Hidden, Guarded::Shown),
            tainted: first.tainted || space.tainted,
            replayed: Some(Replayed { run: old.id.clone(), step: replay.step }),
            trace: Guarded::Hidden,
            ..first.clone()
        };
        if let Some(model) = &replay.model {
            created.model = Guarded::Shown(model.clone());
        }
        let copied = copy(&old.id, &events, replay.step, &run, &created);
        let mut copied = copied.map_err(|last| no_such_step(replay.step, last))?;
        // A later request of the old run had chosen another one.
        if let Some(model) = replay.model.as_ref().filter(|model| copied.run.model() != Some(model)) {
            let chosen = ToolsetReplaced { toolset: Guarded::Hidden, model: Guarded::Shown(model.clone()) };
            copied.events.push(chosen.into());
        }
        let new = NewRun {
            tenant: tenant.clone(),
            id: run.clone(),
            space: Some(space.id.clone()),
            agent_entity: Some(agent_entity.clone()),
            agent: old.agent.clone(),
            agent_hash: agent.hash.clone(),
            root: run.clone(),
            parent: None,
            triggered_by: trigger.map(|trigger| trigger.entity),
            depth: 0,
            on_message: agent.config.loop_.on_message,
        };
        let started = self.bear(tx, &new, created.clone(), copied.events.clone(), None, desk).await?;
        blobs::share(tx, tenant, &old.id, &run).await?;
        say_again(tx, tenant, &space, &created, &copied).await?;
        Ok(CreatedRun { run, started })
    }

    /// The version that the old run was pinned to, while its agent is there.
    async fn pinned_agent(&self, tx: &mut Tx<'_>, old: &RunRow) -> Result<Arc<LoadedAgent>, Refused> {
        if self.current_agent(tx, &old.tenant, Some(&old.agent)).await?.is_none() {
            return Err(ApiError::not_found("Agent").into());
        }
        match self.agents.load(tx, &old.tenant, &old.agent_hash).await? {
            Found::Agent(agent) => Ok(agent),
            Found::Nothing => Err(ApiError::not_found("Agent version").into()),
            Found::Unusable(why) => {
                let text = format!("Agent {} cannot run on this release. {why}", old.agent);
                Err(ApiError::new(ErrorCode::InvalidConfig, text).into())
            }
        }
    }
}

fn no_such_step(step: u32, last: u32) -> ApiError {
    let text = format!("step: this run has steps 1 to {last}, not {step}");
    ApiError::new(ErrorCode::BadRequest, text)
}

/// Whoever replays is who the new run works for. A backend's key acts for the
/// one that the old run worked for, while that one is in the space.
async fn trigger(
    tx: &mut Tx<'_>,
    replay: &ReplayRun,
    space: &Space,
    first: &RunCreated,
) -> Result<Option<Trigger>, Refused> {
    let message = first.trigger.as_ref().and_then(|trigger| trigger.message.clone());
    let before = first.trigger.as_ref().map(|trigger| &trigger.entity);
    let who: Option<&EntityId> = replay.by.entity.as_ref().or(before);
    let Some(entity) = who else { return Ok(None) };
    let seat = spaces::seat(tx, &replay.by.tenant, &space.id, entity).await?;
    Ok(seat.map(|_| Trigger { entity: entity.clone(), message }))
}

async fn whole_log(tx: &mut Tx<'_>, tenant: &TenantId, run: &RunId) -> Result<Vec<Event>, StoreError> {
    let (mut events, mut after) = (Vec::new(), 0);
    loop {
        let page = log::read(tx, tenant, run, after, limits::LOG_PAGE).await?;
        let Some(last) = page.last() else { return Ok(events) };
        after = last.seq;
        events.extend(page.into_iter().map(|logged| logged.event));
    }
}

/// The line of the new run says what the old one's said, turn by turn.
async fn say_again(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &Space,
    created: &RunCreated,
    copied: &Copied,
) -> Result<(), StoreError> {
    for turn in copied.run.turns() {
        for id in &turn.taken {
            let old = copied.taken.iter().find(|(_, new)| new == id).map(|(old, _)| old);
            let Some(heard) = (match old {
                Some(old) => messages::get(tx, tenant, old).await?,
                None => None,
            }) else {
                continue;
            };
            let again = NewMessage {
                id: id.clone(),
                speaker: heard.speaker,
                entity: heard.entity,
                run: None,
                branch: created.branch.clone(),
                parts: heard.parts,
                show_reasoning: created.show_reasoning,
                metadata: heard.metadata,
            };
            messages::insert(tx, tenant, &space.id, again).await?;
        }
        if turn.steps.is_empty() {
            continue;
        }
        let answer = NewMessage {
            id: MessageId::of_turn(copied.run.id(), turn.number),
            speaker: Speaker::Assistant,
            entity: created.agent_entity.clone(),
            run: Some(copied.run.id().clone()),
            branch: created.branch.clone(),
            parts: turn.steps.iter().flat_map(step_parts).collect(),
            show_reasoning: created.show_reasoning,
            metadata: None,
        };
        messages::insert(tx, tenant, &space.id, answer).await?;
    }
    Ok(())
}
