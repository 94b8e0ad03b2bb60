//! The step so far: what a reader that joins in the middle gets first.

use std::sync::Arc;

use toolyard_protocol::RunId;
use toolyard_protocol::delta::{Delta, Piece};

/// All pieces of one attempt at a step, neighbours joined.
#[derive(Debug, Clone)]
pub struct StepSoFar {
    pub run: RunId,
    pub step: u32,
    pub attempt: u32,
    /// The offset of the next piece.
    pub next: u32,
    pieces: Vec<Growing>,
}

/// A piece whose text still grows.
#[derive(Debug, Clone)]
struct Growing {
    first: Piece,
    more: String,
}

impl StepSoFar {
    pub(crate) fn start(delta: &Delta) -> Self {
        Self { run: delta.run.clone(), step: delta.step, attempt: delta.attempt, next: 0, pieces: Vec::new() }
    }

    /// What another node tells of a step.
    pub(crate) fn told(run: RunId, step: u32, attempt: u32, next: u32, pieces: Vec<Piece>) -> Self {
        let pieces = pieces.into_iter().map(|first| Growing { first, more: String::new() }).collect();
        Self { run, step, attempt, next, pieces }
    }

    pub(crate) fn add(&mut self, delta: &Delta) {
        if (delta.step, delta.attempt) != (self.step, self.attempt) {
            *self = Self::start(delta);
        }
        self.next = delta.offset + 1;
        let grows = self.pieces.last_mut().and_then(|last| {
            let text = continues(&last.first, &delta.piece)?;
            last.more.push_str(text);
            Some(())
        });
        if grows.is_none() {
            self.pieces.push(Growing { first: delta.piece.clone(), more: String::new() });
        }
    }

    /// The pieces, each text in one.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        self.pieces.iter().map(|growing| {
            let mut piece = growing.first.clone();
            if let Some(text) = text_mut(&mut piece)
                && !growing.more.is_empty()
            {
                *text = Arc::from(format!("{text}{}", growing.more));
            }
            piece
        })
    }
}

fn text_mut(piece: &mut Piece) -> Option<&mut Arc<str>> {
    match piece {
        Piece::TextDelta { text, .. }
        | Piece::ReasoningDelta { text, .. }
        | Piece::ToolInputDelta { text, .. } => Some(text),
        Piece::TextStart { .. }
        | Piece::TextEnd { .. }
        | Piece::ReasoningStart { .. }
        | Piece::ReasoningEnd { .. }
        | Piece::ToolInputStart { .. } => None,
    }
}

/// The text to add if `new` continues `last`.
fn continues<'p>(last: &Piece, new: &'p Piece) -> Option<&'p str> {
    match (last, new) {
        (Piece::TextDelta { part: a, .. }, Piece::TextDelta { part: b, text }) if a == b => Some(text),
        (Piece::ReasoningDelta { part: a, .. }, Piece::ReasoningDelta { part: b, text, .. }) if a == b => {
            Some(text)
        }
        (Piece::ToolInputDelta { call: a, .. }, Piece::ToolInputDelta { call: b, text, .. }) if a == b => {
            Some(text)
        }
        _ => None,
    }
}
