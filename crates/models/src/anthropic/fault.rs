//! What a refusal of this vendor means for the caller.

use serde_json::Value;

use crate::error::{Detail, ModelError};
use crate::wire::{Refusal, parse};

/// An answer that is no success. A body that the vendor did not write, such as
/// one of a proxy, is judged by its status.
pub(super) fn refused(refusal: &Refusal) -> ModelError {
    judge(refusal.status, &parse(&refusal.body), refusal)
}

/// An error that came as an event of a stream that began well.
pub(super) fn in_stream(error: &Value) -> ModelError {
    let status = match error["type"].as_str().unwrap_or_default() {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    };
    judge(status, error, &Refusal { status, body: error.to_string(), ..Refusal::default() })
}

fn judge(status: u16, error: &Value, refusal: &Refusal) -> ModelError {
    let detail = Detail::new(format!("status {status}: {}", refusal.body));
    let retry_after = refusal.retry_after;
    match status {
        401 | 403 => ModelError::KeyRefused { detail },
        402 => ModelError::OutOfQuota { detail },
        400 if says(error, &["credit balance is too low"]) => ModelError::OutOfQuota { detail },
        404 => ModelError::unknown_model(detail),
        413 => ModelError::ContextTooLong { detail },
        400 if says(error, &["prompt is too long", "exceed context limit", "exceeds the context window"]) => {
            ModelError::ContextTooLong { detail }
        }
        400 if says(error, &["content filtering policy"]) => ModelError::Filtered { detail },
        429 => ModelError::RateLimited { retry_after, detail },
        408 | 409 | 500..=599 => ModelError::Overloaded { status, retry_after, detail },
        _ => ModelError::RequestRefused { status, detail },
    }
}

fn says(error: &Value, phrases: &[&str]) -> bool {
    let message = error["message"].as_str().unwrap_or_default().to_lowercase();
    phrases.iter().any(|phrase| message.contains(phrase))
}
