//! The models crate from outside: the decoder alone, then over real HTTP
//! against the scripted upstream.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod decode;
mod demo;
mod encode;
mod fixtures;
mod outage;
mod providers;
mod retry;
mod secrets;
mod wire;
