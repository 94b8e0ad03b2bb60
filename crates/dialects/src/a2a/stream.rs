//! One reader's stream of a task: a snapshot, then what changes.

use std::collections::HashMap;

use serde_json::Value;
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::event::Event;
use toolyard_protocol::visible::visible_delta;
use toolyard_protocol::{MessageId, Timestamp, Viewer};

use crate::telling::{Flow, SoFar, Telling};

use super::model::{Artifact, Content, Item, Message, Part, State};
use super::rpc::Binding;
use super::task::{Change, TaskSoFar, artifact_id};
use super::version::Version;
use super::write;

/// When a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// With the task, or when it waits for somebody.
    Pause,
    /// With the task only.
    End,
}

/// Where a stream begins. Before it, events are taken in silently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// With the run.
    Fresh,
    /// After this event.
    After(i64),
    /// Once the run has heard this message.
    Taking(MessageId),
    /// With the task as it stands.
    Now,
    /// After this event, without a snapshot: the client has all before it.
    Resume(i64),
}

/// The answer to one request that follows a task.
#[derive(Debug, Clone)]
pub struct TaskStream {
    task: TaskSoFar,
    version: Version,
    binding: Binding,
    form: Form,
    begin: Begin,
    history: Vec<Message>,
    most: Option<u32>,
    begun: bool,
    /// The text of each step that was sent piece by piece.
    sent: HashMap<u32, String>,
    /// A bare message may come instead of the task: nothing is sent before
    /// that is known.
    bare: bool,
    held: bool,
    over: bool,
}

/// How an answer is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Items, as they come.
    Stream(Until),
    /// One answer, when the task ends or waits for somebody.
    Whole,
    /// The task itself, when it has ended.
    Ended,
}

impl TaskStream {
    pub fn new(task: TaskSoFar, version: Version, binding: Binding, form: Form, begin: Begin) -> Self {
        Self {
            task,
            version,
            binding,
            form,
            begin,
            history: Vec::new(),
            most: None,
            begun: false,
            sent: HashMap::new(),
            bare: false,
            held: false,
            over: false,
        }
    }

    /// What was said so far, and how much of it the client wants.
    #[must_use]
    pub fn with_history(mut self, history: Vec<Message>, most: Option<u32>) -> Self {
        (self.history, self.most) = (history, most);
        self
    }

    /// The agent may answer with a message only.
    #[must_use]
    pub fn maybe_bare(mut self, bare: bool) -> Self {
        self.bare = bare;
        self
    }

    pub fn task(&self) -> &TaskSoFar {
        &self.task
    }

    fn ends(&self, state: State) -> bool {
        let pauses = matches!(self.form, Form::Stream(Until::Pause) | Form::Whole);
        state.is_final() || (pauses && state.is_interrupted())
    }

    /// One frame of the wire.
    fn frame(&self, id: Option<i64>, item: &Item) -> String {
        let value = self.binding.answer(write::item(item, self.version));
        sse(id, &value)
    }

    /// The first item: the task as it stands.
    fn start(&mut self, out: &mut String) {
        self.begun = true;
        if matches!(self.begin, Begin::Resume(_)) {
            self.over = self.ends(self.task.state());
            return;
        }
        if self.is_whole() {
            return self.whole_answer(out);
        }
        let task = self.task.task(self.history.clone(), self.most, true);
        self.over = self.ends(task.status.state);
        if self.bare && !self.over {
            self.held = true;
            return;
        }
        *out += &self.frame(Some(self.task.seq()), &Item::Task(task));
    }

    fn is_whole(&self) -> bool {
        matches!(self.form, Form::Whole | Form::Ended)
    }

    /// The one answer, once there is one.
    fn whole_answer(&mut self, out: &mut String) {
        if self.over || !self.ends(self.task.state()) {
            return;
        }
        self.over = true;
        let task = self.task.task(self.history.clone(), self.most, true);
        let value = match (self.task.bare_message(), self.form) {
            (Some(message), Form::Whole) => write::item(&Item::Message(message), self.version),
            (_, Form::Ended) => write::task(&task, self.version),
            _ => write::item(&Item::Task(task), self.version),
        };
        *out += &self.binding.answer(value).to_string();
    }

    /// Takes an event in, and tells what it changes once the stream has begun.
    fn hear(&mut self, seq: i64, at: Timestamp, event: &Event, out: &mut String) {
        if self.over || seq <= self.task.seq() {
            return;
        }
        let (Begin::After(last) | Begin::Resume(last)) = self.begin else {
            return self.take(seq, at, event, out);
        };
        if !self.begun && seq > last {
            self.start(out);
            if self.over {
                return;
            }
        }
        self.take(seq, at, event, out);
    }

    fn take(&mut self, seq: i64, at: Timestamp, event: &Event, out: &mut String) {
        let changes = self.task.take(seq, at, event);
        if !self.begun {
            let now = match (&self.begin, event) {
                (Begin::Fresh, Event::RunCreated(_)) => true,
                (Begin::Taking(message), Event::MessageTaken(taken)) => taken.messages.contains(message),
                _ => false,
            };
            if now {
                self.start(out);
            }
            return;
        }
        if self.is_whole() {
            return self.whole_answer(out);
        }
        if self.held {
            return self.unhold(seq, out);
        }
        *out += &self.changes(seq, changes);
    }

