//! Reads a body within its limits, and parses JSON out of it with errors that
//! name the field (row X5). Limits come before parsing.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use toolyard_protocol::{ApiError, ErrorCode};

use super::depth;

/// How often a body may come in pieces at the slowest allowed pace.
const SLOW_PIECES: u32 = 6;

/// The whole body, or why not.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    pause: Duration,
) -> Result<Bytes, ApiError> {
    if headers.get(CONTENT_ENCODING).is_some_and(|v| v != "identity") {
        let message = "Compressed bodies are not accepted";
        return Err(ApiError::new(ErrorCode::UnsupportedMedia, message));
    }
    let announced = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
    if announced.is_some_and(|length: u64| length > limit as u64) {
        return Err(too_large(limit));
    }
    // A sender that drips bytes is cut although each single pause is short.
    let whole = tokio::time::timeout(pause * SLOW_PIECES, collect(body, limit, pause));
    whole.await.unwrap_or_else(|_| Err(too_slow()))
}

async fn collect(mut body: Body, limit: usize, pause: Duration) -> Result<Bytes, ApiError> {
    let mut all = BytesMut::new();
    loop {
        let Ok(next) = tokio::time::timeout(pause, body.frame()).await else { return Err(too_slow()) };
        match next {
            None => return Ok(all.freeze()),
            Some(Err(_)) => return Err(ApiError::new(ErrorCode::BadRequest, "The body broke off")),
            Some(Ok(frame)) => {
                let Ok(data) = frame.into_data() else { continue };
                if all.len() + data.len() > limit {
                    return Err(too_large(limit));
                }
                all.extend_from_slice(&data);
            }
        }
    }
}

fn too_large(limit: usize) -> ApiError {
    ApiError::limit(ErrorCode::BodyTooLarge, limit as u64, format!("The body is larger than {limit} bytes"))
}

fn too_slow() -> ApiError {
    ApiError::new(ErrorCode::BadRequest, "The body came too slowly")
}

/// Refuses bodies that are not JSON by their own word.
pub(crate) fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let given = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let media = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if media == "application/json" || (media.starts_with("application/") && media.ends_with("+json")) {
        return Ok(());
    }
    Err(ApiError::new(ErrorCode::UnsupportedMedia, "Send the body as content-type application/json"))
}

/// A typed value out of a body. An empty body counts as `{}`.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let body = if body.is_empty() { b"{}" } else { body };
    depth::check(body)?;
    // A list would be read as the fields in their order.
    let starts = body.iter().find(|byte| !byte.is_ascii_whitespace());
    if starts.is_some_and(|byte| matches!(byte, b'[' | b'"' | b'n' | b't' | b'f' | b'-' | b'0'..=b'9')) {
        return Err(ApiError::new(ErrorCode::BadRequest, "The body must be a JSON object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let path = e.path().to_string();
        explain(&path, &e.into_inner())
    })?;
    reader.end().map_err(|e| explain(".", &e))?;
    Ok(value)
}

fn explain(path: &str, error: &serde_json::Error) -> ApiError {
    let text = error.to_string();
    // The position is of no use to a caller whose library wrote the text.
    let why = text.rsplit_once(" at line ").map_or(text.as_str(), |(why, _)| why);
    if let Some(field) = why.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        let whole = match path {
            "." => field.to_owned(),
            path => format!("{path}.{field}"),
        };
        return ApiError::missing(&whole);
    }
    if !error.is_data() {
        return ApiError::new(ErrorCode::InvalidJson, format!("The body is not JSON: {text}"));
    }
    match path {
        "." => ApiError::new(ErrorCode::BadRequest, why),
        path => ApiError::new(ErrorCode::BadRequest, format!("{path}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Sample {
        #[expect(dead_code, reason = "only its name matters")]
        name: String,
        #[serde(default)]
        #[expect(dead_code, reason = "only its name matters")]
        inner: Option<Inner>,
    }

    #[derive(Debug, serde::Deserialize)]
    struct Inner {
        #[expect(dead_code, reason = "only its type matters")]
        count: u32,
    }

    fn why(text: &str) -> String {
        parse::<Sample>(text.as_bytes()).err().map(|e| e.message).unwrap_or_default()
    }

    #[test]
    fn errors_name_the_field() {
        assert_eq!(why("{}"), "Missing required field: name");
        assert_eq!(why(""), "Missing required field: name");
        assert_eq!(why(r#"{"name":"x","inner":{}}"#), "Missing required field: inner.count");
        assert_eq!(
            why(r#"{"name":"x","inner":{"count":"y"}}"#),
            "inner.count: invalid type: string \"y\", expected u32"
        );
        assert_eq!(why(r#"{"name":"x","name":"y"}"#), "duplicate field `name`");
        assert!(why(r#"{"name":"#).starts_with("The body is not JSON"));
        assert!(why(r#"{"name":"x"} trailing"#).starts_with("The body is not JSON"));
        for other in [r#"["x"]"#, " [", "null", "true", "5", "-1", r#""x""#] {
            assert_eq!(why(other), "The body must be a JSON object", "{other}");
        }
        // Unknown fields are ignored, so that a newer client still works.
        assert_eq!(why(r#"{"name":"x","newer":1}"#), "");
    }
}
