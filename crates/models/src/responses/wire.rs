//! The vendor's words: small borrowed types, read once per event. Unknown
//! fields are skipped, missing and `null` ones are the same.

use serde::Deserialize;
use serde_json::Value;
use toolyard_protocol::run::Usage;

use crate::lenient::Text;

/// One event. Every kind uses a few of the fields.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub delta: Option<Text<'a>>,
    pub output_index: Option<u64>,
    pub content_index: Option<u64>,
    pub summary_index: Option<u64>,
    #[serde(borrow)]
    pub item_id: Option<Text<'a>>,
    pub item: Option<Value>,
    pub annotation: Option<Annotation>,
    pub response: Option<Body>,
    /// The whole text of a part that ends.
    #[serde(borrow)]
    pub text: Option<Text<'a>>,
    /// The same of a refusal.
    #[serde(borrow)]
    pub refusal: Option<Text<'a>>,
    /// The whole arguments of a call that ends.
    #[serde(borrow)]
    pub arguments: Option<Text<'a>>,
    /// Rare, and of any shape.
    pub error: Option<Value>,
}

/// The reply as a whole: in the first and last events, and when it is not
/// streamed.
#[derive(Deserialize, Default)]
pub(super) struct Body {
    pub id: Option<String>,
    pub model: Option<String>,
    pub status: Option<String>,
    pub error: Option<Value>,
    pub incomplete_details: Option<Incomplete>,
    pub usage: Option<Tokens>,
    pub output: Option<Vec<Value>>,
}

#[derive(Deserialize)]
pub(super) struct Incomplete {
    pub reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Annotation {
    pub url: Option<String>,
    pub title: Option<String>,
    pub start_index: Option<u32>,
    pub end_index: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl Tokens {
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
