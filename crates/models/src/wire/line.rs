//! The way to a vendor: the door, the keys, patience, and what one request
//! adds to it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use secrecy::SecretString;
use serde::Serialize;
use toolyard_egress::{Door, Header, Target};
use toolyard_protocol::TraceParent;

use super::session::Session;
use super::{Decode, Encoded, LeftOut, Timeouts};
use crate::error::ModelError;
use crate::model::ModelStream;
use crate::names::Names;
use crate::request::Request;
use crate::retry::Retry;

/// What all requests of a provider have in common. Its `Debug` shows no key.
#[derive(Debug, Clone)]
pub struct Line {
    pub door: Door,
    /// Sent with every request.
    pub headers: Vec<Header>,
    /// Never in an error, however the vendor repeats them.
    pub secrets: Vec<SecretString>,
    pub timeouts: Timeouts,
    pub retry: Retry,
    /// Adds headers to each attempt.
    pub sign: Option<Arc<dyn Sign>>,
}

impl Line {
    pub fn new(door: Door) -> Self {
        Self {
            door,
            headers: Vec::new(),
            secrets: Vec::new(),
            timeouts: Timeouts::default(),
            retry: Retry::default(),
            sign: None,
        }
    }

    /// The key as `authorization: Bearer …`.
    pub fn with_bearer(self, key: Option<SecretString>) -> Self {
        match key {
            Some(key) => {
                let header = Header::bearer(&key);
                self.with_secret(key, header)
            }
            None => self,
        }
    }

    /// The key as a header of its own.
    pub fn with_key(self, name: &'static str, key: Option<SecretString>) -> Self {
        match key {
            Some(key) => {
                let header = Header::secret(name, key.clone());
                self.with_secret(key, header)
            }
            None => self,
        }
    }

    pub fn with_header(mut self, header: Header) -> Self {
        self.headers.push(header);
        self
    }

    fn with_secret(mut self, key: SecretString, header: Header) -> Self {
        self.secrets.push(key);
        self.with_header(header)
    }
}

/// Signs requests. A repeated request is another attempt and gets a signature
/// of its own.
pub trait Sign: Send + Sync + fmt::Debug {
    /// The headers that this attempt gets in addition.
    fn sign(&self, attempt: &Attempt<'_>) -> Result<Vec<Header>, ModelError>;
}

/// What is about to be sent. It has no `Debug`: headers and URL may hold keys.
#[expect(missing_debug_implementations, reason = "headers and URL may hold keys")]
pub struct Attempt<'a> {
    pub method: &'static str,
    pub url: &'a str,
    /// All but `content-type` and `accept`, which need no signature.
    pub headers: &'a [Header],
    pub body: &'a [u8],
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) target: Target,
    /// The model's name at its vendor.
    pub(crate) model: String,
    pub(crate) accept: &'static str,
    pub(crate) body: Bytes,
    pub(crate) names: Names,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) trace: Option<TraceParent>,
}

impl Ask {
    pub(crate) fn new<B: Serialize>(
        target: Target,
        mut request: Request,
        encode: impl FnOnce(Request) -> Encoded<B>,
    ) -> Self {
        let (model, trace) = (request.model.clone(), request.trace.take());
        let Encoded { body, names, left_out } = encode(request);
        let accept = "text/event-stream, application/json";
        // Not by `to_string`: a formatter takes several times as long. Texts as keys cannot fail.
        let body = Bytes::from(serde_json::to_vec(&body).unwrap_or_default());
        Self { target, model, accept, body, names, left_out, trace }
    }
}

/// The reply to a request, read by `D`. Nothing is sent before it is polled.
pub(crate) fn stream<D: Decode>(line: Line, ask: Ask) -> ModelStream {
    let session = Box::new(Session::<D>::new(line, ask));
    futures::stream::unfold(session, async |mut session| {
        let item = session.next().await?;
        Some((item, session))
    })
    .boxed()
}
