//! Stored messages and steps in the words of a model call. Calls and results
//! are never separated.

use std::collections::HashMap;
use std::sync::Arc;

use toolyard_engine::{Returned, Step, Turn};
use toolyard_models::{ChatTurn, PastCall, PastResult};
use toolyard_protocol::message::{Part, Speaker, text_of};
use toolyard_protocol::outcome::CANCELED_TEXT;
use toolyard_protocol::{EntityId, Hash, MessageId, OutcomeKind, ToolOutcome, limits};
use toolyard_store::messages::Said;

/// As much of a large value as the model reads, with a mark where it is cut.
pub(super) fn for_model(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let most = limits::MODEL_RESULT_CHARS;
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}… [cut: {most} of {} characters]", &text[..end], text.chars().count()),
        None => text.into_owned(),
    }
}

pub(super) fn add_message(turns: &mut Vec<ChatTurn>, message: Said, me: Option<&EntityId>) {
    let mine = message.speaker == Speaker::Assistant && message.entity.as_ref() == me;
    match message.speaker {
        Speaker::System => turns.push(ChatTurn::System(text_of(&message.parts))),
        Speaker::Assistant if mine => add_parts(turns, message.parts),
        // Another agent of the space is somebody who talks to this one.
        Speaker::Assistant | Speaker::User => turns.push(ChatTurn::User {
            parts: message.parts,
            name: message.entity.as_ref().map(ToString::to_string),
        }),
    }
}

/// Takes a stored message of this agent apart into replies and results.
fn add_parts(turns: &mut Vec<ChatTurn>, parts: Vec<Part>) {
    let mut said: Vec<Part> = Vec::new();
    let mut calls: Vec<PastCall> = Vec::new();
    let mut results: Vec<PastResult> = Vec::new();
    for part in parts {
        match part {
            Part::ToolCall { call, tool, args, metadata, visibility: _ } => {
                // A reply of calls alone begins after the results of the one before.
                if !results.is_empty() {
                    flush(turns, &mut said, &mut calls, &mut results);
                }
                calls.push(PastCall {
                    id: call,
                    name: tool.to_string(),
                    args: args.into_shown().unwrap_or_default(),
                    metadata: metadata.into_shown().unwrap_or_default(),
                });
            }
            Part::ToolResult { call, tool, outcome, value, error, .. } => {
                let whole = ToolOutcome::from_parts(outcome, value.into_shown(), error.into_shown());
                results.push(PastResult {
                    call,
                    name: tool.to_string(),
                    content: whole.for_model(),
                    is_error: outcome != OutcomeKind::Ok,
                });
            }
            Part::Text { .. }
            | Part::Reasoning { .. }
            | Part::File { .. }
            | Part::Source { .. }
            | Part::Data { .. }
            | Part::Opaque { .. } => {
                if !calls.is_empty() {
                    flush(turns, &mut said, &mut calls, &mut results);
                }
                said.push(part);
            }
        }
    }
    flush(turns, &mut said, &mut calls, &mut results);
}

/// Ends one reply. Every call gets a result: vendors refuse a history with open calls.
fn flush(
    turns: &mut Vec<ChatTurn>,
    said: &mut Vec<Part>,
    calls: &mut Vec<PastCall>,
    results: &mut Vec<PastResult>,
) {
    let (parts, calls, mut given) = (std::mem::take(said), std::mem::take(calls), std::mem::take(results));
    if parts.is_empty() && calls.is_empty() {
        return;
    }
    let ended: Vec<PastResult> = calls
        .iter()
        .map(|call| match given.iter().position(|r| r.call == call.id) {
            Some(i) => given.swap_remove(i),
            None => open_result(call),
        })
        .collect();
    turns.push(ChatTurn::Assistant { parts, calls });
    if !ended.is_empty() {
        turns.push(ChatTurn::ToolResults(ended));
    }
}

fn open_result(call: &PastCall) -> PastResult {
    let content = ToolOutcome::Canceled(CANCELED_TEXT.to_owned()).for_model();
    PastResult { call: call.id.clone(), name: call.name.clone(), content, is_error: true }
}

/// A turn of this run: the messages it took, then its steps.
pub(super) fn add_turn(
    turns: &mut Vec<ChatTurn>,
    turn: &Arc<Turn>,
    later: &[(MessageId, Said)],
    large: &HashMap<Hash, String>,
    me: Option<&EntityId>,
) {
    for id in &turn.taken {
        if let Some((_, message)) = later.iter().find(|(taken, _)| taken == id) {
            add_message(turns, message.clone(), me);
        }
    }
    turn.steps.iter().for_each(|step| add_step(turns, step, large));
}

fn add_step(turns: &mut Vec<ChatTurn>, step: &Arc<Step>, large: &HashMap<Hash, String>) {
    let calls: Vec<PastCall> = step
        .reply
        .calls
        .iter()
        .map(|call| PastCall {
            id: call.call.clone(),
            name: call.tool.to_string(),
            args: call.args.shown().cloned().unwrap_or_default(),
            metadata: call.metadata.shown().cloned().unwrap_or_default(),
        })
        .collect();
    if step.reply.parts.is_empty() && calls.is_empty() {
        return;
    }
    let results = calls.iter().zip(&step.results).map(|(call, returned)| match returned {
        Some(returned) => past_result(call, returned, large),
        None => open_result(call),
    });
    let results: Vec<PastResult> = results.collect();
    turns.push(ChatTurn::Assistant { parts: step.reply.parts.clone(), calls });
    if !results.is_empty() {
        turns.push(ChatTurn::ToolResults(results));
    }
}

fn past_result(call: &PastCall, returned: &Returned, large: &HashMap<Hash, String>) -> PastResult {
    let whole = returned.blob.as_ref().and_then(|b| large.get(&b.blob)).cloned();
    PastResult {
        call: call.id.clone(),
        name: call.name.clone(),
        content: whole.unwrap_or_else(|| returned.outcome.for_model()),
        is_error: returned.outcome.kind() != OutcomeKind::Ok,
    }
}
