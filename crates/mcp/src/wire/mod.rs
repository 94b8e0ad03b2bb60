//! The wires below rmcp: a started program, and HTTP through the door.

pub(crate) mod http;
pub(crate) mod last_words;
pub(crate) mod line;
pub(crate) mod pending;
pub(crate) mod process;
mod scan;
pub(crate) mod sse;
pub(crate) mod stdio;
