//! One shared client behind one policy.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};

use crate::answer::Answer;
use crate::error::EgressError;
use crate::header::Header;
use crate::target::Target;

/// How long a call may take to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an unused connection is kept.
const IDLE_CONNECTION: Duration = Duration::from_secs(60);

/// How long the caller waits, and for how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// From the request to the head of the answer.
    pub head: Duration,
    /// Between two pieces of the body.
    pub idle: Duration,
    /// Bytes of the whole body.
    pub bytes: u64,
}

/// What is asked of the far side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
    Delete,
}

/// One request; a body is JSON unless a header says otherwise.
#[derive(Clone)]
pub struct Letter<'a> {
    pub verb: Verb,
    pub target: &'a Target,
    /// Beside the ones that the door writes itself.
    pub headers: &'a [Header],
    /// What the caller wants to read.
    pub accept: &'static str,
    pub body: Option<Bytes>,
    pub patience: Patience,
}

impl fmt::Debug for Letter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Letter")
            .field("verb", &self.verb)
            .field("target", self.target)
            .field("bytes", &self.body.as_ref().map_or(0, Bytes::len))
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// The door. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Door {
    client: reqwest::Client,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Door(operator)")
    }
}

impl Door {
    /// Opens to addresses that the operator configured.
    pub fn operator() -> Result<Self, EgressError> {
        // A machine without CA certificates fails the first build: the roots
        // inside the binary serve it.
        let client = builder().build().or_else(|_| builder().tls_certs_only(bundled_roots()).build());
        Ok(Self { client: client.map_err(EgressError::Unavailable)? })
    }

    /// Sends and returns once the head of the answer is here, whatever its
    /// status. Redirects are answers, not instructions.
    pub async fn send(&self, letter: Letter<'_>) -> Result<Answer, EgressError> {
        let verb = match letter.verb {
            Verb::Get => reqwest::Method::GET,
            Verb::Post => reqwest::Method::POST,
            Verb::Delete => reqwest::Method::DELETE,
        };
        let mut request = self
            .client
            .request(verb, letter.target.url())
            .header(ACCEPT, HeaderValue::from_static(letter.accept));
        for header in letter.headers {
            request = request.header(header.name(), header.to_value()?);
        }
        if let Some(body) = letter.body {
            // A caller that sends something else than JSON says so.
            if !letter.headers.iter().any(|header| header.name().eq_ignore_ascii_case(CONTENT_TYPE.as_str()))
            {
                request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
            request = request.body(body);
        }
        match tokio::time::timeout(letter.patience.head, request.send()).await {
            Err(_) => Err(EgressError::Timeout { after: letter.patience.head }),
            Ok(Err(cause)) => Err(EgressError::Unreachable(cause.without_url())),
            Ok(Ok(response)) => Ok(Answer::new(response, letter.patience)),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the door is the one place that builds HTTP clients")]
fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(concat!("toolyard/", env!("CARGO_PKG_VERSION")))
        // A proxy from the environment would see the operator's keys.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .tcp_nodelay(true)
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE_CONNECTION)
}

fn bundled_roots() -> Vec<reqwest::Certificate> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .filter_map(|der| reqwest::Certificate::from_der(der).ok())
        .collect()
}
