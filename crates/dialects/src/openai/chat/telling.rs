//! A run as one chat completion, in pieces or whole.
//!
//! Only what the client must do is shown: its own calls. A run that waits for
//! a person ends the completion too, since this API has no word for waiting;
//! the answer then says so, and the run goes on where it is answered.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolyard_protocol::delta::{Delta as PieceOf, Piece};
use toolyard_protocol::event::{Event, ModelReplied, ToolCallRequested};
use toolyard_protocol::message::text_of;
use toolyard_protocol::run::{FinishReason, RunEnd, Usage};
use toolyard_protocol::visible::visible_to;
use toolyard_protocol::wait::{WaitKind, may_answer};
use toolyard_protocol::{ErrorCode, RunId, Timestamp, ToolName, Viewer};

use super::super::error::{described, kind};
use super::wire::{Choice, Chunk, ChunkChoice, Completion, Delta, Function, Message, ToolCall};
use crate::telling::{Course, Flow, Hearing, Said, Speech, Stand, Start, Telling};

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
    open: Opening,
    id: String,
    created: i64,
    course: Course,
    speech: Speech,
    /// Said in whole steps, and in the step at hand.
    text: String,
    /// Where the last whole step begins in it.
    last: usize,
    thoughts: String,
    fresh: (String, String),
    calls: Vec<ToolCall>,
    /// Calls of before that nobody has answered.
    unanswered: Vec<ToolCall>,
    /// Tools that wait for a person's word.
    asked: Vec<(String, ToolName)>,
    usage: Usage,
    finish: FinishReason,
    begun: bool,
    over: bool,
}

impl Chat {
    pub fn new(open: Opening) -> Self {
        Self {
            id: String::new(),
            created: 0,
            course: Course::new(open.run.clone(), open.start.clone()),
            open,
            speech: Speech::default(),
            text: String::new(),
            last: 0,
            thoughts: String::new(),
            fresh: Default::default(),
            calls: Vec::new(),
            unanswered: Vec::new(),
            asked: Vec::new(),
            usage: Usage::default(),
            finish: FinishReason::Stop,
            begun: false,
            over: false,
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
        if !self.open.stream {
            return;
        }
        if !std::mem::replace(&mut self.begun, true) {
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
            id: &self.id,
            object: "chat.completion.chunk",
            created: self.created,
            model: &self.open.model,
            choices,
            usage: usage.map(Into::into),
            toolyard,
        };
        if let Ok(json) = serde_json::to_string(&chunk) {
            push(&json, out);
        }
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
            // Calls are shown when they may run.
            Said::TextStart { .. }
            | Said::TextEnd { .. }
            | Said::ReasoningStart { .. }
            | Said::ReasoningEnd { .. }
            | Said::InputStart { .. }
            | Said::Input { .. }
            | Said::Whole(_) => {}
        }
    }

