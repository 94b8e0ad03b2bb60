//! A request for a response. As with chat completions, settings of the model
//! are the agent's own.

use serde_json::{Map, Value};
use toolyard_protocol::ApiError;
use toolyard_protocol::message::text_of;

use super::super::input::{Format, bad, choice, flag, format, parts, text, thread, tool_definitions};
use crate::history::{Entry, EntryCall, result_value};

#[derive(Debug, Clone, PartialEq)]
pub struct ResponsesRequest {
    /// The agent.
    pub model: String,
    pub entries: Vec<Entry>,
    pub approvals: Vec<Approval>,
    pub tools: Vec<Value>,
    pub stream: bool,
    pub format: Format,
    /// The response that this one follows.
    pub previous: Option<String>,
    /// The conversation that this one belongs to.
    pub thread: Option<String>,
}

/// A person's word on a call of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The wait: the id of the `mcp_approval_request`.
    pub wait: String,
    pub approve: bool,
    pub reason: Option<String>,
}

/// Reads a request. Nothing has happened yet when it is refused.
pub fn parse(body: Value) -> Result<ResponsesRequest, ApiError> {
    let Value::Object(body) = body else { return Err(bad("The body must be a JSON object")) };
    let model = text(&body, "model")?.ok_or_else(|| ApiError::missing("model"))?;
    if flag(&body, "background")? {
        return Err(bad("background: use the run's own routes to look at it later"));
    }
    let mut entries = Vec::new();
    if let Some(text) = text(&body, "instructions")? {
        entries.push(Entry::System { id: None, text });
    }
    let mut approvals = Vec::new();
    match body.get("input") {
        None | Some(Value::Null) => return Err(ApiError::missing("input")),
        Some(Value::String(text)) => {
            let parts = vec![toolyard_protocol::message::Part::text(text.clone())];
            entries.push(Entry::User { id: None, parts });
        }
        Some(Value::Array(items)) => {
            for (i, item) in items.iter().enumerate() {
                read_item(i, item, &mut entries, &mut approvals)?;
            }
        }
        Some(_) => return Err(bad("input: must be text or a list of items")),
    }
    let conversation =
        body.get("conversation").and_then(|held| held.as_str().or_else(|| held["id"].as_str()));
    let tools = tool_definitions(body.get("tools"))?;
    let asked = body.get("text").and_then(|text| text.get("format"));
    Ok(ResponsesRequest {
        model,
        entries,
        approvals,
        tools: if choice(body.get("tool_choice"))? { tools } else { Vec::new() },
        stream: flag(&body, "stream")?,
        format: format("text.format", asked)?,
        previous: text(&body, "previous_response_id")?,
        thread: conversation.map(ToOwned::to_owned).or_else(|| thread(&body)),
    })
}

fn read_item(
    i: usize,
    item: &Value,
    entries: &mut Vec<Entry>,
    approvals: &mut Vec<Approval>,
) -> Result<(), ApiError> {
    let at = |field: &str| format!("input[{i}].{field}");
    let needed = |field: &str| {
        let said = item[field].as_str().filter(|text| !text.is_empty());
        said.map(ToOwned::to_owned).ok_or_else(|| ApiError::missing(&at(field)))
    };
    match item["type"].as_str().unwrap_or("message") {
        "message" => {
            let content = parts(&at("content"), item.get("content"))?;
            entries.push(match item["role"].as_str() {
                Some("user") => Entry::User { id: None, parts: content },
                Some("system" | "developer") => Entry::System { id: None, text: text_of(&content) },
                Some("assistant") => {
                    Entry::Assistant { id: None, text: text_of(&content), calls: Vec::new() }
                }
                _ => {
                    return Err(bad(format!("{}: must be user, assistant, system or developer", at("role"))));
                }
            });
        }
        "function_call" => {
            let args = item["arguments"].as_str().unwrap_or_default();
            let args = serde_json::from_str(args).unwrap_or_else(|_| Value::Object(Map::new()));
            let call = EntryCall { id: needed("call_id")?, name: needed("name")?, args };
            // Calls belong to the words before them: one turn of the assistant.
            match entries.last_mut() {
                Some(Entry::Assistant { calls, .. }) => calls.push(call),
                _ => entries.push(Entry::Assistant { id: None, text: String::new(), calls: vec![call] }),
            }
        }
        "function_call_output" => {
            let output = parts(&at("output"), item.get("output"))?;
            let value = result_value(&text_of(&output));
            entries.push(Entry::Result { call: needed("call_id")?, value, error: None });
        }
        "mcp_approval_response" => {
            let approve = item["approve"].as_bool().ok_or_else(|| ApiError::missing(&at("approve")))?;
            let reason = item["reason"].as_str().map(ToOwned::to_owned);
            approvals.push(Approval { wait: needed("approval_request_id")?, approve, reason });
        }
        // What the gateway said itself comes from the store.
        "reasoning" | "mcp_approval_request" | "item_reference" => {}
        other => {
            let other: String = other.chars().take(48).collect();
            return Err(bad(format!("{}: {other:?} is not supported", at("type"))));
        }
    }
    Ok(())
}
