//! `reset`: the reader's position is not in the log (a restored backup, a
//! deleted run). It forgets all it has, takes the snapshot and goes on.
//!
//! The frame's id is the snapshot's position: without it a browser would come
//! back with the wrong one, and be reset for ever.

use toolyard_protocol::SpaceId;

use super::frame::{Frame, Head};
use super::view::{MessageView, RunView, WaitView};
use super::wire::{RunReset, SpaceReset};

/// A run as it stands, made of views for one viewer.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSnapshot {
    pub run: RunView,
    pub messages: Vec<MessageView>,
    pub waits: Vec<WaitView>,
}

/// A space as it stands, made of views for one viewer.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceSnapshot {
    pub space: SpaceId,
    pub last_pos: i64,
    pub runs: Vec<RunView>,
    pub messages: Vec<MessageView>,
    pub waits: Vec<WaitView>,
}

/// Sets a run's reader back to the snapshot.
pub fn reset_frame(snapshot: &RunSnapshot) -> Frame {
    let RunSnapshot { run, messages, waits } = snapshot;
    let last_seq = run.last_seq;
    let head = Head { run: Some(&run.id), space: run.smart_space_id.as_ref(), ..Head::default() };
    Frame::write(Some(last_seq), "reset", head, &RunReset { last_seq, run, messages, waits }, 1024)
}

/// Sets a space's reader back to the snapshot.
pub fn space_reset_frame(snapshot: &SpaceSnapshot) -> Frame {
    let SpaceSnapshot { space, last_pos, runs, messages, waits } = snapshot;
    let head = Head { space: Some(space), ..Head::default() };
    let body = SpaceReset { last_seq: *last_pos, runs, messages, waits };
    Frame::write(Some(*last_pos), "reset", head, &body, 1024)
}
