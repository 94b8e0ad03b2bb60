//! A run's log as a task, for one reader.
//!
//! [`TaskSoFar`] takes events one by one, shows each to the reader's key
//! first, and says what changed. A snapshot and a stream are two readings of
//! the same fold, so they cannot differ.

use serde_json::{Map, Value, json};
use toolyard_protocol::event::{Event, ModelReplied, PluginEmitted, RunFinished};
use toolyard_protocol::message::{self as words, text_of};
use toolyard_protocol::run::{PauseReason, RunEnd};
use toolyard_protocol::visible::visible_to;
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{ErrorCode, MessageId, RunId, Timestamp, ToolName, Viewer};

use super::client_tools::{CLIENT_TOOLS, OpenCall};
use super::model::{Artifact, Content, Message, Part, Role, State, Status, Task};
use crate::citation;

/// How a reader wants things written, beyond the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taste {
    /// It knows the client-tools extension: calls come as data parts.
    pub client_tools: bool,
    /// It speaks the form of seeds/001.
    pub literal: bool,
}

/// What an event changed for the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Status,
    /// The reply of a step is whole, or was replaced.
    Artifact {
        step: u32,
        replaced: bool,
    },
    /// What was streamed of a step is void.
    Void {
        step: u32,
    },
}

/// One task, as far as its log was read.
#[derive(Debug, Clone)]
pub struct TaskSoFar {
    viewer: Viewer,
    taste: Taste,
    run: RunId,
    context: String,
    /// Where files of the gateway are fetched.
    files: String,
    state: State,
    since: Timestamp,
    seq: i64,
    open: Vec<OpenCall>,
    /// Why it failed, in a sentence for everybody.
    note: Option<String>,
    replies: Vec<(u32, Artifact)>,
    said: Vec<MessageId>,
    turns: Vec<Turn>,
    /// What the gateway has to say of a reply that is not there yet.
    warnings: Map<String, Value>,
    /// The agent answers with a message and shows no task.
    bare: bool,
}

/// The agent's own message of one turn.
#[derive(Debug, Clone)]
struct Turn {
    message: MessageId,
    /// How many messages of others it had heard.
    after: usize,
    steps: Vec<u32>,
}

/// Who speaks in events of the gateway itself.
const GATEWAY: &str = "toolyard";

/// A part of this name in a reply makes the answer a bare message.
pub const BARE_MESSAGE: &str = "a2a-message";

impl TaskSoFar {
    /// `context` is the conversation's name for its reader; `files` is the
    /// address below which the gateway's files lie.
    pub fn new(run: RunId, context: String, files: String, viewer: Viewer, taste: Taste) -> Self {
        Self {
            viewer,
            taste,
            run,
            context,
            files,
            state: State::Submitted,
            since: Timestamp::default(),
            seq: 0,
            open: Vec::new(),
            note: None,
            replies: Vec::new(),
            said: Vec::new(),
            turns: Vec::new(),
            warnings: Map::new(),
            bare: false,
        }
    }

    pub fn viewer(&self) -> &Viewer {
        &self.viewer
    }
    /// The viewer's seat has changed.
    pub fn see_as(&mut self, viewer: Viewer) {
        self.viewer = viewer;
    }
    pub fn run(&self) -> &RunId {
        &self.run
    }
    pub fn context(&self) -> &str {
        &self.context
    }
    pub fn state(&self) -> State {
        self.state
    }
    /// The last event that was taken in.
    pub fn seq(&self) -> i64 {
        self.seq
    }
    /// The messages of others that the run has read, in order.
    pub fn said(&self) -> &[MessageId] {
        &self.said
    }
    /// What it waits for.
    pub fn open(&self) -> &[OpenCall] {
        &self.open
    }

