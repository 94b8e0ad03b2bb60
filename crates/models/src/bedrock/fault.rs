//! What a refusal of the vendor means for the caller.
//!
//! The vendor names its errors, in a header of a refusal and in the frames of
//! a stream, with the same words but for the first letter.

use std::time::Duration;

use serde_json::Value;

use super::frames::Frame;
use crate::error::{Detail, ModelError};
use crate::wire::Refusal;

/// How models behind this vendor say that the conversation is too long.
const TOO_LONG: [&str; 7] = [
    "too long",
    "too many input tokens",
    "too many tokens",
    "context length",
    "context window",
    "exceeds the maximum number of tokens",
    "maximum tokens",
];

/// How they say that they will not answer this.
const FILTERED: [&str; 3] = ["content filter", "content policy", "guardrail blocked"];

/// An answer that is no success.
pub(super) fn of_refusal(refusal: &Refusal) -> ModelError {
    let body: Value = serde_json::from_str(&refusal.body).unwrap_or_default();
    // `ThrottlingException:http://internal.amazon.com/…`, or in the body with
    // a name space before it.
    let named = refusal.header("x-amzn-errortype").or(body["__type"].as_str()).unwrap_or_default();
    let name = named.split(':').next().unwrap_or_default().rsplit('#').next().unwrap_or_default();
    let detail = format!("status {}: {name} {}", refusal.status, refusal.body);
    of(name, refusal.status, refusal.retry_after, Detail::new(detail), &message(&body))
}

/// An exception in a stream that began well.
pub(super) fn in_stream(frame: &Frame) -> ModelError {
    let body: Value = serde_json::from_slice(&frame.payload).unwrap_or_default();
    let text = String::from_utf8_lossy(&frame.payload);
    let detail = Detail::new(format!("{} {}{text}", frame.name, frame.message));
    let said = format!("{} {}", message(&body), frame.message.to_lowercase());
    of(&frame.name, 0, None, detail, &said)
}

/// Either spelling is in use.
fn message(body: &Value) -> String {
    let text = body["message"].as_str().or(body["Message"].as_str());
    text.unwrap_or_default().to_lowercase()
}

fn of(name: &str, status: u16, retry_after: Option<Duration>, detail: Detail, said: &str) -> ModelError {
    let or = |usual: u16| if status == 0 { usual } else { status };
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "throttlingexception" | "toomanyrequestsexception" => ModelError::RateLimited { retry_after, detail },
        "servicequotaexceededexception" => ModelError::OutOfQuota { detail },
        "modelnotreadyexception" | "serviceunavailableexception" => {
            ModelError::Overloaded { status: or(503), retry_after, detail }
        }
        "internalserverexception" | "internalfailure" => {
            ModelError::Overloaded { status: or(500), retry_after, detail }
        }
        "modelstreamerrorexception" | "modelerrorexception" => {
            ModelError::Overloaded { status: or(424), retry_after, detail }
        }
        "modeltimeoutexception" => ModelError::Overloaded { status: or(408), retry_after, detail },
        "accessdeniedexception"
        | "unrecognizedclientexception"
        | "invalidsignatureexception"
        | "incompletesignatureexception"
        | "missingauthenticationtokenexception"
        | "expiredtokenexception" => ModelError::KeyRefused { detail },
        "resourcenotfoundexception" => ModelError::unknown_model(detail),
        "validationexception" => of_validation(or(400), detail, said),
        _ => of_status(or(500), retry_after, detail, said),
    }
}

fn of_validation(status: u16, detail: Detail, said: &str) -> ModelError {
    if TOO_LONG.iter().any(|words| said.contains(words)) {
        return ModelError::ContextTooLong { detail };
    }
    if FILTERED.iter().any(|words| said.contains(words)) {
        return ModelError::Filtered { detail };
    }
    if said.contains("model identifier") {
        return ModelError::unknown_model(detail);
    }
    ModelError::RequestRefused { status, detail }
}

/// The answer of something in between that does not name its errors.
fn of_status(status: u16, retry_after: Option<Duration>, detail: Detail, said: &str) -> ModelError {
    match status {
        401 | 403 => ModelError::KeyRefused { detail },
        404 => ModelError::unknown_model(detail),
        429 => ModelError::RateLimited { retry_after, detail },
        408 | 424 | 500..=599 => ModelError::Overloaded { status, retry_after, detail },
        _ => of_validation(status, detail, said),
    }
}
