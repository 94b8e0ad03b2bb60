//! Errors of the protocol: JSON-RPC codes, HTTP statuses, reasons.

use serde_json::{Value, json};
use toolyard_protocol::{ApiError, ErrorCode};

use super::version::Version;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $http:literal, $status:literal, $reason:literal;)*) => {
        /// What went wrong, in the words of the protocol.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum FaultKind { $($(#[$doc])* $name,)* }

        impl FaultKind {
            pub const ALL: &'static [FaultKind] = &[$(FaultKind::$name,)*];
            /// The code of JSON-RPC.
            pub const fn code(self) -> i64 {
                match self { $(Self::$name => $code,)* }
            }
            /// The HTTP status of the HTTP+JSON binding.
            pub const fn http(self) -> u16 {
                match self { $(Self::$name => $http,)* }
            }
            /// The name of the canonical status.
            pub const fn status(self) -> &'static str {
                match self { $(Self::$name => $status,)* }
            }
            pub const fn reason(self) -> &'static str {
                match self { $(Self::$name => $reason,)* }
            }
        }
    };
}

kinds! {
    NotJson = -32700, 400, "INVALID_ARGUMENT", "PARSE_ERROR";
    NoRequest = -32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST";
    NoMethod = -32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND";
    BadParams = -32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS";
    Internal = -32603, 500, "INTERNAL", "INTERNAL_ERROR";
    TaskNotFound = -32001, 404, "NOT_FOUND", "TASK_NOT_FOUND";
    TaskNotCancelable = -32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE";
    PushNotSupported = -32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED";
    Unsupported = -32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION";
    ContentType = -32005, 415, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED";
    BadAgentAnswer = -32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE";
    NoExtendedCard = -32007, 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED";
    ExtensionRequired = -32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED";
    VersionNotSupported = -32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED";
}

/// A field that is wrong, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub field: String,
    pub description: String,
}

/// One refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
    pub violations: Vec<Violation>,
}

impl Fault {
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), violations: Vec::new() }
    }
    /// A field of the parameters is wrong.
    pub fn field(field: impl Into<String>, description: impl Into<String>) -> Self {
        let (field, description) = (field.into(), description.into());
        let message = if field.is_empty() { description.clone() } else { format!("{field}: {description}") };
        Self { kind: FaultKind::BadParams, message, violations: vec![Violation { field, description }] }
    }
    pub fn task_not_found() -> Self {
        Self::new(FaultKind::TaskNotFound, "Task not found")
    }

    /// The `error` of a JSON-RPC answer.
    pub fn rpc(&self, version: Version) -> Value {
        let mut error = json!({ "code": self.kind.code(), "message": self.message });
        match version {
            Version::V10 => error["data"] = self.details(),
            // Free text in 0.3; its clients expect nothing there.
            Version::V03 => {}
        }
        error
    }

    /// The body of an HTTP+JSON answer.
    pub fn rest(&self) -> Value {
        json!({ "error": {
            "code": self.kind.http(),
            "status": self.kind.status(),
            "message": self.message,
            "details": self.details(),
        } })
    }

    fn details(&self) -> Value {
        let mut details = vec![json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.kind.reason(),
            "domain": "a2a-protocol.org",
            "metadata": {},
        })];
        if !self.violations.is_empty() {
            let fields: Vec<Value> = self
                .violations
                .iter()
                .map(|v| json!({ "field": v.field, "description": v.description }))
                .collect();
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": fields,
            }));
        }
        Value::Array(details)
    }
}

impl From<ApiError> for Fault {
    /// The gateway's own refusals in the protocol's words. What a caller may
    /// not know of is not there.
    fn from(error: ApiError) -> Self {
        let kind = match error.code {
            ErrorCode::NotFound | ErrorCode::Forbidden => return Self::task_not_found(),
            ErrorCode::RunEnded | ErrorCode::RunBusy | ErrorCode::NotSupported | ErrorCode::AgentGone => {
                FaultKind::Unsupported
            }
            ErrorCode::InvalidJson => FaultKind::NotJson,
            ErrorCode::UnsupportedMedia => FaultKind::ContentType,
            code if code.status() >= 500 => FaultKind::Internal,
            _ => return Self::field("", error.message),
        };
        Self::new(kind, error.message)
    }
}
