//! What all vendors share: how a request travels and how a reply is read.
//!
//! A vendor brings an encoder (a [`crate::Request`] in, an [`Encoded`] out)
//! and a [`Decode`]r (bytes in, chunks out), both without any IO. The session
//! moves the bytes, repeats what failed early, and gives tools their own
//! names back. Nothing here knows a vendor.

mod fault;
mod line;
mod once;
mod session;

use std::time::Duration;

use serde_json::Value;
use toolyard_protocol::run::FinishReason;

use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};
use crate::names::Names;

pub(crate) use fault::parse;
pub(crate) use line::{Ask, stream};
pub use line::{Attempt, Line, Sign};
pub(crate) use once::ask;

/// Bytes of one event of a stream.
pub const EVENT_BYTES: usize = 4 << 20;
/// Bytes of a whole reply.
pub const REPLY_BYTES: u64 = 64 << 20;

/// The fact of a reply that lists the tools that the vendor could not take:
/// `[{name, reason}]`.
pub const TOOLS_LEFT_OUT: &str = "toolsLeftOut";
/// The fact that says why the form of the answer was only asked for in words.
pub const OUTPUT_IN_WORDS: &str = "outputInWords";

/// Reads one reply, without IO: the same bytes give the same chunks at every
/// split.
///
/// Feed [`Decode::push`] until [`Decode::is_done`] or the bytes end, then call
/// [`Decode::end`] once. After an error it must be dropped.
pub trait Decode: Default + Send + 'static {
    /// Takes bytes of a stream.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Chunk>) -> Result<(), ModelError>;
    /// Takes a reply that was not streamed.
    fn push_whole(&mut self, body: &[u8], out: &mut Vec<Chunk>) -> Result<(), ModelError>;
    /// The bytes ended. Tells what is left, then the finish, or that the
    /// stream was cut.
    fn end(&mut self, out: &mut Vec<Chunk>) -> Result<(), ModelError>;
    /// The end mark was read; nothing more is expected.
    fn is_done(&self) -> bool;
    /// The model said why it stopped: the reply is whole, though usage may
    /// still come.
    fn is_whole(&self) -> bool;
    /// How many events were read. What only keeps the connection alive does
    /// not count.
    fn events_seen(&self) -> u64;
    /// What an answer that is no success means.
    fn refused(refusal: &Refusal) -> ModelError;
}

/// A reply that a filter ended before it said anything is no reply: the caller
/// is told why there is none. `start` is where the end of the reply begins.
pub(crate) fn unless_filtered(told: bool, start: usize, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
    let end = &out[start..];
    let tail =
        |chunk: &Chunk| matches!(chunk, Chunk::Metadata { .. } | Chunk::Usage { .. } | Chunk::Finish { .. });
    let filtered = matches!(end.last(), Some(Chunk::Finish { reason: FinishReason::ContentFilter }));
    if told || !filtered || !end.iter().all(tail) {
        return Ok(());
    }
    let facts = end.iter().find_map(|chunk| match chunk {
        Chunk::Metadata { value } => Some(value.to_string()),
        _ => None,
    });
    out.truncate(start);
    Err(ModelError::Filtered { detail: Detail::new(facts.unwrap_or_default()) })
}

/// An answer that is no success.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusal {
    pub status: u16,
    /// How long the vendor asks us to stay away.
    pub retry_after: Option<Duration>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The start of the body.
    pub body: String,
}

impl Refusal {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// A request in a vendor's words.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded<B = Value> {
    pub body: B,
    /// The tools' names on this wire.
    pub names: Names,
    /// What the vendor could not take.
    pub left_out: Vec<LeftOut>,
}

/// What a vendor could not take as it was, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub what: What,
    pub name: String,
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The model is not offered this tool.
    Tool,
    /// The form of the answer is only asked for in words.
    Output,
}

impl LeftOut {
    pub(crate) fn tool(name: String, why: &impl ToString) -> Self {
        Self { what: What::Tool, name, reason: why.to_string() }
    }
}

/// How long a vendor may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To the head of the answer.
    pub head: Duration,
    /// Between two reads.
    pub idle: Duration,
    /// Between two events: keep-alive comments are no progress.
    pub stall: Duration,
    /// For usage and the end mark after the reply is whole.
    pub tail: Duration,
}

impl Timeouts {
    /// For vendors whose models may think for minutes before a word, or even
    /// before the head of the answer.
    pub fn for_thinkers() -> Self {
        Self {
            head: Duration::from_secs(300),
            idle: Duration::from_secs(300),
            stall: Duration::from_secs(600),
            ..Self::default()
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(60),
            idle: Duration::from_secs(120),
            stall: Duration::from_secs(300),
            tail: Duration::from_secs(5),
        }
    }
}
