//! The words of the simulated world: runs, replies, routed calls.

use serde_json::{Value, json};
use toolyard_engine::{AskKind, Input, ParkKind, Reply, RoutedCall, Run, Verdict};
use toolyard_protocol::event::RunCreated;
use toolyard_protocol::limits::RunLimits;
use toolyard_protocol::message::Part;
use toolyard_protocol::principal::{Actor, KeyKind};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::run::{FinishReason, MessagePolicy, Usage};
use toolyard_protocol::tool::{Place, Visibility};
use toolyard_protocol::wait::AnswerRule;
use toolyard_protocol::{
    AgentName, BranchId, CallId, Guarded, Hash, RunId, TenantId, Timestamp, ToolName, ToolOutcome,
};
use toolyard_store::runs::{After, NewRun};

use crate::history::{Nature, Record};

/// The tools of the world and what they do.
pub(super) const TOOLS: [(&str, Nature); 5] = [
    ("screen", Nature::Client),
    ("send", Nature::Outside),
    ("send_safely", Nature::Repeatable),
    ("send_if_allowed", Nature::Outside),
    ("rest", Nature::Timer),
];

pub(super) fn tools() -> impl Iterator<Item = Record> {
    TOOLS.into_iter().map(|(name, nature)| Record::Tool { name: name.to_owned(), nature })
}

pub(super) fn tenant() -> TenantId {
    TenantId::parse("acme").unwrap()
}

pub(super) fn new_run(id: &RunId) -> NewRun {
    NewRun {
        tenant: tenant(),
        id: id.clone(),
        space: None,
        agent_entity: None,
        agent: AgentName::parse("assistant").unwrap(),
        agent_hash: Hash::of(b"agent"),
        root: id.clone(),
        parent: None,
        triggered_by: None,
        depth: 0,
        on_message: MessagePolicy::Interrupt,
    }
}

pub(super) fn created(run: &NewRun) -> RunCreated {
    let limits = RunLimits { max_steps: 6, run_steps: 20, ..RunLimits::default() };
    RunCreated {
        agent: run.agent.clone(),
        agent_version: run.agent_hash.clone().into(),
        toolset: Hash::of(b"tools").into(),
        space: None,
        agent_entity: None,
        trigger: None,
        branch: BranchId::main(),
        history_to: 0,
        parent: None,
        root: run.root.clone(),
        depth: 0,
        show_reasoning: false,
        limits: limits.into(),
        on_message: Guarded::Hidden,
        answerers: Guarded::Hidden,
        by: Guarded::Hidden,
        metadata: Guarded::Hidden,
        model: Guarded::Hidden,
        errand: Guarded::Hidden,
        picks: Guarded::Hidden,
        output: Guarded::Hidden,
        tainted: false,
        replayed: None,
        trace: Guarded::Hidden,
    }
}

pub(super) fn person() -> Actor {
    Actor::Caller { kind: KeyKind::Public, entity: None, client: None }
}

pub(super) fn reply(text: &str) -> Reply {
    Reply {
        parts: vec![Part::text(text)],
        usage: Usage::default(),
        cost: None,
        model: None,
        finish: FinishReason::Stop,
        metadata: None,
        notes: Vec::new(),
    }
}

/// A call of the tool, and where it goes at this moment.
pub(super) fn routed(call: &CallId, tool: &str, now: Timestamp, allowed: bool) -> RoutedCall {
    let in_a_while = Some(now.plus_millis(20_000));
    let payload = json!({ "q": call });
    let (place, verdict) = match tool {
        "screen" => {
            let expires = Some(now.plus_millis(60_000));
            (Place::Client, Verdict::Park { kind: ParkKind::Client, expires, payload: None })
        }
        "rest" => {
            let expires = Some(now.plus_millis(2_000));
            (Place::Gateway, Verdict::Park { kind: ParkKind::Timer, expires, payload: Some(payload) })
        }
        "send_if_allowed" if !allowed => {
            let kind = AskKind::Approval;
            (Place::Gateway, Verdict::Ask { kind, expires: in_a_while, payload, state: None })
        }
        _ => (Place::Gateway, Verdict::Run),
    };
    RoutedCall {
        call: call.clone(),
        tool: ToolName::parse(tool).unwrap(),
        args: json!({ "q": call }),
        metadata: None,
        visibility: Visibility::Public,
        place,
        risk: Risk::Low,
        idempotent: tool == "send_safely",
        untrusted: false,
        fingerprint: None,
        rule: AnswerRule::Members {},
        verdict,
    }
}

pub(super) fn ended(call: &CallId, outcome: ToolOutcome) -> Input {
    Input::ToolEnded { call: call.clone(), outcome, blob: None, untrusted: false, notes: Vec::new() }
}

/// What a client hands in for its call.
pub(super) fn seen(call: &CallId) -> Value {
    json!({ "seen": call })
}

/// What the run's row says when this state is logged.
pub(super) fn after(run: &Run) -> After {
    After {
        status: run.status(),
        reason: run.pause_reason(),
        release: run.is_finished() || run.is_parked(),
        error: run.finished().and_then(|end| end.error),
    }
}
