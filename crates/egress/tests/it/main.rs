//! The door from outside, against a server of a few lines.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod connections;
mod door;
mod guarded;
mod mail;
mod redirects;
mod server;
mod target;