    /// Takes the next event in.
    pub fn take(&mut self, seq: i64, at: Timestamp, event: &Event) -> Vec<Change> {
        self.seq = seq;
        let Some(event) = visible_to(&self.viewer, event) else { return Vec::new() };
        match event.as_ref() {
            Event::RunCreated(e) => {
                self.since = at;
                self.said.extend(e.trigger.as_ref().and_then(|t| t.message.clone()));
                Vec::new()
            }
            Event::RunStarted(_) => self.turn(State::Working, at),
            Event::StepRestarted(e) => vec![Change::Void { step: e.step }],
            Event::ModelReplied(e) => self.reply(e),
            Event::ReplyAmended(e) => self.write_reply(e.step, &e.parts, true),
            Event::Asked(e) => {
                self.open_call(&e.wait, e.kind, &e.call, &e.tool, e.payload.shown());
                Vec::new()
            }
            Event::ToolCallRequested(e) => {
                if let Some(parked) = e.wait.as_ref().filter(|parked| parked.kind == WaitKind::Client) {
                    self.open_call(&parked.wait, parked.kind, &e.call, &e.tool, e.args.shown());
                }
                Vec::new()
            }
            Event::ChildAsked(e) => {
                let payload = e.payload.shown();
                let tool = payload.and_then(|p| p.get("tool")).and_then(Value::as_str);
                // A prompt without a readable name is shown under its kind's.
                let tool = tool.and_then(|name| ToolName::parse(name).ok());
                let tool = tool.or_else(|| ToolName::parse(e.kind.as_str()).ok());
                if let Some(tool) = tool {
                    self.open_call(&e.wait, e.kind, &e.call, &tool, payload);
                }
                Vec::new()
            }
            Event::Answered(e) => {
                self.open.retain(|open| open.wait != e.wait);
                self.turn(State::Working, at)
            }
            Event::ChildAnswered(e) => {
                self.open.retain(|open| open.wait != e.wait);
                self.turn(State::Working, at)
            }
            Event::ToolReturned(e) => {
                self.open.retain(|open| open.call != e.call);
                self.result(at)
            }
            Event::MessageTaken(e) => {
                self.said.extend(e.messages.iter().cloned());
                self.turn(State::Working, at)
            }
            Event::RunPaused(e) => self.pause(e.reason, at),
            Event::RunFinished(e) => self.finish(e, at),
            Event::ToolProgressed(_)
            | Event::ResultAmended(_)
            | Event::ToolsetReplaced(_)
            | Event::ChildStarted(_)
            | Event::MessageQueued(_)
            | Event::CancelRequested(_)
            | Event::HistoryCompacted(_)
            | Event::PluginStateSaved(_) => Vec::new(),
            Event::PluginEmitted(e) if e.plugin == GATEWAY => self.warn(e),
            Event::PluginEmitted(e) => self.cite(e),
        }
    }

    fn open_call(
        &mut self,
        wait: &toolyard_protocol::WaitId,
        kind: WaitKind,
        call: &toolyard_protocol::CallId,
        tool: &ToolName,
        payload: Option<&Value>,
    ) {
        self.open.push(OpenCall {
            wait: wait.clone(),
            kind,
            call: call.clone(),
            tool: tool.clone(),
            payload: payload.cloned(),
        });
    }

    /// Goes to a state; says so only if it is another one.
    fn turn(&mut self, state: State, at: Timestamp) -> Vec<Change> {
        if self.state == state {
            return Vec::new();
        }
        self.state = state;
        self.since = at;
        vec![Change::Status]
    }

    /// One result of several leaves the task where it is, with fewer calls.
    fn result(&mut self, at: Timestamp) -> Vec<Change> {
        if !self.state.is_interrupted() {
            return Vec::new();
        }
        if self.open.is_empty() {
            return self.turn(State::Working, at);
        }
        self.since = at;
        vec![Change::Status]
    }

    fn pause(&mut self, reason: PauseReason, at: Timestamp) -> Vec<Change> {
        let state = match reason {
            PauseReason::Client | PauseReason::Input | PauseReason::Approval => State::InputRequired,
            PauseReason::Credential => State::AuthRequired,
            // Nobody outside has to act: it works.
            PauseReason::Child | PauseReason::Timer => return Vec::new(),
        };
        self.state = state;
        self.since = at;
        vec![Change::Status]
    }

    fn finish(&mut self, end: &RunFinished, at: Timestamp) -> Vec<Change> {
        self.open.clear();
        self.note = end.message.clone();
        let state = match end.status {
            RunEnd::Completed => State::Completed,
            RunEnd::Canceled => State::Canceled,
            // Somebody's rule said no before anything was done.
            RunEnd::Failed if end.error == Some(ErrorCode::ContentFiltered) => State::Rejected,
            RunEnd::Failed => State::Failed,
        };
        self.turn(state, at)
    }

