//! The conversation as the vendor's messages.

use serde_json::{Map, Value, json};
use toolyard_protocol::message::{Part, text_of};

use super::body::{Call, Called, Content, Message};
use crate::files::{FileBody, body_of, in_words};
use crate::names::Names;
use crate::pairs::paired;
use crate::request::{ChatTurn, PastCall, PastResult};

/// Characters of a speaker's name.
const SPEAKER_CHARS: usize = 64;

pub(super) fn push_turns(turns: Vec<ChatTurn>, names: &Names, messages: &mut Vec<Message>) {
    let turns = paired(turns);
    // Thoughts go back only within the turn that the model still works on:
    // later nobody needs them, and other servers refuse fields they do not know.
    let working = turns.iter().rposition(|turn| matches!(turn, ChatTurn::User { .. }));
    for (index, turn) in turns.into_iter().enumerate() {
        push_turn(turn, names, working.is_none_or(|user| index > user), messages);
    }
}

fn push_turn(turn: ChatTurn, names: &Names, working: bool, messages: &mut Vec<Message>) {
    match turn {
        ChatTurn::User { parts, name } => {
            let name = name.as_deref().and_then(speaker);
            messages.push(Message { name, ..Message::new("user", user_content(parts)) });
        }
        ChatTurn::Assistant { parts, calls } => {
            let text = text_of(&parts);
            if text.is_empty() && calls.is_empty() {
                return;
            }
            // The vendor wants `null` beside calls, and text without them.
            let content = if text.is_empty() { Content::None } else { Content::Text(text) };
            let mut message = Message::new("assistant", content);
            if working && !calls.is_empty() {
                message.thoughts = thoughts(&parts);
            }
            message.calls = calls.into_iter().map(|call| past_call(call, names)).collect();
            messages.push(message);
        }
        ChatTurn::ToolResults(results) => messages.extend(results.into_iter().map(past_result)),
        ChatTurn::System(text) => {
            messages.push(Message::new("system", Content::Text(text)));
        }
    }
}

/// What the server wants back of its model's thoughts.
fn thoughts(parts: &[Part]) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut text = String::new();
    let mut name = None;
    for part in parts {
        let Part::Reasoning { text: thought, metadata } = part else { continue };
        text.push_str(thought);
        let kept = metadata.shown().and_then(|metadata| metadata.get("openai"));
        name = name.or(kept.and_then(|kept| kept.get("field")?.as_str()));
        if let Some(details) = kept.and_then(|kept| kept.get("reasoning_details")) {
            fields.insert("reasoning_details".to_owned(), details.clone());
        }
    }
    if let Some(name) = name.filter(|name| matches!(*name, "reasoning_content" | "reasoning")) {
        fields.insert(name.to_owned(), Value::from(text));
    }
    fields
}

fn past_call(PastCall { id, name, args, mut metadata }: PastCall, names: &Names) -> Call {
    let arguments = serde_json::to_string(&args).unwrap_or_default();
    let function = Called { name: names.told(name), arguments };
    let extra_content = metadata.pointer_mut("/openai/extra_content").map(Value::take);
    Call { id, kind: "function", function, extra_content }
}

fn past_result(PastResult { call, name: _, content, is_error }: PastResult) -> Message {
    // The wire has no field for failure.
    let content = if is_error { format!("Error: {content}") } else { content };
    Message { call: Some(call), ..Message::new("tool", Content::Text(content)) }
}

fn user_content(parts: Vec<Part>) -> Content {
    if !parts.iter().any(|part| matches!(part, Part::File { .. })) {
        return Content::Text(text_of(&parts));
    }
    Content::Parts(parts.into_iter().filter_map(user_part).collect())
}

fn user_part(part: Part) -> Option<Value> {
    match part {
        Part::Text { text } => Some(json!({ "type": "text", "text": text })),
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

/// Images go by address. Sound and other files only go inside the request; an
/// address of one is told to the model as text.
fn file_part(media_type: &str, url: Option<&str>, name: Option<&str>) -> Value {
    match (body_of(media_type, url), url) {
        (FileBody::Inline { .. } | FileBody::Address(_), Some(url)) if media_type.starts_with("image/") => {
            json!({ "type": "image_url", "image_url": { "url": url } })
        }
        (FileBody::Inline { base64, .. }, _) if sound(media_type).is_some() => {
            json!({ "type": "input_audio", "input_audio": { "data": base64, "format": sound(media_type) } })
        }
        (FileBody::Inline { .. }, Some(url)) => {
            json!({ "type": "file", "file": { "filename": name.unwrap_or("file"), "file_data": url } })
        }
        _ => json!({ "type": "text", "text": in_words(media_type, name, url) }),
    }
}

/// The two kinds of sound that the wire knows.
fn sound(media_type: &str) -> Option<&'static str> {
    match media_type {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

/// A name that the vendor accepts, if anything is left of it.
fn speaker(name: &str) -> Option<String> {
    let fits = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }
    };
    let name: String = name.trim().chars().take(SPEAKER_CHARS).map(fits).collect();
    name.contains(|c: char| c != '_').then_some(name)
}
