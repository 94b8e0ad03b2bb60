//! Transcripts of the dialects, and what they must never say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod catalog;
mod chat;
mod deltas;
mod frames;
mod partial;
/// The protocol's own samples: every event, every field, a canary in each guarded one.
#[path = "../../../protocol/tests/it/samples.rs"]
mod samples;
mod telling;
mod views;
