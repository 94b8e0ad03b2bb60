//! Where a run stands, as the result of a call or as a task.

use serde_json::{Map, Value, json};
use toolyard_protocol::{Timestamp, limits};

use super::following::{End, Standing};
use super::pause::{Able, Open};

/// The result of a call whose run has ended, or waits for somebody whom this
/// client cannot ask.
pub fn call_result(stands: &Standing, session: Option<&str>) -> Value {
    match &stands.direct {
        Some(_) => direct(stands),
        None => asked(stands, session),
    }
}

fn asked(stands: &Standing, session: Option<&str>) -> Value {
    let (status, text) = match stands.end {
        Some(End::Completed) => ("completed", stands.answer.clone()),
        Some(End::Failed) => ("failed", note(stands, "The agent failed")),
        Some(End::Canceled) => ("canceled", note(stands, "The agent was stopped")),
        None => ("waiting", waiting(stands)),
    };
    let mut structured = json!({ "answer": text, "status": status, "run": stands.run });
    if let Some(session) = session {
        structured["session"] = json!(session);
    }
    if !stands.sources.is_empty() {
        structured["sources"] = json!(stands.sources);
    }
    if !stands.open.is_empty() {
        structured["waits"] = stands.open.iter().map(Open::view).collect();
    }
    let mut content = vec![json!({ "type": "text", "text": text })];
    content.extend(stands.files.iter().cloned());
    json!({
        "content": content,
        "structuredContent": structured,
        "isError": matches!(stands.end, Some(End::Failed | End::Canceled)),
    })
}

fn note(stands: &Standing, otherwise: &str) -> String {
    stands.note.clone().unwrap_or_else(|| otherwise.to_owned())
}

fn waiting(stands: &Standing) -> String {
    let what: Vec<String> = stands.open.iter().map(Open::sentence).collect();
    let before = if stands.answer.is_empty() { String::new() } else { format!("{}\n\n", stands.answer) };
    format!(
        "{before}The agent waits for {}. A person has to answer it in the gateway. Then call this tool \
         again with run {:?}.",
        what.join(" and "),
        stands.run.as_str()
    )
}

fn direct(stands: &Standing) -> Value {
    let failed = |text: String| json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    match (&stands.returned, stands.end) {
        (Some(Ok(value)), _) => value_result(value),
        (Some(Err(text)), _) => failed(text.clone()),
        (None, None) => failed(waiting(stands)),
        (None, Some(_)) => failed(note(stands, "The tool was not called")),
    }
}

/// A value of the log. What another MCP server answered goes on as it is.
fn value_result(value: &Value) -> Value {
    if let Some(blocks) = value.get("content").and_then(Value::as_array)
        && blocks.iter().all(is_whole_block)
    {
        let mut passed = Map::new();
        for field in ["content", "structuredContent", "isError"] {
            if let Some(held) = value.get(field) {
                passed.insert(field.to_owned(), held.clone());
            }
        }
        return Value::Object(passed);
    }
    let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let mut result = json!({ "content": [{ "type": "text", "text": text }], "isError": false });
    if value.is_object() {
        result["structuredContent"] = value.clone();
    }
    result
}

/// A block that lost nothing on its way through the log.
fn is_whole_block(block: &Value) -> bool {
    let text = |name: &str| block[name].is_string();
    match block["type"].as_str() {
        Some("text") => text("text"),
        Some("image" | "audio") => text("data") && text("mimeType"),
        Some("resource_link") => text("uri") && text("name"),
        Some("resource") => block["resource"]["text"].is_string() || block["resource"]["blob"].is_string(),
        _ => false,
    }
}

/// All that is open, as requests for input. None if this client cannot be asked.
fn requests(stands: &Standing, able: Able) -> Option<Map<String, Value>> {
    let all: Map<String, Value> = stands.open.iter().flat_map(|open| open.requests(able)).collect();
    Some(all).filter(|all| !all.is_empty())
}

/// The result that asks the client's user. None if it cannot.
pub fn input_required(stands: &Standing, able: Able) -> Option<Value> {
    let requests = requests(stands, able).filter(|_| stands.waits)?;
    Some(json!({ "resultType": "input_required", "inputRequests": requests, "requestState": stands.run }))
}

fn task_fields(stands: &Standing, able: Able, times: (Timestamp, Timestamp)) -> Map<String, Value> {
    let asks = stands.waits && requests(stands, able).is_some();
    let status = match stands.end {
        // A failed run is a result that says so, as a tool's is.
        Some(End::Completed | End::Failed) => "completed",
        Some(End::Canceled) => "cancelled",
        None if asks => "input_required",
        None => "working",
    };
    let mut task = Map::new();
    task.insert("taskId".to_owned(), json!(stands.run));
    task.insert("status".to_owned(), json!(status));
    if stands.waits {
        task.insert("statusMessage".to_owned(), json!(waiting(stands)));
    }
    task.insert("createdAt".to_owned(), json!(times.0.to_string()));
    task.insert("lastUpdatedAt".to_owned(), json!(times.1.to_string()));
    task.insert("ttlMs".to_owned(), Value::Null);
    task.insert("pollIntervalMs".to_owned(), json!(limits::MCP_TASK_POLL_MS));
    task
}

/// The result of a call that goes on as a task.
pub fn task_created(stands: &Standing, able: Able, times: (Timestamp, Timestamp)) -> Value {
    let mut task = task_fields(stands, able, times);
    task.insert("resultType".to_owned(), json!("task"));
    Value::Object(task)
}

/// A task as `tasks/get` tells it.
pub fn task(stands: &Standing, session: Option<&str>, able: Able, times: (Timestamp, Timestamp)) -> Value {
    let mut task = task_fields(stands, able, times);
    match task["status"].as_str() {
        Some("completed") => {
            let mut result = call_result(stands, session);
            result["resultType"] = json!("complete");
            task.insert("result".to_owned(), result);
        }
        Some("input_required") => {
            task.insert("inputRequests".to_owned(), json!(requests(stands, able).unwrap_or_default()));
        }
        _ => {}
    }
    Value::Object(task)
}

/// A sentence for the model: the call was not made.
pub fn tool_error(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }], "isError": true })
}
