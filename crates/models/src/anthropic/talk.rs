//! The conversation as the vendor takes it: user and assistant in turn, the
//! user first, results before anything else of their turn.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolyard_protocol::message::Part;

use super::{files, replay};
use crate::names::Names;
use crate::request::{ChatTurn, PastResult};

/// Stands before a reply that nobody asked for.
const OPENING: &str = "(The assistant begins.)";

/// The messages of a conversation. Its turns are paired already.
pub(super) fn messages(turns: Vec<ChatTurn>, names: &Names) -> Vec<Value> {
    let speakers: HashSet<&str> = turns
        .iter()
        .filter_map(|turn| match turn {
            ChatTurn::User { name, .. } => name.as_deref(),
            ChatTurn::Assistant { .. } | ChatTurn::ToolResults(_) | ChatTurn::System(_) => None,
        })
        .collect();
    // The wire has no field for names; one speaker needs none.
    let named = speakers.len() > 1;
    let last = turns.len().saturating_sub(1);
    let mut talk = Talk { messages: Vec::new() };
    for (at, turn) in turns.into_iter().enumerate() {
        match turn {
            ChatTurn::User { parts, name } => talk.say("user", user(parts, name.filter(|_| named))),
            ChatTurn::Assistant { parts, calls } => {
                talk.say("assistant", replay::blocks(&parts, calls, names, at == last));
            }
            ChatTurn::ToolResults(results) => talk.say("user", results.into_iter().map(result).collect()),
            ChatTurn::System(text) if text.trim().is_empty() => {}
            ChatTurn::System(text) => {
                let text = format!("<system>\n{text}\n</system>");
                talk.say("user", vec![json!({ "type": "text", "text": text })]);
            }
        }
    }
    talk.messages
}

struct Talk {
    messages: Vec<Value>,
}

impl Talk {
    /// Turns of the same side become one.
    fn say(&mut self, role: &str, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        if self.messages.is_empty() && role == "assistant" {
            self.say("user", vec![json!({ "type": "text", "text": OPENING })]);
        }
        match self.messages.last_mut() {
            Some(last) if last["role"] == role => {
                if let Some(content) = last["content"].as_array_mut() {
                    content.extend(blocks);
                }
            }
            _ => self.messages.push(json!({ "role": role, "content": blocks })),
        }
    }
}

fn user(parts: Vec<Part>, name: Option<String>) -> Vec<Value> {
    let mut blocks = Vec::new();
    for part in parts {
        match part {
            Part::Text { text } if text.trim().is_empty() => {}
            Part::Text { text } => blocks.push(json!({ "type": "text", "text": text })),
            Part::File { media_type, file: _, url, name } => {
                blocks.push(files::block(&media_type, url.as_deref(), name.as_deref()));
            }
            Part::Reasoning { .. }
            | Part::Source { .. }
            | Part::ToolCall { .. }
            | Part::ToolResult { .. }
            | Part::Data { .. }
            | Part::Opaque { .. } => {}
        }
    }
    if let Some(name) = name.filter(|_| !blocks.is_empty()) {
        blocks.insert(0, json!({ "type": "text", "text": format!("[{name}]") }));
    }
    blocks
}

fn result(PastResult { call, name: _, content, is_error }: PastResult) -> Value {
    let mut block = json!({ "type": "tool_result", "tool_use_id": call.as_str() });
    // The vendor refuses an error without words, and text of white space.
    if !content.trim().is_empty() {
        block["content"] = json!(content);
    } else if is_error {
        block["content"] = json!("The call failed.");
    }
    if is_error {
        block["is_error"] = json!(true);
    }
    block
}
