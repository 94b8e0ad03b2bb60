//! An earlier reply as the vendor wants it back.
//!
//! A reply is kept as parts and, beside them, calls. Two marks inside
//! [`Part::Opaque`] keep what that would lose:
//! - [`CITATIONS`] says that the last characters before it cite something;
//! - [`CALLS`] says how many calls were made before this place.

use serde_json::{Map, Value, json};
use toolyard_protocol::message::Part;

use super::WIRE;
use super::turns::text_block;

/// `{chars, citations}`
pub(super) const CITATIONS: &str = "toolyardCitations";
/// A number.
pub(super) const CALLS: &str = "toolyardCalls";
/// What the vendor takes of a citation.
const CITED: [&str; 4] = ["title", "source", "sourceContent", "location"];

/// The blocks of an assistant's turn. `calls` are blocks already; `cites` says
/// that the model takes citations back.
pub(super) fn blocks(parts: Vec<Part>, calls: Vec<Value>, cites: bool) -> Vec<Value> {
    let mut reply = Replay { blocks: Vec::new(), text: String::new(), calls: calls.into_iter(), given: 0 };
    for part in parts {
        match part {
            Part::Text { text } => reply.text.push_str(&text),
            Part::Reasoning { text, metadata } => {
                if let Some(block) = metadata.into_shown().and_then(|metadata| thought(&text, metadata)) {
                    reply.push(block);
                }
            }
            Part::Opaque { value } => {
                if let Some(block) = value.into_shown().and_then(|mut v| Some(v.get_mut(WIRE)?.take())) {
                    reply.opaque(block, cites);
                }
            }
            Part::File { .. }
            | Part::Source { .. }
            | Part::ToolCall { .. }
            | Part::ToolResult { .. }
            | Part::Data { .. } => {}
        }
    }
    reply.end_text();
    reply.blocks.extend(reply.calls);
    reply.blocks
}

struct Replay {
    blocks: Vec<Value>,
    /// Text that is not a block yet.
    text: String,
    calls: std::vec::IntoIter<Value>,
    /// Calls that are blocks already.
    given: usize,
}

impl Replay {
    fn push(&mut self, block: Value) {
        self.end_text();
        self.blocks.push(block);
    }

    fn end_text(&mut self) {
        self.blocks.extend(text_block(&std::mem::take(&mut self.text)));
    }

    fn opaque(&mut self, block: Value, cites: bool) {
        if let Some(before) = block.get(CALLS) {
            let before = before.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
            self.end_text();
            while self.given < before
                && let Some(call) = self.calls.next()
            {
                self.given += 1;
                self.blocks.push(call);
            }
        } else if let Some(mark) = block.get(CITATIONS) {
            if cites {
                self.cite(mark);
            }
        } else {
            self.push(block);
        }
    }

    /// The text may have been amended since: then it cites nothing any more.
    fn cite(&mut self, mark: &Value) {
        let chars = mark["chars"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let Some(before) = self.text.chars().count().checked_sub(chars) else { return };
        let at = self.text.char_indices().nth(before).map_or(self.text.len(), |(at, _)| at);
        let cited = self.text.split_off(at);
        if cited.trim().is_empty() {
            self.text.push_str(&cited);
            return;
        }
        let told = mark["citations"].as_array().into_iter().flatten().filter_map(Value::as_object);
        let citations: Vec<Map<String, Value>> = told
            .map(|citation| {
                let kept = citation.iter().filter(|(name, _)| CITED.contains(&name.as_str()));
                kept.map(|(name, value)| (name.clone(), value.clone())).collect()
            })
            .collect();
        self.push(json!({ "citationsContent": { "content": [{ "text": cited }], "citations": citations } }));
    }
}

/// Thoughts go back only with the vendor's own mark: it refuses thoughts of
/// others.
fn thought(text: &str, mut metadata: Value) -> Option<Value> {
    let mut own = metadata.get_mut(WIRE)?.take();
    if let Value::String(redacted) = own["redactedContent"].take() {
        return Some(json!({ "reasoningContent": { "redactedContent": redacted } }));
    }
    let signature = own.get_mut("signature")?.take();
    let thought = json!({ "text": text, "signature": signature });
    Some(json!({ "reasoningContent": { "reasoningText": thought } }))
}
