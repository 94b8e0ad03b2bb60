//! Stories about the words of the protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
