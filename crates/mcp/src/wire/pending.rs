//! Between the bytes and rmcp: answers to tool calls pass as they came.
//!
//! rmcp reads answers into strict types. One block of content that it does not
//! know would lose a whole result, and a list with one odd tool would lose all
//! tools. So an answer to one of our own requests is wrapped before rmcp sees
//! it: it arrives as a custom result that holds the JSON untouched.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, ServerResult, Tool};
use serde_json::{Map, Value, json};

use crate::fault::Fault;

/// The member that holds an untouched answer.
const RAW: &str = "toolyard/raw";
/// The code of errors that we make for answers that cannot be used.
const MADE_HERE: i32 = -32_099;
/// Requests that are remembered; older ones are forgotten first.
const MOST: usize = 8_192;

/// What becomes of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Passed on untouched.
    Raw,
    /// rmcp must see the tools (it writes headers from their schemas); the
    /// untouched list rides along.
    List,
}

/// Why an answer cannot be used though it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoilt {
    TooLarge,
    Unreadable,
    /// The stream ended before the answer.
    Cut,
}

impl Spoilt {
    const fn word(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
            Self::Cut => "cut",
        }
    }
}

/// The requests on their way, by id as text.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    kinds: Mutex<HashMap<String, Kind>>,
    faults: Mutex<HashMap<String, Fault>>,
    last: Mutex<Option<Fault>>,
    /// rmcp reads `tools/list` itself.
    lists_are_read: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pending {
    /// For a wire whose rmcp side reads `tools/list` itself.
    pub(crate) fn with_read_lists() -> Self {
        Self { lists_are_read: true, ..Self::default() }
    }

    /// Notes what goes out.
    pub(crate) fn sent(&self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let kind = match request.request.method() {
                    "tools/list" if self.lists_are_read => Kind::List,
                    "tools/call" | "tools/list" | "tasks/get" | "tasks/update" | "tasks/cancel" => Kind::Raw,
                    _ => return,
                };
                let mut kinds = lock(&self.kinds);
                if kinds.len() >= MOST {
                    kinds.clear();
                }
                kinds.insert(request.id.to_string(), kind);
            }
            ClientJsonRpcMessage::Notification(note) => {
                if let ClientNotification::CancelledNotification(canceled) = &note.notification
                    && let Some(id) = &canceled.params.request_id
                {
                    lock(&self.kinds).remove(&id.to_string());
                }
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
        }
    }

    /// Notes why a request did not go well, for whoever waits for it.
    pub(crate) fn failed(&self, id: Option<String>, fault: Fault) {
        *lock(&self.last) = Some(fault.clone());
        if let Some(id) = id {
            let mut faults = lock(&self.faults);
            if faults.len() >= MOST {
                faults.clear();
            }
            faults.insert(id, fault);
        }
    }

    pub(crate) fn take_fault(&self, id: &str) -> Option<Fault> {
        lock(&self.faults).remove(id)
    }

    /// The latest fault, for a handshake that says only that it failed.
    pub(crate) fn last_fault(&self) -> Option<Fault> {
        lock(&self.last).take()
    }

    /// Wraps the answer in a message, if it is one of ours.
    pub(crate) fn wrap(&self, mut message: Value) -> Value {
        let Some(object) = message.as_object_mut() else { return message };
        if object.contains_key("method") || !object.contains_key("result") {
            if object.contains_key("error")
                && let Some(id) = id_text(object)
            {
                lock(&self.kinds).remove(&id);
            }
            return message;
        }
        let kind = id_text(object).and_then(|id| lock(&self.kinds).remove(&id));
        if let Some(kind) = kind {
            let result = object.remove("result").unwrap_or(Value::Null);
            let wrapped = match kind {
                Kind::Raw => json!({ RAW: result }),
                Kind::List => list_for_rmcp(result),
            };
            object.insert("result".to_owned(), wrapped);
        }
        message
    }
}

fn id_text(message: &Map<String, Value>) -> Option<String> {
    match message.get("id")? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The tools that rmcp can read, with the untouched list beside them.
fn list_for_rmcp(result: Value) -> Value {
    let tools: Vec<Value> = result
        .get("tools")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|tool| serde_json::from_value::<Tool>((*tool).clone()).is_ok())
        .cloned()
        .collect();
    json!({ "tools": tools, "_meta": { RAW: result } })
}

/// The untouched answer inside what rmcp hands over.
pub(crate) fn unwrap(result: ServerResult) -> Value {
    match result {
        ServerResult::CustomResult(custom) => match custom.0 {
            Value::Object(mut object) if object.contains_key(RAW) => {
                object.remove(RAW).unwrap_or(Value::Null)
            }
            other => other,
        },
        ServerResult::ListToolsResult(mut list) => {
            let raw = list.meta.as_mut().and_then(|meta| meta.0.remove(RAW));
            match raw {
                Some(raw) => without_refused(raw, &list.tools),
                None => serde_json::to_value(list).unwrap_or(Value::Null),
            }
        }
        other => serde_json::to_value(other).unwrap_or(Value::Null),
    }
}

/// rmcp drops tools whose header annotations are malformed, as the protocol
/// demands. They are marked, so that the reason is visible.
fn without_refused(mut raw: Value, kept: &[Tool]) -> Value {
    if let Some(tools) = raw.get_mut("tools").and_then(Value::as_array_mut) {
        for tool in tools {
            let readable = serde_json::from_value::<Tool>(tool.clone()).is_ok();
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            if readable && !kept.iter().any(|known| known.name == name) {
                *tool = json!({ "name": name, REFUSED: "its x-mcp-header annotations are malformed" });
            }
        }
    }
    raw
}

/// Marks a tool that was refused before it reached the list.
pub(crate) const REFUSED: &str = "toolyard/refused";

/// An answer that stands for one that cannot be used.
pub(crate) fn spoilt(id: &str, why: Spoilt) -> Value {
    let id = id.parse::<i64>().map_or_else(|_| Value::from(id), Value::from);
    json!({
        "jsonrpc": "2.0", "id": id,
        "error": { "code": MADE_HERE, "message": why.word(), "data": { RAW: why.word() } },
    })
}

/// Reads an error that [`spoilt`] made.
pub(crate) fn spoilt_kind(error: &ErrorData) -> Option<Spoilt> {
    if error.code != ErrorCode(MADE_HERE) {
        return None;
    }
    let word = error.data.as_ref()?.get(RAW)?.as_str()?;
    [Spoilt::TooLarge, Spoilt::Unreadable, Spoilt::Cut].into_iter().find(|kind| kind.word() == word)
}
