//! The vendor's words: small borrowed types, read once per event. Unknown
//! fields are skipped, missing and `null` ones are the same.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, de};
use serde_json::Value;
use toolyard_protocol::run::Usage;

use crate::lenient::Text;

/// One event of a stream, or a whole reply: they differ only in `delta` and
/// `message`.
#[derive(Deserialize)]
pub(super) struct Piece<'a> {
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub model: Option<Text<'a>>,
    #[serde(borrow)]
    pub choices: Option<Vec<Choice<'a>>>,
    pub usage: Option<Box<Tokens>>,
    /// One vendor puts its counts and errors here.
    pub x_groq: Option<Box<Extra>>,
    /// Rare, and of any shape.
    pub error: Option<Value>,
}

impl Piece<'_> {
    /// Nothing in it is part of a reply as we know it. Some servers tell what
    /// their filters found before the reply begins.
    pub(super) fn tells_nothing(&self) -> bool {
        let silent = self.choices.as_ref().is_none_or(Vec::is_empty);
        silent && self.usage.is_none() && self.x_groq.is_none() && self.error.is_none()
    }
}

#[derive(Deserialize)]
pub(super) struct Extra {
    pub usage: Option<Box<Tokens>>,
    pub error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub index: Option<i64>,
    #[serde(borrow)]
    pub delta: Option<Delta<'a>>,
    /// Large and rare: in a box, so that every event is small.
    #[serde(borrow)]
    pub message: Option<Box<Delta<'a>>>,
    #[serde(borrow)]
    pub finish_reason: Option<Text<'a>>,
    pub error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub content: Option<Text<'a>>,
    #[serde(borrow)]
    pub refusal: Option<Text<'a>>,
    #[serde(borrow)]
    pub reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    pub reasoning: Option<Text<'a>>,
    #[serde(borrow)]
    pub tool_calls: Option<Vec<CallPiece<'a>>>,
    /// How servers of the first days call.
    #[serde(borrow)]
    pub function_call: Option<FunctionPiece<'a>>,
    /// Pieces of thoughts that a vendor behind a router wants back.
    pub reasoning_details: Option<Vec<Value>>,
    pub annotations: Option<Vec<Annotation>>,
}

#[derive(Deserialize, Default)]
pub(super) struct CallPiece<'a> {
    pub index: Option<i64>,
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub function: Option<FunctionPiece<'a>>,
    /// Thought signatures that some vendors want back with the call.
    pub extra_content: Option<Value>,
}

#[derive(Deserialize, Default)]
pub(super) struct FunctionPiece<'a> {
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    #[serde(borrow)]
    pub arguments: Option<Args<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Annotation {
    pub url_citation: Option<Citation>,
}

#[derive(Deserialize)]
pub(super) struct Citation {
    pub url: Option<String>,
    pub title: Option<String>,
    pub start_index: Option<u32>,
    pub end_index: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct Tokens {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    /// How some vendors say cached.
    prompt_cache_hit_tokens: Option<u64>,
    prompt_tokens_details: Option<InputDetails>,
    completion_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl Tokens {
    pub(super) fn usage(self) -> Usage {
        let input = self.prompt_tokens_details.unwrap_or_default();
        let output = self.completion_tokens_details.unwrap_or_default();
        Usage {
            input_tokens: self.prompt_tokens.unwrap_or(0),
            output_tokens: self.completion_tokens.unwrap_or(0),
            reasoning_tokens: output.reasoning_tokens.unwrap_or(0),
            cached_tokens: input.cached_tokens.or(self.prompt_cache_hit_tokens).unwrap_or(0),
            cache_write_tokens: input.cache_write_tokens.unwrap_or(0),
        }
    }
}

/// A call's arguments: a piece of JSON text, or an object from servers that
/// send it whole.
pub(super) struct Args<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Args<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgsVisitor)
    }
}

struct ArgsVisitor;

impl<'de> Visitor<'de> for ArgsVisitor {
    type Value = Args<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arguments as text or as an object")
    }
    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Args(Cow::Borrowed(text)))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Args(Cow::Owned(text.to_owned())))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let object = Value::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Args(Cow::Owned(object.to_string())))
    }
}
