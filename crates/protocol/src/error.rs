//! What a caller is told when something is wrong: a stable code, a sentence
//! and, if a limit was hit, its number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal;)*) => {
        /// Machine-readable reason. Codes are only ever added.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }
        impl ErrorCode {
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name,)*];
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
            /// The HTTP status that carries this code on native routes.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }
        }
    };
}

codes! {
    BadRequest = "bad_request", 400;
    InvalidJson = "invalid_json", 400;
    MissingField = "missing_field", 400;
    InvalidConfig = "invalid_config", 400;
    /// Tools that a request brings are not well defined, or are too many.
    InvalidToolDefinitions = "invalid_tool_definitions", 400;
    InvalidCursor = "invalid_cursor", 400;
    /// A plugin's document is not well-formed.
    InvalidPlugin = "invalid_plugin", 400;
    Unauthorized = "unauthorized", 401;
    Forbidden = "forbidden", 403;
    OriginRefused = "origin_refused", 403;
    NotFound = "not_found", 404;
    ToolNotFound = "tool_not_found", 404;
    MethodNotAllowed = "method_not_allowed", 405;
    Conflict = "conflict", 409;
    /// A different result came first.
    ResultConflict = "result_conflict", 409;
    /// The run ended before the result came.
    RunEnded = "run_ended", 409;
    RunBusy = "run_busy", 409;
    WaitEnded = "wait_ended", 409;
    ToolNameConflict = "tool_name_conflict", 409;
    BodyTooLarge = "body_too_large", 413;
    UnsupportedMedia = "unsupported_media_type", 415;
    IdempotencyMismatch = "idempotency_mismatch", 422;
    LimitExceeded = "limit_exceeded", 422;
    NotSupported = "not_supported", 422;
    /// A plugin is well-formed and not trusted.
    PluginRefused = "plugin_refused", 422;
    RateLimited = "rate_limited", 429;
    Internal = "internal", 500;
    StoreUnavailable = "store_unavailable", 503;
    StoreFull = "store_full", 503;
    ShuttingDown = "shutting_down", 503;
    /// The keys of the tokens' issuer cannot be fetched.
    IssuerUnavailable = "issuer_unavailable", 503;
    /// Reasons of a failed run.
    ModelFailed = "model_failed", 502;
    ModelStreamCut = "model_stream_cut", 502;
    ModelNotFound = "model_not_found", 404;
    ModelRateLimited = "model_rate_limited", 502;
    ModelOverloaded = "model_overloaded", 502;
    ModelKeyRefused = "model_key_refused", 502;
    ModelRequestRefused = "model_request_refused", 502;
    /// The conversation is longer than the model can read.
    ContextTooLong = "context_too_long", 502;
    ContentFiltered = "content_filtered", 502;
    /// A run, or all runs of its agent, used what they may.
    BudgetExceeded = "budget_exceeded", 502;
    ServerMissing = "server_missing", 502;
    ToolFailures = "tool_failures", 502;
    RunSteps = "run_steps", 502;
    Poisoned = "poisoned", 500;
    AgentGone = "agent_gone", 410;
}

/// One refused request, as every dialect renders it in its own form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct ApiError {
    pub code: ErrorCode,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub limit: Option<u64>,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), limit: None }
    }
    pub fn limit(code: ErrorCode, limit: u64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), limit: Some(limit) }
    }
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("{what} not found"))
    }
    pub fn missing(field: &str) -> Self {
        Self::new(ErrorCode::MissingField, format!("Missing required field: {field}"))
    }
}
