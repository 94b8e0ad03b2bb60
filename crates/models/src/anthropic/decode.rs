//! Bytes in, chunks out. No IO: the same bytes give the same chunks at every
//! split.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use toolyard_protocol::run::FinishReason;
use toolyard_protocol::sse::{SseEvent, SseSplitter};

use super::block::Block;
use super::replay::CALLS;
use super::wire::{Delta, Event, Message, Tokens, finish_reason};
use super::{WIRE, fault};
use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};
use crate::wire::{Decode, EVENT_BYTES, Refusal, parse};

/// Reads one reply.
#[derive(Debug)]
pub struct Decoder {
    splitter: SseSplitter,
    /// Blocks that are not whole yet, by the vendor's number.
    open: BTreeMap<u64, Block>,
    calls: usize,
    /// Calls were made since the last mark of their place.
    unmarked: bool,
    facts: Map<String, Value>,
    tokens: Option<Tokens>,
    finish: Option<FinishReason>,
    seen: u64,
    done: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            splitter: SseSplitter::new(EVENT_BYTES),
            open: BTreeMap::new(),
            calls: 0,
            unmarked: false,
            facts: Map::new(),
            tokens: None,
            finish: None,
            seen: 0,
            done: false,
        }
    }
}

impl Decode for Decoder {
    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    fn events_seen(&self) -> u64 {
        self.seen
    }

    fn refused(refusal: &Refusal) -> ModelError {
        fault::refused(refusal)
    }

    fn push(&mut self, bytes: &[u8], out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let mut splitter = std::mem::replace(&mut self.splitter, SseSplitter::new(EVENT_BYTES));
        let mut read = Ok(());
        let split = splitter.each(bytes, |event| {
            if read.is_ok() {
                read = self.take_event(event, out);
            }
        });
        self.splitter = splitter;
        // Events that came before one that is too large still count.
        read?;
        if self.done {
            return Ok(());
        }
        split.map_err(|large| ModelError::TooLarge { limit: large.limit as u64 })
    }

    fn push_whole(&mut self, body: &[u8], out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let text = String::from_utf8_lossy(body);
        let message: Message = serde_json::from_str(&text).map_err(|why| unreadable(&why, &text))?;
        if let Some(error) = message.error {
            return Err(fault::in_stream(&error));
        }
        self.begin(message, out);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        if !self.done {
            // Some proxies forget the last empty line. An event that is only
            // half there is part of the cut, not an error of its own.
            match self.push(b"\n\n", out) {
                Ok(()) | Err(ModelError::Unreadable { .. }) => {}
                Err(error) => return Err(error),
            }
            self.done = true;
        }
        let Some(reason) = self.finish else {
            return Err(ModelError::Cut { detail: Detail::new("no stop reason before the end") });
        };
        for (_, block) in std::mem::take(&mut self.open) {
            block.close(out);
        }
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
}

impl Decoder {
    fn take_event(&mut self, event: &SseEvent, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let data = event.data.trim();
        // Some proxies add the end mark of another wire.
        if self.done || event.event.as_deref() == Some("ping") || data == "[DONE]" {
            return Ok(());
        }
        if event.event.as_deref() == Some("error") {
            return Err(fault::in_stream(&parse(data)));
        }
        match serde_json::from_str::<Event>(data) {
            Ok(event) => self.take(event, out),
            // A form that we do not know of an event that we do not need.
            Err(_) if is_foreign(data) => Ok(()),
            Err(why) => Err(unreadable(&why, data)),
        }
    }

    fn take(&mut self, event: Event, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let kind = event.kind.as_deref().unwrap_or_default();
        // Pings keep the connection alive and are no progress.
        if kind != "ping" {
            self.seen += 1;
        }
        let index = event.index.unwrap_or(0);
        match kind {
            "message_start" => {
                if let Some(message) = event.message {
                    self.begin(*message, out);
                }
            }
            "content_block_start" => self.open_block(index, event.content_block.unwrap_or_default(), out),
            "content_block_delta" => {
                if let (Some(block), Some(delta)) = (self.open.get_mut(&index), event.delta) {
                    block.grow(delta, out);
                }
            }
            "content_block_stop" => {
                if let Some(block) = self.open.remove(&index) {
                    block.close(out);
                }
            }
            "message_delta" => {
                self.count(event.usage);
                let Delta { stop_reason, stop_sequence, stop_details, .. } = event.delta.unwrap_or_default();
                self.stop(stop_reason, stop_sequence, stop_details);
            }
            "message_stop" => self.done = self.finish.is_some(),
            "error" => return Err(fault::in_stream(&event.error.unwrap_or_default())),
            _ => {}
        }
        Ok(())
    }

    /// The head of a reply, with its blocks if it was not streamed.
    fn begin(&mut self, message: Message, out: &mut Vec<Chunk>) {
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

    fn count(&mut self, newer: Option<Tokens>) {
        if let Some(newer) = newer {
            self.tokens.get_or_insert_default().update(newer);
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

fn is_foreign(data: &str) -> bool {
    const OURS: [&str; 7] = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
    ];
    match serde_json::from_str::<Value>(data) {
        Ok(value) => value["type"].as_str().is_some_and(|kind| !OURS.contains(&kind)),
        Err(_) => false,
    }
}

fn unreadable(why: &serde_json::Error, data: &str) -> ModelError {
    ModelError::Unreadable { detail: Detail::new(format!("{why} in: {data}")) }
}