    /// The end says whether the task is shown at all.
    fn unhold(&mut self, seq: i64, out: &mut String) {
        if !self.ends(self.task.state()) {
            return;
        }
        (self.held, self.over) = (false, true);
        let item = match self.task.bare_message() {
            Some(message) => Item::Message(message),
            None => Item::Task(self.task.task(self.history.clone(), self.most, true)),
        };
        *out += &self.frame(Some(seq), &item);
    }

    fn flow(&self) -> Flow {
        if self.over { Flow::Over } else { Flow::On }
    }

    fn changes(&mut self, seq: i64, changes: Vec<Change>) -> String {
        let mut items: Vec<Item> = Vec::new();
        for change in changes {
            match change {
                Change::Void { step } => {
                    self.sent.insert(step, String::new());
                }
                Change::Artifact { step, replaced } => items.extend(self.whole(step, replaced)),
                Change::Status => {
                    self.over = self.ends(self.task.state());
                    items.push(Item::Status {
                        task: self.task.run().to_string(),
                        context: self.task.context().to_owned(),
                        status: self.task.status(),
                        last: self.over,
                    });
                }
            }
        }
        let last = items.len().saturating_sub(1);
        // A reader that comes back with an id has all of its event.
        items.iter().enumerate().map(|(i, item)| self.frame((i == last).then_some(seq), item)).collect()
    }

    /// A step is whole: what was not sent of it follows, or all of it again.
    fn whole(&mut self, step: u32, replaced: bool) -> Option<Item> {
        let artifact = self.task.artifact(step)?.clone();
        let sent = self.sent.remove(&step).unwrap_or_default();
        let (text, others): (Vec<Part>, Vec<Part>) =
            artifact.parts.iter().cloned().partition(|part| matches!(part.content, Content::Text(_)));
        let text: String = text.iter().filter_map(text_of).collect();
        let rest = text.strip_prefix(sent.as_str()).filter(|_| !sent.is_empty() && !replaced);
        let (artifact, append) = match rest {
            // An artifact has at least one part, so its last chunk may be an empty text.
            Some(rest) => {
                let last = (!rest.is_empty() || others.is_empty()).then(|| Part::text(rest));
                (Artifact { parts: last.into_iter().chain(others).collect(), ..artifact }, true)
            }
            None => (artifact, false),
        };
        Some(self.chunk(artifact, append, true))
    }

    fn chunk(&self, artifact: Artifact, append: bool, last_chunk: bool) -> Item {
        Item::Artifact {
            task: self.task.run().to_string(),
            context: self.task.context().to_owned(),
            artifact,
            append,
            last_chunk,
        }
    }

    /// Only text is told; a step that is whole needs none.
    fn piece(&mut self, delta: &Delta, out: &mut String) {
        let Piece::TextDelta { text, .. } = &delta.piece else { return };
        if self.is_silent() || text.is_empty() || !visible_delta(self.task.viewer(), delta) {
            return;
        }
        *out += &self.grow(delta.step, text);
    }

    /// Pieces are told in a stream that has begun.
    fn is_silent(&self) -> bool {
        !self.begun || self.over || self.held || self.is_whole()
    }

    fn grow(&mut self, step: u32, more: &str) -> String {
        let sent = self.sent.entry(step).or_default();
        let append = !sent.is_empty();
        sent.push_str(more);
        let artifact = Artifact {
            id: artifact_id(step),
            name: Some("reply".to_owned()),
            parts: vec![Part::text(more)],
            metadata: None,
        };
        let item = self.chunk(artifact, append, false);
        self.frame(None, &item)
    }

    /// All pieces of a step so far, for a reader that joins in its middle.
    fn join(&mut self, step: u32, pieces: &mut dyn Iterator<Item = Piece>, out: &mut String) {
        if self.is_silent() {
            return;
        }
        let text: String = pieces
            .filter_map(|piece| match piece {
                Piece::TextDelta { text, .. } => Some(text.to_string()),
                _ => None,
            })
            .collect();
        let sent = self.sent.get(&step).map(String::as_str).unwrap_or_default();
        let more = text.strip_prefix(sent).map(str::to_owned).unwrap_or_else(|| {
            // It is another attempt: the first piece of it replaces.
            self.sent.insert(step, String::new());
            text.clone()
        });
        if !more.is_empty() {
            *out += &self.grow(step, &more);
        }
    }
}

impl Telling for TaskStream {
    fn event(&mut self, seq: i64, at: Timestamp, event: &Event, out: &mut String) -> Flow {
        self.hear(seq, at, event, out);
        self.flow()
    }

    fn delta(&mut self, delta: &Delta, out: &mut String) -> Flow {
        self.piece(delta, out);
        self.flow()
    }

    fn so_far(&mut self, so_far: SoFar<'_>, out: &mut String) -> Flow {
        self.join(so_far.step, so_far.pieces, out);
        self.flow()
    }

    fn rest(&mut self, out: &mut String) -> Flow {
        if !self.begun {
            self.start(out);
        }
        self.flow()
    }

    fn keep_alive(&self) -> &'static str {
        match self.form {
            Form::Stream(_) => ": keep-alive\n\n",
            // White space before a JSON text means nothing.
            Form::Whole | Form::Ended => "\n",
        }
    }

    fn see_as(&mut self, viewer: Viewer) {
        self.task.see_as(viewer);
    }
}

fn text_of(part: &Part) -> Option<&str> {
    match &part.content {
        Content::Text(text) => Some(text),
        Content::Raw(_) | Content::Url(_) | Content::Data(_) => None,
    }
}

/// A frame: the id if the item is durable, and one line of JSON.
pub fn sse(id: Option<i64>, value: &Value) -> String {
    match id {
        Some(id) => format!("id: {id}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    }
}
