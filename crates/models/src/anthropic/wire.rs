//! The vendor's words: small types, read once per event. Unknown fields are
//! skipped, missing and `null` ones are the same.

use serde::Deserialize;
use serde_json::Value;
use toolyard_protocol::run::{FinishReason, Usage};

/// One event of a stream.
#[derive(Deserialize)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub index: Option<u64>,
    /// Large and rare: in a box, so that every event is small.
    pub message: Option<Box<Message>>,
    pub content_block: Option<Value>,
    pub delta: Option<Delta>,
    pub usage: Option<Tokens>,
    pub error: Option<Value>,
}

/// The head of a reply, or all of one that was not streamed.
#[derive(Deserialize)]
pub(super) struct Message {
    pub id: Option<String>,
    pub model: Option<String>,
    pub content: Option<Vec<Value>>,
    pub usage: Option<Tokens>,
    pub stop_reason: Option<String>,
    pub stop_sequence: Option<String>,
    pub stop_details: Option<Value>,
    pub error: Option<Value>,
}

/// More of a block, or the end of the message.
#[derive(Deserialize, Default)]
pub(super) struct Delta {
    pub text: Option<String>,
    pub thinking: Option<String>,
    pub signature: Option<String>,
    pub partial_json: Option<String>,
    pub citation: Option<Value>,
    pub stop_reason: Option<String>,
    pub stop_sequence: Option<String>,
    pub stop_details: Option<Value>,
}

impl Delta {
    /// It is more of a block in a form that we know.
    pub(super) fn is_known(&self) -> bool {
        let Self { text, thinking, signature, partial_json, citation, .. } = self;
        [text, thinking, signature, partial_json].iter().any(|field| field.is_some()) || citation.is_some()
    }
}

/// Each event repeats the counts so far, and may leave some out.
#[derive(Deserialize, Debug, Clone, Copy, Default)]
pub(super) struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Debug, Clone, Copy)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

impl Tokens {
    pub(super) fn update(&mut self, newer: Self) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
        self.cache_creation_input_tokens =
            newer.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens_details = newer.output_tokens_details.or(self.output_tokens_details);
    }

    /// The vendor counts cached input apart; ours is all of it.
    pub(super) fn usage(&self) -> Usage {
        let read = self.cache_read_input_tokens.unwrap_or(0);
        let written = self.cache_creation_input_tokens.unwrap_or(0);
        let fresh = self.input_tokens.unwrap_or(0);
        Usage {
            input_tokens: fresh.saturating_add(read).saturating_add(written),
            output_tokens: self.output_tokens.unwrap_or(0),
            reasoning_tokens: self.output_tokens_details.and_then(|d| d.thinking_tokens).unwrap_or(0),
            cached_tokens: read,
            cache_write_tokens: written,
        }
    }
}

pub(super) fn finish_reason(vendor: &str) -> FinishReason {
    match vendor {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        "pause_turn" => FinishReason::Paused,
        _ => FinishReason::Other,
    }
}
