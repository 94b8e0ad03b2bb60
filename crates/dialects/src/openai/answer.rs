//! A turn of a run as one answer, in pieces or whole: what chat completions and
//! responses share. Each of them says it in words of its own.

use std::collections::HashSet;

use serde_json::Value;
use toolyard_protocol::delta::Delta;
use toolyard_protocol::event::{Event, ModelReplied, ToolCallRequested};
use toolyard_protocol::message::text_of;
use toolyard_protocol::run::{FinishReason, RunEnd, Usage};
use toolyard_protocol::visible::visible_to;
use toolyard_protocol::wait::{AnswerRule, WaitKind, may_answer};
use toolyard_protocol::{ErrorCode, Guarded, RunId, Timestamp, ToolName, Viewer};

use super::error::{described, kind};
use crate::telling::{Course, Flow, Hearing, Said, SoFar, Speech, Stand, Start, Telling};

/// Something that a person must say.
#[derive(Debug)]
pub struct Question {
    pub wait: String,
    pub tool: Option<ToolName>,
    /// The arguments, if it is an approval that this client may give.
    pub args: Option<Value>,
}

/// A call that this client is to run.
#[derive(Debug)]
pub struct OpenCall {
    pub call: String,
    pub tool: String,
    pub args: String,
}

/// What is known of the answer, in whatever words it is said.
#[derive(Debug)]
pub struct Answer {
    pub run: RunId,
    pub viewer: Viewer,
    pub stream: bool,
    /// Calls that the client's history holds.
    known: HashSet<String>,
    pub id: String,
    pub created: i64,
    course: Course,
    speech: Speech,
    pub asked: Vec<Question>,
    /// Calls of before that nobody has answered.
    unanswered: Vec<OpenCall>,
    pub usage: Usage,
    pub finish: FinishReason,
    pub begun: bool,
    pub over: bool,
}

impl Answer {
    pub fn new(run: RunId, viewer: Viewer, start: Start, stream: bool, known: HashSet<String>) -> Self {
        Self {
            course: Course::new(run.clone(), start),
            run,
            viewer,
            stream,
            known,
            id: String::new(),
            created: 0,
            speech: Speech::default(),
            asked: Vec::new(),
            unanswered: Vec::new(),
            usage: Usage::default(),
            finish: FinishReason::Stop,
            begun: false,
            over: false,
        }
    }

    fn requested(&self, e: &ToolCallRequested) -> Option<OpenCall> {
        let parked = e.wait.as_ref().filter(|parked| parked.kind == WaitKind::Client)?;
        // Who may not run it is not asked to.
        if !may_answer(&self.viewer, &parked.rule) {
            return None;
        }
        let args = e.args.shown().map_or_else(|| "{}".to_owned(), Value::to_string);
        Some(OpenCall { call: e.call.to_string(), tool: e.tool.to_string(), args })
    }

    fn approval(&self, kind: WaitKind, rule: &AnswerRule, payload: &Guarded<Value>) -> Option<Value> {
        let mine = kind == WaitKind::Approval && may_answer(&self.viewer, rule);
        payload.shown().and_then(|payload| payload.get("args")).filter(|_| mine).cloned()
    }

    fn flow(&self) -> Flow {
        if self.over { Flow::Over } else { Flow::On }
    }
}

/// The words of an API.
pub trait Answering: Send + Sync {
    fn answer(&self) -> &Answer;
    fn answer_mut(&mut self) -> &mut Answer;

