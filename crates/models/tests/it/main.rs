//! The models crate from outside: the decoder alone, then over real HTTP
//! against the scripted upstream.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod abroad;
mod anthropic;
mod anthropic_encode;
mod anthropic_wire;
mod clean;
mod compat;
mod decode;
mod demo;
mod encode;
mod fixtures;
mod gemini;
mod gemini_encode;
mod memory;
mod names;
mod outage;
mod pairs;
mod providers;
mod responses;
mod responses_encode;
mod retry;
mod secrets;
mod storm;
mod wire;
