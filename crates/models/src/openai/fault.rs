//! What a vendor's refusal means for the caller.

use std::time::Duration;

use serde_json::Value;

use crate::error::{Detail, ModelError};
use crate::wire::parse;

/// An answer that is no success.
pub(crate) fn of_status(status: u16, retry_after: Option<Duration>, body: &str) -> ModelError {
    let error = parse(body);
    let detail = Detail::new(format!("status {status}: {body}"));
    match status {
        401 | 403 => ModelError::KeyRefused { detail },
        404 => ModelError::unknown_model(detail),
        _ if says(&error, &["model_not_found"]) => ModelError::unknown_model(detail),
        // A used-up account does not fill while we wait.
        402 => ModelError::OutOfQuota { detail },
        _ if says(&error, &["insufficient_quota", "billing_hard_limit", "insufficient_credits"]) => {
            ModelError::OutOfQuota { detail }
        }
        429 => ModelError::RateLimited { retry_after, detail },
        _ if says(&error, &["context_length_exceeded"]) => ModelError::ContextTooLong { detail },
        _ if says(&error, &["content_filter", "content_policy_violation"]) => ModelError::Filtered { detail },
        // The model stumbled over its own call; another try may work.
        _ if says(&error, &["tool_use_failed"]) => ModelError::Overloaded { status, retry_after, detail },
        _ if is_too_long(&error) => ModelError::ContextTooLong { detail },
        408 | 409 | 500..=599 => ModelError::Overloaded { status, retry_after, detail },
        _ => ModelError::RequestRefused { status, detail },
    }
}

/// An error that came as an event of a stream that began well.
pub(crate) fn in_stream(error: &Value) -> ModelError {
    let numbered = ["code", "status", "status_code"].iter().find_map(|name| match &error[*name] {
        Value::Number(n) => n.as_u64().and_then(|n| u16::try_from(n).ok()),
        Value::String(s) => s.parse().ok(),
        _ => None,
    });
    let status = match numbered {
        Some(status @ 400..=599) => status,
        _ if says(error, &["rate_limit", "insufficient_quota"]) => 429,
        _ if says(error, &["invalid_request", "context_length"]) => 400,
        _ if says(error, &["authentication", "permission", "invalid_api_key"]) => 401,
        _ => 500,
    };
    of_status(status, None, &error.to_string())
}

/// Servers without codes say it in words.
fn is_too_long(error: &Value) -> bool {
    let text = error["message"].as_str().or(error.as_str()).unwrap_or_default().to_ascii_lowercase();
    ["maximum context length", "context size", "context window", "exceeds the available context"]
        .iter()
        .any(|words| text.contains(words))
}

fn says(error: &Value, words: &[&str]) -> bool {
    ["code", "type"]
        .iter()
        .filter_map(|name| error[*name].as_str())
        .any(|text| words.iter().any(|word| text.contains(word)))
}