    fn speak(
        &mut self,
        out: &mut String,
        with: impl FnOnce(&mut Speech, &Viewer, &RunId, &mut dyn FnMut(Said<'_>)),
    ) {
        let mut speech = std::mem::take(&mut self.speech);
        let (viewer, run) = (self.open.viewer.clone(), self.open.run.clone());
        with(&mut speech, &viewer, &run, &mut |said| self.say(said, out));
        self.speech = speech;
    }

    fn replied(&mut self, e: &ModelReplied, out: &mut String) {
        self.speak(out, |speech, viewer, run, say| speech.reply(viewer, run, e, say));
        let (text, thoughts) = std::mem::take(&mut self.fresh);
        self.last = self.text.len();
        self.text.push_str(&text);
        self.thoughts.push_str(&thoughts);
        self.usage.add(&e.usage);
        self.finish = e.finish;
    }

    /// A call that this client is to run.
    fn requested(&self, e: &ToolCallRequested) -> Option<ToolCall> {
        let parked = e.wait.as_ref().filter(|parked| parked.kind == WaitKind::Client)?;
        // Who may not run it is not asked to.
        if !may_answer(&self.open.viewer, &parked.rule) {
            return None;
        }
        let arguments = e.args.shown().map_or_else(|| "{}".to_owned(), Value::to_string);
        let function = Function { name: e.tool.to_string(), arguments };
        Some(ToolCall { index: None, id: e.call.to_string(), kind: "function", function })
    }

    fn hand_out(&mut self, call: ToolCall, out: &mut String) {
        let tool_calls = vec![ToolCall { index: Some(self.calls.len()), ..call.clone() }];
        self.calls.push(call);
        self.chunk(Delta { tool_calls, ..Delta::default() }, out);
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

    fn hear(&mut self, event: &Event, out: &mut String) {
        match event {
            Event::ModelReplied(e) => self.replied(e, out),
            Event::ReplyAmended(e) => {
                // A hook changed the step that was said last. What was streamed
                // cannot be taken back.
                self.text.truncate(self.last);
                self.text.push_str(&text_of(&e.parts));
            }
            Event::ToolCallRequested(e) => {
                let Some(call) = self.requested(e) else { return };
                match self.open.known.contains(&call.id) {
                    true => self.unanswered.push(call),
                    false => self.hand_out(call, out),
                }
            }
            Event::Asked(e) => self.asked.push((e.wait.to_string(), e.tool.clone())),
            Event::ToolReturned(e) => {
                self.calls.retain(|call| call.id != e.call.as_str());
                self.unanswered.retain(|call| call.id != e.call.as_str());
            }
            Event::Answered(e) => self.asked.retain(|(wait, _)| wait != e.wait.as_str()),
            Event::ChildAnswered(e) => self.asked.retain(|(wait, _)| wait != e.wait.as_str()),
            Event::ChildAsked(e) => {
                let tool = e.payload.shown().and_then(|payload| payload["toolName"].as_str());
                let tool = tool.and_then(|name| ToolName::parse(name).ok()).unwrap_or_else(ToolName::unnamed);
                self.asked.push((e.wait.to_string(), tool));
            }
            Event::StepRestarted(e) => {
                if self.speech.step() == Some(e.step) && self.open.stream {
                    self.fail("The answer was cut by a restart: ask again", "model_stream_cut", out);
                }
                self.fresh = Default::default();
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

    /// The run stands still: the client's calls are its turn, or it is told
    /// what the run waits for.
    fn pause(&mut self, out: &mut String) {
        for call in std::mem::take(&mut self.unanswered) {
            self.hand_out(call, out);
        }
        if self.calls.is_empty() {
            let tools: Vec<&str> = self.asked.iter().map(|(_, tool)| tool.as_str()).collect();
            let note = format!("Waiting for a person: {}.", tools.join(", "));
            self.text.push_str(&note);
            self.chunk(Delta { content: Some(&note), ..Delta::default() }, out);
        }
        let waits: Vec<Value> =
            self.asked.iter().map(|(wait, tool)| json!({ "waitId": wait, "toolName": tool })).collect();
        let told = json!({ "runId": self.open.run, "status": "waiting_tool", "waits": waits });
        let reason = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        self.end(reason, Some(told), out);
    }

    fn end(&mut self, reason: &'static str, told: Option<Value>, out: &mut String) {
        let told = told.unwrap_or_else(|| json!({ "runId": self.open.run, "status": "completed" }));
        self.over = true;
        if self.open.stream {
            self.last_chunk(Delta::default(), Some(reason), Some(&told), out);
            if self.open.include_usage {
                self.frame(Vec::new(), Some(self.usage), None, out);
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
            tool_calls: self.calls.clone(),
        };
        let whole = Completion {
            id: &self.id,
            object: "chat.completion",
            created: self.created,
            model: &self.open.model,
            choices: vec![Choice { index: 0, message, logprobs: None, finish_reason: reason }],
            usage: self.usage.into(),
            toolyard: Some(&told),
        };
        out.push_str(&serde_json::to_string(&whole).unwrap_or_default());
    }

    fn fail(&mut self, message: &str, code: &str, out: &mut String) {
        self.over = true;
        let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
        let body = described(message, known.map_or("server_error", |code| kind(*code)), code).to_string();
        if self.open.stream { push(&body, out) } else { out.push_str(&body) }
    }
}

fn push(data: &str, out: &mut String) {
    out.push_str("data: ");
    out.push_str(data);
    out.push_str("\n\n");
}

impl Telling for Chat {
    fn event(&mut self, seq: i64, at: Timestamp, event: &Event, out: &mut String) -> Flow {
        if self.over {
            return Flow::Over;
        }
        let hearing = self.course.hear(seq, event);
        if self.id.is_empty() || hearing == Hearing::Before {
            self.created = at.millis() / 1000;
            // Each answer of a run has its own name.
            self.id = format!("chatcmpl-{}-{seq}", self.open.run.as_str().trim_start_matches("run_"));
        }
        let viewer = self.open.viewer.clone();
        let Some(seen) = visible_to(&viewer, event) else { return Flow::On };
        match hearing {
            Hearing::Before => self.recall(&seen),
            Hearing::Told => self.hear(&seen, out),
            Hearing::Next => self.end("stop", None, out),
        }
        if self.over { Flow::Over } else { Flow::On }
    }

    fn delta(&mut self, delta: &PieceOf, out: &mut String) -> Flow {
        if self.over {
            return Flow::Over;
        }
        if self.open.stream {
            self.speak(out, |speech, viewer, _, say| speech.delta(viewer, delta, say));
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
            self.speak(out, |speech, viewer, run, say| {
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
            (Stand::Ended, Some(end)) => match end.status {
                RunEnd::Completed => self.end(finish_reason(self.finish), None, out),
                RunEnd::Failed => {
                    let code = end.error.unwrap_or(ErrorCode::Internal);
                    let message = end.message.as_deref().unwrap_or("The run failed");
                    self.fail(message, code.as_str(), out);
                }
                RunEnd::Canceled => {
                    let message = end.message.as_deref().unwrap_or("The run was canceled");
                    self.fail(message, "canceled", out);
                }
            },
            (Stand::Ended, None) => {}
        }
        Flow::Over
    }

    /// A body that is one JSON document takes white space.
    fn keep_alive(&self) -> &'static str {
        if self.open.stream { ": keep-alive\n\n" } else { " " }
    }

    fn see_as(&mut self, viewer: Viewer) {
        self.open.viewer = viewer;
    }
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
