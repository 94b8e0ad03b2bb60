//! Events in, chunks out. No IO: the same bytes give the same chunks at every
//! split.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use toolyard_protocol::run::FinishReason;
use toolyard_protocol::sse::SseEvent;

use super::block::Block;
use super::replay::CALLS;
use super::wire::{Counts, Event, Growth, Message, Tokens, finish_reason};
use super::{WIRE, fault};
use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};
use crate::lenient::filled;
use crate::sse::{Listen, SseDecoder};
use crate::unknown::Unknown;
use crate::wire::{Refusal, parse};

/// The kind of most events.
const GROWTH: &str = "content_block_delta";

/// Reads one reply.
pub type Decoder = SseDecoder<Listener>;

/// Understands the events of one reply.
#[derive(Debug, Default)]
pub struct Listener {
    /// Blocks that are not whole yet, by the vendor's number.
    open: BTreeMap<u64, Block>,
    calls: usize,
    /// Calls were made since the last mark of their place.
    unmarked: bool,
    facts: Map<String, Value>,
    unknown: Unknown,
    tokens: Option<Tokens>,
    finish: Option<FinishReason>,
    /// Pings keep the connection alive and are no progress.
    pings: u64,
    done: bool,
}

impl Listen for Listener {
    fn hear(&mut self, event: &SseEvent, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let (name, data) = (event.event.as_deref(), event.data.trim());
        // Some proxies add the end mark of another wire.
        if name == Some("ping") || data == "[DONE]" {
            self.pings += 1;
            return Ok(());
        }
        if name == Some("error") {
            return Err(fault::in_stream(&parse(data)));
        }
        // Its name may be wrong, and then it is read as all others are.
        if name == Some(GROWTH)
            && let Ok(event) = serde_json::from_str::<Growth<'_>>(data)
            && filled(&event.kind) == Some(GROWTH)
        {
            self.grow(event, (name, data), out);
            return Ok(());
        }
        match serde_json::from_str::<Event<'_>>(data) {
            Ok(event) => self.take(event, (name, data), out),
            // A form that we do not know of an event that we do not need.
            Err(_) if is_foreign(data) => {
                self.unknown.keep(name, data);
                Ok(())
            }
            Err(why) => Err(unreadable(&why, data)),
        }
    }

    fn hear_whole(&mut self, body: &str, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let message: Message<'_> = serde_json::from_str(body).map_err(|why| unreadable(&why, body))?;
        if let Some(error) = message.error {
            return Err(fault::in_stream(&error));
        }
        self.begin(message, out);
        Ok(())
    }

    fn close(&mut self, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        self.done = true;
        let Some(reason) = self.finish else {
            return Err(ModelError::Cut { detail: Detail::new("no stop reason before the end") });
        };
        for (_, block) in std::mem::take(&mut self.open) {
            block.close(out);
        }
        self.unknown.tell(&mut self.facts);
        if !self.facts.is_empty() {
            out.push(Chunk::Metadata { value: Value::Object(std::mem::take(&mut self.facts)) });
        }
        if let Some(tokens) = self.tokens {
            out.push(Chunk::Usage { usage: tokens.usage() });
        }
        let reason = match reason {
            FinishReason::Stop if self.calls > 0 => FinishReason::ToolCalls,
            FinishReason::ToolCalls if self.calls == 0 => FinishReason::Stop,
            other => other,
        };
        out.push(Chunk::Finish { reason });
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    fn idle(&self) -> u64 {
        self.pings
    }

    fn refused(refusal: &Refusal) -> ModelError {
        fault::refused(refusal)
    }
}

impl Listener {
    /// One event, and beside it its name and data as they came.
    fn take(
        &mut self,
        mut event: Event<'_>,
        (name, data): (Option<&str>, &str),
        out: &mut Vec<Chunk>,
    ) -> Result<(), ModelError> {
        let kind = event.kind.take();
        let kind = filled(&kind).unwrap_or_default();
        let (index, rest) = (event.index.unwrap_or(0), event.rest.take());
        if rest.is_some() && is_ours(kind) && kind != GROWTH {
            self.unknown.fields("", rest);
        }
        match kind {
            "message_start" => {
                if let Some(message) = event.message {
                    self.begin(*message, out);
                }
            }
            "content_block_start" => self.open_block(index, *event.content_block.unwrap_or_default(), out),
            // Not every server names its events.
            GROWTH => {
                let event = serde_json::from_str(data).map_err(|why| unreadable(&why, data))?;
                self.grow(event, (name, data), out);
            }
            "content_block_stop" => {
                if let Some(block) = self.open.remove(&index) {
                    block.close(out);
                }
            }
            "message_delta" => {
                self.count(event.usage);
                let delta = *event.delta.unwrap_or_default();
                self.unknown.fields("delta", delta.rest);
                self.stop(delta.stop_reason, delta.stop_sequence, delta.stop_details);
            }
            "message_stop" => self.done = self.finish.is_some(),
            "error" => return Err(fault::in_stream(&event.error.unwrap_or_default())),
            "ping" => self.pings += 1,
            _ => self.unknown.keep(name, data),
        }
        Ok(())
    }

