//! A run as one chat completion, in pieces or whole.
//!
//! Only what the client must do is shown: its own calls. A run that waits for
//! a person ends the completion too, since this API has no word for waiting;
//! the answer then says so, and the run goes on where it is answered.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolyard_protocol::run::{FinishReason, Usage};
use toolyard_protocol::{RunId, ToolName, Viewer};

use super::super::answer::{Answer, Answering, OpenCall, failure};
use super::wire::{Choice, Chunk, ChunkChoice, Completion, Delta, Function, Message, ToolCall};
use crate::citation;
use crate::telling::{Said, Start};

/// What a completion starts from.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The agent, as the client named it.
    pub model: String,
    pub run: RunId,
    pub viewer: Viewer,
    pub start: Start,
    pub stream: bool,
    pub include_usage: bool,
    /// Calls that the client's history holds.
    pub known: HashSet<String>,
}

/// See the module.
#[derive(Debug)]
pub struct Chat {
    answer: Answer,
    model: String,
    include_usage: bool,
    /// Said in whole steps, and in the step at hand.
    text: String,
    /// Where the last whole step begins in it.
    last: usize,
    thoughts: String,
    annotations: Vec<Value>,
    fresh: (String, String),
    calls: Vec<ToolCall>,
}

impl Chat {
    pub fn new(open: Opening) -> Self {
        Self {
            answer: Answer::new(open.run, open.viewer, open.start, open.stream, open.known),
            model: open.model,
            include_usage: open.include_usage,
            text: String::new(),
            last: 0,
            thoughts: String::new(),
            annotations: Vec::new(),
            fresh: Default::default(),
            calls: Vec::new(),
        }
    }

    fn chunk(&mut self, delta: Delta<'_>, out: &mut String) {
        self.last_chunk(delta, None, None, out);
    }

    fn last_chunk(
        &mut self,
        delta: Delta<'_>,
        finish_reason: Option<&'static str>,
        told: Option<&Value>,
        out: &mut String,
    ) {
        if !self.answer.stream {
            return;
        }
        if !std::mem::replace(&mut self.answer.begun, true) {
            let role = Delta { role: Some("assistant"), content: Some(""), ..Delta::default() };
            self.frame(vec![ChunkChoice { index: 0, delta: role, finish_reason: None }], None, None, out);
        }
        self.frame(vec![ChunkChoice { index: 0, delta, finish_reason }], None, told, out);
    }

    fn frame(
        &self,
        choices: Vec<ChunkChoice<'_>>,
        usage: Option<Usage>,
        toolyard: Option<&Value>,
        out: &mut String,
    ) {
        let chunk = Chunk {
            id: &self.answer.id,
            object: "chat.completion.chunk",
            created: self.answer.created,
            model: &self.model,
            choices,
            usage: usage.map(Into::into),
            toolyard,
        };
        if let Ok(json) = serde_json::to_string(&chunk) {
            push(&json, out);
        }
    }

    fn close(&mut self, reason: &'static str, told: &Value, out: &mut String) {
        self.answer.over = true;
        if self.answer.stream {
            self.last_chunk(Delta::default(), Some(reason), Some(told), out);
            if self.include_usage {
                self.frame(Vec::new(), Some(self.answer.usage), None, out);
            }
            push("[DONE]", out);
            return;
        }
        let said = |text: &'_ str| !text.is_empty();
        let message = Message {
            role: "assistant",
            content: Some(self.text.as_str()).filter(|text| said(text) || self.calls.is_empty()),
            refusal: None,
            reasoning_content: Some(self.thoughts.as_str()).filter(|text| said(text)),
            annotations: &self.annotations,
            tool_calls: self.calls.clone(),
        };
        let whole = Completion {
            id: &self.answer.id,
            object: "chat.completion",
            created: self.answer.created,
            model: &self.model,
            choices: vec![Choice { index: 0, message, logprobs: None, finish_reason: reason }],
            usage: self.answer.usage.into(),
            toolyard: Some(told),
        };
        out.push_str(&serde_json::to_string(&whole).unwrap_or_default());
    }
}

impl Answering for Chat {
    fn answer(&self) -> &Answer {
        &self.answer
    }

