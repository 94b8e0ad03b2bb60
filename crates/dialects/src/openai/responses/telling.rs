//! A run as one response, in events or whole.
//!
//! Approvals have a word here: a call of the gateway that waits for one is an
//! `mcp_approval_request`, and an `mcp_approval_response` of the next request
//! answers it.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::event::{Asked, Event, ModelReplied, ToolCallRequested};
use toolyard_protocol::message::text_of;
use toolyard_protocol::run::{FinishReason, RunEnd, Usage};
use toolyard_protocol::visible::visible_to;
use toolyard_protocol::wait::{WaitKind, may_answer};
use toolyard_protocol::{ErrorCode, RunId, Timestamp, Viewer};

use super::super::error::{described, kind};
use super::wire;
use crate::telling::{Course, Flow, Hearing, Said, Speech, Stand, Start, Telling};

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
    pub(super) open: Opening,
    id: String,
    created: i64,
    course: Course,
    speech: Speech,
    pub(super) step: u32,
    pub(super) output: Vec<Value>,
    /// The item of each part of the step at hand.
    pub(super) items: HashMap<u32, usize>,
    /// Where the items of the last whole step begin.
    last: usize,
    asked: Vec<Question>,
    /// Calls of before that nobody has answered.
    unanswered: Vec<OpenCall>,
    usage: Usage,
    finish: FinishReason,
    events: u64,
    begun: bool,
    over: bool,
}

/// Something that a person must say.
#[derive(Debug)]
struct Question {
    wait: String,
    tool: String,
    /// The arguments, if it is an approval that this client may give.
    args: Option<Value>,
}

/// A call that this client is to run.
#[derive(Debug)]
struct OpenCall {
    call: String,
    tool: String,
    args: String,
}

impl Responses {
    pub fn new(open: Opening) -> Self {
        Self {
            id: String::new(),
            created: 0,
            course: Course::new(open.run.clone(), open.start.clone()),
            open,
            speech: Speech::default(),
            step: 0,
            output: Vec::new(),
            items: HashMap::new(),
            last: 0,
            asked: Vec::new(),
            unanswered: Vec::new(),
            usage: Usage::default(),
            finish: FinishReason::Stop,
            events: 0,
            begun: false,
            over: false,
        }
    }

