//! A run as one response, in events or whole.
//!
//! Approvals have a word here: a call of the gateway that waits for one is an
//! `mcp_approval_request`, and an `mcp_approval_response` of the next request
//! answers it.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use toolyard_protocol::run::FinishReason;
use toolyard_protocol::{RunId, Viewer};

use super::super::answer::{Answer, Answering, OpenCall, Question, failure};
use super::wire;
use crate::telling::{Said, Start};

/// What a response starts from.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The agent, as the client named it.
    pub model: String,
    pub run: RunId,
    pub viewer: Viewer,
    pub start: Start,
    pub stream: bool,
    /// What this one follows.
    pub previous: Option<String>,
    /// Calls that the client's history holds.
    pub known: HashSet<String>,
}

/// See the module.
#[derive(Debug)]
pub struct Responses {
    pub(super) answer: Answer,
    model: String,
    previous: Option<String>,
    pub(super) step: u32,
    pub(super) output: Vec<Value>,
    /// The item of each part of the step at hand.
    pub(super) items: HashMap<u32, usize>,
    /// Where the items of the last whole step begin.
    last: usize,
    events: u64,
}

impl Responses {
    pub fn new(open: Opening) -> Self {
        Self {
            answer: Answer::new(open.run, open.viewer, open.start, open.stream, open.known),
            model: open.model,
            previous: open.previous,
            step: 0,
            output: Vec::new(),
            items: HashMap::new(),
            last: 0,
            events: 0,
        }
    }

    fn response(&self, status: &str, error: Value) -> Value {
        let incomplete = match (status, self.answer.finish) {
            ("incomplete", FinishReason::ContentFilter) => json!({ "reason": "content_filter" }),
            ("incomplete", _) => json!({ "reason": "max_output_tokens" }),
            _ => Value::Null,
        };
        let ended = status != "in_progress";
        json!({
            "id": self.answer.id,
            "object": "response",
            "created_at": self.answer.created,
            "status": status,
            "error": error,
            "incomplete_details": incomplete,
            "instructions": null,
            "metadata": {},
            "model": self.model,
            "output": if ended { self.output.as_slice() } else { &[] },
            "parallel_tool_calls": true,
            "previous_response_id": self.previous,
            "temperature": null,
            "text": { "format": { "type": "text" } },
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "truncation": "disabled",
            "usage": if ended { wire::usage(&self.answer.usage) } else { Value::Null },
        })
    }

    /// One event of a stream; a whole response has none.
    pub(super) fn emit(&mut self, name: &str, mut body: Value, out: &mut String) {
        if !self.answer.stream {
            return;
        }
        if !std::mem::replace(&mut self.answer.begun, true) {
            for name in ["response.created", "response.in_progress"] {
                let response = self.response("in_progress", Value::Null);
                self.emit(name, json!({ "response": response }), out);
            }
        }
        body["type"] = json!(name);
        body["sequence_number"] = json!(self.events);
        self.events += 1;
        out.push_str("event: ");
        out.push_str(name);
        out.push_str("\ndata: ");
        out.push_str(&body.to_string());
        out.push_str("\n\n");
    }

    fn close(&mut self, event: &str, status: &str, out: &mut String) {
        let response = self.response(status, Value::Null);
        if self.answer.stream {
            self.emit(event, json!({ "response": response }), out);
        } else {
            out.push_str(&response.to_string());
        }
        self.answer.over = true;
    }
}

impl Answering for Responses {
    fn answer(&self) -> &Answer {
        &self.answer
    }

    fn answer_mut(&mut self) -> &mut Answer {
        &mut self.answer
    }

    fn name(&self, seq: i64) -> String {
        wire::response_id(&self.answer.run, seq)
    }

    fn enter(&mut self, step: u32) {
        if self.step != step {
            self.step = step;
            self.items.clear();
            self.last = self.output.len();
        }
    }

    fn say(&mut self, said: Said<'_>, out: &mut String) {
        self.grow(said, out);
    }

    fn amend(&mut self, text: &str) {
        let mut said = self.output.iter_mut().skip(self.last).filter(|item| item["type"] == "message");
        if let Some(first) = said.next() {
            // Its sources stay.
            if let Some(words) = first["content"].get_mut(0) {
                words["text"] = json!(text);
            }
            for rest in said {
                rest["content"] = json!([wire::output_text("")]);
            }
        }
    }

    fn hand_out(&mut self, OpenCall { call, tool, args }: OpenCall, out: &mut String) {
        let item = |args: &str, status| wire::function_call(&call, &tool, args, status);
        let index = self.add_item(item("", "in_progress"), out);
        let id = self.output[index]["id"].clone();
        let body = json!({ "item_id": id, "output_index": index, "delta": args });
        self.emit("response.function_call_arguments.delta", body, out);
        let body = json!({ "item_id": id, "output_index": index, "name": tool, "arguments": args });
        self.emit("response.function_call_arguments.done", body, out);
        self.output[index] = item(&args, "completed");
        self.end_item(index, out);
    }

    fn pause(&mut self, out: &mut String) {
        let calls = self.output.iter().any(|item| item["type"] == "function_call");
        for Question { wait, tool, args } in std::mem::take(&mut self.answer.asked) {
            let tool = tool.as_ref().map_or("a tool", |tool| tool.as_str());
            let item = if let Some(args) = args {
                json!({
                    "id": wait, "type": "mcp_approval_request", "name": tool,
                    "server_label": self.model, "arguments": args.to_string(),
                })
            } else if !calls {
                let run = self.answer.run.bare();
                let content = vec![wire::output_text(&format!("Waiting for a person: {tool}."))];
                wire::message(&format!("msg_{run}_{wait}"), "completed", content)
            } else {
                continue;
            };
            let index = self.add_item(item, out);
            self.end_item(index, out);
        }
        self.close("response.completed", "completed", out);
    }

    fn end(&mut self, reason: FinishReason, out: &mut String) {
        match reason {
            FinishReason::Length | FinishReason::ContentFilter => {
                self.close("response.incomplete", "incomplete", out);
            }
            _ => self.close("response.completed", "completed", out),
        }
    }

    fn fail(&mut self, message: &str, code: &str, out: &mut String) {
        if self.answer.stream {
            let response = self.response("failed", json!({ "code": code, "message": message }));
            self.emit("response.failed", json!({ "response": response }), out);
        } else {
            out.push_str(&failure(message, code));
        }
        self.answer.over = true;
    }

    /// A run that somebody stopped is no failure.
    fn cancel(&mut self, _message: Option<&str>, out: &mut String) {
        self.close("response.completed", "cancelled", out);
    }
}
