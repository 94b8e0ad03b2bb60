//! The vendor's words: what is read of each event. Unknown fields are kept
//! apart, missing and `null` ones are the same.

use serde::Deserialize;
use serde_json::Value;
use toolyard_protocol::run::Usage;

use crate::words::words;

words! {
    BlockStart<'a> {
        content_block_index: u64 = "contentBlockIndex",
        start: Start<'a> = "start",
    } passes ["p"]
}

words! {
    Start<'a> {
        tool_use: ToolUse<'a> = "toolUse",
        /// Of a tool that runs at the vendor.
        tool_result: Value = "toolResult",
    } passes []
}

impl Start<'_> {
    pub(super) fn is_known(&self) -> bool {
        self.tool_use.is_some() || self.tool_result.is_some()
    }
}

words! {
    ToolUse<'a> {
        tool_use_id: String = "toolUseId",
        name: String = "name",
        /// Present if the tool runs at the vendor.
        kind: String = "type",
        /// Only in replies that were not streamed.
        input: Value = "input",
    } passes []
}

words! {
    BlockDelta<'a> {
        content_block_index: u64 = "contentBlockIndex",
        delta: Delta<'a> = "delta",
    } passes ["p"]
}

words! {
    Delta<'a> {
        text: String = "text",
        tool_use: InputPiece<'a> = "toolUse",
        tool_result: Vec<Value> = "toolResult",
        reasoning_content: Thought<'a> = "reasoningContent",
        /// Kept as it is: the vendor wants it back.
        citation: Value = "citation",
    } passes []
}

impl Delta<'_> {
    pub(super) fn is_known(&self) -> bool {
        let Self { text, tool_use, tool_result, reasoning_content, citation, .. } = self;
        text.is_some()
            || tool_use.is_some()
            || tool_result.is_some()
            || reasoning_content.is_some()
            || citation.is_some()
    }
}

words! {
    InputPiece<'a> {
        input: String = "input",
    } passes []
}

words! {
    Thought<'a> {
        text: String = "text",
        signature: String = "signature",
        /// Base64.
        redacted_content: String = "redactedContent",
        /// Only in replies that were not streamed.
        reasoning_text: Box<Thought<'a>> = "reasoningText",
    } passes []
}

#[derive(Deserialize)]
pub(super) struct Citation {
    pub title: Option<String>,
    /// Of search results: mostly an address.
    pub source: Option<String>,
    pub location: Option<Location>,
}

#[derive(Deserialize)]
pub(super) struct Location {
    pub web: Option<Web>,
}

#[derive(Deserialize)]
pub(super) struct Web {
    pub url: Option<String>,
}

impl Citation {
    /// The page, if the citation is of one. Pieces of documents that the user
    /// sent have no address.
    pub(super) fn url(&mut self) -> Option<String> {
        let web = self.location.take().and_then(|location| location.web).and_then(|web| web.url);
        let is_address = |text: &String| text.starts_with("http://") || text.starts_with("https://");
        web.filter(|url| !url.is_empty()).or_else(|| self.source.take().filter(is_address))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockStop {
    #[serde(default)]
    pub content_block_index: u64,
}

words! {
    MessageStop<'a> {
        stop_reason: String = "stopReason",
        additional_model_response_fields: Value = "additionalModelResponseFields",
    } passes ["p"]
}

words! {
    Tail<'a> {
        usage: Tokens<'a> = "usage",
        /// What a guardrail did.
        trace: Value = "trace",
    } passes ["metrics", "p"]
}

words! {
    Tokens<'a> {
        input_tokens: u64 = "inputTokens",
        output_tokens: u64 = "outputTokens",
        cache_read_input_tokens: u64 = "cacheReadInputTokens",
        cache_write_input_tokens: u64 = "cacheWriteInputTokens",
    } passes ["totalTokens", "cacheDetails"]
}

impl Tokens<'_> {
    /// The vendor counts what came from its cache, and what went there, apart
    /// from the input.
    pub(super) fn usage(&self) -> Usage {
        let cached_tokens = self.cache_read_input_tokens.unwrap_or(0);
        let cache_write_tokens = self.cache_write_input_tokens.unwrap_or(0);
        let fresh = self.input_tokens.unwrap_or(0);
        Usage {
            input_tokens: fresh.saturating_add(cached_tokens).saturating_add(cache_write_tokens),
            output_tokens: self.output_tokens.unwrap_or(0),
            cached_tokens,
            cache_write_tokens,
            ..Usage::default()
        }
    }
}

words! {
    /// A reply that was not streamed.
    Whole<'a> {
        output: Output<'a> = "output",
        stop_reason: String = "stopReason",
        usage: Tokens<'a> = "usage",
        additional_model_response_fields: Value = "additionalModelResponseFields",
        trace: Value = "trace",
    } passes ["metrics"]
}

words! {
    Output<'a> {
        message: Message<'a> = "message",
    } passes []
}

words! {
    Message<'a> {
        content: Vec<Block<'a>> = "content",
    } passes ["role"]
}

words! {
    Block<'a> {
        text: String = "text",
        tool_use: ToolUse<'a> = "toolUse",
        reasoning_content: Thought<'a> = "reasoningContent",
        citations_content: CitedText = "citationsContent",
    } passes []
}

#[derive(Deserialize)]
pub(super) struct CitedText {
    pub content: Option<Vec<TextPiece>>,
    pub citations: Option<Vec<Value>>,
}

#[derive(Deserialize)]
pub(super) struct TextPiece {
    pub text: Option<String>,
}
