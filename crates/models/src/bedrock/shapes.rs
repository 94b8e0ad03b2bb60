//! The vendor's words: what is read of each event. Unknown fields are skipped,
//! missing and `null` ones are the same.

use serde::Deserialize;
use serde_json::Value;
use toolyard_protocol::run::Usage;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockStart {
    #[serde(default)]
    pub content_block_index: u64,
    pub start: Option<Start>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start {
    pub tool_use: Option<ToolUse>,
    /// Of a tool that runs at the vendor.
    pub tool_result: Option<Value>,
}

impl Start {
    pub(super) fn is_known(&self) -> bool {
        self.tool_use.is_some() || self.tool_result.is_some()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUse {
    pub tool_use_id: Option<String>,
    pub name: Option<String>,
    /// Present if the tool runs at the vendor.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Only in replies that were not streamed.
    pub input: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockDelta {
    #[serde(default)]
    pub content_block_index: u64,
    pub delta: Option<Delta>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Delta {
    pub text: Option<String>,
    pub tool_use: Option<InputPiece>,
    pub tool_result: Option<Vec<Value>>,
    pub reasoning_content: Option<Thought>,
    /// Kept as it is: the vendor wants it back.
    pub citation: Option<Value>,
}

impl Delta {
    pub(super) fn is_known(&self) -> bool {
        let Self { text, tool_use, tool_result, reasoning_content, citation } = self;
        text.is_some()
            || tool_use.is_some()
            || tool_result.is_some()
            || reasoning_content.is_some()
            || citation.is_some()
    }
}

#[derive(Deserialize)]
pub(super) struct InputPiece {
    pub input: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Thought {
    pub text: Option<String>,
    pub signature: Option<String>,
    /// Base64.
    pub redacted_content: Option<String>,
    /// Only in replies that were not streamed.
    pub reasoning_text: Option<Box<Thought>>,
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageStop {
    pub stop_reason: Option<String>,
    pub additional_model_response_fields: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Tail {
    pub usage: Option<Tokens>,
    /// What a guardrail did.
    pub trace: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
}

impl Tokens {
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

/// A reply that was not streamed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Whole {
    pub output: Option<Output>,
    pub stop_reason: Option<String>,
    pub usage: Option<Tokens>,
}

#[derive(Deserialize)]
pub(super) struct Output {
    pub message: Option<Message>,
}

#[derive(Deserialize)]
pub(super) struct Message {
    pub content: Option<Vec<Block>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Block {
    pub text: Option<String>,
    pub tool_use: Option<ToolUse>,
    pub reasoning_content: Option<Thought>,
    pub citations_content: Option<CitedText>,
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
