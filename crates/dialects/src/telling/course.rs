//! Where a run stands, as far as its log was read.

use toolyard_protocol::event::{Event, OpenWait, RunFinished};
use toolyard_protocol::run::PauseReason;
use toolyard_protocol::{MessageId, RunId};

use super::Start;

/// Does an event belong to what is told?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hearing {
    /// The client has it, or it is of an earlier turn.
    Before,
    Told,
    /// It begins the turn after the one that is told.
    Next,
}

/// What the run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    Works,
    /// Somebody outside must act.
    Waits(PauseReason),
    Ended,
}

/// A run's course for one reader.
#[derive(Debug, Clone)]
pub struct Course {
    run: RunId,
    start: Start,
    turn: u32,
    /// The turn that is told, once it has begun.
    told: Option<u32>,
    open: Vec<OpenWait>,
    paused: Option<PauseReason>,
    finished: Option<RunFinished>,
}

impl Course {
    pub fn new(run: RunId, start: Start) -> Self {
        let told = (start == Start::Turn(1) || start == Start::After(0)).then_some(1);
        Self { run, start, turn: 1, told, open: Vec::new(), paused: None, finished: None }
    }

    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The assistant message that is told.
    pub fn message(&self) -> MessageId {
        // A turn that has not begun is not the one before it.
        let next = self.turn + u32::from(matches!(self.start, Start::Taking(_)));
        MessageId::of_turn(&self.run, self.told.unwrap_or(next))
    }

    /// The turn that the log has come to, from 1.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// The telling has begun.
    pub fn is_told(&self) -> bool {
        self.told.is_some()
    }

    pub fn finished(&self) -> Option<&RunFinished> {
        self.finished.as_ref()
    }

    /// What a paused run waits for, children's waits included.
    pub fn open(&self) -> &[OpenWait] {
        &self.open
    }

    pub fn stand(&self) -> Stand {
        match (&self.finished, self.paused) {
            (Some(_), _) => Stand::Ended,
            (None, Some(reason)) if reason.needs_someone() => Stand::Waits(reason),
            // With only children and timers open the run goes on by itself.
            (None, Some(_) | None) => Stand::Works,
        }
    }

    /// Takes the next event.
    pub fn hear(&mut self, seq: i64, event: &Event) -> Hearing {
        let mut next = false;
        match event {
            Event::MessageTaken(taken) => {
                self.go_on();
                self.turn += 1;
                next = self.told.is_some();
                let begins = match &self.start {
                    Start::Taking(message) => taken.messages.contains(message),
                    Start::Turn(turn) => *turn == self.turn,
                    Start::After(_) => false,
                };
                if begins && self.told.is_none() {
                    self.told = Some(self.turn);
                }
            }
            Event::RunPaused(paused) => {
                self.paused = Some(paused.reason);
                self.open.clone_from(&paused.waits);
            }
            Event::ToolReturned(end) => {
                self.open.retain(|wait| wait.call != end.call);
                if self.open.is_empty() {
                    self.paused = None;
                }
            }
            Event::Answered(_)
            | Event::ChildAsked(_)
            | Event::ChildAnswered(_)
            | Event::CancelRequested(_)
            | Event::RunStarted(_)
            | Event::StepRestarted(_)
            | Event::ModelReplied(_)
            | Event::ToolCallRequested(_) => self.go_on(),
            Event::RunFinished(end) => {
                self.go_on();
                self.finished = Some(end.clone());
            }
            Event::RunCreated(_)
            | Event::Asked(_)
            | Event::ToolProgressed(_)
            | Event::ReplyAmended(_)
            | Event::ResultAmended(_)
            | Event::ToolsetReplaced(_)
            | Event::ChildStarted(_)
            | Event::MessageQueued(_)
            | Event::HistoryCompacted(_)
            | Event::PluginEmitted(_)
            | Event::PluginStateSaved(_) => {}
        }
        if next {
            return Hearing::Next;
        }
        if let Start::After(last) = self.start
            && seq > last
            && self.told.is_none()
        {
            self.told = Some(self.turn);
        }
        if self.told.is_some() { Hearing::Told } else { Hearing::Before }
    }

    fn go_on(&mut self) {
        self.paused = None;
        self.open.clear();
    }
}
