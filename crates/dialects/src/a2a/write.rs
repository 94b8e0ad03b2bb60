//! The spelling of each version, outwards.

use serde_json::{Map, Value, json};

use super::model::{Artifact, Content, Item, Message, Part, Role, State, Status, Task};
use super::version::Version;

/// A state's word.
pub const fn state_word(state: State, version: Version) -> &'static str {
    match (version, state) {
        (Version::V10, State::Submitted) => "TASK_STATE_SUBMITTED",
        (Version::V10, State::Working) => "TASK_STATE_WORKING",
        (Version::V10, State::InputRequired) => "TASK_STATE_INPUT_REQUIRED",
        (Version::V10, State::AuthRequired) => "TASK_STATE_AUTH_REQUIRED",
        (Version::V10, State::Completed) => "TASK_STATE_COMPLETED",
        (Version::V10, State::Failed) => "TASK_STATE_FAILED",
        (Version::V10, State::Canceled) => "TASK_STATE_CANCELED",
        (Version::V10, State::Rejected) => "TASK_STATE_REJECTED",
        (Version::V03, State::Submitted) => "submitted",
        (Version::V03, State::Working) => "working",
        (Version::V03, State::InputRequired) => "input-required",
        (Version::V03, State::AuthRequired) => "auth-required",
        (Version::V03, State::Completed) => "completed",
        (Version::V03, State::Failed) => "failed",
        (Version::V03, State::Canceled) => "canceled",
        (Version::V03, State::Rejected) => "rejected",
    }
}

fn role_word(role: Role, version: Version) -> &'static str {
    match (version, role) {
        (Version::V10, Role::User) => "ROLE_USER",
        (Version::V10, Role::Agent) => "ROLE_AGENT",
        (Version::V03, Role::User) => "user",
        (Version::V03, Role::Agent) => "agent",
    }
}

/// An object that leaves out what is not there.
struct Object(Map<String, Value>);

impl Object {
    fn new() -> Self {
        Self(Map::new())
    }
    /// 0.3 says in each object what it is.
    fn kind(mut self, version: Version, kind: &str) -> Self {
        if version == Version::V03 {
            self.0.insert("kind".to_owned(), Value::from(kind));
        }
        self
    }
    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }
    fn maybe(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
    fn list(self, name: &str, values: &[String]) -> Self {
        if values.is_empty() { self } else { self.with(name, values.to_vec()) }
    }
    fn done(self) -> Value {
        Value::Object(self.0)
    }
}

pub fn part(part: &Part, version: Version) -> Value {
    match version {
        Version::V10 => part_10(part),
        Version::V03 => part_03(part),
    }
}

fn part_10(part: &Part) -> Value {
    let Part { content, media_type, filename, metadata } = part;
    let (name, value) = match content {
        Content::Text(text) => ("text", Value::from(text.as_str())),
        Content::Raw(bytes) => ("raw", Value::from(bytes.as_str())),
        Content::Url(url) => ("url", Value::from(url.as_str())),
        Content::Data(data) => ("data", data.clone()),
    };
    Object::new()
        .with(name, value)
        .maybe("mediaType", media_type.clone())
        .maybe("filename", filename.clone())
        .maybe("metadata", metadata.clone())
        .done()
}

fn part_03(part: &Part) -> Value {
    let Part { content, media_type, filename, metadata } = part;
    let mut metadata = metadata.clone();
    let object = Object::new();
    let file = |place: &str, value: &str| {
        Object::new()
            .with(place, value)
            .maybe("mimeType", media_type.clone())
            .maybe("name", filename.clone())
            .done()
    };
    let object = match content {
        Content::Text(text) => object.with("kind", "text").with("text", text.as_str()),
        Content::Raw(bytes) => object.with("kind", "file").with("file", file("bytes", bytes)),
        Content::Url(url) => object.with("kind", "file").with("file", file("uri", url)),
        // 0.3 knows objects only; this is how its own bridge wraps the rest.
        Content::Data(data) if !data.is_object() => {
            metadata.get_or_insert_default().insert("data_part_compat".to_owned(), Value::from(true));
            object.with("kind", "data").with("data", json!({ "value": data }))
        }
        Content::Data(data) => object.with("kind", "data").with("data", data.clone()),
    };
    object.maybe("metadata", metadata).done()
}

