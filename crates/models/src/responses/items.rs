//! The conversation as the vendor's items, in the order in which the model
//! wrote them.

use serde_json::{Map, Value, json};
use toolyard_protocol::message::Part;

use super::WIRE;
use crate::files::{FileBody, body_of, in_words};
use crate::names::Names;
use crate::order::{Placed, interleave};
use crate::pairs::paired;
use crate::request::{ChatTurn, PastCall, PastResult};
use crate::speakers::{label, several_speak};

pub(super) fn input(turns: Vec<ChatTurn>, names: &Names, developer: bool) -> Vec<Value> {
    let mut items = Vec::with_capacity(turns.len());
    let named = several_speak(&turns);
    for turn in paired(turns) {
        match turn {
            ChatTurn::User { parts, name } => {
                let mut content: Vec<Value> = parts.into_iter().filter_map(user_part).collect();
                if !content.is_empty() {
                    if let Some(name) = name.filter(|_| named) {
                        content.insert(0, json!({ "type": "input_text", "text": label(&name) }));
                    }
                    items.push(json!({ "type": "message", "role": "user", "content": content }));
                }
            }
            ChatTurn::Assistant { parts, calls } => items.extend(reply(parts, calls, names)),
            ChatTurn::ToolResults(results) => items.extend(results.into_iter().map(past_result)),
            ChatTurn::System(text) => {
                let role = if developer { "developer" } else { "system" };
                items.push(json!({ "type": "message", "role": role, "content": text }));
            }
        }
    }
    items
}

/// A past reply of the model.
fn reply(parts: Vec<Part>, calls: Vec<PastCall>, names: &Names) -> Vec<Value> {
    let mut said = Said::default();
    for part in parts {
        match part {
            Part::Text { text } => said.text.push_str(&text),
            // A thought of another vendor, or one that nobody signed, is not
            // this one's to read.
            Part::Reasoning { text: _, metadata } => said.give_back(metadata.into_shown()),
            Part::Opaque { value } => said.give_back(value.into_shown()),
            Part::File { .. }
            | Part::Source { .. }
            | Part::ToolCall { .. }
            | Part::ToolResult { .. }
            | Part::Data { .. } => {}
        }
    }
    said.end_message(None, None);
    let calls = calls.into_iter().map(|call| past_call(call, names)).collect();
    let mut items = interleave(said.items, calls);
    // The vendor refuses a thought that nothing follows.
    while items.last().is_some_and(|item| item["type"] == "reasoning") {
        items.pop();
    }
    items
}

#[derive(Default)]
struct Said {
    items: Vec<Placed>,
    /// Text that no item holds yet.
    text: String,
}

impl Said {
    /// What the vendor gave us to keep.
    fn give_back(&mut self, kept: Option<Value>) {
        let Some(kept) = kept.and_then(own) else { return };
        let at = kept.get("at").and_then(Value::as_u64);
        match (kept.get("item"), kept.get("phase").and_then(Value::as_str)) {
            (Some(item), _) => {
                self.end_message(None, None);
                self.items.push(Placed { at, value: item.clone() });
            }
            (None, Some(phase)) => self.end_message(at, Some(phase)),
            (None, None) => {}
        }
    }

    fn end_message(&mut self, at: Option<u64>, phase: Option<&str>) {
        if self.text.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.text);
        let mut value = json!({ "type": "message", "role": "assistant", "content": text });
        if let Some(phase) = phase {
            value["phase"] = Value::from(phase);
        }
        self.items.push(Placed { at, value });
    }
}

/// This wire's part of metadata.
fn own(metadata: Value) -> Option<Map<String, Value>> {
    match metadata {
        Value::Object(mut all) => match all.remove(WIRE) {
            Some(Value::Object(own)) => Some(own),
            Some(_) | None => None,
        },
        _ => None,
    }
}

fn past_call(PastCall { id, name, args, metadata }: PastCall, names: &Names) -> Placed {
    let mut kept = own(metadata).unwrap_or_default();
    let at = kept.get("at").and_then(Value::as_u64);
    let mut item = match kept.remove("item") {
        Some(Value::Object(item)) => item,
        Some(_) | None => Map::new(),
    };
    item.insert("type".to_owned(), Value::from("function_call"));
    item.insert("call_id".to_owned(), Value::from(id.as_str()));
    item.insert("name".to_owned(), Value::from(names.alias(&name)));
    item.insert("arguments".to_owned(), Value::from(args.to_string()));
    Placed { at, value: Value::Object(item) }
}

fn past_result(PastResult { call, name: _, content, is_error }: PastResult) -> Value {
    // The wire has no field for failure.
    let output = if is_error { format!("Error: {content}") } else { content };
    json!({ "type": "function_call_output", "call_id": call.as_str(), "output": output })
}

fn user_part(part: Part) -> Option<Value> {
    match part {
        Part::Text { text } => Some(json!({ "type": "input_text", "text": text })),
        Part::File { media_type, file: _, url, name } => {
            Some(file_part(&media_type, url.as_deref(), name.as_deref()))
        }
        Part::Reasoning { .. }
        | Part::Source { .. }
        | Part::ToolCall { .. }
        | Part::ToolResult { .. }
        | Part::Data { .. }
        | Part::Opaque { .. } => None,
    }
}

/// Images and documents go by address or inside the request. Sound and film
/// do not go at all.
fn file_part(media_type: &str, url: Option<&str>, name: Option<&str>) -> Value {
    let heard = media_type.starts_with("audio/") || media_type.starts_with("video/");
    match (body_of(media_type, url), url) {
        (FileBody::Inline { .. } | FileBody::Address(_), Some(url)) if media_type.starts_with("image/") => {
            json!({ "type": "input_image", "image_url": url, "detail": "auto" })
        }
        (FileBody::Inline { .. }, Some(url)) if !heard => {
            json!({ "type": "input_file", "filename": name.unwrap_or("file"), "file_data": url })
        }
        (FileBody::Address(url), _) if !heard => json!({ "type": "input_file", "file_url": url }),
        _ => json!({ "type": "input_text", "text": in_words(media_type, name, url) }),
    }
}
