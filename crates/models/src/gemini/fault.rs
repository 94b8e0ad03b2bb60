//! What the vendor's errors mean for the caller.

use std::time::Duration;

use serde_json::Value;

use crate::error::{Detail, ModelError};
use crate::wire::{Refusal, parse};

/// An answer that is no success.
pub(super) fn refused(refusal: &Refusal) -> ModelError {
    let error = match serde_json::from_str(&refusal.body) {
        // A stream that is refused may come as a list of one.
        Ok(Value::Array(mut list)) if !list.is_empty() => list.swap_remove(0)["error"].take(),
        _ => parse(&refusal.body),
    };
    let detail = Detail::new(format!("status {}: {}", refusal.status, refusal.body));
    meaning(refusal.status, refusal.retry_after, &error, detail)
}

/// An error that came as an event of a stream that began well.
pub(super) fn in_stream(error: &Value) -> ModelError {
    let code = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    meaning(code.unwrap_or(500), None, error, Detail::new(error.to_string()))
}

fn meaning(status: u16, asked: Option<Duration>, error: &Value, detail: Detail) -> ModelError {
    let retry_after = asked.or_else(|| retry_info(error));
    let message = error["message"].as_str().unwrap_or_default();
    match error["status"].as_str().unwrap_or_default() {
        "RESOURCE_EXHAUSTED" => ModelError::RateLimited { retry_after, detail },
        "UNAVAILABLE" | "INTERNAL" | "DEADLINE_EXCEEDED" | "ABORTED" => {
            let status = if (400..=599).contains(&status) { status } else { 503 };
            ModelError::Overloaded { status, retry_after, detail }
        }
        "UNAUTHENTICATED" | "PERMISSION_DENIED" => ModelError::KeyRefused { detail },
        "NOT_FOUND" => ModelError::unknown_model(detail),
        // A wrong key is an invalid argument to this vendor.
        "INVALID_ARGUMENT" if says_reason(error, "API_KEY_INVALID") => ModelError::KeyRefused { detail },
        "INVALID_ARGUMENT" if is_too_long(message) => ModelError::ContextTooLong { detail },
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" if is_filtered(message) => ModelError::Filtered { detail },
        _ => of_status(status, retry_after, detail),
    }
}

fn of_status(status: u16, retry_after: Option<Duration>, detail: Detail) -> ModelError {
    match status {
        401 | 403 => ModelError::KeyRefused { detail },
        404 => ModelError::unknown_model(detail),
        429 => ModelError::RateLimited { retry_after, detail },
        408 | 409 | 500..=599 => ModelError::Overloaded { status, retry_after, detail },
        _ => ModelError::RequestRefused { status, detail },
    }
}

fn is_too_long(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("token count") && (message.contains("exceed") || message.contains("maximum"))
}

fn is_filtered(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["prohibited content", "blocked due to", "blocked by", "safety filter", "violat"]
        .iter()
        .any(|words| message.contains(words))
}

fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error["details"].as_array().into_iter().flatten()
}

fn says_reason(error: &Value, reason: &str) -> bool {
    details(error).any(|detail| detail["reason"] == reason)
}

/// The vendor asks for patience in a detail of its error, as `"27.5s"`.
fn retry_info(error: &Value) -> Option<Duration> {
    let text = details(error).find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
