//! A reply as the conversation remembers it, for requests that give it back.

use serde_json::Value;
use toolyard_models::{ChatTurn, Chunk, PastCall, PastResult};
use toolyard_protocol::Guarded;
use toolyard_protocol::ids::CallId;
use toolyard_protocol::message::Part;

/// The turn that these chunks become.
pub(crate) fn remember(chunks: &[Chunk]) -> ChatTurn {
    let mut parts: Vec<Part> = Vec::new();
    let mut calls = Vec::new();
    let mut open = false;
    for chunk in chunks {
        let goes_on = std::mem::take(&mut open);
        match chunk {
            Chunk::TextDelta { text } => {
                open = true;
                match parts.last_mut() {
                    Some(Part::Text { text: whole }) if goes_on => whole.push_str(text),
                    _ => parts.push(Part::text(text.as_str())),
                }
            }
            Chunk::ReasoningDelta { text } => {
                open = true;
                match parts.last_mut() {
                    Some(Part::Reasoning { text: whole, .. }) if goes_on => whole.push_str(text),
                    _ => parts.push(Part::Reasoning { text: text.clone(), metadata: Guarded::Hidden }),
                }
            }
            Chunk::ReasoningMetadata { value } => match parts.last_mut() {
                Some(Part::Reasoning { metadata, .. }) if goes_on => *metadata = value.clone().into(),
                _ => parts.push(Part::Reasoning { text: String::new(), metadata: value.clone().into() }),
            },
            Chunk::Opaque { value } => parts.push(Part::Opaque { value: value.clone().into() }),
            Chunk::Part { part } => parts.push(part.clone()),
            Chunk::Source { url, .. } => parts.push(Part::Source {
                id: "s".into(),
                url: url.clone(),
                title: None,
                start_index: None,
                end_index: None,
            }),
            Chunk::ToolCall { index, name, args_text, metadata, .. } => calls.push(PastCall {
                id: id(*index),
                name: name.clone(),
                args: serde_json::from_str(args_text).unwrap_or(Value::Null),
                metadata: metadata.clone(),
            }),
            Chunk::ToolInputStart { .. }
            | Chunk::ToolInputDelta { .. }
            | Chunk::Metadata { .. }
            | Chunk::Usage { .. }
            | Chunk::Finish { .. } => {}
        }
    }
    ChatTurn::Assistant { parts, calls }
}

pub(crate) fn id(index: usize) -> CallId {
    CallId::parse(&format!("call_{index}")).unwrap()
}

pub(crate) fn result(index: usize, name: &str, content: &str, is_error: bool) -> PastResult {
    PastResult { call: id(index), name: name.into(), content: content.into(), is_error }
}

pub(crate) fn file(media_type: &str, url: Option<&str>, name: Option<&str>) -> Part {
    let (url, name) = (url.map(str::to_owned), name.map(str::to_owned));
    Part::File { media_type: media_type.into(), file: None, url, name }
}
