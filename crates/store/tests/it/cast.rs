//! The people and things of the stories: ids, runs and events.

use serde_json::{Value, json};
use toolyard_protocol::event::{
    Answered, Asked, ChildStarted, Decision, Event, MessageQueued, ModelReplied, OpenWait, Parked, ReplyCall,
    RunCreated, RunFinished, RunPaused, RunStarted, ToolCallRequested, ToolReturned,
};
use toolyard_protocol::limits::RunLimits;
use toolyard_protocol::message::{Part, Speaker};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::run::{FinishReason, MessagePolicy, PauseReason, RunEnd, RunStatus, Usage};
use toolyard_protocol::tool::{Answerers, Place, Visibility};
use toolyard_protocol::wait::{AnswerRule, WaitKind};
use toolyard_protocol::{
    AgentName, BranchId, CallId, EntityId, Guarded, Hash, MessageId, NodeId, RunId, SpaceId, TenantId,
    Timestamp, ToolName, ToolOutcome, WaitId,
};
use toolyard_store::messages::NewMessage;
use toolyard_store::runs::{After, NewRun, Owner};
use toolyard_store::spaces::Space;
use toolyard_store::{StoreError, Tx, nodes, outbox};

use crate::home::START_MS;

pub(crate) fn tenant() -> TenantId {
    TenantId::parse("acme").unwrap()
}

pub(crate) fn other_tenant() -> TenantId {
    TenantId::parse("umbrella").unwrap()
}

pub(crate) fn agent_name() -> AgentName {
    AgentName::parse("assistant").unwrap()
}

pub(crate) fn tool() -> ToolName {
    ToolName::parse("get_location").unwrap()
}

/// The first life of a node.
pub(crate) fn owner(node: &str) -> Owner {
    life(node, "first")
}

/// Takes parcels for a node that is alive.
pub(crate) async fn take(
    tx: &mut Tx<'_>,
    retry_at: Timestamp,
    limit: u32,
) -> Result<Vec<outbox::Parcel>, StoreError> {
    let me = owner("a");
    nodes::beat(tx, &me, 86_400_000).await?;
    outbox::take(tx, &me, retry_at, limit).await
}

pub(crate) fn life(node: &str, incarnation: &str) -> Owner {
    Owner { node: NodeId::parse(node).unwrap(), incarnation: incarnation.to_owned() }
}

pub(crate) fn space(id: &SpaceId) -> Space {
    Space {
        id: id.clone(),
        name: Some("Kitchen".to_owned()),
        description: None,
        metadata: Some(json!({ "colour": "blue" })),
        show_reasoning: true,
        last_pos: 0,
        branch: BranchId::main(),
        tainted: false,
        created_at: Timestamp::from_millis(START_MS),
    }
}

pub(crate) fn new_run(tenant: &TenantId, space: Option<&SpaceId>) -> NewRun {
    let id = RunId::mint();
    NewRun {
        tenant: tenant.clone(),
        space: space.cloned(),
        agent_entity: Some(EntityId::mint()),
        agent: agent_name(),
        agent_hash: Hash::of(b"version one"),
        root: id.clone(),
        id,
        parent: None,
        triggered_by: Some(EntityId::mint()),
        depth: 1,
        on_message: MessagePolicy::Interrupt,
    }
}

pub(crate) fn message(text: &str) -> NewMessage {
    NewMessage {
        id: MessageId::mint(),
        speaker: Speaker::User,
        entity: None,
        run: None,
        branch: BranchId::main(),
        parts: vec![Part::text(text)],
        show_reasoning: false,
        metadata: None,
    }
}

pub(crate) fn created(run: &NewRun) -> Event {
    RunCreated {
        agent: run.agent.clone(),
        agent_version: Guarded::Shown(run.agent_hash.clone()),
        toolset: Guarded::Shown(Hash::of(b"tools")),
        space: run.space.clone(),
        agent_entity: run.agent_entity.clone(),
        trigger: None,
        branch: BranchId::main(),
        history_to: 0,
        parent: None,
        root: run.root.clone(),
        depth: 0,
        show_reasoning: false,
        limits: Guarded::Shown(RunLimits::default()),
        on_message: Guarded::Shown(run.on_message),
        answerers: Guarded::Shown(Answerers::Trigger),
        by: Guarded::Shown(Actor::Gateway {}),
        metadata: Guarded::Hidden,
        model: Guarded::Hidden,
        errand: Guarded::Hidden,
        picks: Guarded::Hidden,
        output: Guarded::Hidden,
        tainted: false,
        replayed: None,
        trace: Guarded::Hidden,
    }
    .into()
}

