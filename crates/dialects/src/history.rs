//! A conversation as a client holds it and sends it with every request, in
//! words that all such dialects share.

use serde_json::{Value, json};
use toolyard_protocol::message::{Part, Speaker};

/// An item of a client's history, as a turn takes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The client's id of it, or the gateway's.
    pub name: Option<String>,
    pub speaker: Speaker,
    /// Calls stand in it as [`Part::ToolCall`]: they say which steps it holds.
    pub parts: Vec<Part>,
    pub metadata: Option<Value>,
}

/// What is taken back, as the client says it. All of it starts a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// The last answer, or the assistant message of this name.
    Regenerate { message: Option<String> },
    /// The user message of this name is said again, in other words. One that
    /// is not known is simply new.
    Edit { message: String },
}

/// One item of a client's history.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    User {
        id: Option<String>,
        parts: Vec<Part>,
    },
    Assistant {
        id: Option<String>,
        text: String,
        calls: Vec<EntryCall>,
    },
    System {
        id: Option<String>,
        text: String,
    },
    /// The result of a call.
    Result {
        call: String,
        value: Value,
        error: Option<String>,
    },
}

/// A call in an assistant's message.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryCall {
    pub id: String,
    pub name: String,
    pub args: Value,
}

/// A result that a client wrote as JSON is read as JSON; other text stays text.
pub fn result_value(text: &str) -> Value {
    let trimmed = text.trim_start();
    let read = trimmed.starts_with(['{', '[']).then(|| serde_json::from_str(text).ok()).flatten();
    read.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// A tool definition in its plain form. Where a description or parameters are
/// optional, the name describes the tool and it takes none.
pub(crate) fn plain_tool(name: &Value, held: &Value) -> Value {
    let description = held["description"].as_str().filter(|text| !text.is_empty());
    let description = description.or(name.as_str()).unwrap_or_default();
    let parameters = held.get("parameters").filter(|parameters| !parameters.is_null()).cloned();
    let parameters = parameters.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    json!({ "name": name, "description": description, "parameters": parameters })
}
