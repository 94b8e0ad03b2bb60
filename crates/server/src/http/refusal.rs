//! A refused request on native routes: `{"error":{"code","message","limit"?}}`.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use toolyard_protocol::{ApiError, ErrorCode};
use toolyard_store::StoreError;

/// What the caller hears, and what only the log hears.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: ApiError,
    retry_after: Option<u64>,
    cause: Option<StoreError>,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        ApiError::new(code, message).into()
    }
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequest, message)
    }
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Forbidden, message)
    }
    pub(crate) fn not_found(what: &str) -> Self {
        ApiError::not_found(what).into()
    }
    pub(crate) fn too_many(per_second: u32, seconds: u64) -> Self {
        let message = format!("Rate limit exceeded. Please try again in {seconds} seconds.");
        Self {
            error: ApiError::limit(ErrorCode::RateLimited, u64::from(per_second), message),
            retry_after: Some(seconds),
            cause: None,
        }
    }
    /// The sentence alone, for clients that show it to people.
    pub(crate) fn into_plain(self) -> Response {
        let text = self.error.message.clone();
        let (mut head, _) = self.into_response().into_parts();
        head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        head.headers.remove(axum::http::header::CONTENT_LENGTH);
        Response::from_parts(head, axum::body::Body::from(text))
    }
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self { error, retry_after: None, cause: None }
    }
}

impl From<StoreError> for Refusal {
    fn from(cause: StoreError) -> Self {
        let (code, message) = match &cause {
            StoreError::Gone(what) => return Self::not_found(what),
            StoreError::Unavailable(_) => {
                (ErrorCode::StoreUnavailable, "The database does not answer. Try again later.")
            }
            StoreError::Full(_) => (ErrorCode::StoreFull, "The database has no room left. Try again later."),
            StoreError::Exists(_) => (ErrorCode::Conflict, "It exists already."),
            StoreError::Undecodable(_) | StoreError::Broken(_) => {
                (ErrorCode::Internal, "Something went wrong inside the gateway.")
            }
        };
        let retry_after = (code.status() == 503).then_some(1);
        Self { error: ApiError::new(code, message), retry_after, cause: Some(cause) }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = self.status();
        if let Some(cause) = &self.cause
            && status.is_server_error()
        {
            let source = std::error::Error::source(cause).map(ToString::to_string);
            tracing::error!(code = self.error.code.as_str(), %cause, source, "a request failed");
        }
        let body = serde_json::json!({ "error": self.error }).to_string();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
