//! The conversation as the vendor's contents: turns of `user` and `model` by
//! turns, each a list of parts.

use serde_json::{Map, Value, json};
use toolyard_protocol::message::Part;

use super::WIRE;
use super::version::Version;
use crate::files::{FileBody, body_of, in_words};
use crate::names::Names;
use crate::order::{Placed, interleave};
use crate::pairs::paired;
use crate::request::{ChatTurn, PastCall, PastResult};
use crate::speakers::{label, several_speak};

/// Stands before a reply that nobody asked for.
const OPENING: &str = "(The assistant begins.)";
/// The vendor's word for a call that it did not sign itself.
const UNSIGNED: &str = "skip_thought_signature_validator";

pub(super) fn contents(turns: Vec<ChatTurn>, names: &Names, version: Version) -> Vec<Value> {
    let mut contents = Contents::default();
    let named = several_speak(&turns);
    // The vendor's ids of the calls whose results come next.
    let mut ids: Vec<Option<Value>> = Vec::new();
    for turn in paired(turns) {
        match turn {
            ChatTurn::User { parts, name } => {
                let mut parts: Vec<Value> = parts.into_iter().filter_map(user_part).collect();
                if let Some(name) = name.filter(|_| named && !parts.is_empty()) {
                    parts.insert(0, json!({ "text": label(&name) }));
                }
                contents.add("user", parts);
            }
            ChatTurn::Assistant { parts, calls } => {
                ids = calls
                    .iter()
                    .map(|call| own(&call.metadata).and_then(|kept| kept.get("id").cloned()))
                    .collect();
                contents.add("model", reply(parts, calls, names, version));
            }
            ChatTurn::ToolResults(results) => {
                let ids = std::mem::take(&mut ids).into_iter().chain(std::iter::repeat(None));
                contents.add(
                    "user",
                    results.into_iter().zip(ids).map(|(result, id)| past_result(result, id, names)),
                );
            }
            // The wire has no such turn.
            ChatTurn::System(text) => {
                contents.add("user", [json!({ "text": format!("<system>\n{text}\n</system>") })])
            }
        }
    }
    contents.0
}

#[derive(Default)]
struct Contents(Vec<Value>);

impl Contents {
    /// Adds to the last turn if it has the same role. Results stand alone: the
    /// vendor counts them against the calls.
    fn add(&mut self, role: &str, parts: impl IntoIterator<Item = Value>) {
        let parts: Vec<Value> = parts.into_iter().collect();
        let Some(first) = parts.first() else { return };
        if self.0.is_empty() && role == "model" {
            self.0.push(json!({ "role": "user", "parts": [{ "text": OPENING }] }));
        }
        let kind = (role, is_result(first));
        match self.0.last_mut() {
            Some(last)
                if (last["role"].as_str().unwrap_or_default(), is_result(&last["parts"][0])) == kind =>
            {
                if let Some(before) = last["parts"].as_array_mut() {
                    before.extend(parts);
                }
            }
            Some(_) | None => self.0.push(json!({ "role": role, "parts": parts })),
        }
    }
}

fn is_result(part: &Value) -> bool {
    part.get("functionResponse").is_some()
}

/// A past reply of the model.
fn reply(parts: Vec<Part>, calls: Vec<PastCall>, names: &Names, version: Version) -> Vec<Value> {
    let mut said = Said::default();
    for part in parts {
        match part {
            Part::Text { text } => said.text.push_str(&text),
            // Thoughts that nobody signed need not go back.
            Part::Reasoning { mut text, metadata } => {
                if let Some(kept) = metadata.shown().and_then(own).and_then(Signed::of) {
                    said.end_text();
                    let text = take_end(&mut text, kept.chars);
                    let value = json!({ "text": text, "thought": true, "thoughtSignature": kept.signature });
                    said.parts.push(Placed { at: kept.at, value });
                }
            }
            Part::Opaque { value } => {
                if let Some(kept) = value.shown().and_then(own) {
                    said.give_back(kept);
                }
            }
            Part::File { .. }
            | Part::Source { .. }
            | Part::ToolCall { .. }
            | Part::ToolResult { .. }
            | Part::Data { .. } => {}
        }
    }
    said.end_text();
    let foreign = version.is_at_least(3, 0) && calls.iter().all(|call| own(&call.metadata).is_none());
    let mut calls: Vec<Placed> = calls.into_iter().map(|call| past_call(call, names)).collect();
    // Newer models refuse calls of another model unless the first one says so.
    if let (true, Some(first)) = (foreign, calls.first_mut()) {
        first.value["thoughtSignature"] = Value::from(UNSIGNED);
    }
    interleave(said.parts, calls)
}