    fn reply(&mut self, reply: &ModelReplied) -> Vec<Change> {
        // The steps of a turn are one message.
        match self.turns.iter_mut().find(|turn| turn.message == reply.message) {
            Some(turn) if turn.steps.contains(&reply.step) => {}
            Some(turn) => turn.steps.push(reply.step),
            None => self.turns.push(Turn {
                message: reply.message.clone(),
                after: self.said.len(),
                steps: vec![reply.step],
            }),
        }
        self.write_reply(reply.step, &reply.parts, false)
    }

    fn write_reply(&mut self, step: u32, parts: &[words::Part], replaced: bool) -> Vec<Change> {
        self.bare |=
            parts.iter().any(|p| matches!(p, words::Part::Data { name, .. } if name == BARE_MESSAGE));
        let parts_out = self.parts(parts);
        let known = self.replies.iter().position(|(s, _)| *s == step);
        if parts_out.is_empty() {
            return known.map(|_| Change::Void { step }).into_iter().collect();
        }
        let mut metadata = sources(parts);
        if !self.warnings.is_empty() {
            metadata.get_or_insert_default().extend(std::mem::take(&mut self.warnings));
        }
        let artifact =
            Artifact { id: artifact_id(step), name: Some("reply".to_owned()), parts: parts_out, metadata };
        match known.and_then(|at| self.replies.get_mut(at)) {
            Some((_, old)) => *old = artifact,
            None => self.replies.push((step, artifact)),
        }
        vec![Change::Artifact { step, replaced }]
    }

    /// What the gateway left out belongs to the last reply, or to the next one
    /// if that one has no words.
    fn warn(&mut self, e: &PluginEmitted) -> Vec<Change> {
        let name = format!("{}.{}", e.plugin, e.name);
        match self.replies.last_mut() {
            Some((step, artifact)) => {
                artifact.metadata.get_or_insert_default().insert(name, e.value.clone());
                vec![Change::Artifact { step: *step, replaced: true }]
            }
            None => {
                self.warnings.insert(name, e.value.clone());
                Vec::new()
            }
        }
    }

    /// Citations belong to the last reply: they are its metadata, under the
    /// name of their event.
    fn cite(&mut self, e: &PluginEmitted) -> Vec<Change> {
        let Some((step, artifact)) = self.replies.last_mut() else { return Vec::new() };
        if citation::of_event(e).is_none() {
            return Vec::new();
        }
        let list = e.value.get("citations").cloned().unwrap_or_default();
        artifact.metadata.get_or_insert_default().insert(e.name.clone(), list);
        vec![Change::Artifact { step: *step, replaced: true }]
    }

    /// The text of a reply in one part, then what else it holds.
    fn parts(&self, parts: &[words::Part]) -> Vec<Part> {
        let text = text_of(parts);
        let text = (!text.is_empty()).then(|| Part::text(text));
        text.into_iter().chain(parts.iter().filter_map(|part| self.other(part))).collect()
    }

    fn other(&self, part: &words::Part) -> Option<Part> {
        match part {
            words::Part::File { media_type, file, url, name } => {
                let content = match (url, file) {
                    (Some(url), _) => inline(url).unwrap_or_else(|| Content::Url(url.clone())),
                    (None, Some(file)) => Content::Url(format!("{}{file}", self.files)),
                    (None, None) => return None,
                };
                Some(Part {
                    content,
                    media_type: Some(media_type.clone()),
                    filename: name.clone(),
                    metadata: None,
                })
            }
            words::Part::Data { name, value } if name != BARE_MESSAGE => {
                let mut part = Part::data(value.clone());
                part.media_type = Some("application/json".to_owned());
                Some(part)
            }
            words::Part::Data { .. }
            | words::Part::Text { .. }
            | words::Part::Reasoning { .. }
            | words::Part::Source { .. }
            | words::Part::ToolCall { .. }
            | words::Part::ToolResult { .. }
            | words::Part::Opaque { .. } => None,
        }
    }

    /// The reply of a step.
    pub fn artifact(&self, step: u32) -> Option<&Artifact> {
        self.replies.iter().find(|(s, _)| *s == step).map(|(_, artifact)| artifact)
    }

    /// The status, with the message of a pause or of a failure.
    pub fn status(&self) -> Status {
        let calls = if self.taste.literal && self.state.is_interrupted() {
            self.open.iter().filter_map(OpenCall::literal).collect()
        } else {
            Vec::new()
        };
        Status { state: self.state, message: self.status_message(), at: self.since, literal_calls: calls }
    }

