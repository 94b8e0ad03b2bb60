//! What the vendor's errors mean. Most are those of its older wire.

use serde_json::Value;

use crate::error::{Detail, ModelError};
use crate::openai::fault as chat;
use crate::wire::{Refusal, parse};

/// An answer that is no success.
pub(super) fn refused(refusal: &Refusal) -> ModelError {
    chat::of_status(refusal.status, refusal.retry_after, &refusal.body)
}

/// An event that tells an error, in any shape.
pub(super) fn in_stream(data: &str) -> ModelError {
    of_error(&parse(data))
}

/// The error of a response that failed.
pub(super) fn of_error(error: &Value) -> ModelError {
    let detail = || Detail::new(error.to_string());
    match error["code"].as_str().unwrap_or_default() {
        code if code.contains("policy") => ModelError::Filtered { detail: detail() },
        code if code.contains("image") || code.starts_with("invalid_prompt") => {
            ModelError::RequestRefused { status: 400, detail: detail() }
        }
        _ => chat::in_stream(error),
    }
}
