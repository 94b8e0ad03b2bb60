//! Anthropic's Messages API.
//!
//! [`encode`] writes the request, [`Decoder`] reads the reply without any IO.
//! Thinking, citations and the blocks of tools that run at the vendor go back
//! unchanged and in order; `replay` says how their places are kept.

mod block;
mod decode;
mod encode;
mod fault;
mod files;
mod options;
mod replay;
mod talk;
pub(crate) mod thinking;
mod tools;
mod wire;

use secrecy::SecretString;
use toolyard_egress::{Door, Header, Target};

use crate::model::{Model, ModelStream};
use crate::request::Request;
use crate::retry::Retry;
use crate::wire::{Ask, Line, Timeouts, stream};

pub use decode::{Decoder, Listener};
pub use encode::encode;

/// The name of this wire in metadata and in `provider_options`.
const WIRE: &str = "anthropic";
/// The version of the API that this code knows.
const VERSION: &str = "2023-06-01";

/// One configured endpoint. Its `Debug` shows no key.
#[derive(Debug, Clone)]
pub struct Anthropic {
    name: String,
    target: Target,
    line: Line,
}

impl Anthropic {
    /// Where the vendor itself listens.
    pub const BASE_URL: &'static str = "https://api.anthropic.com/v1";

    /// `base` is the address above `/messages`.
    pub fn new(name: &str, door: Door, base: &Target, key: Option<SecretString>) -> Self {
        let version = Header::plain("anthropic-version", VERSION);
        let line = Line::new(door).with_key("x-api-key", key).with_header(version);
        Self { name: name.to_owned(), target: base.below("messages"), line }
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

impl Model for Anthropic {
    fn stream(&self, request: Request) -> ModelStream {
        let mut line = self.line.clone();
        if let Some(betas) = options::betas(&request) {
            line = line.with_header(Header::plain("anthropic-beta", betas));
        }
        stream::<Decoder>(line, Ask::new(self.target.clone(), request, encode))
    }

    fn provider(&self) -> &str {
        &self.name
    }
}
