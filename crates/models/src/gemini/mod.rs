//! Google's Gemini API, streamed.
//!
//! [`encode`] writes the request, [`Decoder`] reads the reply; neither does
//! any IO. Nothing here knows agents, runs or call ids.

mod contents;
mod decode;
mod encode;
mod fault;
mod grounding;
mod version;
mod wire;

use futures::StreamExt;
use secrecy::SecretString;
use toolyard_egress::{Door, Target};

use crate::error::{Detail, ModelError};
use crate::model::{Model, ModelStream};
use crate::request::Request;
use crate::retry::Retry;
use crate::wire::{Ask, Line, Timeouts, stream};

pub use decode::{Decoder, Listener};
pub use encode::encode;

/// The name under which metadata of this wire travels.
pub const WIRE: &str = "gemini";

/// One configured endpoint. Its `Debug` shows no key.
#[derive(Debug, Clone)]
pub struct Gemini {
    name: String,
    base: Target,
    line: Line,
}

impl Gemini {
    /// Where the vendor itself listens.
    pub const BASE_URL: &'static str = "https://generativelanguage.googleapis.com/v1beta";

    /// `base` is the address above `/models`.
    pub fn new(name: &str, door: Door, base: &Target, key: Option<SecretString>) -> Self {
        let line = Line::new(door).with_key("x-goog-api-key", key);
        let model = Self { name: name.to_owned(), base: base.clone(), line };
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

impl Model for Gemini {
    fn stream(&self, request: Request) -> ModelStream {
        let Some(path) = path_of(&request.model) else {
            let detail = Detail::new("the model's name cannot be part of an address");
            let error = ModelError::unknown_model(detail).of_model(&request.model);
            return futures::stream::iter([Err(error)]).boxed();
        };
        let target = self.base.below(&format!("{path}:streamGenerateContent")).asking("alt", "sse");
        stream::<Decoder>(self.line.clone(), Ask::new(target, request, encode))
    }

    fn provider(&self) -> &str {
        &self.name
    }
}

/// The model's place below the base. A name is part of an address here, so it
/// must not lead anywhere else.
pub(crate) fn path_of(model: &str) -> Option<String> {
    let (folder, name) = model.split_once('/').unwrap_or(("models", model));
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let plain = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(fits);
    (plain && matches!(folder, "models" | "tunedModels")).then(|| format!("{folder}/{name}"))
}
