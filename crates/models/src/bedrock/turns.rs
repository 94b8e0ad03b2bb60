//! The conversation in the vendor's turns: user and assistant in alternation,
//! the user first, each call answered in the turn after it, and no blank text.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolyard_protocol::ids::CallId;
use toolyard_protocol::message::Part;

use super::encode::cache_point;
use super::files::Files;
use super::{ids, replay};
use crate::names::Names;
use crate::pairs::paired;
use crate::request::{ChatTurn, PastCall, PastResult};

/// Text where the vendor wants one and there is none.
const NOTHING: &str = "(nothing)";

/// How earlier calls are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum History {
    AsCalls,
    InWords,
}

/// `cites` says that the model takes back what it cited.
pub(super) fn write_turns(
    turns: Vec<ChatTurn>,
    names: &Names,
    history: History,
    cached: bool,
    cites: bool,
) -> Vec<Value> {
    let mut script = Script { names, history, cites, messages: Vec::new(), files: Files::default() };
    for turn in paired(turns) {
        match turn {
            ChatTurn::User { parts, name: _ } => script.user(parts),
            ChatTurn::Assistant { parts, calls } => script.assistant(parts, calls),
            ChatTurn::ToolResults(results) => script.results(results),
            // Only the start of a request has a place for it.
            ChatTurn::System(text) => script.say("user", &format!("[system] {text}")),
        }
    }
    script.finish(cached)
}

#[derive(Debug, Clone, PartialEq)]
struct Message {
    role: &'static str,
    content: Vec<Value>,
}

struct Script<'n> {
    names: &'n Names,
    history: History,
    cites: bool,
    messages: Vec<Message>,
    files: Files,
}

impl Script<'_> {
    /// Adds blocks to the turn of this role; turns of one role are one turn.
    fn add(&mut self, role: &'static str, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(blocks),
            _ => self.messages.push(Message { role, content: blocks }),
        }
    }

    fn say(&mut self, role: &'static str, text: &str) {
        self.add(role, text_block(text).into_iter().collect());
    }

    fn user(&mut self, parts: Vec<Part>) {
        let mut blocks = Vec::new();
        for part in parts {
            match part {
                Part::Text { text } => blocks.extend(text_block(&text)),
                Part::File { media_type, file: _, url, name } => {
                    blocks.push(self.files.block(&media_type, url.as_deref(), name.as_deref()));
                }
                Part::Reasoning { .. }
                | Part::Source { .. }
                | Part::ToolCall { .. }
                | Part::ToolResult { .. }
                | Part::Data { .. }
                | Part::Opaque { .. } => {}
            }
        }
        // A document alone is refused.
        if blocks.iter().any(|block| block.get("document").is_some())
            && !blocks.iter().any(|block| block.get("text").is_some())
        {
            blocks.push(json!({ "text": "(see the file)" }));
        }
        self.add("user", blocks);
    }

    fn assistant(&mut self, parts: Vec<Part>, calls: Vec<PastCall>) {
        let calls: Vec<Value> = match self.history {
            History::InWords => calls
                .iter()
                .map(|call| json!({ "text": format!("[called {} with {}]", call.name, call.args) }))
                .collect(),
            History::AsCalls => once(calls, |call| &call.id)
                .into_iter()
                .map(|call| {
                    json!({ "toolUse": {
                        "toolUseId": ids::safe(call.id.as_str()),
                        "name": self.names.alias(&call.name),
                        // Models write anything; the vendor takes an object.
                        "input": if call.args.is_object() { call.args } else { json!({}) },
                    } })
                })
                .collect(),
        };
        let blocks = replay::blocks(parts, calls, self.cites);
        self.add("assistant", blocks);
    }

    fn results(&mut self, results: Vec<PastResult>) {
        let results = once(results, |result| &result.call).into_iter();
        let blocks = results.map(|PastResult { call, name, content, is_error }| match self.history {
            History::InWords => {
                let verb = if is_error { "failed" } else { "answered" };
                json!({ "text": format!("[{name} {verb}: {content}]") })
            }
            History::AsCalls => result_block(&call, &content, is_error),
        });
        self.add("user", blocks.collect());
    }

    fn finish(mut self, cached: bool) -> Vec<Value> {
        if self.messages.first().is_none_or(|first| first.role != "user") {
            let content = vec![json!({ "text": NOTHING })];
            self.messages.insert(0, Message { role: "user", content });
        }
        let last_user = self.messages.iter_mut().rev().find(|message| message.role == "user");
        if let Some(last) = last_user.filter(|_| cached) {
            last.content.push(cache_point());
        }
        let written = self.messages.into_iter();
        written.map(|Message { role, content }| json!({ "role": role, "content": content })).collect()
    }
}

/// One id has one call and one result; the vendor refuses a repeat.
fn once<T>(all: Vec<T>, id: impl Fn(&T) -> &CallId) -> Vec<T> {
    let mut seen: BTreeSet<CallId> = BTreeSet::new();
    all.into_iter().filter(|one| seen.insert(id(one).clone())).collect()
}

pub(super) fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "text": text }))
}

fn result_block(call: &CallId, content: &str, is_error: bool) -> Value {
    let text = if content.trim().is_empty() { NOTHING } else { content };
    let mut result = json!({ "toolUseId": ids::safe(call.as_str()), "content": [{ "text": text }] });
    // Some models refuse the field, so that it is there only when it says
    // something.
    if is_error {
        result["status"] = Value::from("error");
    }
    json!({ "toolResult": result })
}