fn parts(list: &[Part], version: Version) -> Value {
    list.iter().map(|p| part(p, version)).collect()
}

pub fn message(message: &Message, version: Version) -> Value {
    let Message { id, role, parts: content, context, task, metadata, extensions, references } = message;
    Object::new()
        .kind(version, "message")
        .with("messageId", id.as_str())
        .with("role", role_word(*role, version))
        .with("parts", parts(content, version))
        .maybe("contextId", context.clone())
        .maybe("taskId", task.clone())
        .maybe("metadata", metadata.clone())
        .list("extensions", extensions)
        .list("referenceTaskIds", references)
        .done()
}

pub fn artifact(artifact: &Artifact, version: Version) -> Value {
    let Artifact { id, name, parts: content, metadata } = artifact;
    Object::new()
        .with("artifactId", id.as_str())
        .maybe("name", name.clone())
        .with("parts", parts(content, version))
        .maybe("metadata", metadata.clone())
        .done()
}

fn status(status: &Status, version: Version) -> Value {
    let Status { state, message: said, at, literal_calls } = status;
    let mut said = said.as_ref().map(|m| message(m, version));
    // The members of seeds/001 stand beside those of the protocol, so that a
    // lenient reader of 0.3 understands the same message.
    if let (Some(Value::Object(said)), false) = (&mut said, literal_calls.is_empty()) {
        said.insert("role".to_owned(), Value::from("assistant"));
        said.insert("content".to_owned(), Value::from(""));
        said.insert("toolCalls".to_owned(), Value::from(literal_calls.clone()));
    }
    Object::new()
        .with("state", state_word(*state, version))
        .maybe("message", said)
        .with("timestamp", at.to_string())
        .done()
}

pub fn task(task: &Task, version: Version) -> Value {
    let Task { id, context, status: stands, artifacts, history, metadata } = task;
    let artifacts =
        artifacts.as_ref().map(|list| list.iter().map(|a| artifact(a, version)).collect::<Vec<_>>());
    let history = history.as_ref().map(|list| list.iter().map(|m| message(m, version)).collect::<Vec<_>>());
    Object::new()
        .kind(version, "task")
        .with("id", id.as_str())
        .with("contextId", context.as_str())
        .with("status", status(stands, version))
        .maybe("artifacts", artifacts)
        .maybe("history", history)
        .maybe("metadata", metadata.clone())
        .done()
}

/// One item: 1.0 names it by its member, 0.3 by its `kind`.
pub fn item(item: &Item, version: Version) -> Value {
    let (name, value) = match item {
        Item::Task(given) => ("task", task(given, version)),
        Item::Message(given) => ("message", message(given, version)),
        Item::Status { task, context, status: stands, last } => {
            let object = Object::new()
                .kind(version, "status-update")
                .with("taskId", task.as_str())
                .with("contextId", context.as_str())
                .with("status", status(stands, version));
            let object = if version == Version::V03 { object.with("final", *last) } else { object };
            ("statusUpdate", object.done())
        }
        Item::Artifact { task, context, artifact: given, append, last_chunk } => {
            let object = Object::new()
                .kind(version, "artifact-update")
                .with("taskId", task.as_str())
                .with("contextId", context.as_str())
                .with("artifact", artifact(given, version))
                .with("append", *append)
                .with("lastChunk", *last_chunk);
            ("artifactUpdate", object.done())
        }
    };
    match version {
        Version::V10 => Object::new().with(name, value).done(),
        Version::V03 => value,
    }
}
