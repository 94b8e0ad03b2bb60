//! All wires with a decoder and an encoder, and the replies that the vendors'
//! own packages wrote for them (`tests/referees`).

use std::path::PathBuf;

use serde_json::Value;
use toolyard_models::wire::{Decode, Encoded, Refusal};
use toolyard_models::{
    ChatTurn, Chunk, ModelError, PastCall, PastResult, Request, anthropic, bedrock, gemini, openai, responses,
};
use toolyard_protocol::guarded::Guarded;
use toolyard_protocol::ids::CallId;
use toolyard_protocol::message::Part;

use crate::fixtures::Outcome;

/// One wire.
pub(crate) struct Vendor {
    /// The folder of its fixtures, and its name for the judge.
    pub name: &'static str,
    pub suffix: &'static str,
    /// Models of it that are asked in different words.
    pub models: &'static [&'static str],
    pub decode: fn(&[&[u8]]) -> Outcome,
    pub refused: fn(&Refusal) -> ModelError,
    pub encode: fn(Request) -> Encoded,
}

pub(crate) const VENDORS: [Vendor; 5] = [
    Vendor {
        name: "openai-chat",
        suffix: "sse",
        models: &["gpt-5", "gpt-4.1-mini"],
        decode: read::<openai::Decoder>,
        refused: openai::Decoder::refused,
        encode: openai::encode,
    },
    Vendor {
        name: "openai-responses",
        suffix: "sse",
        models: &["gpt-5", "gpt-4.1-mini"],
        decode: read::<responses::Decoder>,
        refused: responses::Decoder::refused,
        encode: responses::encode,
    },
    Vendor {
        name: "anthropic",
        suffix: "sse",
        models: &["claude-sonnet-4-5", "claude-opus-4-7", "claude-3-5-haiku-20241022"],
        decode: read::<anthropic::Decoder>,
        refused: anthropic::Decoder::refused,
        encode: anthropic::encode,
    },
    Vendor {
        name: "gemini",
        suffix: "sse",
        models: &["gemini-2.5-flash", "gemini-3-pro-preview"],
        decode: read::<gemini::Decoder>,
        refused: gemini::Decoder::refused,
        encode: gemini::encode,
    },
    Vendor {
        name: "bedrock",
        suffix: "bin",
        models: &[
            "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "anthropic.claude-opus-4-7",
            "amazon.nova-2-lite-v1:0",
            "meta.llama3-1-70b-instruct-v1:0",
        ],
        decode: read::<bedrock::Decoder>,
        refused: bedrock::Decoder::refused,
        encode: bedrock::encode,
    },
];

fn read<D: Decode>(pieces: &[&[u8]]) -> Outcome {
    let mut decoder = D::default();
    let mut chunks = Vec::new();
    for piece in pieces {
        if decoder.is_done() {
            break;
        }
        if let Err(error) = decoder.push(piece, &mut chunks) {
            return Outcome { chunks, error: Some(error) };
        }
    }
    let error = decoder.end(&mut chunks).err();
    Outcome { chunks, error }
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/referee")
}

impl Vendor {
    pub(crate) fn bytes(&self, story: &str) -> Vec<u8> {
        let file = folder().join(self.name).join(format!("{story}.{}", self.suffix));
        std::fs::read(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()))
    }

    /// Story → what must be read from it.
    pub(crate) fn meanings(&self) -> serde_json::Map<String, Value> {
        let text = std::fs::read(folder().join(self.name).join("meaning.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    /// Refusals before any stream, and what each must mean.
    pub(crate) fn refusals(&self) -> serde_json::Map<String, Value> {
        let text = std::fs::read(folder().join(self.name).join("refusals.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    pub(crate) fn reply(&self, story: &str) -> Outcome {
        (self.decode)(&[&self.bytes(story)])
    }
}

/// A reply as a turn of the history, with all that the vendor wants back, and
/// the results of its calls.
pub(crate) fn remembered(reply: &Outcome) -> Vec<ChatTurn> {
    let (mut parts, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for chunk in reply.chunks.clone() {
        match chunk {
            Chunk::TextDelta { text } => match parts.last_mut() {
                Some(Part::Text { text: whole }) => whole.push_str(&text),
                _ => parts.push(Part::text(text)),
            },
            Chunk::ReasoningDelta { text } => match parts.last_mut() {
                Some(Part::Reasoning { text: whole, metadata: Guarded::Hidden }) => whole.push_str(&text),
                _ => parts.push(Part::Reasoning { text, metadata: Guarded::Hidden }),
            },
            Chunk::ReasoningMetadata { value } => match parts.last_mut() {
                Some(Part::Reasoning { metadata: open @ Guarded::Hidden, .. }) => *open = value.into(),
                _ => parts.push(Part::Reasoning { text: String::new(), metadata: value.into() }),
            },
            Chunk::Opaque { value } => parts.push(Part::Opaque { value: value.into() }),
            Chunk::Part { part } => parts.push(part),
            Chunk::ToolCall { name, args_text, metadata, .. } => {
                let id = CallId::mint();
                let args = serde_json::from_str(&args_text).unwrap_or(Value::Null);
                calls.push(PastCall { id: id.clone(), name: name.clone(), args, metadata });
                results.push(PastResult { call: id, name, content: "done".into(), is_error: false });
            }
            Chunk::ToolInputStart { .. }
            | Chunk::ToolInputDelta { .. }
            | Chunk::Source { .. }
            | Chunk::Metadata { .. }
            | Chunk::Usage { .. }
            | Chunk::Finish { .. } => {}
        }
    }
    let mut turns = vec![ChatTurn::Assistant { parts, calls }];
    if !results.is_empty() {
        turns.push(ChatTurn::ToolResults(results));
    }
    turns
}

/// What a caller can do about an error, in the word of the stories.
pub(crate) fn error_word(error: &ModelError) -> &'static str {
    match error {
        ModelError::Cut { .. } => "cut",
        ModelError::Filtered { .. } => "filtered",
        ModelError::RateLimited { .. } | ModelError::Overloaded { .. } => "try again",
        _ => "other",
    }
}
