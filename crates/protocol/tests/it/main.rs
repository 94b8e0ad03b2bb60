//! Stories about the words of the protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agent_config;
mod codec;
mod coverage;
mod samples;
mod sse;
mod visibility;
mod waits;
mod words;
