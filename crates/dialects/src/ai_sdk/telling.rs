//! A run as a chat client hears it.
//!
//! A call under question is not announced as one that may run: clients run a
//! tool as soon as they hear of its input. For the same reason a client's call
//! is announced when the log was read to its end, and not at all if it has
//! ended by then: a page that comes back must not run it again. Values that
//! the viewer may not see are told as neutral ones, because a missing field
//! ends a client's chat.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::json;
use toolyard_protocol::delta::Delta;
use toolyard_protocol::event::{Event, ModelReplied};
use toolyard_protocol::message::{Part, text_of};
use toolyard_protocol::run::{FinishReason, RunEnd, Usage};
use toolyard_protocol::visible::visible_to;
use toolyard_protocol::{CallId, RunId, Timestamp, Viewer, WaitId};

use super::calls::Known;
use super::chunk::{Chunk, Finish, Voice};
use crate::telling::{Course, Flow, Hearing, Said, SoFar, Speech, Stand, Start, Telling};

/// What the client can hear and has.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Its version has no approvals: they travel as `data-permission-required`.
    pub without_approvals: bool,
    /// It wants to know the run and what it used.
    pub metadata: bool,
    /// Calls whose input its message holds.
    pub announced: HashSet<CallId>,
    /// Questions that its message holds.
    pub questions: HashSet<WaitId>,
    /// Calls whose stored outcome its message holds.
    pub kept: HashSet<CallId>,
}

/// One reader's telling, in a form of its own.
#[derive(Debug)]
pub struct ChatTelling<V> {
    pub(super) voice: V,
    viewer: Viewer,
    pub(super) options: Options,
    course: Course,
    speech: Speech,
    pub(super) calls: HashMap<CallId, Known>,
    /// Calls of the client that may run, unless they have ended.
    pub(super) waiting: Vec<CallId>,
    /// Addresses of sources that were said.
    pub(super) cited: HashSet<String>,
    /// `start` was said.
    started: bool,
    /// A step is open.
    step: bool,
    /// Of the last reply.
    reason: Finish,
    pub(super) usage: Usage,
    pub(super) total: Usage,
}

impl<V: Voice> ChatTelling<V> {
    pub fn new(voice: V, viewer: Viewer, run: RunId, start: Start, options: Options) -> Self {
        Self {
            voice,
            viewer,
            options,
            course: Course::new(run, start),
            speech: Speech::default(),
            calls: HashMap::new(),
            waiting: Vec::new(),
            cited: HashSet::new(),
            started: false,
            step: false,
            reason: Finish::Stop,
            usage: Usage::default(),
            total: Usage::default(),
        }
    }

    pub(super) fn open_message(&mut self, out: &mut String) {
        if self.started {
            return;
        }
        self.started = true;
        let message = self.course.message();
        let metadata = self.options.metadata.then(|| json!({ "runId": self.course.run() }));
        self.voice.say(&Chunk::Start { message: &message, metadata }, out);
    }

    fn open_step(&mut self, out: &mut String) {
        self.open_message(out);
        if !self.step {
            self.step = true;
            let message = self.course.message();
            self.voice.say(&Chunk::StartStep { message: &message }, out);
        }
    }

    fn close_step(&mut self, out: &mut String) {
        if self.step {
            self.step = false;
            self.voice.say(&Chunk::FinishStep { reason: self.reason, usage: self.usage }, out);
        }
    }

    /// The last words.
    fn close(&mut self, reason: Finish, out: &mut String) -> Flow {
        self.open_message(out);
        self.reason = reason;
        self.close_step(out);
        let metadata = self.options.metadata.then(|| json!({ "usage": self.total }));
        self.voice.say(&Chunk::Finish { reason, usage: self.total, metadata }, out);
        self.voice.say(&Chunk::Done, out);
        Flow::Over
    }

