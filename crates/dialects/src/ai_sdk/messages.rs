//! Messages of chat clients, of all ages: typed parts, plain content, tool
//! invocations inside the message, and results as messages of their own.

use serde_json::{Map, Value};
use toolyard_protocol::message::{Part, Speaker};
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::{CallId, Guarded, OutcomeKind, ToolName, ToolOutcome, WaitId};

use super::request::{BadChat, Replied, Reply};
use crate::history::Item;

/// What the messages say.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) items: Vec<Item>,
    /// Of the last assistant message, and of results that follow it.
    pub(super) replies: Vec<Reply>,
    /// Calls of the last assistant message whose input the client has.
    pub(super) announced: Vec<CallId>,
    /// Questions of the last assistant message.
    pub(super) questions: Vec<WaitId>,
}

type Object = Map<String, Value>;

fn text<'v>(object: &'v Object, keys: &[&str]) -> Option<&'v str> {
    keys.iter().find_map(|key| object.get(*key).and_then(Value::as_str))
}

/// Reads messages, oldest first.
pub(super) fn read(messages: &[Value]) -> Result<Heard, BadChat> {
    let mut heard = Heard::default();
    for (i, message) in messages.iter().enumerate() {
        let message =
            message.as_object().ok_or_else(|| BadChat::new(format!("messages[{i}]: not an object")))?;
        let role = text(message, &["role"]).unwrap_or("user");
        match role {
            "user" => heard.add(Speaker::User, message),
            "assistant" => heard.add(Speaker::Assistant, message),
            "system" | "developer" => heard.add(Speaker::System, message),
            "tool" | "function" => heard.result(message),
            _ => {
                let known = "user, assistant, system or tool";
                return Err(BadChat::new(format!("messages[{i}].role: must be {known}")));
            }
        }
    }
    Ok(heard)
}

impl Heard {
    fn add(&mut self, speaker: Speaker, message: &Object) {
        // What a client says of calls counts for its last answer alone.
        let answers = speaker == Speaker::Assistant;
        if answers {
            self.replies.clear();
            self.announced.clear();
            self.questions.clear();
        }
        let mut parts = Vec::new();
        match (message.get("parts"), message.get("content")) {
            (Some(Value::Array(given)), _) | (None, Some(Value::Array(given))) => {
                let given = given.iter().filter_map(Value::as_object);
                given.for_each(|part| self.part(part, answers, &mut parts));
            }
            (_, Some(Value::String(said))) if !said.is_empty() => parts.push(Part::text(said)),
            _ => {}
        }
        for attachment in list(message, &["experimental_attachments", "attachments"]) {
            parts.extend(file(attachment));
        }
        // Older clients hold calls beside the parts.
        let beside = list(message, &["toolInvocations", "toolCalls", "tool_calls"]);
        for call in beside.into_iter().filter(|_| answers) {
            let known = |part: &Part| matches!(part, Part::ToolCall { call: c, .. } if Some(c.as_str()) == call_id(call));
            if !parts.iter().any(known) {
                self.call(call, &mut parts);
            }
        }
        let metadata = message.get("metadata").filter(|m| m.is_object()).cloned();
        let name = text(message, &["id"]).filter(|id| !id.is_empty()).map(str::to_owned);
        self.items.push(Item { name, speaker, parts, metadata });
    }

    fn part(&mut self, part: &Object, answers: bool, parts: &mut Vec<Part>) {
        let kind = text(part, &["type"]).unwrap_or_default();
        match kind {
            // Only an agent calls tools.
            _ if !answers && (kind.starts_with("tool-") || kind == "dynamic-tool") => {}
            "text" => {
                if let Some(said) = text(part, &["text"]).filter(|said| !said.is_empty()) {
                    parts.push(Part::text(said));
                }
            }
            "file" | "image" | "image_url" => parts.extend(file(part)),
            "tool-invocation" => {
                let inner = part.get("toolInvocation").and_then(Value::as_object).unwrap_or(part);
                self.call(inner, parts);
            }
            "tool-call" | "dynamic-tool" => self.call(part, parts),
            _ => {
                if let Some(name) = kind.strip_prefix("data-") {
                    let value = part.get("data").cloned().unwrap_or_default();
                    parts.push(Part::Data { name: name.to_owned(), value });
                } else if kind.starts_with("tool-") {
                    self.call(part, parts);
                }
            }
        }
    }

