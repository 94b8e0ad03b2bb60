//! One model call over the wire: send, read, and send again while nothing was
//! given away.

use std::collections::VecDeque;
use std::pin::Pin;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, Sleep, sleep};
use toolyard_egress::{Answer, Body, EgressError, Header, Letter, Patience, Verb};

use super::line::{Ask, Attempt, Line};
use super::{Decode, LeftOut, OUTPUT_IN_WORDS, REPLY_BYTES, Refusal, TOOLS_LEFT_OUT, Timeouts, What, fault};
use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};
use crate::retry::noise;

/// Bytes of a refusal that are looked at.
const REFUSAL_BYTES: usize = 64 << 10;

pub(super) struct Session<D> {
    line: Line,
    ask: Ask,
    state: State<D>,
    /// Read, not yet given away.
    ready: VecDeque<Chunk>,
    scratch: Vec<Chunk>,
    /// A chunk was read: no second request from here on, however the bytes
    /// were packed.
    began: bool,
    repeats: u32,
}

enum State<D> {
    Send,
    Read(Box<Reading<D>>),
    Failed(ModelError),
    Over,
}

struct Reading<D> {
    body: Body,
    decoder: D,
    /// Fires when no event came for too long.
    stall: Pin<Box<Sleep>>,
}

impl<D: Decode> Session<D> {
    pub(super) fn new(line: Line, ask: Ask) -> Self {
        Self {
            line,
            ask,
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
                State::Failed(error) => {
                    return Some(Err(error.sealed(&self.line.secrets).of_model(&self.ask.model)));
                }
                State::Send => self.send().await,
                State::Read(reading) => self.read(reading).await,
            };
            self.began |= !self.scratch.is_empty();
            self.make_ready();
            match step {
                Ok(state) => self.state = state,
                Err(error) => self.state = self.after(error).await,
            }
        }
    }

    /// Tools get their names back, and the reply says which tools the vendor
    /// could not take.
    fn make_ready(&mut self) {
        let names = &self.ask.names;
        for mut chunk in self.scratch.drain(..) {
            match &mut chunk {
                Chunk::ToolInputStart { name, .. } | Chunk::ToolCall { name, .. } => {
                    *name = names.given(name).to_owned();
                }
                Chunk::Metadata { value: Value::Object(facts) } => {
                    facts.extend(told(std::mem::take(&mut self.ask.left_out)));
                }
                Chunk::Finish { .. } if !self.ask.left_out.is_empty() => {
                    let facts = told(std::mem::take(&mut self.ask.left_out));
                    self.ready.push_back(Chunk::Metadata { value: Value::Object(facts) });
                }
                Chunk::TextDelta { .. }
                | Chunk::ReasoningDelta { .. }
                | Chunk::ReasoningMetadata { .. }
                | Chunk::ToolInputDelta { .. }
                | Chunk::Source { .. }
                | Chunk::Opaque { .. }
                | Chunk::Part { .. }
                | Chunk::Metadata { .. }
                | Chunk::Usage { .. }
                | Chunk::Finish { .. } => {}
            }
            self.ready.push_back(chunk);
        }
    }

    /// What follows a failure.
    async fn after(&mut self, error: ModelError) -> State<D> {
        if self.began {
            return State::Failed(error.after_first_chunk());
        }
        if !error.retryable() {
            return State::Failed(error);
        }
        match self.line.retry.pause(self.repeats, error.retry_after(), noise()) {
            None => State::Failed(error),
            Some(pause) => {
                self.repeats += 1;
                sleep(pause).await;
                State::Send
            }
        }
    }

    async fn send(&mut self) -> Result<State<D>, ModelError> {
        let timeouts = self.line.timeouts;
        let mut headers = self.line.headers.clone();
        if let Some(sign) = &self.line.sign {
            let url = self.ask.target.exposed();
            let attempt = Attempt { method: "POST", url, headers: &headers, body: &self.ask.body };
            let signed = sign.sign(&attempt)?;
            headers.extend(signed);
        }
        // Whoever stands between here and the vendor may add to it, so it is not signed.
        headers.extend(self.ask.trace.iter().map(|trace| Header::plain("traceparent", trace.to_string())));
        let letter = Letter {
            verb: Verb::Post,
            target: &self.ask.target,
            headers: &headers,
            accept: self.ask.accept,
            body: Some(self.ask.body.clone()),
            patience: Patience { head: timeouts.head, idle: timeouts.idle, bytes: REPLY_BYTES },
        };
        let mut answer = self.line.door.send(letter).await.map_err(fault::of_egress)?;
        if !answer.is_success() {
            return Err(D::refused(&refusal(answer).await));
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
                decoder: D::default(),
                stall: Box::pin(sleep(timeouts.stall)),
            }))),
        }
    }

    /// The vendor did not stream.
    async fn read_whole(&mut self, mut answer: Answer) -> Result<State<D>, ModelError> {
        let body = answer.body.read_all().await.map_err(fault::of_egress)?;
        let mut decoder = D::default();
        decoder.push_whole(&body, &mut self.scratch)?;
        decoder.end(&mut self.scratch)?;
        Ok(State::Over)
    }

    /// One read of the stream.
    async fn read(&mut self, mut reading: Box<Reading<D>>) -> Result<State<D>, ModelError> {
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
                    reading.stall.as_mut().reset(Instant::now() + if whole { tail } else { stall });
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

/// What was left out, as facts about the reply.
fn told(left_out: Vec<LeftOut>) -> Map<String, Value> {
    let mut facts = Map::new();
    let mut tools = Vec::new();
    for LeftOut { what, name, reason } in left_out {
        match what {
            What::Tool => tools.push(json!({ "name": name, "reason": reason })),
            What::Output => drop(facts.insert(OUTPUT_IN_WORDS.to_owned(), Value::from(reason))),
        }
    }
    if !tools.is_empty() {
        facts.insert(TOOLS_LEFT_OUT.to_owned(), Value::from(tools));
    }
    facts
}

pub(super) async fn refusal(mut answer: Answer) -> Refusal {
    let body = answer.body.peek(REFUSAL_BYTES).await;
    Refusal {
        status: answer.status,
        retry_after: answer.retry_after(),
        headers: answer.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}
