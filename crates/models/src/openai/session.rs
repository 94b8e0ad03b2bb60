//! One model call over the wire: send, read, and send again while nothing was
//! given away.

use std::collections::VecDeque;
use std::pin::Pin;

use bytes::Bytes;
use tokio::time::{Sleep, sleep};
use toolyard_egress::{Answer, Body, EgressError, Letter, Patience, Verb};

use super::{Decoder, Line, REPLY_BYTES, Timeouts, fault};
use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};
use crate::retry::noise;

/// Bytes of a refusal that are looked at.
const REFUSAL_BYTES: usize = 64 << 10;

pub(super) struct Session {
    line: Line,
    body: Bytes,
    state: State,
    /// Read, not yet given away.
    ready: VecDeque<Chunk>,
    scratch: Vec<Chunk>,
    /// A chunk was read: no second request from here on, however the bytes
    /// were packed.
    began: bool,
    repeats: u32,
}

enum State {
    Send,
    Read(Box<Reading>),
    Failed(ModelError),
    Over,
}

struct Reading {
    body: Body,
    decoder: Decoder,
    /// Fires when no event came for too long.
    stall: Pin<Box<Sleep>>,
}

impl Session {
    pub(super) fn new(line: Line, body: Bytes) -> Self {
        Self {
            line,
            body,
            state: State::Send,
            ready: VecDeque::new(),
            scratch: Vec::new(),
            began: false,
            repeats: 0,
        }
    }

    pub(super) async fn next(&mut self) -> Option<Result<Chunk, ModelError>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some(Ok(chunk));
            }
            let step = match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return None,
                State::Failed(error) => return Some(Err(error.sealed(self.line.key.as_ref()))),
                State::Send => self.send().await,
                State::Read(reading) => self.read(reading).await,
            };
            self.began |= !self.scratch.is_empty();
            self.ready.extend(self.scratch.drain(..));
            match step {
                Ok(state) => self.state = state,
                Err(error) => self.state = self.after(error).await,
            }
        }
    }

    /// What follows a failure.
    async fn after(&mut self, error: ModelError) -> State {
        if self.began {
            return State::Failed(error.after_first_chunk());
        }
        if !error.retryable() {
            return State::Failed(error);
        }
        let asked = match &error {
            ModelError::Overloaded { retry_after, .. } => *retry_after,
            _ => None,
        };
        match self.line.retry.pause(self.repeats, asked, noise()) {
            None => State::Failed(error),
            Some(pause) => {
                self.repeats += 1;
                sleep(pause).await;
                State::Send
            }
        }
    }

    async fn send(&mut self) -> Result<State, ModelError> {
        let timeouts = self.line.timeouts;
        let letter = Letter {
            verb: Verb::Post,
            target: &self.line.target,
            bearer: self.line.key.as_ref(),
            accept: "text/event-stream, application/json",
            body: Some(self.body.clone()),
            patience: Patience { head: timeouts.head, idle: timeouts.idle, bytes: REPLY_BYTES },
        };
        let mut answer = self.line.door.send(letter).await.map_err(fault::of_egress)?;
        if !answer.is_success() {
            let body = answer.body.peek(REFUSAL_BYTES).await;
            let body = String::from_utf8_lossy(&body);
            return Err(fault::of_status(answer.status, answer.retry_after(), &body));
        }
        match answer.media_type().as_deref() {
            Some("application/json") => self.read_whole(answer).await,
            Some(html @ ("text/html" | "application/xhtml+xml")) => {
                let start = answer.body.peek(1024).await;
                let start = String::from_utf8_lossy(&start);
                Err(ModelError::Unreadable { detail: Detail::new(format!("{html}: {start}")) })
            }
            // Some servers give their event streams no type or a wrong one.
            _ => Ok(State::Read(Box::new(Reading {
                body: answer.body,
                decoder: Decoder::new(),
                stall: Box::pin(sleep(timeouts.stall)),
            }))),
        }
    }

    /// The vendor did not stream.
    async fn read_whole(&mut self, mut answer: Answer) -> Result<State, ModelError> {
        let body = answer.body.read_all().await.map_err(fault::of_egress)?;
        let mut decoder = Decoder::new();
        decoder.push_whole(&body, &mut self.scratch)?;
        decoder.end(&mut self.scratch)?;
        Ok(State::Over)
    }

    /// One read of the stream.
    async fn read(&mut self, mut reading: Box<Reading>) -> Result<State, ModelError> {
        let stall = self.line.timeouts.stall;
        let read = tokio::select! {
            biased;
            read = reading.body.next() => read,
            () = &mut reading.stall => Err(EgressError::Timeout { after: stall }),
        };
        let decoder = &mut reading.decoder;
        match read {
            Ok(Some(bytes)) => {
                let seen = decoder.events_seen();
                decoder.push(&bytes, &mut self.scratch)?;
                if decoder.is_done() {
                    decoder.end(&mut self.scratch)?;
                    return Ok(State::Over);
                }
                let moved = decoder.events_seen() > seen;
                let whole = decoder.is_whole();
                let Timeouts { stall, tail, .. } = self.line.timeouts;
                if whole {
                    reading.body.set_idle(tail);
                }
                if moved {
                    reading.stall = Box::pin(sleep(if whole { tail } else { stall }));
                }
                Ok(State::Read(reading))
            }
            Ok(None) => {
                decoder.end(&mut self.scratch)?;
                Ok(State::Over)
            }
            // The reply may be whole, with only usage or the end mark missing.
            Err(error) => match decoder.end(&mut self.scratch) {
                Ok(()) => Ok(State::Over),
                Err(ModelError::Cut { .. }) => Err(fault::of_egress(error)),
                Err(told) => Err(told),
            },
        }
    }
}
