//! One client's telling of a run: events and pieces in, AG-UI events out.
//!
//! A telling knows what its client has, and sends what is missing: nothing
//! twice, nothing that the client's key may not see. It ends the body when the
//! run ends or when somebody outside must act, since clients come back with a
//! new request then.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::event::{Event, PluginEmitted, RunFinished, ToolProgressed};
use toolyard_protocol::run::{RunEnd, Usage};
use toolyard_protocol::visible::{visible_delta, visible_to};
use toolyard_protocol::{CallId, MessageId, RunId, Timestamp, ToolName, Viewer, WaitId};

use crate::telling::{Course, Flow, Hearing, SoFar, Stand, Start, Telling};

use super::input::Version;
use super::names;
use super::pen;
use super::transcript::Transcript;
use super::wire::{Interrupt, RunOutcome, SubagentOutcome, TokenUsage, WireEvent};

/// What a telling starts from.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The names that the client gave.
    pub thread: String,
    pub client_run: String,
    pub version: Version,
    pub viewer: Viewer,
    pub run: RunId,
    /// Messages that the client has.
    pub history: Vec<Value>,
    /// Client tools whose calls may need a permission: they are told of when
    /// they may run and not before, since clients run what they hear of.
    pub held_back: HashSet<ToolName>,
    /// Calls whose results the client brought itself.
    pub brought: HashSet<String>,
    /// The state that the application shares with the agent.
    pub state: Option<Value>,
    pub start: Start,
    /// The client has nothing of the run: what the log holds becomes a
    /// snapshot, and only what follows is told as it happens.
    pub restores: bool,
    /// Of a client that has nothing: messages that the run reads later.
    pub later: Vec<(MessageId, Value)>,
}

/// See the module.
#[derive(Debug)]
pub struct AgUi {
    pub(super) open: Opening,
    pub(super) transcript: Transcript,
    pub(super) step: Option<OpenStep>,
    /// Calls that the client heard of, now or before.
    pub(super) announced: HashSet<CallId>,
    /// Calls that were started and not ended on the wire.
    pub(super) open_calls: Vec<CallId>,
    /// What somebody outside must decide or give.
    pub(super) questions: Vec<Question>,
    /// Calls that a client is to run.
    pub(super) clients: Vec<CallId>,
    /// Runs below this one that are open on the wire.
    pub(super) children: Vec<(CallId, RunId)>,
    /// The turn's message, and what it is called here.
    pub(super) turn: Option<(MessageId, String)>,
    /// What was told is not what holds: a snapshot is due.
    pub(super) wrong: bool,
    /// Messages that the client had before this body.
    pub(super) had: HashSet<String>,
    course: Course,
    /// Only the past is looked at: nothing goes out.
    silent: bool,
    over: bool,
}

#[derive(Debug)]
pub(super) struct Question {
    pub(super) wait: WaitId,
    pub(super) call: CallId,
    pub(super) interrupt: Interrupt,
}

/// The step that is being told.
#[derive(Debug)]
pub(super) struct OpenStep {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) message: String,
    pub(super) text_open: bool,
    /// The thought that is open, and how many there were.
    pub(super) thought: Option<String>,
    pub(super) thoughts: u32,
    /// It was begun on the wire.
    pub(super) told: bool,
}

impl AgUi {
    pub fn new(mut open: Opening) -> Self {
        let history = std::mem::take(&mut open.history);
        let ids = history.iter().filter_map(|message| message["id"].as_str());
        Self {
            had: ids.filter(|id| names::is_ours(id)).map(ToOwned::to_owned).collect(),
            course: Course::new(open.run.clone(), open.start.clone()),
            open,
            transcript: Transcript::new(history),
            step: None,
            announced: HashSet::new(),
            open_calls: Vec::new(),
            questions: Vec::new(),
            clients: Vec::new(),
            children: Vec::new(),
            turn: None,
            wrong: false,
            silent: false,
            over: false,
        }
    }

