//! Wire protocols as pure translations of the same run, one folder each.
//!
//! A dialect turns events, deltas and rows into the bytes its clients expect.
//! It never does IO, never waits and never decides who may see what: that is
//! [`toolyard_protocol::visible`], and every function here asks it. A dialect
//! that streams a run implements [`telling::Telling`].

pub mod a2a;
pub mod ag_ui;
pub mod ai_sdk;
mod citation;
pub mod data_stream_v1;
pub mod history;
pub mod mcp;
pub mod native;
pub mod openai;
pub mod telling;
