//! The vendor's words: small borrowed types, read once per event. Unknown
//! fields are kept apart, missing and `null` ones are the same.

use serde::Deserialize;
use serde_json::Value;
use toolyard_protocol::run::Usage;

use crate::lenient::Text;
use crate::words::words;

words! {
    /// One event. Every kind uses a few of the fields.
    Event<'a> {
        kind: Text<'a> = "type",
        delta: Text<'a> = "delta",
        output_index: u64 = "output_index",
        content_index: u64 = "content_index",
        summary_index: u64 = "summary_index",
        item_id: Text<'a> = "item_id",
        item: Value = "item",
        annotation: Annotation<'a> = "annotation",
        response: Body<'a> = "response",
        /// The whole text of a part that ends.
        text: Text<'a> = "text",
        /// The same of a refusal.
        refusal: Text<'a> = "refusal",
        /// The whole arguments of a call that ends.
        arguments: Text<'a> = "arguments",
        /// Rare, and of any shape.
        error: Value = "error",
    } passes ["sequence_number", "logprobs", "obfuscation", "annotation_index", "part", "name"]
}

words! {
    /// The reply as a whole: in the first and last events, and when it is not
    /// streamed. Most of it repeats the request.
    Body<'a> {
        id: String = "id",
        model: String = "model",
        status: String = "status",
        error: Value = "error",
        incomplete_details: Incomplete = "incomplete_details",
        usage: Tokens<'a> = "usage",
        output: Vec<Value> = "output",
    } passes [
        "object",
        "created_at",
        "completed_at",
        "background",
        "conversation",
        "frequency_penalty",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "output_text",
        "parallel_tool_calls",
        "presence_penalty",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ]
}

#[derive(Deserialize)]
pub(super) struct Incomplete {
    pub reason: Option<String>,
}

words! {
    Annotation<'a> {
        url: String = "url",
        title: String = "title",
        start_index: u32 = "start_index",
        end_index: u32 = "end_index",
    } passes ["type"]
}

words! {
    Tokens<'a> {
        input_tokens: u64 = "input_tokens",
        output_tokens: u64 = "output_tokens",
        input_tokens_details: InputDetails = "input_tokens_details",
        output_tokens_details: OutputDetails = "output_tokens_details",
    } passes ["total_tokens"]
}

#[derive(Deserialize)]
pub(super) struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl Tokens<'_> {
    pub(super) fn usage(&self) -> Usage {
        let input = self.input_tokens_details.as_ref();
        let output = self.output_tokens_details.as_ref();
        Usage {
            input_tokens: self.input_tokens.unwrap_or(0),
            output_tokens: self.output_tokens.unwrap_or(0),
            reasoning_tokens: output.and_then(|d| d.reasoning_tokens).unwrap_or(0),
            cached_tokens: input.and_then(|d| d.cached_tokens).unwrap_or(0),
            cache_write_tokens: input.and_then(|d| d.cache_write_tokens).unwrap_or(0),
        }
    }
}
