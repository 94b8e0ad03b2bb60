//! Transcripts of the dialects, and what they must never say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod a2a;
mod ag_ui;
mod ag_ui_client;
mod ag_ui_wire;
mod catalog;
mod chat;
mod deltas;
mod frames;
mod mcp;
mod openai;
mod partial;
/// The protocol's own samples: every event, every field, a canary in each guarded one.
#[path = "../../../protocol/tests/it/samples.rs"]
mod samples;
mod story;
mod telling;
mod views;
