//! One reader's telling of a run in a dialect: events, pieces and the step so
//! far go in, text goes out. It keeps what this reader has heard and does no IO.
//!
//! Whoever drives a telling gives it the whole log of the run from its first
//! event, and each piece once and in order (the reader of the server does).
//! The telling is silent until its [`Start`] and filters for its viewer by
//! itself. [`Course`] and [`Speech`] are what all dialects share: where the run
//! stands, and what of a step was said already.

mod course;
mod speech;

use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::event::Event;
use toolyard_protocol::{MessageId, Timestamp, Viewer};

pub use course::{Course, Hearing, Stand};
pub use speech::{Said, Speech};

/// What becomes of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// More follows.
    On,
    /// All was said: the body ends well.
    Over,
    /// What was said is void: the connection is cut, and the client starts over.
    Cut,
}

/// Where a reader starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// After this event of the log.
    After(i64),
    /// With this turn, from 1.
    Turn(u32),
    /// With the turn that hears this message.
    Taking(MessageId),
}

/// All pieces of a step that is under way.
pub struct SoFar<'a> {
    pub step: u32,
    pub attempt: u32,
    pub pieces: &'a mut dyn Iterator<Item = Piece>,
}

impl std::fmt::Debug for SoFar<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SoFar").field("step", &self.step).finish_non_exhaustive()
    }
}

/// A dialect's telling of one run to one reader.
pub trait Telling: Send + Sync {
    /// What is sent before anything is known of the run.
    fn begin(&mut self, _out: &mut String) {}

    /// The next event of the log.
    fn event(&mut self, seq: i64, at: Timestamp, event: &Event, out: &mut String) -> Flow;

    /// The next piece of a step.
    fn delta(&mut self, delta: &Delta, out: &mut String) -> Flow;

    /// A step that is under way. Some of its pieces may have been told.
    fn so_far(&mut self, so_far: SoFar<'_>, out: &mut String) -> Flow;

    /// The log was read to its end. A run that waits for somebody, or has
    /// ended, is told to its end here.
    fn rest(&mut self, out: &mut String) -> Flow;

    /// Keeps an idle connection open.
    fn keep_alive(&self) -> &'static str {
        ": keep-alive\n\n"
    }

    /// The viewer's seat has changed.
    fn see_as(&mut self, viewer: Viewer);
}
