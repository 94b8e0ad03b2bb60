//! A server asks the user something while its call is open.
//!
//! Servers of the older era ask in the middle of a call and wait for the
//! answer; the question reaches the caller through [`Ask`]. Servers of the
//! newer era end the call with [`Paused`](crate::Paused) instead.

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One question of a server. Its words are the server's: show who asks, and
/// never give them to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Question {
    /// Fill in a form: a flat object of simple fields.
    Form { message: String, schema: Value },
    /// Open an address. Only https is shown, with its whole host.
    Url { message: String, url: String },
    /// Something that this host does not do for servers (sampling, roots).
    Unsupported { method: String },
}

/// What the user said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", content = "content", rename_all = "lowercase")]
pub enum Reply {
    Accept(Value),
    /// The user said no.
    Decline,
    /// The user went away.
    Cancel,
}

impl Reply {
    /// As a server reads it.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Accept(content) if content.is_null() => json!({ "action": "accept" }),
            Self::Accept(content) => json!({ "action": "accept", "content": content }),
            Self::Decline => json!({ "action": "decline" }),
            Self::Cancel => json!({ "action": "cancel" }),
        }
    }
}

impl Question {
    /// Reads `{method, params}` of a request for input.
    pub fn read(request: &Value) -> Self {
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
        let params = request.get("params").unwrap_or(&Value::Null);
        if method != "elicitation/create" {
            return Self::Unsupported { method: method.to_owned() };
        }
        Self::of_params(params)
    }

    pub(crate) fn of_params(params: &Value) -> Self {
        let text = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default();
        let message = toolyard_schema::clean(text("message"), MESSAGE).text;
        match params.get("url").and_then(Value::as_str) {
            Some(url) if text("mode") != "form" => Self::Url { message, url: url.to_owned() },
            _ => {
                let schema = params.get("requestedSchema").cloned();
                Self::Form { message, schema: schema.unwrap_or_else(|| json!({ "type": "object" })) }
            }
        }
    }

    /// Only https may be opened, and nothing that hides its host.
    pub fn is_safe(&self) -> bool {
        match self {
            Self::Form { .. } => true,
            Self::Unsupported { .. } => false,
            Self::Url { url, .. } => url::Url::parse(url).is_ok_and(|url| {
                url.scheme() == "https" && url.username().is_empty() && url.password().is_none()
            }),
        }
    }
}

/// Bytes of a question's text.
const MESSAGE: usize = 4096;

/// Answers questions of a call in flight. The call's timers stand still while
/// a question is open.
pub trait Ask: Send + Sync {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply>;
}
