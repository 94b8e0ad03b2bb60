//! Tools whose calls go on as tasks. Where a task stands follows from what it
//! is, when it began and what it was told: nothing runs in the background.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use toolyard_mcp::server::{Fault, Visit};
use toolyard_protocol::Timestamp;

use crate::asking;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

#[derive(Default)]
pub(crate) struct Tasks(Mutex<HashMap<String, Task>>);

struct Task {
    began: Instant,
    created: String,
    takes: Duration,
    end: Result<Value, Value>,
    /// Questions that nobody has answered yet.
    open: Map<String, Value>,
    canceled: bool,
}

fn result(text: impl Into<String>, error: bool) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }], "isError": error, "resultType": "complete" })
}

pub(crate) fn list() -> Vec<Value> {
    let tool = |name: &str, fields: Value| {
        json!({ "name": name, "description": format!("The fixture {name}"),
            "inputSchema": { "type": "object", "properties": fields } })
    };
    let text = json!({ "type": "string" });
    vec![
        tool("greet", json!({ "name": text })),
        tool("slow_compute", json!({ "seconds": { "type": "number" }, "label": text })),
        tool("failing_job", json!({})),
        tool("protocol_error_job", json!({})),
        tool("confirm_delete", json!({ "filename": text })),
        tool("multi_input", json!({})),
        tool("test_tool_with_task", json!({})),
    ]
}

/// A call of one of these tools; none if it is another's.
pub(crate) async fn call(tasks: &Tasks, params: &Value, visit: &Visit) -> Result<Option<Value>, Fault> {
    let able = visit.capabilities().pointer("/extensions/io.modelcontextprotocol~1tasks").is_some();
    let arguments = &params["arguments"];
    let name = params["name"].as_str().unwrap_or_default();
    let (takes, end, open) = match name {
        "greet" => {
            let greeted = arguments["name"].as_str().unwrap_or_default();
            return Ok(Some(result(format!("Hello, {greeted}!"), false)));
        }
        "slow_compute" => {
            let takes = Duration::from_secs_f64(arguments["seconds"].as_f64().unwrap_or_default().max(0.0));
            let end = result(format!("Computed {}", arguments["label"]), false);
            if !able || takes.is_zero() {
                tokio::time::sleep(takes).await;
                return Ok(Some(end));
            }
            (takes, Ok(end), Map::new())
        }
        "failing_job" => {
            need(able)?;
            (Duration::from_secs(1), Ok(result("The job failed", true)), Map::new())
        }
        "protocol_error_job" => {
            need(able)?;
            let error = json!({ "code": -32603, "message": "The job broke" });
            (Duration::ZERO, Err(error), Map::new())
        }
        "confirm_delete" => {
            need(able)?;
            (Duration::ZERO, Ok(result("Deleted", false)), questions(&["confirm"]))
        }
        "multi_input" => {
            need(able)?;
            (Duration::ZERO, Ok(result("Both are here", false)), questions(&["first", "second"]))
        }
        "test_tool_with_task" => {
            need(able)?;
            let Some(reply) = asking::reply(params, "user_name") else {
                let form = asking::form("What is your name?", "name", "string");
                return Ok(Some(asking::ask(visit, &[("user_name", form)], Some("named"))));
            };
            let said = format!("Hello, {}!", reply["content"]["name"].as_str().unwrap_or_default());
            (Duration::from_millis(100), Ok(result(said, false)), Map::new())
        }
        _ => return Ok(None),
    };
    Ok(Some(tasks.open(takes, end, open)))
}

fn need(able: bool) -> Result<(), Fault> {
    if able {
        return Ok(());
    }
    let mut fault = Fault::new(Fault::MISSING_CAPABILITY, "This tool answers with a task");
    fault.data = Some(json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } }));
    Err(fault)
}

fn questions(keys: &[&str]) -> Map<String, Value> {
    let ask = |key: &&str| ((*key).to_owned(), asking::form(&format!("The {key}?"), "ok", "boolean"));
    keys.iter().map(ask).collect()
}

fn now() -> String {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    Timestamp::from_millis(i64::try_from(millis).unwrap()).to_string()
}

impl Tasks {
    fn open(&self, takes: Duration, end: Result<Value, Value>, open: Map<String, Value>) -> Value {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = format!("task-{}", tasks.len() + 1);
        let task = Task { began: Instant::now(), created: now(), takes, end, open, canceled: false };
        let mut made = task.fields(&id, "working");
        made["resultType"] = json!("task");
        tasks.insert(id, task);
        made
    }

    /// `tasks/get`, `tasks/update` and `tasks/cancel`.
    pub(crate) fn answer(&self, method: &str, params: &Value) -> Result<Value, Fault> {
        let id = params["taskId"].as_str().unwrap_or_default();
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let task = tasks.get_mut(id).ok_or_else(|| Fault::params("There is no such task"))?;
        match method {
            "tasks/get" => Ok(task.stand(id)),
            "tasks/update" => {
                let replies = params["inputResponses"].as_object();
                task.open.retain(|key, _| !replies.is_some_and(|replies| replies.contains_key(key)));
                Ok(json!({}))
            }
            _ => {
                task.canceled |= !task.is_over();
                Ok(json!({}))
            }
        }
    }
}

impl Task {
    fn is_over(&self) -> bool {
        self.open.is_empty() && self.began.elapsed() >= self.takes
    }

    fn fields(&self, id: &str, status: &str) -> Value {
        json!({ "taskId": id, "status": status, "createdAt": self.created, "lastUpdatedAt": now(),
            "ttlMs": 60_000, "pollIntervalMs": 100 })
    }

    fn stand(&self, id: &str) -> Value {
        if self.canceled {
            return self.fields(id, "cancelled");
        }
        if !self.open.is_empty() {
            let mut task = self.fields(id, "input_required");
            task["inputRequests"] = json!(self.open);
            return task;
        }
        if !self.is_over() {
            return self.fields(id, "working");
        }
        match &self.end {
            Ok(result) => {
                let mut task = self.fields(id, "completed");
                task["result"] = result.clone();
                task
            }
            Err(error) => {
                let mut task = self.fields(id, "failed");
                task["error"] = error.clone();
                task
            }
        }
    }
}