    fn answer_mut(&mut self) -> &mut Answer {
        &mut self.answer
    }

    fn name(&self, seq: i64) -> String {
        format!("chatcmpl-{}-{seq}", self.answer.run.bare())
    }

    fn say(&mut self, said: Said<'_>, out: &mut String) {
        match said {
            Said::Text { part: _, text } => {
                self.fresh.0.push_str(text);
                self.chunk(Delta { content: Some(text), ..Delta::default() }, out);
            }
            Said::Reasoning { part: _, text } => {
                self.fresh.1.push_str(text);
                self.chunk(Delta { reasoning_content: Some(text), ..Delta::default() }, out);
            }
            Said::Whole(part) => {
                let Some(source) = citation::annotation(part) else { return };
                let annotation = json!({ "type": "url_citation", "url_citation": source });
                self.annotations.push(annotation.clone());
                self.chunk(Delta { annotations: vec![annotation], ..Delta::default() }, out);
            }
            // Calls are shown when they may run.
            Said::TextStart { .. }
            | Said::TextEnd { .. }
            | Said::ReasoningStart { .. }
            | Said::ReasoningEnd { .. }
            | Said::InputStart { .. }
            | Said::Input { .. } => {}
        }
    }

    fn keep_step(&mut self) {
        let (text, thoughts) = std::mem::take(&mut self.fresh);
        self.last = self.text.len();
        self.text.push_str(&text);
        self.thoughts.push_str(&thoughts);
    }

    fn void_step(&mut self) {
        self.fresh = Default::default();
    }

    fn amend(&mut self, text: &str) {
        self.text.truncate(self.last);
        self.text.push_str(text);
    }

    fn hand_out(&mut self, OpenCall { call, tool, args }: OpenCall, out: &mut String) {
        let function = Function { name: tool, arguments: args };
        let call = ToolCall { index: None, id: call, kind: "function", function };
        let tool_calls = vec![ToolCall { index: Some(self.calls.len()), ..call.clone() }];
        self.calls.push(call);
        self.chunk(Delta { tool_calls, ..Delta::default() }, out);
    }

    fn take_back(&mut self, call: &str) {
        self.calls.retain(|known| known.id != call);
    }

    fn pause(&mut self, out: &mut String) {
        let asked = std::mem::take(&mut self.answer.asked).into_iter();
        let asked: Vec<(String, ToolName)> =
            asked.map(|question| (question.wait, question.tool.unwrap_or_else(ToolName::unnamed))).collect();
        if self.calls.is_empty() {
            let tools: Vec<&str> = asked.iter().map(|(_, tool)| tool.as_str()).collect();
            let note = format!("Waiting for a person: {}.", tools.join(", "));
            self.text.push_str(&note);
            self.chunk(Delta { content: Some(&note), ..Delta::default() }, out);
        }
        let waits: Vec<Value> =
            asked.iter().map(|(wait, tool)| json!({ "waitId": wait, "toolName": tool })).collect();
        let told = json!({ "runId": self.answer.run, "status": "waiting_tool", "waits": waits });
        self.close(if self.calls.is_empty() { "stop" } else { "tool_calls" }, &told, out);
    }

    fn end(&mut self, reason: FinishReason, out: &mut String) {
        let told = json!({ "runId": self.answer.run, "status": "completed" });
        self.close(finish_reason(reason), &told, out);
    }

    fn fail(&mut self, message: &str, code: &str, out: &mut String) {
        self.answer.over = true;
        let body = failure(message, code);
        if self.answer.stream { push(&body, out) } else { out.push_str(&body) }
    }

    fn cancel(&mut self, message: Option<&str>, out: &mut String) {
        self.fail(message.unwrap_or("The run was canceled"), "canceled", out);
    }
}

fn push(data: &str, out: &mut String) {
    out.push_str("data: ");
    out.push_str(data);
    out.push_str("\n\n");
}

pub(in super::super) fn finish_reason(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Stop
        | FinishReason::ToolCalls
        | FinishReason::MaxSteps
        | FinishReason::Stopped
        | FinishReason::Paused
        | FinishReason::Other => "stop",
    }
}
