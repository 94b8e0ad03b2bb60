//! An earlier reply as the vendor wants it back.
//!
//! A reply is kept as parts and, beside them, calls. Three marks inside
//! [`Part::Opaque`] keep what that would lose:
//! - a block of the vendor's own goes back as it came;
//! - [`CITATIONS`] says that the last characters before it cite something;
//! - [`CALLS`] says how many calls were made before this place.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolyard_protocol::message::Part;

use super::WIRE;
use crate::names::Names;
use crate::request::PastCall;

/// `{type, chars, citations}`
pub(super) const CITATIONS: &str = "toolyard_citations";
/// `{type, before}`
pub(super) const CALLS: &str = "toolyard_calls";

/// The blocks of an assistant's turn. `open` says that the vendor may still go
/// on with it, so that a search of its own may be without a result.
pub(super) fn blocks(parts: &[Part], calls: Vec<PastCall>, names: &Names, open: bool) -> Vec<Value> {
    let mut reply = Replay { blocks: Vec::new(), text: String::new(), given: 0 };
    let calls: Vec<Value> = calls.into_iter().map(|call| call_block(call, names)).collect();
    for part in parts {
        match part {
            Part::Text { text } => reply.text.push_str(text),
            Part::Reasoning { text, metadata } => {
                if let Some(block) = metadata.shown().and_then(|m| thought(text, &m[WIRE])) {
                    reply.push(block);
                }
            }
            Part::Opaque { value } => {
                if let Some(block) = value.shown().and_then(|v| v.get(WIRE)) {
                    reply.opaque(block, &calls);
                }
            }
            Part::File { .. }
            | Part::Source { .. }
            | Part::ToolCall { .. }
            | Part::ToolResult { .. }
            | Part::Data { .. } => {}
        }
    }
    reply.calls_up_to(&calls, calls.len());
    reply.end_text();
    if !open {
        drop_open_searches(&mut reply.blocks);
    }
    reply.blocks
}

struct Replay {
    blocks: Vec<Value>,
    /// Text that is not a block yet.
    text: String,
    /// Calls that are blocks already.
    given: usize,
}

impl Replay {
    fn push(&mut self, block: Value) {
        self.end_text();
        self.blocks.push(block);
    }

    /// The vendor refuses blocks of white space.
    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() {
            self.blocks.push(json!({ "type": "text", "text": text }));
        }
    }

    fn opaque(&mut self, block: &Value, calls: &[Value]) {
        match block["type"].as_str() {
            Some(CITATIONS) => self.cite(block),
            Some(CALLS) => {
                let before = block["before"].as_u64().and_then(|n| usize::try_from(n).ok());
                self.calls_up_to(calls, before.unwrap_or(0).min(calls.len()));
            }
            Some(_) => self.push(block.clone()),
            None => {}
        }
    }

    /// The text may have been amended since: then it cites nothing any more.
    fn cite(&mut self, mark: &Value) {
        let chars = mark["chars"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let total = self.text.chars().count();
        if chars == 0 || chars > total {
            return;
        }
        let at = self.text.char_indices().nth(total - chars).map_or(0, |(at, _)| at);
        let cited = self.text.split_off(at);
        if cited.trim().is_empty() {
            return;
        }
        let mut citations = mark["citations"].clone();
        for citation in citations.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            // The vendor tells it and does not take it back.
            citation.remove("file_id");
        }
        self.push(json!({ "type": "text", "text": cited, "citations": citations }));
    }

    fn calls_up_to(&mut self, calls: &[Value], end: usize) {
        if self.given < end {
            self.end_text();
            self.blocks.extend_from_slice(&calls[self.given..end]);
            self.given = end;
        }
    }
}

/// Thinking without a signature of this vendor is refused, so it stays here.
fn thought(text: &str, signed: &Value) -> Option<Value> {
    match signed["type"].as_str()? {
        "redacted_thinking" => Some(signed.clone()),
        "thinking" => {
            let mut block = signed.clone();
            block["thinking"] = json!(text);
            Some(block)
        }
        _ => None,
    }
}

fn call_block(PastCall { id, name, args, metadata }: PastCall, names: &Names) -> Value {
    let input = match args {
        Value::Object(_) => args,
        Value::Null => json!({}),
        // What the model wrote was no object; the vendor takes nothing else.
        other => json!({ "input": other }),
    };
    let mut block =
        json!({ "type": "tool_use", "id": id.as_str(), "name": names.alias(&name), "input": input });
    if let (Some(Value::Object(kept)), Some(block)) = (metadata.get(WIRE), block.as_object_mut()) {
        for (key, value) in kept {
            block.entry(key).or_insert_with(|| value.clone());
        }
    }
    block
}

/// A search whose result was cut off would make the vendor refuse everything.
fn drop_open_searches(blocks: &mut Vec<Value>) {
    let ids = |key: &str, fits: fn(&str) -> bool| -> HashSet<String> {
        let fitting = blocks.iter().filter(|block| block["type"].as_str().is_some_and(fits));
        fitting.filter_map(|block| block[key].as_str().map(str::to_owned)).collect()
    };
    let asked = ids("id", |kind| kind == "server_tool_use");
    let answered = ids("tool_use_id", |kind| kind.ends_with("_tool_result"));
    blocks.retain(|block| match block["type"].as_str() {
        Some("server_tool_use") => block["id"].as_str().is_some_and(|id| answered.contains(id)),
        Some(kind) if kind.ends_with("_tool_result") => {
            block["tool_use_id"].as_str().is_some_and(|id| asked.contains(id))
        }
        _ => true,
    });
}
