//! One request to run a tool, in any of the forms that it arrives in.

use serde_json::Value;
use toolyard_protocol::{CallId, RunId, WaitId};

use crate::api::Wait;
use crate::event::CallReady;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    pub args: Value,
    /// The run that waits for it.
    pub run: Option<RunId>,
    /// Its row of the ledger.
    pub wait: Option<WaitId>,
    pub(crate) step: Option<u32>,
}

/// Why something is not a tool call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadToolCall {
    #[error("Tool call missing toolName")]
    NoName,
    #[error("Tool call missing toolCallId")]
    NoId,
    #[error("Invalid tool arguments JSON: {0}")]
    Arguments(String),
}

impl ToolCall {
    pub fn new(id: CallId, name: impl Into<String>, args: Value) -> Self {
        Self { id, name: name.into(), args, run: None, wait: None, step: None }
    }

    /// Reads `{toolCallId, toolName, args}`, the older `{id, name, arguments}`
    /// (also both at once), or `{id, type: "function", function: {…}}`.
    /// Arguments may be JSON inside a text.
    pub fn read(value: &Value) -> Result<Self, BadToolCall> {
        let inner = value.get("function").unwrap_or(value);
        let text = |of: &Value, names: [&str; 2]| {
            let found = names.iter().find_map(|name| of.get(name).and_then(Value::as_str));
            found.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let name = text(inner, ["toolName", "name"]).ok_or(BadToolCall::NoName)?;
        let id = text(value, ["toolCallId", "id"]).and_then(|id| CallId::parse(&id).ok());
        let given = ["args", "arguments", "input"].iter().find_map(|name| inner.get(name));
        let args = match given {
            None | Some(Value::Null) => Value::Object(serde_json::Map::new()),
            Some(Value::String(json)) => {
                serde_json::from_str(json).map_err(|e| BadToolCall::Arguments(e.to_string()))?
            }
            Some(other) => other.clone(),
        };
        Ok(Self::new(id.ok_or(BadToolCall::NoId)?, name, args))
    }

    /// A call that a stream announced.
    pub(crate) fn announced(run: &RunId, ready: &CallReady) -> Self {
        let none = || Value::Object(serde_json::Map::new());
        Self {
            id: ready.tool_call_id.clone(),
            name: ready.tool_name.clone(),
            args: ready.input.clone().unwrap_or_else(none),
            run: Some(run.clone()),
            wait: ready.wait_id.clone(),
            step: ready.step,
        }
    }

    /// A call that waits in the ledger.
    pub(crate) fn waiting(wait: &Wait) -> Self {
        let none = || Value::Object(serde_json::Map::new());
        Self {
            id: wait.tool_call_id.clone(),
            name: wait.tool_name.clone(),
            args: wait.payload.clone().unwrap_or_else(none),
            run: Some(wait.run_id.clone()),
            wait: Some(wait.id.clone()),
            step: None,
        }
    }
}