    /// The name of an answer that follows this event: each answer of a run has
    /// its own.
    fn name(&self, seq: i64) -> String;
    /// What is said from here on is of this step.
    fn enter(&mut self, _step: u32) {}
    fn say(&mut self, said: Said<'_>, out: &mut String);
    /// The step at hand is whole.
    fn keep_step(&mut self) {}
    /// What was said of the step at hand is void.
    fn void_step(&mut self) {}
    /// A hook changed the step that was said last. What was streamed cannot be
    /// taken back; the last words are right.
    fn amend(&mut self, text: &str);
    fn hand_out(&mut self, call: OpenCall, out: &mut String);
    /// Somebody else has answered a call that was handed out.
    fn take_back(&mut self, _call: &str) {}
    /// The run stands still: the client's calls are its turn, or it is told
    /// what the run waits for.
    fn pause(&mut self, out: &mut String);
    fn end(&mut self, reason: FinishReason, out: &mut String);
    fn fail(&mut self, message: &str, code: &str, out: &mut String);
    fn cancel(&mut self, message: Option<&str>, out: &mut String);
}

/// The body of an answer that failed before its first word.
pub(super) fn failure(message: &str, code: &str) -> String {
    let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
    described(message, known.map_or("server_error", |code| kind(*code)), code).to_string()
}

fn speak<A: Answering>(
    it: &mut A,
    step: u32,
    out: &mut String,
    with: impl FnOnce(&mut Speech, &Viewer, &RunId, &mut dyn FnMut(Said<'_>)),
) {
    it.enter(step);
    let answer = it.answer_mut();
    let mut speech = std::mem::take(&mut answer.speech);
    let (viewer, run) = (answer.viewer.clone(), answer.run.clone());
    with(&mut speech, &viewer, &run, &mut |said| it.say(said, out));
    it.answer_mut().speech = speech;
}

fn replied<A: Answering>(it: &mut A, e: &ModelReplied, out: &mut String) {
    speak(it, e.step, out, |speech, viewer, run, say| speech.reply(viewer, run, e, say));
    it.keep_step();
    let answer = it.answer_mut();
    answer.usage.add(&e.usage);
    answer.finish = e.finish;
}

/// Of the past only what is still open counts.
fn recall<A: Answering>(it: &mut A, event: &Event) {
    match event {
        Event::ToolCallRequested(e) => {
            let call = it.answer().requested(e);
            it.answer_mut().unanswered.extend(call);
        }
        Event::ToolReturned(_)
        | Event::Asked(_)
        | Event::Answered(_)
        | Event::ChildAsked(_)
        | Event::ChildAnswered(_) => hear(it, event, &mut String::new()),
        _ => {}
    }
}

fn hear<A: Answering>(it: &mut A, event: &Event, out: &mut String) {
    match event {
        Event::ModelReplied(e) => replied(it, e, out),
        Event::ReplyAmended(e) => it.amend(&text_of(&e.parts)),
        Event::ToolCallRequested(e) => {
            let Some(call) = it.answer().requested(e) else { return };
            match it.answer().known.contains(&call.call) {
                true => it.answer_mut().unanswered.push(call),
                false => it.hand_out(call, out),
            }
        }
        Event::ToolReturned(e) => {
            it.take_back(e.call.as_str());
            it.answer_mut().unanswered.retain(|open| open.call != e.call.as_str());
        }
        Event::Asked(e) => {
            let args = it.answer().approval(e.kind, &e.rule, &e.payload);
            let question = Question { wait: e.wait.to_string(), tool: Some(e.tool.clone()), args };
            it.answer_mut().asked.push(question);
        }
        Event::ChildAsked(e) => {
            let args = it.answer().approval(e.kind, &e.rule, &e.payload);
            let tool = e.payload.shown().and_then(|payload| payload["toolName"].as_str());
            let tool = tool.and_then(|name| ToolName::parse(name).ok());
            it.answer_mut().asked.push(Question { wait: e.wait.to_string(), tool, args });
        }
        Event::Answered(e) => it.answer_mut().asked.retain(|question| question.wait != e.wait.as_str()),
        Event::ChildAnswered(e) => it.answer_mut().asked.retain(|question| question.wait != e.wait.as_str()),
        Event::StepRestarted(e) => {
            if it.answer().speech.step() == Some(e.step) && it.answer().stream {
                it.fail("The answer was cut by a restart: ask again", "model_stream_cut", out);
            }
            it.void_step();
            it.answer_mut().speech = Speech::default();
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

impl<A: Answering> Telling for A {
    fn event(&mut self, seq: i64, at: Timestamp, event: &Event, out: &mut String) -> Flow {
        if self.answer().over {
            return Flow::Over;
        }
        let hearing = self.answer_mut().course.hear(seq, event);
        if self.answer().id.is_empty() || hearing == Hearing::Before {
            let id = self.name(seq);
            let answer = self.answer_mut();
            (answer.created, answer.id) = (at.millis() / 1000, id);
        }
        let viewer = self.answer().viewer.clone();
        let Some(seen) = visible_to(&viewer, event) else { return Flow::On };
        match hearing {
            Hearing::Before => recall(self, &seen),
            Hearing::Told => hear(self, &seen, out),
            Hearing::Next => self.end(FinishReason::Stop, out),
        }
        self.answer().flow()
    }

    fn delta(&mut self, delta: &Delta, out: &mut String) -> Flow {
        if self.answer().stream && !self.answer().over {
            speak(self, delta.step, out, |speech, viewer, _, say| speech.delta(viewer, delta, say));
        }
        self.answer().flow()
    }

    fn so_far(&mut self, so_far: SoFar<'_>, out: &mut String) -> Flow {
        if self.answer().stream && !self.answer().over {
            speak(self, so_far.step, out, |speech, viewer, run, say| {
                speech.so_far(viewer, run, so_far, say);
            });
        }
        self.answer().flow()
    }

    fn rest(&mut self, out: &mut String) -> Flow {
        if self.answer().over || !self.answer().course.is_told() {
            return self.answer().flow();
        }
        match (self.answer().course.stand(), self.answer().course.finished().cloned()) {
            (Stand::Works, _) => return Flow::On,
            (Stand::Waits(_), _) => {
                for call in std::mem::take(&mut self.answer_mut().unanswered) {
                    self.hand_out(call, out);
                }
                self.pause(out);
            }
            (Stand::Ended, Some(end)) => match end.status {
                RunEnd::Completed => self.end(self.answer().finish, out),
                RunEnd::Canceled => self.cancel(end.message.as_deref(), out),
                RunEnd::Failed => {
                    let code = end.error.unwrap_or(ErrorCode::Internal);
                    self.fail(end.message.as_deref().unwrap_or("The run failed"), code.as_str(), out);
                }
            },
            (Stand::Ended, None) => {}
        }
        Flow::Over
    }

    /// A body that is one JSON document takes white space.
    fn keep_alive(&self) -> &'static str {
        if self.answer().stream { ": keep-alive\n\n" } else { " " }
    }

    fn see_as(&mut self, viewer: Viewer) {
        self.answer_mut().viewer = viewer;
    }
}