    fn status_message(&self) -> Option<Message> {
        if self.state.is_interrupted() {
            return Some(self.pause_message());
        }
        let note = self.note.as_ref().filter(|_| self.state.is_final())?;
        Some(self.message(format!("{}-end", self.run), vec![Part::text(note.clone())]))
    }

    fn pause_message(&self) -> Message {
        let text: Vec<String> = self.open.iter().filter_map(OpenCall::sentence).collect();
        let text = if text.is_empty() { "Waiting for input.".to_owned() } else { text.join(" ") };
        // A prompt can be answered by nothing else than its part; the calls of
        // a client's tools are for those who know of them.
        let shown = |open: &&OpenCall| self.taste.client_tools || open.kind != WaitKind::Client;
        let data: Vec<Part> = self.open.iter().filter(shown).filter_map(OpenCall::part).collect();
        let aware = !data.is_empty();
        let parts = std::iter::once(Part::text(text)).chain(data).collect();
        let mut message = self.message(format!("{}-{}", self.run, self.seq_of_pause()), parts);
        if aware {
            message.extensions = vec![CLIENT_TOOLS.to_owned()];
        }
        message
    }

    /// A name for the pause that every reader gives it: what is open.
    fn seq_of_pause(&self) -> String {
        let first = self.open.first().map_or_else(|| "pause".to_owned(), |open| open.wait.to_string());
        format!("{first}-{}", self.open.len())
    }

    fn message(&self, id: String, parts: Vec<Part>) -> Message {
        Message {
            id,
            role: Role::Agent,
            parts,
            context: Some(self.context.clone()),
            task: Some(self.run.to_string()),
            metadata: None,
            extensions: Vec::new(),
            references: Vec::new(),
        }
    }

    /// What others said, with the agent's own messages in between.
    fn conversation(&self, others: Vec<Message>) -> Vec<Message> {
        let mut others = others.into_iter();
        let (mut all, mut heard) = (Vec::new(), 0);
        for turn in &self.turns {
            all.extend(others.by_ref().take(turn.after - heard));
            heard = turn.after;
            let steps = turn.steps.iter().filter_map(|step| self.artifact(*step));
            let parts: Vec<Part> = steps.flat_map(|artifact| artifact.parts.clone()).collect();
            // A turn that only called tools has said nothing.
            if !parts.is_empty() {
                all.push(self.message(turn.message.to_string(), parts));
            }
        }
        all.extend(others);
        all
    }

    /// The task as it stands. `history` is what others said, oldest first;
    /// `most` is how much of the conversation the caller wants.
    pub fn task(&self, history: Vec<Message>, most: Option<u32>, artifacts: bool) -> Task {
        let history = self.conversation(history);
        let history = match most {
            Some(0) => None,
            Some(most) => {
                let skip = history.len().saturating_sub(most as usize);
                Some(history.into_iter().skip(skip).collect())
            }
            None => Some(history),
        };
        Task {
            id: self.run.to_string(),
            context: self.context.clone(),
            status: self.status(),
            artifacts: artifacts.then(|| self.replies.iter().map(|(_, a)| a.clone()).collect()),
            history,
            metadata: None,
        }
    }

    /// The bare message that this agent answers with, once it has.
    pub fn bare_message(&self) -> Option<Message> {
        let finished = self.bare && self.state == State::Completed;
        finished.then(|| {
            let parts = self.replies.iter().flat_map(|(_, artifact)| artifact.parts.clone()).collect();
            let mut message = self.message(format!("{}-reply", self.run), parts);
            // There is no task that could be asked for.
            message.task = None;
            message.metadata = self.replies.iter().rev().find_map(|(_, artifact)| artifact.metadata.clone());
            message
        })
    }
}

/// The artifact that a step's reply is. Every reader names it alike.
pub(super) fn artifact_id(step: u32) -> String {
    format!("reply-{step}")
}

/// A `data:` address holds its bytes.
fn inline(url: &str) -> Option<Content> {
    let (_, bytes) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(Content::Raw(bytes.to_owned()))
}

fn sources(parts: &[words::Part]) -> Option<Map<String, Value>> {
    let list: Vec<Value> = parts
        .iter()
        .filter_map(|part| match part {
            words::Part::Source { url, title, .. } => Some(json!({ "url": url, "title": title })),
            _ => None,
        })
        .collect();
    if list.is_empty() { None } else { json!({ "sources": list }).as_object().cloned() }
}
