//! A run told step by step: events and pieces as a worker makes them.

use serde_json::{Value, json};
use toolyard_dialects::telling::{Flow, Telling};
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::event::*;
use toolyard_protocol::message::Part;
use toolyard_protocol::principal::Actor;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::run::{FinishReason, PauseReason, RunEnd, Usage};
use toolyard_protocol::tool::{Place, Visibility};
use toolyard_protocol::wait::{AnswerRule, WaitKind};
use toolyard_protocol::*;

use crate::samples;

/// What happens to a reader.
#[derive(Debug, Clone)]
pub(crate) enum Beat {
    Log(Box<Event>),
    Piece(u32, u32, Piece),
}

pub(crate) fn log(event: impl Into<Event>) -> Beat {
    Beat::Log(Box::new(event.into()))
}

/// Tells a story. The log is read to its end after each event.
pub(crate) fn tell(telling: &mut dyn Telling, beats: &[Beat]) -> (String, Flow) {
    let mut out = String::new();
    telling.begin(&mut out);
    let (mut seq, mut offset) = (0, 0);
    for beat in beats {
        let flow = match beat {
            Beat::Log(event) => {
                seq += 1;
                offset = 0;
                let flow = telling.event(seq, samples::at(), event, &mut out);
                // A commit may hold several events; these come one by one.
                let parks = matches!(**event, Event::RunPaused(_) | Event::RunFinished(_));
                if flow == Flow::On && parks && last_of_commit(beats, seq) {
                    telling.rest(&mut out)
                } else {
                    flow
                }
            }
            Beat::Piece(step, attempt, piece) => {
                let (step, attempt) = (*step, *attempt);
                let delta = Delta { run: samples::run(), step, attempt, offset, piece: piece.clone() };
                offset += 1;
                telling.delta(&delta, &mut out)
            }
        };
        if flow != Flow::On {
            return (out, flow);
        }
    }
    let flow = telling.rest(&mut out);
    (out, flow)
}

/// A pause in the middle of a log that goes on was answered long ago.
fn last_of_commit(beats: &[Beat], seq: i64) -> bool {
    let logged = beats.iter().filter(|beat| matches!(beat, Beat::Log(_))).count();
    i64::try_from(logged) == Ok(seq)
}

pub(crate) fn tool(name: &str) -> ToolName {
    ToolName::parse(name).unwrap()
}

pub(crate) fn begin() -> Vec<Beat> {
    let created = samples::all().into_iter().find(|e| matches!(e, Event::RunCreated(_))).unwrap();
    vec![log(created), log(RunStarted {})]
}

pub(crate) fn text(part: u32, words: &[&str]) -> Vec<Piece> {
    let mut pieces = vec![Piece::TextStart { part }];
    pieces.extend(words.iter().map(|word| Piece::TextDelta { part, text: (*word).into() }));
    pieces.push(Piece::TextEnd { part });
    pieces
}

pub(crate) fn thought(part: u32, public: bool, words: &[&str]) -> Vec<Piece> {
    let mut pieces = vec![Piece::ReasoningStart { part, public }];
    pieces.extend(words.iter().map(|w| Piece::ReasoningDelta { part, public, text: (*w).into() }));
    pieces.push(Piece::ReasoningEnd { part, public });
    pieces
}

pub(crate) fn input(call: u32, name: &str, visibility: Visibility, words: &[&str]) -> Vec<Piece> {
    let (call, tool) = (samples::call(call), tool(name));
    let mut pieces = vec![Piece::ToolInputStart { call: call.clone(), tool: tool.clone(), visibility }];
    for word in words {
        let (call, tool, text) = (call.clone(), tool.clone(), (*word).into());
        pieces.push(Piece::ToolInputDelta { call, tool, visibility, text });
    }
    pieces
}

pub(crate) fn pieces(step: u32, pieces: Vec<Piece>) -> Vec<Beat> {
    pieces.into_iter().map(|piece| Beat::Piece(step, 1, piece)).collect()
}

