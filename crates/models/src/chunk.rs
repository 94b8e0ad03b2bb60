//! The canonical stream: what every vendor's reply becomes.

use serde::Serialize;
use serde_json::Value;
use toolyard_protocol::message::Part;
use toolyard_protocol::run::{FinishReason, Usage};

/// One piece of a reply. `index` numbers the calls of one reply from 0 in
/// order of appearance; it is ours, because vendors repeat theirs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Chunk {
    TextDelta {
        text: String,
    },
    ReasoningDelta {
        text: String,
    },
    /// Signed or encrypted thinking that the vendor wants back, under the name
    /// of its wire. It ends the thought before it; without one it is a thought
    /// that only the vendor can read.
    ReasoningMetadata {
        value: Value,
    },
    /// The model begins to write a call. Always before its deltas.
    ToolInputStart {
        index: usize,
        name: String,
    },
    ToolInputDelta {
        index: usize,
        text: String,
    },
    /// A call is complete. `args_text` is what the model wrote: it may be bad
    /// JSON, and is `{}` if the model wrote nothing.
    ToolCall {
        index: usize,
        name: String,
        args_text: String,
        /// Not unique, may be missing.
        vendor_id: Option<String>,
        /// What the vendor wants back with this call, under the name of its
        /// wire.
        metadata: Value,
    },
    /// A citation. `start` and `end` count characters of the reply's text.
    Source {
        url: String,
        title: Option<String>,
        start: Option<u32>,
        end: Option<u32>,
    },
    /// A block that means nothing to us, under the name of its wire. The vendor
    /// wants it back at this place.
    Opaque {
        value: Value,
    },
    /// A part that comes whole and is neither text nor thought: a file, data.
    Part {
        part: Part,
    },
    /// Vendor facts about the reply, at most once, shortly before the end.
    Metadata {
        value: Value,
    },
    /// Tokens of the whole reply, at most once, shortly before the end.
    Usage {
        usage: Usage,
    },
    /// Always the last chunk.
    Finish {
        reason: FinishReason,
    },
}

impl Chunk {
    pub fn text(text: impl Into<String>) -> Self {
        Self::TextDelta { text: text.into() }
    }
}
