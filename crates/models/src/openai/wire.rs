//! The vendor's words: small borrowed types, read once per event. Unknown
//! fields are kept apart, missing and `null` ones are the same.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, de};
use serde_json::Value;
use toolyard_protocol::run::Usage;

use crate::lenient::Text;
use crate::words::words;

words! {
    /// One event of a stream, or a whole reply: they differ only in `delta` and
    /// `message`.
    Piece<'a> {
        id: Text<'a> = "id",
        model: Text<'a> = "model",
        choices: Vec<Choice<'a>> = "choices",
        usage: Box<Tokens<'a>> = "usage",
        /// One vendor puts its counts and errors here.
        x_groq: Box<Extra<'a>> = "x_groq",
        /// Rare, and of any shape.
        error: Value = "error",
    } passes ["object", "created", "service_tier", "system_fingerprint", "obfuscation"]
}

impl Piece<'_> {
    /// Nothing in it is part of a reply as we know it. Some servers tell what
    /// their filters found before the reply begins.
    pub(super) fn tells_nothing(&self) -> bool {
        let silent = self.choices.as_ref().is_none_or(Vec::is_empty);
        silent && self.usage.is_none() && self.x_groq.is_none() && self.error.is_none()
    }
}

words! {
    Extra<'a> {
        usage: Box<Tokens<'a>> = "usage",
        error: Value = "error",
    } passes ["id"]
}

words! {
    Choice<'a> {
        index: i64 = "index",
        delta: Delta<'a> = "delta",
        /// Large and rare: in a box, so that every event is small.
        message: Box<Delta<'a>> = "message",
        finish_reason: Text<'a> = "finish_reason",
        error: Value = "error",
    } passes ["logprobs"]
}

words! {
    Delta<'a> {
        content: Text<'a> = "content",
        refusal: Text<'a> = "refusal",
        reasoning_content: Text<'a> = "reasoning_content",
        reasoning: Text<'a> = "reasoning",
        tool_calls: Vec<CallPiece<'a>> = "tool_calls",
        /// How servers of the first days call.
        function_call: FunctionPiece<'a> = "function_call",
        /// Pieces of thoughts that a vendor behind a router wants back.
        reasoning_details: Vec<Value> = "reasoning_details",
        annotations: Vec<Annotation<'a>> = "annotations",
    } passes ["role"]
}

words! {
    CallPiece<'a> {
        index: i64 = "index",
        id: Text<'a> = "id",
        function: FunctionPiece<'a> = "function",
        /// Thought signatures that some vendors want back with the call.
        extra_content: Value = "extra_content",
    } passes ["type"]
}

words! {
    FunctionPiece<'a> {
        name: Text<'a> = "name",
        arguments: Args<'a> = "arguments",
    } passes []
}

words! {
    Annotation<'a> {
        url_citation: Citation = "url_citation",
    } passes ["type"]
}

#[derive(Deserialize)]
pub(super) struct Citation {
    pub url: Option<String>,
    pub title: Option<String>,
    pub start_index: Option<u32>,
    pub end_index: Option<u32>,
}

words! {
    Tokens<'a> {
        prompt_tokens: u64 = "prompt_tokens",
        completion_tokens: u64 = "completion_tokens",
        /// How some vendors say cached.
        prompt_cache_hit_tokens: u64 = "prompt_cache_hit_tokens",
        prompt_tokens_details: InputDetails = "prompt_tokens_details",
        completion_tokens_details: OutputDetails = "completion_tokens_details",
    } passes ["total_tokens", "prompt_cache_miss_tokens"]
}

#[derive(Deserialize, Default)]
pub(super) struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
pub(super) struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl Tokens<'_> {
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