    /// Messages of the user take their place when the run reads them.
    fn hear_later(&mut self, read: impl Fn(&MessageId) -> bool) {
        let later = std::mem::take(&mut self.open.later);
        let (now, later) = later.into_iter().partition(|(id, _)| read(id));
        let now: Vec<(MessageId, Value)> = now;
        self.open.later = later;
        now.into_iter().for_each(|(_, message)| self.transcript.push(message));
    }

    /// Ends a body that tells of nothing: there is no run.
    pub fn end_at_rest(&mut self, out: &mut String) {
        self.succeed(out);
    }

    fn flow(&self) -> Flow {
        if self.over { Flow::Over } else { Flow::On }
    }

    /// `event` is already what the viewer may see.
    fn hear(&mut self, at: Timestamp, event: &Event, out: &mut String) {
        match event {
            Event::StepRestarted(e) => {
                if self.keeps() && self.step.as_ref().is_some_and(|step| step.number == e.step) {
                    self.void_step(out);
                }
            }
            Event::ModelReplied(e) => self.replied(e, out),
            Event::ReplyAmended(e) => self.amended(e, out),
            Event::Asked(e) => self.asked(e, out),
            Event::Answered(e) => self.questions.retain(|question| question.wait != e.wait),
            Event::ToolCallRequested(e) => self.requested(e, out),
            Event::ToolProgressed(e) => self.progressed(e, out),
            Event::ToolReturned(e) => self.returned(e, out),
            Event::ResultAmended(e) => self.result_amended(e, out),
            Event::ChildStarted(e) => self.child_started(e, out),
            Event::ChildAsked(e) => self.child_asked(e),
            Event::ChildAnswered(e) => self.questions.retain(|question| question.wait != e.wait),
            Event::PluginEmitted(e) => self.emitted(at, e, out),
            Event::MessageTaken(e) => self.hear_later(|id| e.messages.contains(id)),
            // Told when the log is read to its end.
            Event::RunPaused(_) | Event::RunFinished(_) => {}
            Event::RunCreated(_)
            | Event::RunStarted(_)
            | Event::ToolsetReplaced(_)
            | Event::MessageQueued(_)
            | Event::CancelRequested(_)
            | Event::HistoryCompacted(_)
            | Event::PluginStateSaved(_) => {}
        }
    }

    /// Ends the body where the run stands: somebody outside must act.
    fn pause(&mut self, out: &mut String) {
        self.close_step(out);
        for (_, child) in std::mem::take(&mut self.children) {
            let outcome = SubagentOutcome::Suspended {};
            self.tell(WireEvent::SubagentFinished { subagent_run_id: child.as_str(), outcome }, out);
        }
        let outcome = if self.questions.is_empty() {
            let pending = self.clients.iter().map(ToString::to_string).collect();
            (self.open.version == Version::One)
                .then_some(RunOutcome::Success { pending_tool_call_ids: pending })
        } else {
            if let Some(state) = self.open.state.clone() {
                self.tell(WireEvent::StateSnapshot { snapshot: &state }, out);
            }
            self.snapshot(out);
            let interrupts = self.questions.iter().map(|question| question.interrupt.clone()).collect();
            Some(RunOutcome::Interrupt { interrupts })
        };
        self.finish(outcome, None, out);
    }

    fn finished(&mut self, e: &RunFinished, out: &mut String) {
        let RunFinished { status, usage, cost: _, error, message, detail: _ } = e;
        self.close_step(out);
        let children = std::mem::take(&mut self.children);
        let usage = Some(usage);
        match (status, self.open.version) {
            (RunEnd::Completed, version) => {
                self.end_children(&children, out);
                let pending_tool_call_ids = Vec::new();
                let outcome = RunOutcome::Success { pending_tool_call_ids };
                self.finish((version == Version::One).then_some(outcome), usage, out);
            }
            (RunEnd::Canceled, Version::One) => {
                self.end_children(&children, out);
                self.finish(Some(RunOutcome::Cancelled {}), usage, out);
            }
            (RunEnd::Canceled, Version::Zero) => {
                let message = message.as_deref().unwrap_or("The run was canceled");
                self.fail(message, Some("canceled"), out);
            }
            (RunEnd::Failed, _) => {
                let message = message.as_deref().unwrap_or("The run failed");
                self.fail(message, error.map(|code| code.as_str()), out);
            }
        }
    }

