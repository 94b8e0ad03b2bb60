//! The frames of the AI SDK's WebSocket transport (version 7). Requests on one
//! connection have names, so that several go on at once.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What a client says.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ChatFrame {
    /// Take a turn.
    Send(SendFrame),
    /// Tell the answer that is on its way, from its start.
    Resume(ResumeFrame),
    /// Stop the answer of a request.
    Abort(AbortFrame),
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SendFrame {
    pub request_id: String,
    /// The chat.
    pub id: String,
    #[serde(default)]
    pub trigger: Option<String>,
    #[serde(default)]
    pub message_id: Option<String>,
    pub messages: Vec<Value>,
    /// The keys, as HTTP would bring them.
    #[serde(default)]
    pub headers: HashMap<String, String>,
    /// Further fields of the request.
    #[serde(default)]
    pub body: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResumeFrame {
    pub request_id: String,
    /// The chat.
    pub id: String,
    /// The keys, as HTTP would bring them.
    #[serde(default)]
    pub headers: HashMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AbortFrame {
    pub request_id: String,
}

impl SendFrame {
    /// The body of the same request over HTTP.
    pub fn into_body(self) -> Value {
        let mut body = self.body;
        body.insert("id".to_owned(), self.id.into());
        body.insert("messages".to_owned(), self.messages.into());
        for (key, value) in [("trigger", self.trigger), ("messageId", self.message_id)] {
            if let Some(value) = value {
                body.insert(key.to_owned(), value.into());
            }
        }
        body.into()
    }
}

/// What a client hears.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum ChatAnswer {
    Start {
        request_id: String,
    },
    /// A chunk of the UI message stream.
    Chunk {
        request_id: String,
        /// From 0, without gaps.
        sequence: u64,
        #[schemars(with = "Value")]
        chunk: Box<RawValue>,
    },
    End {
        request_id: String,
    },
    Error {
        request_id: String,
        error_text: String,
    },
    /// There is nothing to resume.
    NoActive {
        request_id: String,
    },
}
