//! The vendor's words: small types, read once per event. Unknown fields are
//! kept apart, missing and `null` ones are the same.

use serde::Deserialize;
use serde_json::Value;
use toolyard_protocol::run::{FinishReason, Usage};

use crate::lenient::Text;
use crate::words::words;

words! {
    /// One event of a stream.
    Event<'a> {
        kind: Text<'a> = "type",
        index: u64 = "index",
        /// Large and rare: in a box, so that every event is small.
        message: Box<Message<'a>> = "message",
        content_block: Box<Value> = "content_block",
        delta: Box<End<'a>> = "delta",
        usage: Box<Counts<'a>> = "usage",
        error: Box<Value> = "error",
    } passes []
}

words! {
    /// By far the most events: more of a block.
    Growth<'a> {
        kind: Text<'a> = "type",
        index: u64 = "index",
        delta: Piece<'a> = "delta",
    } passes []
}

words! {
    /// The head of a reply, or all of one that was not streamed.
    Message<'a> {
        id: String = "id",
        model: String = "model",
        content: Vec<Value> = "content",
        usage: Box<Counts<'a>> = "usage",
        stop_reason: String = "stop_reason",
        stop_sequence: String = "stop_sequence",
        stop_details: Value = "stop_details",
        error: Value = "error",
    } passes ["type", "role"]
}

words! {
    /// More of a block. What is rare is in a box, so that it is small.
    Piece<'a> {
        text: String = "text",
        thinking: String = "thinking",
        partial_json: String = "partial_json",
        signature: Box<str> = "signature",
        citation: Box<Value> = "citation",
    } passes ["type"]
}

impl Piece<'_> {
    /// It is more of a block in a form that we know.
    pub(super) fn is_known(&self) -> bool {
        let Self { text, thinking, partial_json, signature, citation, .. } = self;
        [text, thinking, partial_json].iter().any(|field| field.is_some())
            || signature.is_some()
            || citation.is_some()
    }
}

words! {
    /// The end of the message. Pieces of blocks are read as such.
    End<'a> {
        stop_reason: String = "stop_reason",
        stop_sequence: String = "stop_sequence",
        stop_details: Value = "stop_details",
    } passes ["type", "text", "thinking", "partial_json", "signature", "citation"]
}

words! {
    /// Each event repeats the counts so far, and may leave some out.
    Counts<'a> {
        input_tokens: u64 = "input_tokens",
        output_tokens: u64 = "output_tokens",
        cache_creation_input_tokens: u64 = "cache_creation_input_tokens",
        cache_read_input_tokens: u64 = "cache_read_input_tokens",
        output_tokens_details: OutputDetails = "output_tokens_details",
    } passes ["cache_creation", "service_tier"]
}

#[derive(Deserialize, Debug, Clone, Copy)]
pub(super) struct OutputDetails {
    thinking_tokens: Option<u64>,
}

/// The newest counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

impl Tokens {
    pub(super) fn update(&mut self, newer: &Counts<'_>) {
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
