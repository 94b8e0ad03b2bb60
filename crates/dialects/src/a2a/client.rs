//! The other side: talking to an agent elsewhere by its card.

use serde_json::{Value, json};

use super::model::State;
use super::read;
use super::version::Version;

/// How an agent is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub name: String,
    pub url: String,
    pub version: Version,
    rest: bool,
}

/// One request to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    pub url: String,
    /// None: a GET.
    pub body: Option<Value>,
}

/// What an agent answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// None: it answered with a message.
    pub task: Option<String>,
    pub context: Option<String>,
    pub state: State,
    /// All text of the answer; of a pause or a failure, what its message says.
    pub text: String,
    /// Data and files of the answer, as they came.
    pub others: Vec<Value>,
}

impl Peer {
    /// Reads a card: the newest version first, JSON-RPC before HTTP+JSON.
    pub fn of_card(card: &Value) -> Result<Self, String> {
        let name = card["name"].as_str().unwrap_or("agent").to_owned();
        let listed = card["supportedInterfaces"].as_array().map(Vec::as_slice).unwrap_or_default();
        let find = |binding: &str, version: &str| {
            listed.iter().find_map(|face| {
                let said = face["protocolVersion"].as_str().unwrap_or_default();
                let fits = face["protocolBinding"] == binding && said.starts_with(version);
                face["url"].as_str().filter(|_| fits).map(str::to_owned)
            })
        };
        if let Some(url) = find("JSONRPC", "1.") {
            return Ok(Self { name, url, version: Version::V10, rest: false });
        }
        if let Some(url) = find("HTTP+JSON", "1.") {
            return Ok(Self { name, url, version: Version::V10, rest: true });
        }
        let old = card["url"].as_str().filter(|_| {
            let transport = card["preferredTransport"].as_str().unwrap_or("JSONRPC");
            let version = card["protocolVersion"].as_str().unwrap_or("0.3.0");
            transport == "JSONRPC" && version.starts_with("0.")
        });
        match find("JSONRPC", "0.3").or_else(|| old.map(str::to_owned)) {
            Some(url) => Ok(Self { name, url, version: Version::V03, rest: false }),
            None => Err("the card names no interface that this gateway speaks".to_owned()),
        }
    }

    /// A message, to a new task or to one that asked.
    pub fn say(&self, id: &str, said: &Value, task: Option<&str>, context: Option<&str>) -> Ask {
        let part = match (said, self.version) {
            (Value::String(text), Version::V10) => json!({ "text": text }),
            (Value::String(text), Version::V03) => json!({ "kind": "text", "text": text }),
            (data, Version::V10) => json!({ "data": data }),
            (Value::Object(data), Version::V03) => json!({ "kind": "data", "data": data }),
            (data, Version::V03) => json!({ "kind": "text", "text": data.to_string() }),
        };
        let mut message = match self.version {
            Version::V10 => json!({ "messageId": id, "role": "ROLE_USER", "parts": [part] }),
            Version::V03 => json!({ "kind": "message", "messageId": id, "role": "user", "parts": [part] }),
        };
        if let Some(task) = task {
            message["taskId"] = Value::from(task);
        }
        if let Some(context) = context {
            message["contextId"] = Value::from(context);
        }
        let params = match self.version {
            Version::V10 => json!({ "message": message }),
            Version::V03 => json!({ "message": message, "configuration": { "blocking": true } }),
        };
        self.ask("SendMessage", "message/send", params, "message:send")
    }

    /// How a task stands.
    pub fn look(&self, task: &str) -> Ask {
        if self.rest {
            return Ask { url: self.below(&format!("tasks/{task}")), body: None };
        }
        self.ask("GetTask", "tasks/get", json!({ "id": task }), "")
    }

    fn ask(&self, new: &str, old: &str, params: Value, path: &str) -> Ask {
        if self.rest {
            return Ask { url: self.below(path), body: Some(params) };
        }
        let method = match self.version {
            Version::V10 => new,
            Version::V03 => old,
        };
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        Ask { url: self.url.clone(), body: Some(body) }
    }

    fn below(&self, path: &str) -> String {
        format!("{}/{path}", self.url.trim_end_matches('/'))
    }

    /// Reads the answer to [`Peer::say`] or [`Peer::look`].
    pub fn read(&self, answer: &Value) -> Result<Told, String> {
        if let Some(error) = answer.get("error").filter(|e| !e.is_null()) {
            let text = error["message"].as_str().unwrap_or("an error without a message");
            return Err(text.to_owned());
        }
        let result = if self.rest { answer } else { &answer["result"] };
        if let Some(message) = result.get("message").filter(|m| m.is_object()) {
            return Ok(told_message(message));
        }
        if result["kind"] == "message" {
            return Ok(told_message(result));
        }
        let task = result.get("task").filter(|t| t.is_object()).unwrap_or(result);
        told_task(task).ok_or_else(|| "the answer is neither a task nor a message".to_owned())
    }
}

fn told_message(message: &Value) -> Told {
    let (text, others) = said(&message["parts"]);
    let context = message["contextId"].as_str().map(str::to_owned);
    Told { task: None, context, state: State::Completed, text, others }
}

fn told_task(task: &Value) -> Option<Told> {
    let state = read::state(task["status"]["state"].as_str()?)?;
    let mut text = String::new();
    let mut others = Vec::new();
    let (note, asked) = said(&task["status"]["message"]["parts"]);
    if state == State::Completed {
        for artifact in task["artifacts"].as_array().into_iter().flatten() {
            let (more, data) = said(&artifact["parts"]);
            if !text.is_empty() && !more.is_empty() {
                text.push('\n');
            }
            text.push_str(&more);
            others.extend(data);
        }
        if text.is_empty() && others.is_empty() {
            (text, others) = (note, asked);
        }
    } else {
        (text, others) = (note, asked);
    }
    let id = task["id"].as_str()?;
    let context = task["contextId"].as_str().map(str::to_owned);
    Some(Told { task: Some(id.to_owned()), context, state, text, others })
}

/// The text of parts, and what else they hold.
fn said(parts: &Value) -> (String, Vec<Value>) {
    let mut text = String::new();
    let mut others = Vec::new();
    for part in parts.as_array().into_iter().flatten() {
        match part["text"].as_str() {
            Some(more) => text.push_str(more),
            None => others.push(part.clone()),
        }
    }
    (text, others)
}
