//! How a tool call ends: exactly once, in one of six ways.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

/// The one outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolOutcome {
    /// The tool answered.
    Ok(Value),
    /// The tool ran, or tried to, and says why it has no answer.
    Failed(String),
    /// Somebody, or a rule, said no. The tool did not run.
    Denied(String),
    /// Nobody answered in time.
    Expired(String),
    /// The run went another way.
    Canceled(String),
    /// The tool started and the gateway died before it heard the end.
    Uncertain(String),
}

/// The name of an outcome without its value: public, while the value has the
/// tool's class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum OutcomeKind {
    Ok,
    Failed,
    Denied,
    Expired,
    Canceled,
    Uncertain,
}

impl OutcomeKind {
    /// Counts towards "three failures in a row". A denial and a cancel are
    /// somebody's will, not a failure.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Expired | Self::Uncertain)
    }
}

/// What the model and the user hear after a crash in the middle of a call.
pub const UNCERTAIN_TEXT: &str = "Uncertain: the gateway stopped while this tool was running. It may or may not have taken effect. Check before you repeat it.";
/// What ends open calls when the user writes on.
pub const SUPERSEDED_TEXT: &str = "Cancelled: user provided new input";
/// What ends open calls when the run is canceled.
pub const CANCELED_TEXT: &str = "Cancelled: the run was canceled";
/// What a denied call answers.
pub const DENIED_TEXT: &str = "Tool execution denied by user";

impl ToolOutcome {
    pub const fn kind(&self) -> OutcomeKind {
        match self {
            Self::Ok(_) => OutcomeKind::Ok,
            Self::Failed(_) => OutcomeKind::Failed,
            Self::Denied(_) => OutcomeKind::Denied,
            Self::Expired(_) => OutcomeKind::Expired,
            Self::Canceled(_) => OutcomeKind::Canceled,
            Self::Uncertain(_) => OutcomeKind::Uncertain,
        }
    }
    /// Puts an outcome together from its stored parts.
    pub fn from_parts(kind: OutcomeKind, value: Option<Value>, text: Option<String>) -> Self {
        let text = text.unwrap_or_default();
        match kind {
            OutcomeKind::Ok => Self::Ok(value.unwrap_or(Value::Null)),
            OutcomeKind::Failed => Self::Failed(text),
            OutcomeKind::Denied => Self::Denied(text),
            OutcomeKind::Expired => Self::Expired(text),
            OutcomeKind::Canceled => Self::Canceled(text),
            OutcomeKind::Uncertain => Self::Uncertain(text),
        }
    }
    pub fn value(&self) -> Option<&Value> {
        match self {
            Self::Ok(value) => Some(value),
            Self::Failed(_) | Self::Denied(_) | Self::Expired(_) | Self::Canceled(_) | Self::Uncertain(_) => {
                None
            }
        }
    }
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Ok(_) => None,
            Self::Failed(t) | Self::Denied(t) | Self::Expired(t) | Self::Canceled(t) | Self::Uncertain(t) => {
                Some(t)
            }
        }
    }
    /// What the model reads: text as it is, other values as JSON, errors as `{"error": …}`.
    pub fn for_model(&self) -> String {
        match self {
            Self::Ok(Value::String(text)) => text.clone(),
            Self::Ok(value) => value.to_string(),
            Self::Failed(t) | Self::Denied(t) | Self::Expired(t) | Self::Canceled(t) | Self::Uncertain(t) => {
                serde_json::json!({ "error": t }).to_string()
            }
        }
    }
}
