//! OpenAI Responses, stateless: the vendor stores nothing, and what it wants
//! back travels with the conversation.
//!
//! [`encode`] writes the request, [`Decoder`] reads the reply; neither does
//! any IO. Nothing here knows agents, runs or call ids.

mod calls;
mod decode;
mod encode;
mod fault;
mod items;
mod speech;
mod wire;

use secrecy::SecretString;
use toolyard_egress::{Door, Target};

use crate::model::{Model, ModelStream};
use crate::openai::line;
use crate::request::Request;
use crate::retry::Retry;
use crate::wire::{Ask, Line, Timeouts, stream};

pub use decode::{Decoder, Listener};
pub use encode::encode;

/// The name under which metadata of this wire travels.
pub const WIRE: &str = "openai-responses";

/// One configured endpoint. Its `Debug` shows no key.
#[derive(Debug, Clone)]
pub struct Responses {
    name: String,
    target: Target,
    line: Line,
}

impl Responses {
    /// Where the vendor itself listens.
    pub const BASE_URL: &'static str = "https://api.openai.com/v1";

    /// `base` is the address above `/responses`.
    pub fn new(name: &str, door: Door, base: &Target, key: Option<SecretString>) -> Self {
        let target = base.below("responses");
        let model = Self { name: name.to_owned(), target, line: line(door, base, key) };
        model.with_timeouts(Timeouts::for_thinkers())
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

impl Model for Responses {
    fn stream(&self, request: Request) -> ModelStream {
        stream::<Decoder>(self.line.clone(), Ask::new(self.target.clone(), request, encode))
    }

    fn provider(&self) -> &str {
        &self.name
    }
}