pub(crate) struct Called {
    pub(crate) n: u32,
    pub(crate) name: &'static str,
    pub(crate) visibility: Visibility,
    pub(crate) args: Value,
}

pub(crate) fn called(n: u32, name: &'static str, visibility: Visibility, args: Value) -> Called {
    Called { n, name, visibility, args }
}

pub(crate) fn replied(step: u32, parts: Vec<Part>, calls: &[Called]) -> ModelReplied {
    let calls: Vec<ReplyCall> = calls
        .iter()
        .map(|c| ReplyCall {
            call: samples::call(c.n),
            tool: tool(c.name),
            visibility: c.visibility,
            args: c.args.clone().into(),
            metadata: Guarded::Hidden,
        })
        .collect();
    ModelReplied {
        step,
        message: MessageId::of_turn(&samples::run(), 1),
        parts,
        show_reasoning: true,
        finish: if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls },
        calls,
        usage: Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() },
        cost: None,
        model: String::from("canary-secret-model").into(),
        partial: false,
        metadata: Guarded::Hidden,
    }
}

pub(crate) fn reasoning(text: &str) -> Part {
    Part::Reasoning { text: text.into(), metadata: Guarded::Hidden }
}

pub(crate) fn requested(step: u32, call: &Called, place: Place) -> ToolCallRequested {
    let id = samples::call(call.n);
    ToolCallRequested {
        step,
        call: id.clone(),
        tool: tool(call.name),
        place,
        risk: Risk::Low,
        visibility: call.visibility,
        idempotent: false,
        wait: place.is_client().then(|| Parked {
            wait: WaitId::of(WaitKind::Client, &id, 0),
            kind: WaitKind::Client,
            rule: AnswerRule::Trigger { entity: samples::user() },
            payload: Guarded::Hidden,
        }),
        expires: None,
        untrusted: false,
        args: call.args.clone().into(),
        fingerprint: Guarded::Hidden,
    }
}

pub(crate) fn asked(step: u32, call: &Called, place: Place) -> Asked {
    let id = samples::call(call.n);
    Asked {
        wait: WaitId::of(WaitKind::Approval, &id, 0),
        kind: WaitKind::Approval,
        step,
        call: id,
        tool: tool(call.name),
        place,
        risk: Risk::High,
        visibility: call.visibility,
        rule: AnswerRule::Trigger { entity: samples::user() },
        expires: Some(samples::at()),
        payload: json!({ "toolName": call.name, "args": call.args, "argsHash": "h", "pin": 1 }).into(),
        fingerprint: Guarded::Hidden,
        state: Guarded::Hidden,
        held: false,
    }
}

pub(crate) fn answered(call: u32, decision: Decision) -> Answered {
    let call = samples::call(call);
    let stored = json!({
        "wait": WaitId::of(WaitKind::Approval, &call, 0), "kind": "approval", "call": call,
        "visibility": "public", "decision": decision,
    });
    serde_json::from_value(stored).unwrap()
}

pub(crate) fn returned(call: &Called, outcome: ToolOutcome) -> ToolReturned {
    let by = Actor::Gateway {};
    ToolReturned::new(samples::call(call.n), tool(call.name), call.visibility, outcome, by)
}

pub(crate) fn paused(reason: PauseReason, waits: &[(WaitKind, u32, &str)]) -> RunPaused {
    let waits = waits
        .iter()
        .map(|(kind, n, name)| OpenWait {
            wait: WaitId::of(*kind, &samples::call(*n), 0),
            kind: *kind,
            call: samples::call(*n),
            tool: tool(name),
        })
        .collect();
    RunPaused { reason, waits }
}

pub(crate) fn finished(status: RunEnd) -> RunFinished {
    let failed = status == RunEnd::Failed;
    RunFinished {
        status,
        usage: Usage { input_tokens: 20, output_tokens: 10, ..Usage::default() },
        cost: None,
        error: failed.then_some(ErrorCode::ModelFailed),
        message: failed.then(|| "The model did not answer.".to_owned()),
        detail: String::from("canary-secret-detail").into(),
    }
}
