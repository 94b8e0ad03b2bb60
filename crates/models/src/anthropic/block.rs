//! One block of a reply as it grows.

use serde_json::{Map, Value, json};

use super::WIRE;
use super::replay::CITATIONS;
use super::wire::Piece;
use crate::chunk::Chunk;

#[derive(Debug)]
pub(super) enum Block {
    Text {
        chars: usize,
        citations: Vec<Value>,
    },
    Thinking {
        signature: String,
    },
    Call {
        index: usize,
        id: Option<String>,
        name: String,
        /// What a reply that is not streamed has whole.
        input: Value,
        args: String,
        /// Fields that go back with the call.
        kept: Map<String, Value>,
    },
    /// A block of the vendor's own; `input` comes in pieces.
    Opaque {
        block: Value,
        input: String,
    },
}

impl Block {
    /// A block begins. `index` is the number of the next call.
    pub(super) fn open(block: Value, index: usize, out: &mut Vec<Chunk>) -> Self {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("text") => {
                let mut opened = Self::Text { chars: 0, citations: Vec::new() };
                let citations = block["citations"].as_array().cloned().unwrap_or_default();
                opened.grow(&mut Piece { text: Some(text("text")), ..Piece::default() }, out);
                for citation in citations {
                    opened.grow(&mut Piece { citation: Some(Box::new(citation)), ..Piece::default() }, out);
                }
                opened
            }
            Some("thinking") => {
                let mut opened = Self::Thinking { signature: text("signature") };
                opened.grow(&mut Piece { thinking: Some(text("thinking")), ..Piece::default() }, out);
                opened
            }
            Some("tool_use") => {
                let (name, id) = (text("name"), block["id"].as_str().map(str::to_owned));
                let mut kept = block.as_object().cloned().unwrap_or_default();
                let input = kept.remove("input").unwrap_or_default();
                kept.retain(|key, value| !matches!(key.as_str(), "type" | "id" | "name") && !value.is_null());
                out.push(Chunk::ToolInputStart { index, name: name.clone() });
                Self::Call { index, id, name, input, args: String::new(), kept }
            }
            _ => Self::Opaque { block, input: String::new() },
        }
    }

    pub(super) fn grow(&mut self, piece: &mut Piece<'_>, out: &mut Vec<Chunk>) {
        match self {
            Self::Text { chars, citations } => {
                if let Some(citation) = piece.citation.take() {
                    citations.push(*citation);
                }
                if let Some(text) = piece.text.take().filter(|text| !text.is_empty()) {
                    *chars += text.chars().count();
                    out.push(Chunk::TextDelta { text });
                }
            }
            Self::Thinking { signature } => {
                signature.push_str(piece.signature.as_deref().unwrap_or_default());
                if let Some(text) = piece.thinking.take().filter(|text| !text.is_empty()) {
                    out.push(Chunk::ReasoningDelta { text });
                }
            }
            Self::Call { index, args, .. } => {
                if let Some(text) = piece.partial_json.take().filter(|text| !text.is_empty()) {
                    args.push_str(&text);
                    out.push(Chunk::ToolInputDelta { index: *index, text });
                }
            }
            Self::Opaque { input, .. } => input.push_str(piece.partial_json.as_deref().unwrap_or_default()),
        }
    }

    /// The block is whole.
    pub(super) fn close(self, out: &mut Vec<Chunk>) {
        match self {
            Self::Text { chars, citations } => close_text(chars, citations, out),
            Self::Thinking { signature } if signature.is_empty() => {}
            Self::Thinking { signature } => {
                let value = json!({ WIRE: { "type": "thinking", "signature": signature } });
                out.push(Chunk::ReasoningMetadata { value });
            }
            Self::Call { index, id, name, input, mut args, kept } => {
                if args.trim().is_empty() {
                    let empty = input.as_object().is_none_or(Map::is_empty);
                    args = if empty { "{}".to_owned() } else { input.to_string() };
                    if !empty {
                        out.push(Chunk::ToolInputDelta { index, text: args.clone() });
                    }
                }
                let metadata = if kept.is_empty() { Value::Null } else { json!({ WIRE: kept }) };
                out.push(Chunk::ToolCall { index, name, args_text: args, vendor_id: id, metadata });
            }
            Self::Opaque { mut block, input } => {
                // What is no block cannot go back as one.
                let Some(fields) = block.as_object_mut() else { return };
                if let Ok(input @ Value::Object(_)) = serde_json::from_str(&input) {
                    fields.insert("input".to_owned(), input);
                }
                let value = json!({ WIRE: block });
                let hidden = value[WIRE]["type"] == "redacted_thinking";
                out.push(if hidden { Chunk::ReasoningMetadata { value } } else { Chunk::Opaque { value } });
            }
        }
    }
}

/// The sources of a text, and the citations themselves, which the vendor wants
/// back. It says where in its sources, not where in the text (row U19).
fn close_text(chars: usize, citations: Vec<Value>, out: &mut Vec<Chunk>) {
    for citation in &citations {
        let url = citation["url"].as_str().or_else(|| {
            citation["source"].as_str().filter(|s| s.starts_with("https://") || s.starts_with("http://"))
        });
        if let Some(url) = url {
            let title = citation["title"].as_str().map(str::to_owned);
            out.push(Chunk::Source { url: url.to_owned(), title, start: None, end: None });
        }
    }
    if !citations.is_empty() && chars > 0 {
        let mark = json!({ "type": CITATIONS, "chars": chars, "citations": citations });
        out.push(Chunk::Opaque { value: json!({ WIRE: mark }) });
    }
}