    /// Says pieces of the step at hand.
    fn speak(
        &mut self,
        say: impl FnOnce(&mut Speech, &Viewer, &mut dyn FnMut(Said<'_>)),
        step: u32,
        out: &mut String,
    ) {
        let mut speech = std::mem::take(&mut self.speech);
        let viewer = self.viewer.clone();
        // A new step of the model begins where another one is open.
        say(&mut speech, &viewer, &mut |said| self.say(said, step, out));
        self.speech = speech;
    }

    fn say(&mut self, said: Said<'_>, step: u32, out: &mut String) {
        self.open_step(out);
        let id = |part: u32| format!("{step}-{part}");
        let chunk = match said {
            Said::TextStart { part } => return self.voice.say(&Chunk::TextStart { id: &id(part) }, out),
            Said::Text { part, text } => return self.voice.say(&Chunk::Text { id: &id(part), text }, out),
            Said::TextEnd { part } => return self.voice.say(&Chunk::TextEnd { id: &id(part) }, out),
            Said::ReasoningStart { part } => {
                return self.voice.say(&Chunk::ReasoningStart { id: &id(part) }, out);
            }
            Said::Reasoning { part, text } => {
                return self.voice.say(&Chunk::Reasoning { id: &id(part), text }, out);
            }
            Said::ReasoningEnd { part } => {
                return self.voice.say(&Chunk::ReasoningEnd { id: &id(part) }, out);
            }
            Said::InputStart { call, tool } => {
                self.known(call, tool).started = true;
                Chunk::InputStart { call, tool }
            }
            Said::Input { call, text } => Chunk::Input { call, text },
            Said::Whole(Part::Source { id, url, title, .. }) => {
                self.cited.insert(url.clone());
                Chunk::Source { id, url, title: title.as_deref() }
            }
            Said::Whole(Part::File { media_type, url: Some(url), .. }) => Chunk::File { url, media_type },
            Said::Whole(Part::Data { name, value }) => {
                Chunk::Data { name, id: None, data: value.clone(), transient: false }
            }
            Said::Whole(_) => return,
        };
        self.voice.say(&chunk, out);
    }

    fn replied(&mut self, reply: &ModelReplied, out: &mut String) {
        self.open_step(out);
        let run = self.course.run().clone();
        self.speak(|speech, viewer, say| speech.reply(viewer, &run, reply, say), reply.step, out);
        self.reason = if reply.calls.is_empty() { finish_of(reply.finish) } else { Finish::ToolCalls };
    }

    /// An event that is told.
    fn told(&mut self, event: &Event, raw: &Event, out: &mut String) -> Flow {
        match event {
            Event::RunCreated(_) | Event::RunStarted(_) | Event::MessageTaken(_) => self.open_message(out),
            Event::StepRestarted(again) => {
                // What was said of the step is void, and cannot be taken back.
                if self.speech.step() == Some(again.step) {
                    return Flow::Cut;
                }
            }
            Event::ModelReplied(_) => {
                if let Event::ModelReplied(reply) = raw {
                    // The step before it is closed when the next one speaks.
                    if self.speech.step() != Some(reply.step) {
                        self.close_step(out);
                    }
                    self.replied(reply, out);
                }
            }
            Event::Asked(asked) => self.asked(asked, out),
            Event::ToolCallRequested(request) => {
                let known = self.known(&request.call, &request.tool);
                known.routed = true;
                if let Some(args) = request.args.shown() {
                    known.input = args.clone();
                }
                if request.place.is_client() {
                    self.waiting.push(request.call.clone());
                } else {
                    self.announce(&request.call, out);
                }
            }
            Event::ToolProgressed(news) => self.progressed(news, out),
            Event::ToolReturned(end) => self.returned(end, out),
            Event::ReplyAmended(amended) => {
                let data = json!({ "messageId": amended.message, "step": amended.step, "text": text_of(&amended.parts) });
                self.data("message-replaced", &format!("replaced-{}", amended.step), data, out);
            }
            Event::ChildAsked(asked) => {
                let data = json!({
                    "waitId": asked.wait, "kind": asked.kind, "toolCallId": asked.call, "runId": asked.child,
                    "request": asked.payload.shown(),
                });
                self.data("child-asked", asked.wait.as_str(), data, out);
            }
            Event::ChildAnswered(answered) => {
                let data = json!({ "waitId": answered.wait, "toolCallId": answered.call, "runId": answered.child, "decision": answered.outcome });
                self.data("child-asked", answered.wait.as_str(), data, out);
            }
            Event::PluginEmitted(told) => self.emitted(told, out),
            // The amended result is for the model.
            Event::ResultAmended(_)
            | Event::CancelRequested(_)
            | Event::Answered(_)
            | Event::ToolsetReplaced(_)
            | Event::ChildStarted(_)
            | Event::MessageQueued(_)
            | Event::HistoryCompacted(_)
            | Event::PluginStateSaved(_)
            | Event::RunPaused(_)
            | Event::RunFinished(_) => {}
        }
        Flow::On
    }
}

fn finish_of(reason: FinishReason) -> Finish {
    match reason {
        FinishReason::Stop | FinishReason::Stopped => Finish::Stop,
        FinishReason::ToolCalls => Finish::ToolCalls,
        FinishReason::Length => Finish::Length,
        FinishReason::ContentFilter => Finish::ContentFilter,
        _ => Finish::Other,
    }
}

impl<V: Voice> Telling for ChatTelling<V> {
    fn begin(&mut self, out: &mut String) {
        self.voice.begin(out);
    }

    fn event(&mut self, seq: i64, _at: Timestamp, raw: &Event, out: &mut String) -> Flow {
        let Some(event) = visible_to(&self.viewer, raw).map(Cow::into_owned) else { return Flow::On };
        let hearing = self.course.hear(seq, raw);
        if let Event::MessageTaken(_) = raw
            && hearing != Hearing::Next
        {
            // Calls belong to the message of their turn.
            self.calls.clear();
        }
        if let (Event::ModelReplied(reply), Event::ModelReplied(seen)) = (raw, &event) {
            self.note_reply(reply, seen);
        }
        match hearing {
            Hearing::Before => {
                if let Event::Asked(asked) = &event {
                    let known = self.known(&asked.call, &asked.tool);
                    (known.asked, known.routed, known.started) = (true, true, true);
                }
                Flow::On
            }
            Hearing::Told => self.told(&event, raw, out),
            Hearing::Next => self.close(self.reason, out),
        }
    }

    fn delta(&mut self, delta: &Delta, out: &mut String) -> Flow {
        if self.course.is_told() {
            if self.speech.step() != Some(delta.step) {
                self.close_step(out);
            }
            self.speak(|speech, viewer, say| speech.delta(viewer, delta, say), delta.step, out);
        }
        Flow::On
    }

    fn so_far(&mut self, so_far: SoFar<'_>, out: &mut String) -> Flow {
        if self.course.is_told() {
            let step = so_far.step;
            if self.speech.step() != Some(step) {
                self.close_step(out);
            }
            let run = self.course.run().clone();
            self.speak(|speech, viewer, say| speech.so_far(viewer, &run, so_far, say), step, out);
        }
        Flow::On
    }

    fn rest(&mut self, out: &mut String) -> Flow {
        for call in std::mem::take(&mut self.waiting) {
            self.announce(&call, out);
            self.tell_progress(&call, out);
        }
        match self.course.stand() {
            Stand::Works => Flow::On,
            Stand::Waits(_) if !self.course.is_told() => Flow::On,
            Stand::Waits(_) => self.close(Finish::ToolCalls, out),
            Stand::Ended => {
                let end = self.course.finished().cloned();
                let Some(end) = end else { return Flow::On };
                self.total = end.usage;
                match end.status {
                    RunEnd::Completed => self.close(self.reason, out),
                    RunEnd::Failed => {
                        self.open_message(out);
                        let text = end.message.unwrap_or_else(|| "An error occurred.".to_owned());
                        self.voice.say(&Chunk::Error { text: &text }, out);
                        self.close(Finish::Error, out)
                    }
                    RunEnd::Canceled => {
                        self.open_message(out);
                        if !self.options.without_approvals {
                            self.voice.say(&Chunk::Abort, out);
                        }
                        self.close(Finish::Stop, out)
                    }
                }
            }
        }
    }

    fn keep_alive(&self) -> &'static str {
        self.voice.keep_alive()
    }

    fn see_as(&mut self, viewer: Viewer) {
        self.viewer = viewer;
    }
}
