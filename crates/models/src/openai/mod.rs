//! OpenAI chat completions, as many vendors and local servers speak them.
//!
//! [`encode`] writes the request, [`Decoder`] reads the reply without any IO.
//! Nothing here knows agents, runs or call ids.

mod body;
mod calls;
mod decode;
mod echo;
pub(crate) mod encode;
pub(crate) mod fault;
mod messages;
mod thoughts;
mod wire;

use secrecy::{ExposeSecret, SecretString};
use toolyard_egress::{Door, Target};

use crate::model::{Model, ModelStream};
use crate::request::Request;
use crate::retry::Retry;
use crate::wire::{Ask, Line, Timeouts, stream};

pub use decode::{Decoder, Listener};
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
        Self { name: name.to_owned(), target, line: line(door, base, key) }
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

/// The way to a server of this vendor's kind. Azure has a header of its own
/// for keys; its tokens go as everybody's.
pub(crate) fn line(door: Door, base: &Target, key: Option<SecretString>) -> Line {
    let is_token = key.as_ref().is_some_and(|key| key.expose_secret().starts_with("eyJ"));
    let line = Line::new(door);
    if base.origin().ends_with(".azure.com") && !is_token {
        line.with_key("api-key", key)
    } else {
        line.with_bearer(key)
    }
}

impl Model for OpenAi {
    fn stream(&self, request: Request) -> ModelStream {
        stream::<Decoder>(self.line.clone(), Ask::new(self.target.clone(), request, encode::write))
    }

    fn provider(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn azure_takes_keys_in_its_own_header() {
        let header = |base: &str, key: &str| {
            let base = Target::parse(base).unwrap();
            let line = line(Door::operator().unwrap(), &base, Some(key.into()));
            let names: Vec<&str> = line.headers.iter().map(|header| header.name()).collect();
            names.join(",")
        };
        assert_eq!(header("https://x.openai.azure.com/openai/v1", "key"), "api-key");
        assert_eq!(header("https://x.openai.azure.com/openai/v1", "eyJhbGciOi"), "authorization");
        assert_eq!(header("https://api.openai.com/v1", "key"), "authorization");
        assert_eq!(header("https://azure.com.example.org/v1", "key"), "authorization");
    }
}
