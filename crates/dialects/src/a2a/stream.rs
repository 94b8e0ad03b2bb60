//! One reader's stream of a task: a snapshot, then what changes.

use std::collections::HashMap;

use serde_json::Value;
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::event::Event;
use toolyard_protocol::visible::visible_delta;
use toolyard_protocol::{Timestamp, Viewer};

use super::model::{Artifact, Content, Item, Part, Task};
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

/// A stream of items for one request.
#[derive(Debug, Clone)]
pub struct TaskStream {
    task: TaskSoFar,
    viewer: Viewer,
    version: Version,
    binding: Binding,
    until: Until,
    /// The text of each step that was sent piece by piece.
    sent: HashMap<u32, String>,
    /// A bare message may come instead of the task: nothing is sent before
    /// that is known.
    held: Option<Box<Task>>,
    over: bool,
}

impl TaskStream {
    pub fn new(task: TaskSoFar, viewer: Viewer, version: Version, binding: Binding, until: Until) -> Self {
        Self { task, viewer, version, binding, until, sent: HashMap::new(), held: None, over: false }
    }

    /// The first item: the task as it stands.
    pub fn snapshot(&mut self, task: Task) -> String {
        let state = task.status.state;
        self.over = self.ends(state);
        self.frame(Some(self.task.seq()), &Item::Task(task))
    }

    /// Holds the snapshot back until the agent has said whether it answers
    /// with a message only.
    pub fn hold(&mut self, task: Task) {
        self.held = Some(Box::new(task));
    }

    /// Nothing follows.
    pub fn is_over(&self) -> bool {
        self.over
    }
    pub fn task(&self) -> &TaskSoFar {
        &self.task
    }

    fn ends(&self, state: super::model::State) -> bool {
        state.is_final() || (self.until == Until::Pause && state.is_interrupted())
    }

    /// One frame of the wire.
    fn frame(&self, id: Option<i64>, item: &Item) -> String {
        let value = self.binding.answer(write::item(item, self.version));
        sse(id, &value)
    }

    /// A durable event.
    pub fn event(&mut self, seq: i64, at: Timestamp, event: &Event) -> String {
        if seq <= self.task.seq() || self.over {
            return String::new();
        }
        let changes = self.task.take(seq, at, event);
        if let Some(held) = self.held.take() {
            let done = changes.contains(&Change::Status) && self.task.state().is_final();
            match self.task.bare_message().filter(|_| done) {
                Some(message) => {
                    self.over = true;
                    return self.frame(Some(seq), &Item::Message(message));
                }
                None if done => {
                    let first = self.frame(None, &Item::Task(*held));
                    return first + &self.changes(seq, changes);
                }
                None => {
                    self.held = Some(held);
                    return String::new();
                }
            }
        }
        self.changes(seq, changes)
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

    /// A streamed piece. Only text is told; a step that is whole needs none.
    pub fn delta(&mut self, delta: &Delta) -> String {
        let Piece::TextDelta { text, .. } = &delta.piece else { return String::new() };
        if self.over || self.held.is_some() || text.is_empty() || !visible_delta(&self.viewer, delta) {
            return String::new();
        }
        self.grow(delta.step, text)
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
    pub fn so_far(&mut self, step: u32, pieces: impl IntoIterator<Item = Piece>) -> String {
        if self.over || self.held.is_some() {
            return String::new();
        }
        let text: String = pieces
            .into_iter()
            .filter_map(|piece| match piece {
                Piece::TextDelta { text, .. } => Some(text.to_string()),
                _ => None,
            })
            .collect();
        let sent = self.sent.get(&step).map(String::as_str).unwrap_or_default();
        match text.strip_prefix(sent).map(str::to_owned) {
            Some(more) if more.is_empty() => String::new(),
            Some(more) => self.grow(step, &more),
            None => {
                // It is another attempt: the first piece of it replaces.
                self.sent.insert(step, String::new());
                self.grow(step, &text)
            }
        }
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
