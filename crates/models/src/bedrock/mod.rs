//! Amazon Bedrock: the Converse API, which speaks for many families of models.
//!
//! [`encode`] writes the request, [`Decoder`] reads the reply without any IO.
//! The stream is Amazon's own framing (`frames`), and each attempt is signed
//! anew unless there is a bearer key ([`Access`]). Nothing here knows agents,
//! runs or call ids.

mod access;
mod blocks;
mod decode;
mod encode;
mod fault;
mod files;
mod frames;
mod ids;
mod replay;
mod shapes;
mod thinking;
mod turns;

use std::sync::Arc;

use futures::StreamExt;
use toolyard_egress::{Door, Target};

use crate::error::{Detail, ModelError};
use crate::model::{Model, ModelStream};
use crate::request::Request;
use crate::retry::Retry;
use crate::wire::{Ask, Line, Timeouts, stream};

pub use access::{Access, NoPlace, Place, Signer};
pub use decode::Decoder;
pub use encode::encode;

/// The name of this wire in metadata and options.
pub(crate) const WIRE: &str = "bedrock";

/// One region, or what answers in its place. Its `Debug` shows no key.
#[derive(Debug, Clone)]
pub struct Bedrock {
    name: String,
    base: Target,
    line: Line,
}

impl Bedrock {
    /// `base` is the address above `/model`.
    pub fn new(name: &str, door: Door, base: &Target, region: &str, access: Access) -> Self {
        Self { name: name.to_owned(), base: base.clone(), line: line(door, region, access) }
    }

    /// Signs otherwise than by the account's keys and the clock.
    pub fn with_signer(mut self, signer: Signer) -> Self {
        self.line.sign = Some(Arc::new(signer));
        self
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

pub(crate) fn line(door: Door, region: &str, access: Access) -> Line {
    let mut line = Line::new(door);
    match access {
        Access::Bearer(key) => line.with_bearer(Some(key)),
        Access::Keys { id, secret, session } => {
            line.sign = Some(Arc::new(Signer::new(region, &id, &secret, session.as_ref())));
            line.secrets.push(secret);
            line.secrets.extend(session);
            line
        }
    }
}

/// The address of something that a model does. Names of models hold colons and
/// slashes; each counts as one piece of the path.
pub(crate) fn address(base: &Target, model: &str, verb: &str) -> Result<Target, ModelError> {
    // A piece of dots alone would climb out of the path.
    if model.chars().all(|c| c == '.') {
        let detail = Detail::new(format!("{model:?} is no name of a model"));
        return Err(ModelError::unknown_model(detail).of_model(model));
    }
    let mut piece = String::with_capacity(model.len());
    for byte in model.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => piece.push(byte.into()),
            other => piece.push_str(&format!("%{other:02X}")),
        }
    }
    Ok(base.below(&format!("model/{piece}/{verb}")))
}

impl Model for Bedrock {
    fn stream(&self, request: Request) -> ModelStream {
        match address(&self.base, &request.model, "converse-stream") {
            Ok(target) => {
                let mut ask = Ask::new(target, request, encode);
                ask.accept = "application/vnd.amazon.eventstream, application/json";
                stream::<Decoder>(self.line.clone(), ask)
            }
            Err(error) => futures::stream::iter([Err(error)]).boxed(),
        }
    }

    fn provider(&self) -> &str {
        &self.name
    }
}
