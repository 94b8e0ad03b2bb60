//! A request for a chat completion. Settings of the model (temperature, token
//! limits and the like) are the agent's own and are ignored.

use serde_json::{Map, Value};
use toolyard_protocol::ApiError;
use toolyard_protocol::message::text_of;

use super::super::input::{Format, bad, choice, flag, format, parts, text, thread, tool_definitions};
use crate::history::{Entry, EntryCall, result_value};

#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// The agent.
    pub model: String,
    pub entries: Vec<Entry>,
    /// Definitions of the client's tools, unread.
    pub tools: Vec<Value>,
    pub stream: bool,
    pub include_usage: bool,
    pub format: Format,
    /// A conversation that is gone on with.
    pub thread: Option<String>,
}

/// Reads a request. Nothing has happened yet when it is refused.
pub fn parse(body: Value) -> Result<ChatRequest, ApiError> {
    let Value::Object(body) = body else { return Err(bad("The body must be a JSON object")) };
    let model = text(&body, "model")?.ok_or_else(|| ApiError::missing("model"))?;
    let Some(Value::Array(messages)) = body.get("messages") else {
        return Err(ApiError::missing("messages"));
    };
    if messages.is_empty() {
        return Err(bad("messages: there must be at least one"));
    }
    if body.get("n").is_some_and(|n| !n.is_null() && *n != 1) {
        return Err(bad("n: an agent gives one answer"));
    }
    let entries = messages.iter().enumerate().map(|(i, m)| entry(i, m)).collect::<Result<Vec<_>, _>>()?;
    let tools = tool_definitions(body.get("tools"))?;
    Ok(ChatRequest {
        model,
        entries,
        tools: if choice(body.get("tool_choice"))? { tools } else { Vec::new() },
        stream: flag(&body, "stream")?,
        include_usage: body.get("stream_options").is_some_and(|options| options["include_usage"] == true),
        format: format("response_format", body.get("response_format"))?,
        thread: thread(&body),
    })
}

fn entry(i: usize, message: &Value) -> Result<Entry, ApiError> {
    let at = |field: &str| format!("messages[{i}].{field}");
    let Value::Object(fields) = message else { return Err(bad(format!("messages[{i}]: must be an object"))) };
    let role = fields.get("role").and_then(Value::as_str).ok_or_else(|| ApiError::missing(&at("role")))?;
    let content = parts(&at("content"), fields.get("content"))?;
    Ok(match role {
        "user" => Entry::User { id: None, parts: content },
        "system" | "developer" => Entry::System { id: None, text: text_of(&content) },
        "assistant" => {
            let calls = match fields.get("tool_calls") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(calls)) => {
                    calls.iter().map(|c| call(&at("tool_calls"), c)).collect::<Result<_, _>>()?
                }
                Some(_) => return Err(bad(format!("{}: must be a list", at("tool_calls")))),
            };
            Entry::Assistant { id: None, text: text_of(&content), calls }
        }
        "tool" => {
            let call = fields.get("tool_call_id").and_then(Value::as_str);
            let call = call.ok_or_else(|| ApiError::missing(&at("tool_call_id")))?.to_owned();
            Entry::Result { call, value: result_value(&text_of(&content)), error: None }
        }
        other => {
            let other: String = other.chars().take(32).collect();
            let known = "developer, system, user, assistant and tool";
            return Err(bad(format!("{}: {other:?} is not a role; there are {known}", at("role"))));
        }
    })
}

fn call(at: &str, call: &Value) -> Result<EntryCall, ApiError> {
    let said = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let (id, name) = (said(&call["id"]), said(&call["function"]["name"]));
    let (Some(id), Some(name)) = (id, name) else {
        return Err(bad(format!("{at}: a call needs an id and function.name")));
    };
    let args = call["function"]["arguments"].as_str().unwrap_or_default();
    let args = serde_json::from_str(args).unwrap_or_else(|_| Value::Object(Map::new()));
    Ok(EntryCall { id, name, args })
}
