//! The SDK against the real gateway.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tests play the outside world")]

mod binary;
mod chat;
mod examples;
mod gateway;
mod kit;
mod mcp;
mod plugins;
mod provider;
mod requires;
mod serve;
mod streams;
mod upstream;
mod versions;
mod waits;