#[derive(Default)]
struct Said {
    parts: Vec<Placed>,
    /// Text that no part holds yet.
    text: String,
}

impl Said {
    fn give_back(&mut self, kept: &Map<String, Value>) {
        if let Some(part) = kept.get("part") {
            self.end_text();
            let at = kept.get("at").and_then(Value::as_u64);
            self.parts.push(Placed { at, value: part.clone() });
        } else if let Some(kept) = Signed::of(kept) {
            let text = take_end(&mut self.text, kept.chars);
            self.end_text();
            let value = json!({ "text": text, "thoughtSignature": kept.signature });
            self.parts.push(Placed { at: kept.at, value });
        }
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(Placed { at: None, value: json!({ "text": std::mem::take(&mut self.text) }) });
        }
    }
}

/// A signature covers the end of a text, which may be nothing.
struct Signed {
    at: Option<u64>,
    signature: Value,
    chars: usize,
}

impl Signed {
    fn of(kept: &Map<String, Value>) -> Option<Self> {
        let signature = kept.get("thoughtSignature")?.clone();
        let number = |name: &str| kept.get(name).and_then(Value::as_u64);
        let chars = number("chars").and_then(|chars| usize::try_from(chars).ok()).unwrap_or(0);
        Some(Self { at: number("at"), signature, chars })
    }
}

/// So many characters from the end of a text; none if somebody made it
/// shorter.
fn take_end(text: &mut String, chars: usize) -> String {
    let Some(before) = text.chars().count().checked_sub(chars) else { return String::new() };
    let start = text.char_indices().nth(before).map_or(text.len(), |(at, _)| at);
    text.split_off(start)
}

/// This wire's part of metadata.
fn own(metadata: &Value) -> Option<&Map<String, Value>> {
    metadata.get(WIRE)?.as_object()
}

fn past_call(PastCall { id: _, name, args, metadata }: PastCall, names: &Names) -> Placed {
    let kept = own(&metadata);
    // Arguments that are no object never reached the tool.
    let args = if args.is_object() { args } else { json!({}) };
    let mut call = json!({ "name": names.alias(&name), "args": args });
    if let Some(id) = kept.and_then(|kept| kept.get("id")) {
        call["id"] = id.clone();
    }
    let mut value = json!({ "functionCall": call });
    if let Some(signature) = kept.and_then(|kept| kept.get("thoughtSignature")) {
        value["thoughtSignature"] = signature.clone();
    }
    Placed { at: kept.and_then(|kept| kept.get("at")).and_then(Value::as_u64), value }
}

fn past_result(result: PastResult, id: Option<Value>, names: &Names) -> Value {
    let PastResult { call: _, name, content, is_error } = result;
    let field = if is_error { "error" } else { "output" };
    let mut response = json!({ "name": names.alias(&name), "response": { field: content } });
    if let Some(id) = id {
        response["id"] = id;
    }
    json!({ "functionResponse": response })
}

fn user_part(part: Part) -> Option<Value> {
    match part {
        Part::Text { text } => (!text.is_empty()).then(|| json!({ "text": text })),
        Part::File { media_type, file: _, url, name } => Some(match body_of(&media_type, url.as_deref()) {
            FileBody::Inline { media_type, base64 } => {
                json!({ "inlineData": { "mimeType": media_type, "data": base64 } })
            }
            FileBody::Address(url) => json!({ "fileData": { "mimeType": media_type, "fileUri": url } }),
            FileBody::Nowhere => {
                json!({ "text": in_words(&media_type, name.as_deref(), url.as_deref()) })
            }
        }),
        Part::Reasoning { .. }
        | Part::Source { .. }
        | Part::ToolCall { .. }
        | Part::ToolResult { .. }
        | Part::Data { .. }
        | Part::Opaque { .. } => None,
    }
}
