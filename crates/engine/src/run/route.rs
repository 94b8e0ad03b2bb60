//! A routed call as an event. The worker decided; this only writes it down.

use serde_json::Value;
use toolyard_protocol::event::{Asked, Parked, ToolCallRequested, ToolReturned};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::wait::{AnswerRule, WaitKind};
use toolyard_protocol::{ErrorCode, Event, Guarded, Timestamp, ToolOutcome, WaitId};

use crate::input::{AskKind, ParkKind, RoutedCall, Verdict};

/// The one event that says where a call goes.
pub(super) fn route(step: u32, round: u32, mut c: RoutedCall) -> Event {
    match std::mem::replace(&mut c.verdict, Verdict::Run) {
        Verdict::Ask { kind, expires, payload, state } => {
            asked(step, round, c, Prompt { kind, expires, payload, state, held: false })
        }
        Verdict::Question { expires, payload } => {
            asked(step, round, c, Prompt { kind: AskKind::Input, expires, payload, state: None, held: true })
        }
        Verdict::Refuse(outcome) => {
            ToolReturned::new(c.call, c.tool, c.visibility, outcome, Actor::Gateway {}).into()
        }
        Verdict::Unknown(text) => {
            let failed = ToolOutcome::Failed(text);
            let end = ToolReturned::new(c.call, c.tool, c.visibility, failed, Actor::Gateway {});
            ToolReturned { code: Some(ErrorCode::ToolNotFound), ..end }.into()
        }
        Verdict::Run => requested(step, c, None, None),
        Verdict::Park { kind, expires, payload } => {
            let rule = match kind {
                ParkKind::Client => c.rule.clone(),
                // Nobody outside ends a timer.
                ParkKind::Timer => AnswerRule::Gateway {},
            };
            let kind = WaitKind::from(kind);
            let wait = WaitId::of(kind, &c.call, 0);
            let payload = payload.map_or(Guarded::Hidden, Guarded::Shown);
            requested(step, c, Some(Parked { wait, kind, rule, payload }), expires)
        }
    }
}

/// What somebody is asked.
struct Prompt {
    kind: AskKind,
    expires: Option<Timestamp>,
    payload: Value,
    state: Option<Value>,
    held: bool,
}

fn asked(step: u32, round: u32, c: RoutedCall, prompt: Prompt) -> Event {
    let kind = WaitKind::from(prompt.kind);
    Asked {
        wait: WaitId::of(kind, &c.call, round),
        kind,
        step,
        call: c.call,
        tool: c.tool,
        place: c.place,
        risk: c.risk,
        visibility: c.visibility,
        rule: c.rule,
        expires: prompt.expires,
        payload: Guarded::Shown(prompt.payload),
        fingerprint: c.fingerprint.map_or(Guarded::Hidden, Guarded::Shown),
        state: prompt.state.map_or(Guarded::Hidden, Guarded::Shown),
        held: prompt.held,
    }
    .into()
}

fn requested(step: u32, c: RoutedCall, wait: Option<Parked>, expires: Option<Timestamp>) -> Event {
    ToolCallRequested {
        step,
        call: c.call,
        tool: c.tool,
        place: c.place,
        risk: c.risk,
        visibility: c.visibility,
        idempotent: c.idempotent,
        wait,
        expires,
        untrusted: c.untrusted,
        args: Guarded::Shown(c.args),
        fingerprint: c.fingerprint.map_or(Guarded::Hidden, Guarded::Shown),
    }
    .into()
}
