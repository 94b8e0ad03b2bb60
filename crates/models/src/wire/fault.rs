//! What went wrong on the way, and how a refusal's body is read.

use serde_json::Value;
use toolyard_egress::EgressError;

use crate::error::{Detail, ModelError};

/// Reads the body of a refusal: its `error` if it has one. A body that is no
/// JSON counts as text.
pub(crate) fn parse(text: &str) -> Value {
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    match value {
        Value::Object(mut body) => body.remove("error").unwrap_or(Value::Object(body)),
        other => other,
    }
}

/// The connection failed, not the vendor.
pub(super) fn of_egress(error: EgressError) -> ModelError {
    match error {
        EgressError::Timeout { after } => ModelError::Silent { after },
        EgressError::TooLarge { limit } => ModelError::TooLarge { limit },
        EgressError::Refused(why) => {
            ModelError::Unreadable { detail: Detail::new(format!("settings: {why}")) }
        }
        EgressError::Inside | EgressError::Redirects { .. } | EgressError::Astray(_) => {
            ModelError::Unreadable { detail: Detail::new(format!("settings: {error}")) }
        }
        EgressError::Unreachable(_) | EgressError::Broken(_) | EgressError::Unavailable(_) => {
            ModelError::Unreachable { detail: Detail::new(error.causes()) }
        }
    }
}