    /// A call, and what the client says of its end.
    fn call(&mut self, part: &Object, parts: &mut Vec<Part>) {
        let Some(call) = call_id(part).and_then(|id| CallId::parse(id).ok()) else { return };
        let function = part.get("function").and_then(Value::as_object);
        let named = text(part, &["type"]).and_then(|kind| kind.strip_prefix("tool-"));
        let named = named.filter(|name| !matches!(*name, "call" | "invocation" | "result"));
        let name = text(part, &["toolName", "name"]).or_else(|| function.and_then(|f| text(f, &["name"])));
        let Some(tool) = name.or(named).and_then(|name| ToolName::parse(name).ok()) else { return };
        let args = ["input", "args", "arguments"].iter().find_map(|key| part.get(*key));
        let args =
            args.or_else(|| function.and_then(|f| f.get("arguments"))).map(decoded).unwrap_or_default();
        let visibility = Visibility::Public;
        let (c, t) = (call.clone(), tool.clone());
        parts.push(Part::ToolCall {
            call: c,
            tool: t,
            visibility,
            args: Guarded::Shown(args),
            metadata: Guarded::Hidden,
        });
        let state = text(part, &["state"]).unwrap_or_default();
        let preliminary = part.get("preliminary") == Some(&Value::Bool(true));
        let outcome = match state {
            "output-available" if !preliminary => {
                Some(ToolOutcome::Ok(part.get("output").cloned().unwrap_or_default()))
            }
            "result" => Some(ToolOutcome::Ok(part.get("result").cloned().unwrap_or_default())),
            "output-error" => {
                Some(ToolOutcome::Failed(text(part, &["errorText"]).unwrap_or("The tool failed").to_owned()))
            }
            _ => None,
        };
        let approval = part.get("approval").and_then(Value::as_object).and_then(|a| text(a, &["id"]));
        self.questions.extend(approval.and_then(|id| WaitId::parse(id).ok()));
        if !matches!(state, "approval-requested" | "approval-responded" | "input-streaming" | "partial-call")
        {
            self.announced.push(call.clone());
        }
        if let Some(outcome) = outcome {
            parts.push(result_part(&call, &tool, visibility, &outcome));
            self.replies.push(Reply { call, said: Replied::Outcome(outcome) });
            return;
        }
        if state == "approval-responded" {
            self.replies.extend(decision(call, part));
        }
    }

    /// A result as a message of its own.
    fn result(&mut self, message: &Object) {
        let inner = list(message, &["content", "parts"]);
        let results = if inner.is_empty() { vec![message] } else { inner };
        for result in results {
            let Some(call) = call_id(result).or_else(|| call_id(message)) else { continue };
            let Ok(call) = CallId::parse(call) else { continue };
            let value = ["result", "output", "content"].iter().find_map(|key| result.get(*key));
            let outcome = outcome_of(value.map(decoded).unwrap_or_default());
            if let Some(Item { speaker: Speaker::Assistant, parts, .. }) = self.items.last_mut() {
                let tool = parts.iter().find_map(|part| match part {
                    Part::ToolCall { call: c, tool, .. } if *c == call => Some(tool.clone()),
                    _ => None,
                });
                parts.extend(tool.map(|tool| result_part(&call, &tool, Visibility::Public, &outcome)));
            }
            self.replies.push(Reply { call, said: Replied::Outcome(outcome) });
        }
    }
}

fn list<'v>(object: &'v Object, keys: &[&str]) -> Vec<&'v Object> {
    let found = keys.iter().find_map(|key| object.get(*key).and_then(Value::as_array));
    found.into_iter().flatten().filter_map(Value::as_object).collect()
}

fn call_id(object: &Object) -> Option<&str> {
    text(object, &["toolCallId", "tool_call_id", "id"])
}

/// JSON in a text is what it says, once.
fn decoded(value: &Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| value.clone()),
        other => other.clone(),
    }
}

/// A lone `error` is how older clients say that a tool failed (row H39).
fn outcome_of(value: Value) -> ToolOutcome {
    match value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("error")) {
        Some(Value::String(error)) => ToolOutcome::Failed(error.clone()),
        _ => ToolOutcome::Ok(value),
    }
}

fn result_part(call: &CallId, tool: &ToolName, visibility: Visibility, outcome: &ToolOutcome) -> Part {
    debug_assert!(matches!(outcome.kind(), OutcomeKind::Ok | OutcomeKind::Failed));
    Part::tool_result(call.clone(), tool.clone(), visibility, outcome)
}

fn decision(call: CallId, part: &Object) -> Option<Reply> {
    let approval = part.get("approval")?.as_object()?;
    let wait = WaitId::parse(text(approval, &["id"])?).ok()?;
    let allowed = approval.get("approved")?.as_bool()?;
    let reason = text(approval, &["reason"]).map(str::to_owned);
    Some(Reply { call, said: Replied::Decision { wait, allowed, reason } })
}

/// A file of the user: an address, or the bytes in one.
fn file(part: &Object) -> Option<Part> {
    let nested = part.get("image_url").and_then(Value::as_object).and_then(|image| text(image, &["url"]));
    let url = text(part, &["url", "data", "image"]).or(nested)?.to_owned();
    let media_type = text(part, &["mediaType", "contentType", "mimeType"]);
    let of_url = url.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next());
    let media_type = media_type.or(of_url).unwrap_or("application/octet-stream").to_owned();
    let name = text(part, &["filename", "name"]).map(str::to_owned);
    Some(Part::File { media_type, file: None, url: Some(url), name })
}
