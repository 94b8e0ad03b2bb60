//! The rig measures what it says: the mock plays its script, the bare server
//! keeps its word, and the client sees what is lost.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "a test that starts its own servers")]

mod floor;
mod numbers;
mod script;
mod world;
