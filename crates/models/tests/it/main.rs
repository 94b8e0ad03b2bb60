//! The models crate from outside: the decoder alone, then over real HTTP
//! against the scripted upstream.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod abroad;
mod anthropic;
mod anthropic_encode;
mod anthropic_wire;
mod bedrock;
mod bedrock_encode;
mod clean;
mod compat;
mod corpus;
mod decode;
mod demo;
mod embed;
mod encode;
mod errors;
mod fixtures;
mod gemini;
mod gemini_encode;
mod images;
mod live;
mod memory;
mod names;
mod outage;
mod output;
mod pairs;
mod providers;
mod referee;
mod registry;
mod responses;
mod responses_encode;
mod retry;
mod secrets;
mod storm;
mod unknown;
mod vendors;
mod wire;
