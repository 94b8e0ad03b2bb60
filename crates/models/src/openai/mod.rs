//! OpenAI chat completions, as many vendors and local servers speak them.
//!
//! [`encode`] writes the request, [`Decoder`] reads the reply without any IO,
//! `session` moves bytes between the door and the decoder and repeats what
//! failed early. Nothing here knows agents, runs or call ids.

mod calls;
mod decode;
mod encode;
mod fault;
mod session;
mod wire;

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use secrecy::SecretString;
use toolyard_egress::{Door, Target};

use crate::model::{Model, ModelStream};
use crate::request::Request;
use crate::retry::Retry;
use session::Session;

pub use decode::Decoder;
pub use encode::encode;

/// Bytes of one event of a stream.
pub const EVENT_BYTES: usize = 4 << 20;
/// Bytes of a whole reply.
pub const REPLY_BYTES: u64 = 64 << 20;

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

/// One configured endpoint. `SecretString` keeps the key out of `Debug`.
#[derive(Debug, Clone)]
pub struct OpenAi {
    name: String,
    line: Line,
}

/// What a request needs to reach the vendor.
#[derive(Debug, Clone)]
struct Line {
    door: Door,
    target: Target,
    key: Option<SecretString>,
    timeouts: Timeouts,
    retry: Retry,
}

impl OpenAi {
    /// Where the vendor itself listens.
    pub const BASE_URL: &'static str = "https://api.openai.com/v1";

    /// `base` is the address above `/chat/completions`.
    pub fn new(name: &str, door: Door, base: &Target, key: Option<SecretString>) -> Self {
        let target = base.below("chat/completions");
        let (timeouts, retry) = (Timeouts::default(), Retry::default());
        Self { name: name.to_owned(), line: Line { door, target, key, timeouts, retry } }
    }

    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.line.timeouts = timeouts;
        self
    }

    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.line.retry = retry;
        self
    }
}

impl Model for OpenAi {
    fn stream(&self, request: Request) -> ModelStream {
        let body = Bytes::from(encode(request).to_string());
        let session = Box::new(Session::new(self.line.clone(), body));
        futures::stream::unfold(session, async |mut session| {
            let item = session.next().await?;
            Some((item, session))
        })
        .boxed()
    }

    fn provider(&self) -> &str {
        &self.name
    }
}
