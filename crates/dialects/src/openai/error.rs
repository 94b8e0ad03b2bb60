//! Errors in OpenAI's form.

use serde_json::{Value, json};
use toolyard_protocol::{ApiError, ErrorCode};

/// The body of a refused request, and of a run that failed.
pub fn error_body(error: &ApiError) -> Value {
    let mut body = described(&error.message, kind(error.code), error.code.as_str());
    if let Some(limit) = error.limit {
        body["error"]["limit"] = json!(limit);
    }
    body
}

pub(super) fn described(message: &str, kind: &str, code: &str) -> Value {
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}

/// What OpenAI's clients sort errors by.
pub(super) fn kind(code: ErrorCode) -> &'static str {
    match code.status() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "server_error",
    }
}

/// The HTTP status of an answer that is an error; none if it is not one.
pub fn error_status(body: &Value) -> Option<u16> {
    let error = body.get("error").filter(|error| error.is_object())?;
    let code = error["code"].as_str().unwrap_or_default();
    let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
    Some(known.map_or(500, |code| code.status()))
}
