//! Answers with JSON, and the shapes that several routes share.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use toolyard_protocol::{ApiError, ErrorCode, limits};

use crate::http::Refusal;

pub(super) fn json(status: u16, value: &impl Serialize) -> Result<Response, Refusal> {
    let body = serde_json::to_string(value)
        .map_err(|_| Refusal::new(ErrorCode::Internal, "Something went wrong inside the gateway."))?;
    Ok(text(status, body))
}

/// JSON that is text already.
pub(super) fn text(status: u16, body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, body).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn nothing() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// 204 if something was there, else 404.
pub(super) fn gone(existed: bool, what: &str) -> Result<Response, Refusal> {
    if existed { Ok(nothing()) } else { Err(Refusal::not_found(what)) }
}

/// A label that people read: not empty, not long, no control characters.
pub(crate) fn label(field: &str, text: Option<String>) -> Result<Option<String>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let most = limits::LABEL_CHARS;
    if text.chars().count() > most {
        let message = format!("{field}: at most {most} characters");
        return Err(ApiError::limit(ErrorCode::LimitExceeded, most as u64, message).into());
    }
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(Refusal::bad_request(format!("{field}: must be text without control characters")));
    }
    Ok(Some(text))
}

/// A text that people and models read: not empty, not long.
pub(super) fn words(field: &str, text: &str, most: usize) -> Result<String, Refusal> {
    let text = text.trim();
    if text.chars().count() > most {
        let message = format!("{field}: at most {most} characters");
        return Err(ApiError::limit(ErrorCode::LimitExceeded, most as u64, message).into());
    }
    // PostgreSQL keeps no NUL.
    if text.is_empty() || text.contains('\0') {
        return Err(Refusal::bad_request(format!("{field}: must be text")));
    }
    Ok(text.to_owned())
}

/// One more would be too many.
pub(crate) fn too_many(what: &str, most: usize) -> Refusal {
    ApiError::limit(ErrorCode::LimitExceeded, most as u64, format!("The limit is {most} {what}")).into()
}

/// A metadata object within its limit.
pub(super) fn metadata(value: Option<Value>) -> Result<Option<Value>, Refusal> {
    let Some(value) = value.filter(|v| !v.is_null()) else { return Ok(None) };
    if !value.is_object() {
        return Err(Refusal::bad_request("metadata: must be an object"));
    }
    within("metadata", Some(&value), limits::METADATA_BYTES)?;
    Ok(Some(value))
}

/// Refuses JSON that is larger than `most` bytes.
pub(crate) fn within(field: &str, value: Option<&Value>, most: usize) -> Result<(), Refusal> {
    if value.is_some_and(|value| value.to_string().len() > most) {
        let message = format!("{field}: at most {most} bytes");
        return Err(ApiError::limit(ErrorCode::LimitExceeded, most as u64, message).into());
    }
    Ok(())
}

/// A field of a PATCH: absent keeps, `null` clears.
#[derive(Debug, Clone, Default)]
pub(super) enum Change<T> {
    #[default]
    Keep,
    Clear,
    Set(T),
}

impl<T> Change<T> {
    /// The new value from the old one.
    pub(super) fn over(self, old: Option<T>) -> Option<T> {
        match self {
            Self::Keep => old,
            Self::Clear => None,
            Self::Set(new) => Some(new),
        }
    }
    pub(super) fn check<E>(self, check: impl FnOnce(Option<T>) -> Result<Option<T>, E>) -> Result<Self, E> {
        match self {
            Self::Set(new) => Ok(check(Some(new))?.map_or(Self::Clear, Self::Set)),
            Self::Keep | Self::Clear => Ok(self),
        }
    }
}

impl<'de, T: serde::Deserialize<'de>> serde::Deserialize<'de> for Change<T> {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Option::<T>::deserialize(d)?.map_or(Self::Clear, Self::Set))
    }
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for Change<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Option::<T>::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Option::<T>::json_schema(generator)
    }
}