pub(crate) fn started() -> Event {
    RunStarted {}.into()
}

pub(crate) fn replied(run: &RunId, step: u32, calls: &[CallId]) -> Event {
    let calls: Vec<ReplyCall> = calls
        .iter()
        .map(|call| ReplyCall {
            call: call.clone(),
            tool: tool(),
            visibility: Visibility::Public,
            args: Guarded::Shown(json!({ "precise": true })),
            metadata: Guarded::Hidden,
        })
        .collect();
    ModelReplied {
        step,
        message: MessageId::of_turn(run, 0),
        parts: vec![Part::text("Let me look.")],
        show_reasoning: false,
        finish: if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls },
        calls,
        usage: Usage { input_tokens: 120, output_tokens: 12, ..Usage::default() },
        cost: None,
        model: Guarded::Hidden,
        partial: false,
        metadata: Guarded::Hidden,
    }
    .into()
}

/// A call with a wait of the given kind, or without one: then it runs here.
pub(crate) fn requested(call: &CallId, kind: Option<WaitKind>, expires: Option<Timestamp>) -> Event {
    ToolCallRequested {
        step: 1,
        call: call.clone(),
        tool: tool(),
        place: if kind.is_some() { Place::Client } else { Place::Gateway },
        risk: Risk::Low,
        visibility: Visibility::Public,
        idempotent: false,
        wait: kind.map(|kind| Parked {
            wait: WaitId::of(kind, call, 0),
            kind,
            rule: AnswerRule::Members {},
            payload: Guarded::Shown(json!({ "slept": 5 })),
        }),
        expires,
        untrusted: false,
        args: Guarded::Shown(json!({ "precise": true })),
        fingerprint: Guarded::Shown(Hash::of(b"tool")),
    }
    .into()
}

/// A call that waits for a client.
pub(crate) fn client_call(call: &CallId) -> Event {
    requested(call, Some(WaitKind::Client), None)
}

pub(crate) fn asked(call: &CallId, round: u32) -> Event {
    Asked {
        wait: WaitId::of(WaitKind::Approval, call, round),
        kind: WaitKind::Approval,
        step: 1,
        call: call.clone(),
        tool: tool(),
        place: Place::Client,
        risk: Risk::High,
        visibility: Visibility::Private,
        rule: AnswerRule::Admin {},
        expires: None,
        payload: Guarded::Shown(json!({ "path": "a.txt" })),
        fingerprint: Guarded::Hidden,
        state: Guarded::Hidden,
        held: false,
    }
    .into()
}

pub(crate) fn answered(call: &CallId, round: u32) -> Event {
    Answered {
        wait: WaitId::of(WaitKind::Approval, call, round),
        kind: WaitKind::Approval,
        call: call.clone(),
        visibility: Visibility::Private,
        decision: Decision::Allow,
        edited: Guarded::Hidden,
        recount: false,
        by: Guarded::Shown(Actor::Gateway {}),
    }
    .into()
}

pub(crate) fn returned(call: &CallId, value: Value) -> Event {
    ToolReturned::new(call.clone(), tool(), Visibility::Public, ToolOutcome::Ok(value), Actor::Gateway {})
        .into()
}

pub(crate) fn child_started(call: &CallId) -> Event {
    ChildStarted {
        call: call.clone(),
        tool: tool(),
        visibility: Visibility::Public,
        child: RunId::mint(),
        expires: None,
        stream: false,
    }
    .into()
}

pub(crate) fn paused(call: &CallId) -> Event {
    RunPaused {
        reason: PauseReason::Client,
        waits: vec![OpenWait {
            wait: WaitId::of(WaitKind::Client, call, 0),
            kind: WaitKind::Client,
            call: call.clone(),
            tool: tool(),
        }],
    }
    .into()
}

/// A fact that changes no wait.
pub(crate) fn news() -> Event {
    MessageQueued { message: MessageId::mint(), interrupt: false, foreign: false }.into()
}

pub(crate) fn finished() -> Event {
    RunFinished {
        status: RunEnd::Completed,
        usage: Usage::default(),
        cost: None,
        error: None,
        message: None,
        detail: Guarded::Hidden,
    }
    .into()
}

/// The worker goes on.
pub(crate) fn going_on() -> After {
    After { status: RunStatus::Running, reason: None, release: false, error: None }
}

/// The worker lets go of a run that waits for a client.
pub(crate) fn parked() -> After {
    After { status: RunStatus::WaitingTool, reason: Some(PauseReason::Client), release: true, error: None }
}

/// The run is over.
pub(crate) fn completed() -> After {
    After { status: RunStatus::Completed, reason: None, release: true, error: None }
}