    /// More of a block.
    fn grow(&mut self, event: Growth<'_>, (name, data): (Option<&str>, &str), out: &mut Vec<Chunk>) {
        let Growth { index, delta, rest, .. } = event;
        match (self.open.get_mut(&index.unwrap_or(0)), delta) {
            (Some(block), Some(mut piece)) if piece.is_known() => {
                block.grow(&mut piece, out);
                self.unknown.fields("", rest);
                self.unknown.fields("delta", piece.rest);
            }
            (Some(_) | None, _) => self.unknown.keep(name, data),
        }
    }

    /// The head of a reply, with its blocks if it was not streamed.
    fn begin(&mut self, message: Message<'_>, out: &mut Vec<Chunk>) {
        self.unknown.fields("message", message.rest);
        for (name, fact) in [("id", message.id), ("model", message.model)] {
            if let Some(fact) = fact {
                self.facts.insert(name.to_owned(), Value::from(fact));
            }
        }
        self.count(message.usage);
        for (index, block) in message.content.into_iter().flatten().enumerate() {
            let index = index as u64;
            self.open_block(index, block, out);
            if let Some(block) = self.open.remove(&index) {
                block.close(out);
            }
        }
        self.stop(message.stop_reason, message.stop_sequence, message.stop_details);
    }

    fn open_block(&mut self, index: u64, block: Value, out: &mut Vec<Chunk>) {
        self.keep_rest(&block);
        if block["type"] == "tool_use" {
            self.unmarked = true;
        } else if std::mem::take(&mut self.unmarked) {
            let mark = json!({ "type": CALLS, "before": self.calls });
            out.push(Chunk::Opaque { value: json!({ WIRE: mark }) });
        }
        let opened = Block::open(block, self.calls, out);
        if let Block::Call { .. } = opened {
            self.calls += 1;
        }
        if let Some(unfinished) = self.open.insert(index, opened) {
            unfinished.close(out);
        }
    }

    /// Keeps the fields of a block that go nowhere else: calls and the
    /// vendor's own blocks keep all of theirs.
    fn keep_rest(&mut self, block: &Value) {
        let known: &[&str] = match block["type"].as_str() {
            Some("text") => &["type", "text", "citations"],
            Some("thinking") => &["type", "thinking", "signature"],
            Some(_) | None => return,
        };
        let mut rest = block.as_object().cloned().unwrap_or_default();
        rest.retain(|name, _| !known.contains(&name.as_str()));
        self.unknown.rest_of("content_block", rest);
    }

    fn count(&mut self, newer: Option<Box<Counts<'_>>>) {
        if let Some(newer) = newer {
            self.tokens.get_or_insert_default().update(&newer);
            self.unknown.fields("usage", newer.rest);
        }
    }

    fn stop(&mut self, reason: Option<String>, sequence: Option<String>, details: Option<Value>) {
        if let (None, Some(reason)) = (self.finish, reason) {
            self.finish = Some(finish_reason(&reason));
            self.facts.insert("stop_reason".to_owned(), Value::from(reason));
        }
        let sequence = sequence.map(Value::from);
        for (name, fact) in [("stop_sequence", sequence), ("stop_details", details)] {
            if let Some(fact) = fact.filter(|fact| !fact.is_null()) {
                self.facts.insert(name.to_owned(), fact);
            }
        }
    }
}

fn is_ours(kind: &str) -> bool {
    matches!(
        kind,
        "message_start"
            | "content_block_start"
            | GROWTH
            | "content_block_stop"
            | "message_delta"
            | "message_stop"
            | "error"
    )
}

fn is_foreign(data: &str) -> bool {
    match serde_json::from_str::<Value>(data) {
        Ok(value) => value["type"].as_str().is_some_and(|kind| !is_ours(kind)),
        Err(_) => false,
    }
}

fn unreadable(why: &serde_json::Error, data: &str) -> ModelError {
    ModelError::Unreadable { detail: Detail::new(format!("{why} in: {data}")) }
}
