//! The vendor's words, read once per event. Unknown fields are skipped,
//! missing and `null` ones are the same. Parts stay as they are: what we do
//! not know goes back unchanged.

use serde::Deserialize;
use serde_json::Value;
use toolyard_protocol::run::Usage;

use crate::lenient::Text;

/// One event of a stream, or a whole reply.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Piece<'a> {
    pub candidates: Option<Vec<Candidate>>,
    pub prompt_feedback: Option<PromptFeedback>,
    pub usage_metadata: Option<Tokens>,
    #[serde(borrow)]
    pub model_version: Option<Text<'a>>,
    #[serde(borrow)]
    pub response_id: Option<Text<'a>>,
    /// Rare, and of any shape.
    pub error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate {
    pub index: Option<u64>,
    pub content: Option<Content>,
    pub finish_reason: Option<String>,
    pub finish_message: Option<String>,
    pub grounding_metadata: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Content {
    pub parts: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    pub block_reason: Option<String>,
    pub block_reason_message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tokens {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
}

impl Tokens {
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
