//! OpenAI chat completions, as many vendors and local servers speak them.
//!
//! [`encode`] writes the request, [`Decoder`] reads the reply without any IO.
//! Nothing here knows agents, runs or call ids.

mod calls;
mod decode;
mod encode;
pub(crate) mod fault;
mod thoughts;
mod wire;

use secrecy::SecretString;
use toolyard_egress::{Door, Target};

use crate::model::{Model, ModelStream};
use crate::request::Request;
use crate::retry::Retry;
use crate::wire::{Ask, Line, Timeouts, stream};

pub use decode::Decoder;
pub use encode::encode;

/// One configured endpoint. Its `Debug` shows no key.
#[derive(Debug, Clone)]
pub struct OpenAi {
    name: String,
    target: Target,
    line: Line,
}

impl OpenAi {
    /// Where the vendor itself listens.
    pub const BASE_URL: &'static str = "https://api.openai.com/v1";

    /// `base` is the address above `/chat/completions`.
    pub fn new(name: &str, door: Door, base: &Target, key: Option<SecretString>) -> Self {
        let target = base.below("chat/completions");
        Self { name: name.to_owned(), target, line: Line::new(door).with_bearer(key) }
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
        stream::<Decoder>(self.line.clone(), Ask::new(self.target.clone(), encode(request)))
    }

    fn provider(&self) -> &str {
        &self.name
    }
}
