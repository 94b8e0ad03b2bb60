//! The stored form of an event: one flat JSON object with its version and type.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version that this release writes.
const VERSION: u32 = 1;

/// A log that this release cannot read. The run is left alone and reported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    #[error("event type {kind} (version {v}) is not known to this release")]
    Unknown { kind: String, v: u32 },
    #[error("event {kind} cannot be read: {why}")]
    Broken { kind: String, why: String },
}

#[derive(Deserialize)]
pub(super) struct Head<'a> {
    pub(super) v: u32,
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
}

#[derive(Serialize)]
struct Envelope<'a, T> {
    v: u32,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

pub(super) fn encode<T: Serialize>(kind: &'static str, body: &T) -> String {
    // Serializing plain structs with string keys cannot fail; an empty text
    // would be refused by the reader as broken, never taken for an event.
    serde_json::to_string(&Envelope { v: VERSION, kind, body }).unwrap_or_default()
}

pub(super) fn head(text: &str) -> Result<Head<'_>, Undecodable> {
    let head: Head<'_> = serde_json::from_str(text)
        .map_err(|e| Undecodable::Broken { kind: "?".to_owned(), why: e.to_string() })?;
    if head.v > VERSION {
        return Err(Undecodable::Unknown { kind: head.kind.into_owned(), v: head.v });
    }
    Ok(head)
}

pub(super) fn body<T: DeserializeOwned>(text: &str, kind: &'static str) -> Result<T, Undecodable> {
    serde_json::from_str(text).map_err(|e| Undecodable::Broken { kind: kind.to_owned(), why: e.to_string() })
}
