//! The vendor's words, read once per event. Unknown fields are kept apart,
//! missing and `null` ones are the same. Parts that we do not know go back
//! unchanged.

use serde_json::Value;
use toolyard_protocol::run::Usage;

use crate::lenient::{Object, Text};
use crate::words::words;

words! {
    /// One event of a stream, or a whole reply.
    Piece<'a> {
        candidates: Vec<Candidate<'a>> = "candidates",
        prompt_feedback: PromptFeedback<'a> = "promptFeedback",
        usage_metadata: Tokens<'a> = "usageMetadata",
        model_version: Text<'a> = "modelVersion",
        response_id: Text<'a> = "responseId",
        /// Rare, and of any shape.
        error: Value = "error",
    } passes ["createTime"]
}

words! {
    Candidate<'a> {
        index: u64 = "index",
        content: Content<'a> = "content",
        finish_reason: String = "finishReason",
        finish_message: String = "finishMessage",
        grounding_metadata: Value = "groundingMetadata",
    } passes ["safetyRatings", "avgLogprobs", "logprobsResult", "tokenCount"]
}

words! {
    Content<'a> {
        parts: Vec<Object<Part<'a>>> = "parts",
    } passes ["role"]
}

words! {
    /// What is in `rest` besides makes it a part that goes back as it came.
    Part<'a> {
        text: Value = "text",
        thought: Value = "thought",
        signature: Value = "thoughtSignature",
        call: Value = "functionCall",
    } passes []
}

words! {
    PromptFeedback<'a> {
        block_reason: String = "blockReason",
        block_reason_message: String = "blockReasonMessage",
    } passes ["safetyRatings"]
}

words! {
    Tokens<'a> {
        prompt_token_count: u64 = "promptTokenCount",
        tool_use_prompt_token_count: u64 = "toolUsePromptTokenCount",
        candidates_token_count: u64 = "candidatesTokenCount",
        thoughts_token_count: u64 = "thoughtsTokenCount",
        cached_content_token_count: u64 = "cachedContentTokenCount",
    } passes [
        "totalTokenCount",
        "promptTokensDetails",
        "candidatesTokensDetails",
        "cacheTokensDetails",
        "toolUsePromptTokensDetails",
    ]
}

impl Tokens<'_> {
    pub(super) fn usage(&self) -> Usage {
        let thoughts = self.thoughts_token_count.unwrap_or(0);
        let searched = self.tool_use_prompt_token_count.unwrap_or(0);
        Usage {
            input_tokens: self.prompt_token_count.unwrap_or(0).saturating_add(searched),
            // The vendor counts thoughts apart; they are output too.
            output_tokens: self.candidates_token_count.unwrap_or(0).saturating_add(thoughts),
            reasoning_tokens: thoughts,
            cached_tokens: self.cached_content_token_count.unwrap_or(0),
            cache_write_tokens: 0,
        }
    }
}