    fn end_children(&self, children: &[(CallId, RunId)], out: &mut String) {
        for (_, child) in children {
            let outcome = SubagentOutcome::Success {};
            self.tell(WireEvent::SubagentFinished { subagent_run_id: child.as_str(), outcome }, out);
        }
    }

    /// Ends the body with success: the turn that it tells is over.
    fn succeed(&mut self, out: &mut String) {
        self.close_step(out);
        let success = RunOutcome::Success { pending_tool_call_ids: Vec::new() };
        self.finish((self.open.version == Version::One).then_some(success), None, out);
    }

    /// Ends the body with an error. Nothing needs to be closed before it.
    fn fail(&mut self, message: &str, code: Option<&str>, out: &mut String) {
        self.tell(WireEvent::RunError { message, code }, out);
        self.over = true;
    }

    fn finish(&mut self, outcome: Option<RunOutcome>, usage: Option<&Usage>, out: &mut String) {
        let Opening { thread, client_run, version, .. } = &self.open;
        let usage = usage.filter(|_| *version == Version::One).and_then(TokenUsage::of);
        let usage = usage.into_iter().collect();
        self.tell(WireEvent::RunFinished { thread_id: thread, run_id: client_run, usage, outcome }, out);
        self.over = true;
    }

    fn progressed(&mut self, e: &ToolProgressed, out: &mut String) {
        let ToolProgressed { call, tool, visibility: _, fraction, message, preliminary, ticket: _, spent: _ } =
            e;
        let mut value = json!({ "toolCallId": call, "toolName": tool });
        if let Some(fraction) = fraction {
            value["fraction"] = json!(fraction);
        }
        if let Some(message) = message.shown() {
            value["message"] = json!(message);
        }
        if let Some(preliminary) = preliminary.shown() {
            value["preliminary"] = preliminary.clone();
        }
        self.tell(WireEvent::Custom { name: "tool_progress", value: &value, timestamp: None }, out);
    }

    /// A plugin's own event. It speaks of the turn's message by the store's
    /// name; the client knows that message by another.
    fn emitted(&mut self, at: Timestamp, e: &PluginEmitted, out: &mut String) {
        let mut value = e.value.clone();
        if let Some((turn, ours)) = &self.turn
            && value["messageId"] == turn.as_str()
        {
            value["messageId"] = json!(ours);
        }
        let event = WireEvent::Custom { name: &e.name, value: &value, timestamp: Some(at.millis()) };
        self.tell(event, out);
    }

    /// Sends all messages as they are now.
    pub(super) fn snapshot(&mut self, out: &mut String) {
        self.wrong = false;
        self.tell(WireEvent::MessagesSnapshot { messages: self.transcript.messages() }, out);
    }

    /// Corrects what was told, if something was.
    pub(super) fn mend(&mut self, out: &mut String) {
        if self.wrong && !self.silent {
            self.snapshot(out);
        }
    }

    pub(super) fn tell(&self, event: WireEvent<'_>, out: &mut String) {
        if !self.silent {
            pen::write(&event, out);
        }
    }

    /// What was only recalled is not open on the wire.
    fn forget_wire(&mut self) {
        self.open_calls.clear();
        self.children.clear();
        if let Some(step) = &mut self.step {
            (step.told, step.text_open, step.thought) = (false, false, None);
        }
    }

    /// May the transcript take what is told? The past is the client's own
    /// word, unless it has nothing.
    pub(super) fn keeps(&self) -> bool {
        !self.silent || self.open.restores
    }

    /// Has the client heard of this call?
    pub(super) fn knows(&self, call: &CallId) -> bool {
        self.announced.contains(call) || self.transcript.has_call(call.as_str())
    }

    /// The message of the turn that the log has come to.
    pub(super) fn turn_message(&self) -> MessageId {
        MessageId::of_turn(&self.open.run, self.course.turn())
    }

    pub(super) fn step_message(&self, step: u32) -> String {
        names::step_message(&self.turn_message(), step)
    }
}

