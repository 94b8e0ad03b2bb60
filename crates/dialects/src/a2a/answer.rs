//! Answers that are neither streams nor errors.

use serde_json::{Value, json};

use super::model::{Item, Message, Task};
use super::version::Version;
use super::write;

/// What a message to an agent is answered with.
pub fn sent(task: &Task, version: Version) -> Value {
    write::item(&Item::Task(task.clone()), version)
}

/// The same, of an agent that answers with a message only.
pub fn said(message: &Message, version: Version) -> Value {
    write::item(&Item::Message(message.clone()), version)
}

/// One page of tasks. `next` is empty on the last page, never absent.
pub fn task_list(tasks: &[Task], next: &str, page_size: u32, total: i64, version: Version) -> Value {
    let tasks: Vec<Value> = tasks.iter().map(|task| write::task(task, version)).collect();
    json!({ "tasks": tasks, "nextPageToken": next, "pageSize": page_size, "totalSize": total })
}

/// A configuration was removed.
pub fn removed(version: Version) -> Value {
    match version {
        Version::V10 => json!({}),
        Version::V03 => Value::Null,
    }
}
