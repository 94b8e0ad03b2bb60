//! Stored messages and steps in the words of a model call. Calls and results
//! are never separated.

use std::collections::HashMap;
use std::sync::Arc;

use toolyard_engine::{Returned, Step, Turn};
use toolyard_models::{ChatTurn, PastCall, PastResult};
use toolyard_protocol::message::{Part, Speaker, text_of};
use toolyard_protocol::outcome::CANCELED_TEXT;
use toolyard_protocol::{CallId, EntityId, Hash, MessageId, OutcomeKind, ToolOutcome};
use toolyard_store::messages::Said;

/// How much of a result the model reads, and which of its tools reads on.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    pub(super) chars: usize,
    pub(super) tool: Option<String>,
}

/// The beginning of a result.
#[derive(Debug, Clone)]
pub(super) struct Beginning {
    text: String,
    /// Characters of the whole.
    all: usize,
}

impl Reading {
    pub(super) fn of(&self, text: &str) -> Beginning {
        match text.char_indices().nth(self.chars) {
            Some((end, _)) => Beginning { text: text[..end].to_owned(), all: text.chars().count() },
            None => Beginning { text: text.to_owned(), all: 0 },
        }
    }

    /// With a mark where it is cut. Only results of this run can be read on.
    fn marked(&self, begun: Beginning, call: Option<&CallId>) -> String {
        let Beginning { mut text, all } = begun;
        let most = self.chars;
        if all <= most {
            return text;
        }
        text.push_str(&format!("… [cut: {most} of {all} characters"));
        if let (Some(tool), Some(call)) = (&self.tool, call) {
            text.push_str(&format!(". {tool} with callId \"{call}\" and offset {most} reads on"));
        }
        text.push(']');
        text
    }
}

pub(super) fn add_message(
    turns: &mut Vec<ChatTurn>,
    message: Said,
    me: Option<&EntityId>,
    reading: &Reading,
) {
    let mine = message.speaker == Speaker::Assistant && message.entity.as_ref() == me;
    match message.speaker {
        Speaker::System => turns.push(ChatTurn::System(text_of(&message.parts))),
        Speaker::Assistant if mine => add_parts(turns, message.parts, reading),
        // Another agent of the space is somebody who talks to this one.
        Speaker::Assistant | Speaker::User => turns.push(ChatTurn::User {
            parts: message.parts,
            name: message.entity.as_ref().map(ToString::to_string),
        }),
    }
}

/// Takes a stored message of this agent apart into replies and results.
fn add_parts(turns: &mut Vec<ChatTurn>, parts: Vec<Part>, reading: &Reading) {
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
                    content: reading.marked(reading.of(&whole.for_model()), None),
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
    large: &HashMap<Hash, Beginning>,
    me: Option<&EntityId>,
    reading: &Reading,
) {
    for id in &turn.taken {
        if let Some((_, message)) = later.iter().find(|(taken, _)| taken == id) {
            add_message(turns, message.clone(), me, reading);
        }
    }
    turn.steps.iter().for_each(|step| add_step(turns, step, large, reading));
}

fn add_step(
    turns: &mut Vec<ChatTurn>,
    step: &Arc<Step>,
    large: &HashMap<Hash, Beginning>,
    reading: &Reading,
) {
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
        Some(returned) => past_result(call, returned, large, reading),
        None => open_result(call),
    });
    let results: Vec<PastResult> = results.collect();
    turns.push(ChatTurn::Assistant { parts: step.reply.parts.clone(), calls });
    if !results.is_empty() {
        turns.push(ChatTurn::ToolResults(results));
    }
}

fn past_result(
    call: &PastCall,
    returned: &Returned,
    large: &HashMap<Hash, Beginning>,
    reading: &Reading,
) -> PastResult {
    let begun = returned.blob.as_ref().and_then(|b| large.get(&b.blob)).cloned();
    let begun = begun.unwrap_or_else(|| reading.of(&returned.outcome.for_model()));
    PastResult {
        call: call.id.clone(),
        name: call.name.clone(),
        content: reading.marked(begun, Some(&call.id)),
        is_error: returned.outcome.kind() != OutcomeKind::Ok,
    }
}
