//! A reply as server-sent events. [`SseDecoder`] splits the bytes, a
//! [`Listen`]er understands one vendor's events; neither does any IO.

use toolyard_protocol::sse::{SseEvent, SseSplitter};

use crate::chunk::Chunk;
use crate::error::ModelError;
use crate::wire::{Decode, EVENT_BYTES, Refusal, unless_filtered};

/// Understands the events of one reply.
pub trait Listen: Default + Send + 'static {
    /// Takes one event. Not called after [`Listen::is_done`].
    fn hear(&mut self, event: &SseEvent, out: &mut Vec<Chunk>) -> Result<(), ModelError>;
    /// Takes a reply that was not streamed.
    fn hear_whole(&mut self, body: &str, out: &mut Vec<Chunk>) -> Result<(), ModelError>;
    /// Tells what is left and the finish, or that the reply was cut.
    fn close(&mut self, out: &mut Vec<Chunk>) -> Result<(), ModelError>;
    /// Nothing more is expected.
    fn is_done(&self) -> bool;
    /// The reply is whole, though usage may still come.
    fn is_whole(&self) -> bool;
    /// Events so far that only kept the connection alive.
    fn idle(&self) -> u64 {
        0
    }
    /// What an answer that is no success means.
    fn refused(refusal: &Refusal) -> ModelError;
}

/// Reads one reply.
#[derive(Debug)]
pub struct SseDecoder<L> {
    splitter: SseSplitter,
    seen: u64,
    /// Something of the reply was told.
    told: bool,
    listener: L,
}

impl<L: Listen> Default for SseDecoder<L> {
    fn default() -> Self {
        Self { splitter: SseSplitter::new(EVENT_BYTES), seen: 0, told: false, listener: L::default() }
    }
}

impl<L: Listen> Decode for SseDecoder<L> {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let Self { splitter, seen, told, listener } = self;
        let (mut heard, before) = (Ok(()), out.len());
        let split = splitter.each(bytes, |event| {
            if heard.is_ok() && !listener.is_done() {
                *seen += 1;
                heard = listener.hear(event, out);
            }
        });
        *told |= out.len() > before;
        // Events that came before one that is too large still count.
        heard?;
        if self.listener.is_done() {
            return Ok(());
        }
        split.map_err(|large| ModelError::TooLarge { limit: large.limit as u64 })
    }

    fn push_whole(&mut self, body: &[u8], out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let before = out.len();
        let heard = self.listener.hear_whole(&String::from_utf8_lossy(body), out);
        self.told |= out.len() > before;
        heard
    }

    fn end(&mut self, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        if !self.listener.is_done() {
            // Some servers forget the last empty line. An event that is only
            // half there is part of the cut, not an error of its own.
            match self.push(b"\n\n", out) {
                Ok(()) | Err(ModelError::Unreadable { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let start = out.len();
        self.listener.close(out)?;
        unless_filtered(self.told, start, out)
    }

    fn is_done(&self) -> bool {
        self.listener.is_done()
    }

    fn is_whole(&self) -> bool {
        self.listener.is_whole()
    }

    fn events_seen(&self) -> u64 {
        self.seen.saturating_sub(self.listener.idle())
    }

    fn refused(refusal: &Refusal) -> ModelError {
        L::refused(refusal)
    }
}