    fn response(&self, status: &str, error: Value) -> Value {
        let incomplete = match (status, self.finish) {
            ("incomplete", FinishReason::ContentFilter) => json!({ "reason": "content_filter" }),
            ("incomplete", _) => json!({ "reason": "max_output_tokens" }),
            _ => Value::Null,
        };
        let ended = status != "in_progress";
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": error,
            "incomplete_details": incomplete,
            "instructions": null,
            "metadata": {},
            "model": self.open.model,
            "output": if ended { self.output.as_slice() } else { &[] },
            "parallel_tool_calls": true,
            "previous_response_id": self.open.previous,
            "temperature": null,
            "text": { "format": { "type": "text" } },
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "truncation": "disabled",
            "usage": if ended { wire::usage(&self.usage) } else { Value::Null },
        })
    }

    /// One event of a stream; a whole response has none.
    pub(super) fn emit(&mut self, name: &str, mut body: Value, out: &mut String) {
        if !self.open.stream {
            return;
        }
        if !std::mem::replace(&mut self.begun, true) {
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

    fn speak(
        &mut self,
        step: u32,
        out: &mut String,
        with: impl FnOnce(&mut Speech, &Viewer, &RunId, &mut dyn FnMut(Said<'_>)),
    ) {
        if self.step != step {
            self.step = step;
            self.items.clear();
            self.last = self.output.len();
        }
        let mut speech = std::mem::take(&mut self.speech);
        let (viewer, run) = (self.open.viewer.clone(), self.open.run.clone());
        with(&mut speech, &viewer, &run, &mut |said| self.say(said, out));
        self.speech = speech;
    }

    fn replied(&mut self, e: &ModelReplied, out: &mut String) {
        self.speak(e.step, out, |speech, viewer, run, say| speech.reply(viewer, run, e, say));
        self.usage.add(&e.usage);
        self.finish = e.finish;
    }

    fn requested(&self, e: &ToolCallRequested) -> Option<OpenCall> {
        let parked = e.wait.as_ref().filter(|parked| parked.kind == WaitKind::Client)?;
        // Who may not run it is not asked to.
        if !may_answer(&self.open.viewer, &parked.rule) {
            return None;
        }
        let args = e.args.shown().map_or_else(|| "{}".to_owned(), Value::to_string);
        Some(OpenCall { call: e.call.to_string(), tool: e.tool.to_string(), args })
    }

    fn hand_out(&mut self, open: &OpenCall, out: &mut String) {
        let OpenCall { call, tool, args } = open;
        let item = |args: &str, status| wire::function_call(call, tool, args, status);
        let index = self.add_item(item("", "in_progress"), out);
        let id = self.output[index]["id"].clone();
        let body = json!({ "item_id": id, "output_index": index, "delta": args });
        self.emit("response.function_call_arguments.delta", body, out);
        let body = json!({ "item_id": id, "output_index": index, "name": tool, "arguments": args });
        self.emit("response.function_call_arguments.done", body, out);
        self.output[index] = item(args, "completed");
        self.end_item(index, out);
    }

    /// Of the past only what is still open counts.
    fn recall(&mut self, event: &Event) {
        match event {
            Event::ToolCallRequested(e) => self.unanswered.extend(self.requested(e)),
            Event::ToolReturned(_)
            | Event::Asked(_)
            | Event::Answered(_)
            | Event::ChildAsked(_)
            | Event::ChildAnswered(_) => self.hear(event, &mut String::new()),
            _ => {}
        }
    }

    fn asked(&mut self, e: &Asked) {
        let mine = e.kind == WaitKind::Approval && may_answer(&self.open.viewer, &e.rule);
        let args = e.payload.shown().and_then(|payload| payload.get("args")).filter(|_| mine);
        self.asked.push(Question { wait: e.wait.to_string(), tool: e.tool.to_string(), args: args.cloned() });
    }

    fn hear(&mut self, event: &Event, out: &mut String) {
        match event {
            Event::ModelReplied(e) => self.replied(e, out),
            // What was streamed cannot be taken back; the last words are right.
            Event::ReplyAmended(e) => self.amend(&text_of(&e.parts)),
            Event::ToolCallRequested(e) => {
                let Some(open) = self.requested(e) else { return };
                match self.open.known.contains(&open.call) {
                    true => self.unanswered.push(open),
                    false => self.hand_out(&open, out),
                }
            }
            Event::ToolReturned(e) => self.unanswered.retain(|open| open.call != e.call.as_str()),
            Event::Asked(e) => self.asked(e),
            Event::ChildAsked(e) => {
                let shown = e.payload.shown();
                let mine = e.kind == WaitKind::Approval && may_answer(&self.open.viewer, &e.rule);
                let args = shown.and_then(|payload| payload.get("args")).filter(|_| mine).cloned();
                let tool = shown.and_then(|payload| payload["toolName"].as_str()).unwrap_or("a tool");
                self.asked.push(Question { wait: e.wait.to_string(), tool: tool.to_owned(), args });
            }
            Event::Answered(e) => self.asked.retain(|question| question.wait != e.wait.as_str()),
            Event::ChildAnswered(e) => self.asked.retain(|question| question.wait != e.wait.as_str()),
            Event::StepRestarted(e) => {
                if self.speech.step() == Some(e.step) && self.open.stream {
                    self.fail("The answer was cut by a restart: ask again", "model_stream_cut", out);
                }
                self.speech = Speech::default();
            }
            Event::RunCreated(_)
            | Event::RunStarted(_)
            | Event::ToolProgressed(_)
            | Event::ResultAmended(_)
            | Event::ToolsetReplaced(_)
            | Event::ChildStarted(_)
            | Event::MessageQueued(_)
            | Event::MessageTaken(_)
            | Event::CancelRequested(_)
            | Event::HistoryCompacted(_)
            | Event::PluginEmitted(_)
            | Event::PluginStateSaved(_)
            | Event::RunPaused(_)
            | Event::RunFinished(_) => {}
        }
    }

    fn amend(&mut self, text: &str) {
        let mut said = self.output.iter_mut().skip(self.last).filter(|item| item["type"] == "message");
        if let Some(first) = said.next() {
            first["content"] = json!([wire::output_text(text)]);
            for rest in said {
                rest["content"] = json!([wire::output_text("")]);
            }
        }
    }

    fn pause(&mut self, out: &mut String) {
        for open in std::mem::take(&mut self.unanswered) {
            self.hand_out(&open, out);
        }
        let calls = self.output.iter().any(|item| item["type"] == "function_call");
        for Question { wait, tool, args } in std::mem::take(&mut self.asked) {
            if let Some(args) = args {
                let item = json!({
                    "id": wait, "type": "mcp_approval_request", "name": tool,
                    "server_label": self.open.model, "arguments": args.to_string(),
                });
                let index = self.add_item(item, out);
                self.end_item(index, out);
            } else if !calls {
                let run = self.open.run.as_str().trim_start_matches("run_").to_owned();
                let text = format!("Waiting for a person: {tool}.");
                let content = vec![wire::output_text(&text)];
                let index =
                    self.add_item(wire::message(&format!("msg_{run}_{wait}"), "completed", content), out);
                self.end_item(index, out);
            }
        }
        self.end("completed", out);
    }

    fn end(&mut self, status: &str, out: &mut String) {
        let response = self.response(status, Value::Null);
        if self.open.stream {
            let name = if status == "incomplete" { "response.incomplete" } else { "response.completed" };
            self.emit(name, json!({ "response": response }), out);
        } else {
            out.push_str(&response.to_string());
        }
        self.over = true;
    }

    fn fail(&mut self, message: &str, code: &str, out: &mut String) {
        if self.open.stream {
            let response = self.response("failed", json!({ "code": code, "message": message }));
            self.emit("response.failed", json!({ "response": response }), out);
        } else {
            let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
            let kind = known.map_or("server_error", |code| kind(*code));
            out.push_str(&described(message, kind, code).to_string());
        }
        self.over = true;
    }

    /// A run that somebody stopped is no failure.
    fn canceled(&mut self, out: &mut String) {
        let response = self.response("cancelled", Value::Null);
        if self.open.stream {
            self.emit("response.completed", json!({ "response": response }), out);
        } else {
            out.push_str(&response.to_string());
        }
        self.over = true;
    }
}

impl Telling for Responses {
    fn event(&mut self, seq: i64, at: Timestamp, event: &Event, out: &mut String) -> Flow {
        if self.over {
            return Flow::Over;
        }
        let hearing = self.course.hear(seq, event);
        if self.id.is_empty() || hearing == Hearing::Before {
            self.created = at.millis() / 1000;
            self.id = wire::response_id(&self.open.run, seq);
        }
        let viewer = self.open.viewer.clone();
        let Some(seen) = visible_to(&viewer, event) else { return Flow::On };
        match hearing {
            Hearing::Before => self.recall(&seen),
            Hearing::Told => self.hear(&seen, out),
            Hearing::Next => self.end("completed", out),
        }
        if self.over { Flow::Over } else { Flow::On }
    }

    fn delta(&mut self, delta: &Delta, out: &mut String) -> Flow {
        if self.over {
            return Flow::Over;
        }
        if self.open.stream {
            self.speak(delta.step, out, |speech, viewer, _, say| speech.delta(viewer, delta, say));
        }
        Flow::On
    }

    fn so_far(
        &mut self,
        step: u32,
        attempt: u32,
        pieces: &mut dyn Iterator<Item = Piece>,
        out: &mut String,
    ) -> Flow {
        if self.over {
            return Flow::Over;
        }
        if self.open.stream {
            self.speak(step, out, |speech, viewer, run, say| {
                speech.so_far(viewer, run, (step, attempt), pieces, say);
            });
        }
        Flow::On
    }

    fn rest(&mut self, out: &mut String) -> Flow {
        if self.over {
            return Flow::Over;
        }
        if !self.course.is_told() {
            return Flow::On;
        }
        match (self.course.stand(), self.course.finished().cloned()) {
            (Stand::Works, _) => return Flow::On,
            (Stand::Waits(_), _) => self.pause(out),
            (Stand::Ended, Some(end)) => match (end.status, self.finish) {
                (RunEnd::Completed, FinishReason::Length | FinishReason::ContentFilter) => {
                    self.end("incomplete", out);
                }
                (RunEnd::Completed, _) => self.end("completed", out),
                (RunEnd::Canceled, _) => self.canceled(out),
                (RunEnd::Failed, _) => {
                    let code = end.error.unwrap_or(ErrorCode::Internal);
                    let message = end.message.as_deref().unwrap_or("The run failed");
                    self.fail(message, code.as_str(), out);
                }
            },
            (Stand::Ended, None) => {}
        }
        Flow::Over
    }

    fn keep_alive(&self) -> &'static str {
        if self.open.stream { ": keep-alive\n\n" } else { " " }
    }

    fn see_as(&mut self, viewer: Viewer) {
        self.open.viewer = viewer;
    }
}