impl Telling for AgUi {
    fn begin(&mut self, out: &mut String) {
        let Opening { thread, client_run, version, state, .. } = &self.open;
        let protocol_version = version.name();
        pen::write(&WireEvent::RunStarted { thread_id: thread, run_id: client_run, protocol_version }, out);
        // A client's state drifts unseen: it gets the whole at every start.
        if let Some(snapshot) = state {
            pen::write(&WireEvent::StateSnapshot { snapshot }, out);
        }
    }

    fn event(&mut self, seq: i64, at: Timestamp, event: &Event, out: &mut String) -> Flow {
        if self.over {
            return Flow::Over;
        }
        let hearing = self.course.hear(seq, event);
        if hearing == Hearing::Next && !self.open.restores {
            // Somebody else's request tells the next turn.
            self.succeed(out);
            return Flow::Over;
        }
        let viewer = self.open.viewer.clone();
        let Some(seen) = visible_to(&viewer, event) else { return Flow::On };
        self.silent = hearing == Hearing::Before || self.open.restores;
        self.hear(at, &seen, out);
        if self.silent {
            (self.silent, self.wrong) = (false, false);
            self.forget_wire();
        }
        Flow::On
    }

    fn delta(&mut self, delta: &Delta, out: &mut String) -> Flow {
        if self.over {
            return Flow::Over;
        }
        self.enter(delta.step, out);
        // The client has words of an attempt that came to nothing.
        if delta.offset == 0 && self.has_words() {
            self.void_step(out);
            self.enter(delta.step, out);
        }
        if visible_delta(&self.open.viewer, delta) {
            self.piece(&delta.piece, out);
        }
        Flow::On
    }

    fn so_far(&mut self, so_far: SoFar<'_>, out: &mut String) -> Flow {
        if self.over {
            return Flow::Over;
        }
        let SoFar { step, attempt, pieces } = so_far;
        self.enter(step, out);
        let (mut text, mut thoughts, mut calls) = (String::new(), Vec::<String>::new(), Vec::new());
        for (offset, piece) in (0..).zip(pieces) {
            let delta = Delta { run: self.open.run.clone(), step, attempt, offset, piece };
            if !visible_delta(&self.open.viewer, &delta) {
                continue;
            }
            match delta.piece {
                Piece::TextDelta { text: more, .. } => text.push_str(&more),
                Piece::ReasoningStart { .. } => thoughts.push(String::new()),
                Piece::ReasoningDelta { text: more, .. } => {
                    if let Some(thought) = thoughts.last_mut() {
                        thought.push_str(&more);
                    }
                }
                Piece::ToolInputStart { call, tool, .. } => calls.push((call, tool, String::new())),
                Piece::ToolInputDelta { call, text: more, .. } => {
                    if let Some((_, _, input)) = calls.iter_mut().find(|(known, ..)| *known == call) {
                        input.push_str(&more);
                    }
                }
                Piece::TextStart { .. } | Piece::TextEnd { .. } | Piece::ReasoningEnd { .. } => {}
            }
        }
        self.grow_thoughts(&thoughts, out);
        self.grow_text(&text, out);
        for (call, tool, input) in calls {
            self.start_call(&call, &tool, out);
            let known = self.transcript.args(call.as_str());
            if let Some(more) = input.strip_prefix(known.as_str()).filter(|more| !more.is_empty()) {
                self.grow_input(&call, more, out);
            }
        }
        self.mend(out);
        Flow::On
    }

    fn rest(&mut self, out: &mut String) -> Flow {
        if self.over {
            return Flow::Over;
        }
        if std::mem::take(&mut self.open.restores) {
            self.hear_later(|_| true);
            self.snapshot(out);
            // How a run of the past ended is no news.
            if self.course.stand() == Stand::Ended {
                self.succeed(out);
                return Flow::Over;
            }
        } else if !self.course.is_told() {
            return Flow::On;
        }
        match self.course.stand() {
            Stand::Works => {}
            Stand::Waits(_) => self.pause(out),
            Stand::Ended => {
                if let Some(end) = self.course.finished().cloned() {
                    self.finished(&end, out);
                }
            }
        }
        self.flow()
    }

    fn see_as(&mut self, viewer: Viewer) {
        self.open.viewer = viewer;
    }
}
