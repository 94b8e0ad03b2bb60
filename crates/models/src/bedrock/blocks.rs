//! The blocks of a reply while they are written.
//!
//! The vendor numbers its blocks and may write several at once. Only calls say
//! that they begin; a block of text or thought is there with its first piece.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::WIRE;
use super::replay::{CALLS, CITATIONS};
use super::shapes::{Start, Thought, ToolUse};
use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};

#[derive(Debug, Default)]
pub(super) struct Blocks {
    open: BTreeMap<u64, Block>,
    calls: Vec<Call>,
    /// Calls were made since the last mark of their place.
    unmarked: bool,
}

#[derive(Debug)]
enum Block {
    Text {
        chars: usize,
        citations: Vec<Value>,
    },
    Thought {
        signature: String,
        redacted: Vec<u8>,
    },
    /// Its place in `calls`.
    Call(usize),
    /// A tool that runs at the vendor.
    ForeignCall {
        head: Value,
        input: String,
    },
    ForeignResult {
        head: Value,
        content: Vec<Value>,
    },
}

#[derive(Debug)]
struct Call {
    id: Option<String>,
    name: String,
    args: String,
}

impl Blocks {
    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(super) fn start(
        &mut self,
        key: u64,
        start: Start<'_>,
        out: &mut Vec<Chunk>,
    ) -> Result<(), ModelError> {
        // A number that comes again begins another block.
        self.stop(key, out);
        let block = match start {
            Start { tool_use: Some(tool), .. } if tool.kind.is_none() => {
                Block::Call(self.start_call(tool, out)?)
            }
            Start { tool_use: Some(tool), .. } => {
                self.mark_calls(out);
                Block::ForeignCall {
                    head: json!({ "toolUseId": tool.tool_use_id, "name": tool.name, "type": tool.kind }),
                    input: String::new(),
                }
            }
            Start { tool_result: Some(head), .. } => {
                self.mark_calls(out);
                Block::ForeignResult { head, content: Vec::new() }
            }
            Start { tool_use: None, tool_result: None, .. } => return Ok(()),
        };
        self.open.insert(key, block);
        Ok(())
    }

    fn start_call(&mut self, tool: ToolUse<'_>, out: &mut Vec<Chunk>) -> Result<usize, ModelError> {
        let Some(name) = tool.name.filter(|name| !name.is_empty()) else {
            return Err(ModelError::Unreadable { detail: Detail::new("a tool call has no name") });
        };
        let index = self.calls.len();
        self.unmarked = true;
        out.push(Chunk::ToolInputStart { index, name: name.clone() });
        self.calls.push(Call { id: tool.tool_use_id, name, args: String::new() });
        Ok(index)
    }

    /// What follows calls stands behind them when it goes back.
    fn mark_calls(&mut self, out: &mut Vec<Chunk>) {
        if std::mem::take(&mut self.unmarked) {
            out.push(Chunk::Opaque { value: json!({ WIRE: { CALLS: self.calls.len() } }) });
        }
    }

    pub(super) fn text(&mut self, key: u64, text: String, out: &mut Vec<Chunk>) {
        let chars = text.chars().count();
        match self.open.get_mut(&key) {
            Some(Block::Text { chars: so_far, .. }) => *so_far += chars,
            _ => {
                self.mark_calls(out);
                self.open.insert(key, Block::Text { chars, citations: Vec::new() });
            }
        }
        out.push(Chunk::TextDelta { text });
    }

    /// Something that the text of a block cites.
    pub(super) fn cites(&mut self, key: u64, citation: Value) {
        if let Some(Block::Text { citations, .. }) = self.open.get_mut(&key) {
            citations.push(citation);
        }
    }

    /// A piece of a call's arguments.
    pub(super) fn input(&mut self, key: u64, piece: String, out: &mut Vec<Chunk>) {
        if piece.is_empty() {
            return;
        }
        match self.open.get_mut(&key) {
            Some(Block::Call(index)) => {
                let index = *index;
                if let Some(call) = self.calls.get_mut(index) {
                    call.args.push_str(&piece);
                    out.push(Chunk::ToolInputDelta { index, text: piece });
                }
            }
            Some(Block::ForeignCall { input, .. }) => input.push_str(&piece),
            Some(Block::Text { .. } | Block::Thought { .. } | Block::ForeignResult { .. }) | None => {}
        }
    }

    pub(super) fn foreign_result(&mut self, key: u64, pieces: Vec<Value>) {
        if let Some(Block::ForeignResult { content, .. }) = self.open.get_mut(&key) {
            content.extend(pieces);
        }
    }

    pub(super) fn thought(&mut self, key: u64, thought: Thought<'_>, out: &mut Vec<Chunk>) {
        let begin = || Block::Thought { signature: String::new(), redacted: Vec::new() };
        if !self.open.contains_key(&key) {
            self.mark_calls(out);
        }
        if let Some(text) = thought.text.filter(|text| !text.is_empty()) {
            out.push(Chunk::ReasoningDelta { text });
        }
        if let Block::Thought { signature, redacted } = self.open.entry(key).or_insert_with(begin) {
            signature.push_str(thought.signature.as_deref().unwrap_or_default());
            let bytes = thought.redacted_content.and_then(|text| BASE64_STANDARD.decode(text).ok());
            redacted.extend(bytes.unwrap_or_default());
        }
    }

    /// A block is whole. What the vendor wants back of it is told now, so that
    /// it keeps its place among the others.
    pub(super) fn stop(&mut self, key: u64, out: &mut Vec<Chunk>) {
        let block = match self.open.remove(&key) {
            Some(Block::Text { chars, citations }) if chars > 0 && !citations.is_empty() => {
                json!({ CITATIONS: { "chars": chars, "citations": citations } })
            }
            Some(Block::Thought { signature, redacted }) => {
                if !signature.is_empty() {
                    out.push(Chunk::ReasoningMetadata { value: json!({ WIRE: { "signature": signature } }) });
                }
                if !redacted.is_empty() {
                    let redacted = BASE64_STANDARD.encode(redacted);
                    let value = json!({ WIRE: { "redactedContent": redacted } });
                    out.push(Chunk::ReasoningMetadata { value });
                }
                return;
            }
            Some(Block::ForeignCall { mut head, input }) => {
                head["input"] = serde_json::from_str(&input).unwrap_or_else(|_| json!({}));
                json!({ "toolUse": head })
            }
            Some(Block::ForeignResult { mut head, content }) => {
                head["content"] = Value::from(content);
                json!({ "toolResult": head })
            }
            Some(Block::Call(_) | Block::Text { .. }) | None => return,
        };
        out.push(Chunk::Opaque { value: json!({ WIRE: block }) });
    }

    /// The reply is whole: closes what is open and tells the calls in order.
    pub(super) fn finish(&mut self, out: &mut Vec<Chunk>) {
        while let Some(key) = self.open.keys().next().copied() {
            self.stop(key, out);
        }
        for (index, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            let blank = call.args.trim().is_empty();
            out.push(Chunk::ToolCall {
                index,
                name: call.name,
                args_text: if blank { "{}".to_owned() } else { call.args },
                vendor_id: call.id,
                metadata: Value::Null,
            });
        }
    }
}
