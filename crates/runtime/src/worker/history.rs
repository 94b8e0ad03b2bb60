//! What the model reads: the branch up to where the run began, then the run's
//! own turns. Calls and results are never separated.

use std::collections::HashMap;
use std::sync::Arc;

use toolyard_engine::{Returned, Step, Turn};
use toolyard_models::{ChatTurn, PastCall, PastResult};
use toolyard_protocol::event::RunCreated;
use toolyard_protocol::message::{Message, Part, Speaker, text_of};
use toolyard_protocol::outcome::CANCELED_TEXT;
use toolyard_protocol::{EntityId, Hash, MessageId, OutcomeKind, ToolOutcome, limits};
use toolyard_store::{blobs, messages};

use super::{Stop, Worker};

/// Messages before the run, messages that it took, large values by hash.
type Read = (Vec<Message>, Vec<Message>, HashMap<Hash, String>);

impl Worker {
    pub(super) async fn history(&mut self) -> Result<Vec<ChatTurn>, Stop> {
        let Some(created) = self.run.created().cloned() else { return Ok(Vec::new()) };
        let me = created.agent_entity.clone();
        let taken: Vec<_> = self.run.turns().iter().flat_map(|t| t.taken.clone()).collect();
        let blobs = self.large_results();
        let known = self.before.is_some();
        let (before, later, large) = if known && taken.is_empty() && blobs.is_empty() {
            Default::default()
        } else {
            self.read_history(created, known, taken, blobs).await?
        };
        let past = self.before.get_or_insert_with(|| {
            let mut turns = Vec::new();
            before.iter().for_each(|message| add_message(&mut turns, message, me.as_ref()));
            turns
        });
        let mut turns = past.clone();
        for turn in self.run.turns() {
            add_turn(&mut turns, turn, &later, &large, me.as_ref());
        }
        Ok(turns)
    }

    /// What was said before the run (unless it is known: it never changes),
    /// what the run took since, and its large results.
    async fn read_history(
        &mut self,
        created: RunCreated,
        known: bool,
        taken: Vec<MessageId>,
        blobs: Vec<Hash>,
    ) -> Result<Read, Stop> {
        let tenant = self.tenant.clone();
        self.patiently(move |tx| {
            let (tenant, created, taken, blobs) =
                (tenant.clone(), created.clone(), taken.clone(), blobs.clone());
            Box::pin(async move {
                let before = match &created.space {
                    Some(space) if !known => {
                        messages::history(tx, &tenant, space, &created.branch, created.history_to).await?
                    }
                    _ => Vec::new(),
                };
                let mut later = Vec::with_capacity(taken.len());
                for id in &taken {
                    later.extend(messages::get(tx, &tenant, id).await?);
                }
                let mut large = HashMap::with_capacity(blobs.len());
                for hash in blobs {
                    if let Some(bytes) = blobs::get(tx, &tenant, &hash).await? {
                        large.insert(hash, for_model(&bytes));
                    }
                }
                Ok((before, later, large))
            })
        })
        .await
    }

    /// The values of this run that lie beside the log.
    fn large_results(&self) -> Vec<Hash> {
        let steps = self.run.turns().iter().flat_map(|t| &t.steps);
        let results = steps.flat_map(|s| s.results.iter().flatten());
        results.filter_map(|r| r.blob.as_ref().map(|b| b.blob.clone())).collect()
    }
}

/// As much of a large value as the model reads, with a mark where it is cut.
fn for_model(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let most = limits::MODEL_RESULT_CHARS;
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}… [cut: {most} of {} characters]", &text[..end], text.chars().count()),
        None => text.into_owned(),
    }
}

fn add_message(turns: &mut Vec<ChatTurn>, message: &Message, me: Option<&EntityId>) {
    let mine = message.speaker == Speaker::Assistant && message.entity.as_ref() == me;
    match message.speaker {
        Speaker::System => turns.push(ChatTurn::System(text_of(&message.parts))),
        Speaker::Assistant if mine => add_parts(turns, &message.parts),
        // Another agent of the space is somebody who talks to this one.
        Speaker::Assistant | Speaker::User => turns.push(ChatTurn::User {
            parts: message.parts.clone(),
            name: message.entity.as_ref().map(ToString::to_string),
        }),
    }
}

/// Takes a stored message of this agent apart into replies and results.
fn add_parts(turns: &mut Vec<ChatTurn>, parts: &[Part]) {
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
                    id: call.clone(),
                    name: tool.to_string(),
                    args: args.shown().cloned().unwrap_or_default(),
                    metadata: metadata.shown().cloned().unwrap_or_default(),
                });
            }
            Part::ToolResult { call, tool, outcome, value, error, .. } => {
                let whole = ToolOutcome::from_parts(*outcome, value.shown().cloned(), error.shown().cloned());
                results.push(PastResult {
                    call: call.clone(),
                    name: tool.to_string(),
                    content: whole.for_model(),
                    is_error: *outcome != OutcomeKind::Ok,
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
                said.push(part.clone());
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
fn add_turn(
    turns: &mut Vec<ChatTurn>,
    turn: &Arc<Turn>,
    later: &[Message],
    large: &HashMap<Hash, String>,
    me: Option<&EntityId>,
) {
    for id in &turn.taken {
        if let Some(message) = later.iter().find(|m| m.id == *id) {
            add_message(turns, message, me);
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
