//! The models crate from outside: the decoder alone, then over real HTTP
//! against the scripted upstream.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bedrock;
mod corpus;
mod decode;
mod demo;
mod encode;
mod fixtures;
mod outage;
mod providers;
mod referee;
mod retry;
mod secrets;
mod vendors;
mod wire;
