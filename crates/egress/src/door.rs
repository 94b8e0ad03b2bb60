//! Shared clients behind one policy.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use toolyard_protocol::limits;
use url::Url;

use crate::answer::Answer;
use crate::client::{Client, Response, request};
use crate::connect::CONNECT;
use crate::error::EgressError;
use crate::guard::{self, Leave, Only, Opened};
use crate::header::Header;
use crate::hop;
use crate::names::{self, Checked, Lookup, Names, SystemNames};
use crate::target::Target;

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
    Put,
    Patch,
    Delete,
}

impl Verb {
    fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }
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

/// A whole answer.
#[derive(Clone)]
pub struct Whole {
    pub status: u16,
    /// The headers that are text; names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl fmt::Debug for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Whole").field("status", &self.status).finish_non_exhaustive()
    }
}

/// The door. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Door {
    policy: Policy,
    /// Narrower than the policy.
    only: Option<Arc<Only>>,
}

#[derive(Clone)]
enum Policy {
    Operator(Client),
    Guarded(Arc<Guarded>),
}

/// Two clients that never share a connection: one looks at every address of a
/// name before it connects, the other serves what the operator opened.
struct Guarded {
    public: Client,
    open: Client,
    opened: Opened,
    names: Arc<dyn Names>,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.policy {
            Policy::Operator(_) => "Door(operator)",
            Policy::Guarded(_) => "Door(guarded)",
        })
    }
}

impl Door {
    /// Opens to addresses that the operator configured.
    pub fn operator() -> Result<Self, EgressError> {
        let names = Checked { names: Arc::new(SystemNames), public_only: false };
        Ok(Self { policy: Policy::Operator(Client::new(names)?), only: None })
    }

    /// Opens to the public internet and to what the operator opened. For every
    /// address that somebody else wrote.
    pub fn guarded(opened: Opened) -> Result<Self, EgressError> {
        Self::guarded_by(opened, Arc::new(SystemNames))
    }

    /// The same with another name service.
    pub fn guarded_by(opened: Opened, names: Arc<dyn Names>) -> Result<Self, EgressError> {
        let client = |public_only| Client::new(Checked { names: names.clone(), public_only });
        let guarded = Guarded { public: client(true)?, open: client(false)?, opened, names: names.clone() };
        Ok(Self { policy: Policy::Guarded(Arc::new(guarded)), only: None })
    }

    /// The same door for these hosts alone. A redirect does not lead to others.
    #[must_use]
    pub fn only(&self, hosts: Only) -> Self {
        Self { policy: self.policy.clone(), only: Some(Arc::new(hosts)) }
    }

    /// Reads an address for this door. Touches no network: a name is looked at
    /// when it is used.
    pub fn target(&self, text: &str) -> Result<Target, EgressError> {
        let target = match &self.policy {
            Policy::Operator(_) => Target::parse(text),
            Policy::Guarded(guarded) => guard::read(text, &guarded.opened),
        }?;
        self.check_only(target.url())?;
        Ok(target)
    }

    fn check_only(&self, url: &Url) -> Result<(), EgressError> {
        self.only.as_ref().map_or(Ok(()), |only| only.check(url))
    }

    /// Would this door open to the address? Asks the name service, so that
    /// whoever stores an address can refuse it early. A name that is unknown
    /// today passes: each request is checked again.
    pub async fn is_allowed(&self, text: &str) -> Result<Target, EgressError> {
        let target = self.target(text)?;
        let Policy::Guarded(guarded) = &self.policy else { return Ok(target) };
        let url = target.url();
        if let (Leave::Public, Some(url::Host::Domain(name))) =
            (guard::leave(url, &guarded.opened)?, url.host())
        {
            let looked = tokio::time::timeout(CONNECT, names::public(guarded.names.as_ref(), name)).await;
            if let Ok(Err(Lookup::Inside)) = looked {
                return Err(EgressError::Inside);
            }
        }
        Ok(target)
    }

    /// Sends and returns once the head of the answer is here, whatever its
    /// status. To the operator's door a redirect is an answer; the guarded one
    /// follows it and checks every hop.
    pub async fn send(&self, letter: Letter<'_>) -> Result<Answer, EgressError> {
        let patience = letter.patience;
        self.check_only(letter.target.url())?;
        let sent = async {
            match &self.policy {
                Policy::Operator(client) => {
                    let write = || {
                        let (method, uri) = (letter.verb.method(), letter.target.uri()?);
                        Ok(request(method, uri, head_of(&letter)?, letter.body.clone()))
                    };
                    client.send(write).await
                }
                Policy::Guarded(guarded) => guarded.follow(&letter, self.only.as_deref()).await,
            }
        };
        match tokio::time::timeout(patience.head, sent).await {
            Err(_) => Err(EgressError::Timeout { after: patience.head }),
            Ok(sent) => Ok(Answer::new(sent?, patience)),
        }
    }

    /// Sends and reads all of the answer, within `total` from the first byte
    /// to the last.
    pub async fn ask(&self, letter: Letter<'_>, total: Duration) -> Result<Whole, EgressError> {
        let asked = async {
            let mut answer = self.send(letter).await?;
            let body = answer.body.read_all().await?;
            let headers = answer.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            Ok(Whole { status: answer.status, headers, body })
        };
        tokio::time::timeout(total, asked).await.unwrap_or(Err(EgressError::Timeout { after: total }))
    }
}

impl Guarded {
    fn leave_to(&self, url: &Url, only: Option<&Only>) -> Result<Leave, EgressError> {
        let leave = guard::leave(url, &self.opened)?;
        only.map_or(Ok(leave), |only| only.check(url).map(|()| leave))
    }

    async fn follow(&self, letter: &Letter<'_>, only: Option<&Only>) -> Result<Response, EgressError> {
        let mut headers = head_of(letter)?;
        let (mut target, mut method) = (Cow::Borrowed(letter.target), letter.verb.method());
        let mut body = letter.body.as_ref();
        let mut leave = guard::leave(target.url(), &self.opened)?;
        for hops in 0..=limits::REDIRECTS {
            let client = match leave {
                Leave::Opened => &self.open,
                Leave::Public => &self.public,
            };
            let write = || Ok(request(method.clone(), target.uri()?, headers.clone(), body.cloned()));
            let sent = client.send(write).await;
            let response = if hops == 0 { sent? } else { sent.map_err(EgressError::behind_a_redirect)? };
            let location = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
            let hop = hop::next(target.url(), &method, response.status(), location, body.is_some());
            let Some(hop) = hop.map_err(EgressError::behind_a_redirect)? else { return Ok(response) };
            let to = self.leave_to(&hop.url, only).map_err(EgressError::behind_a_redirect)?;
            if !leave.may_lead_to(to) {
                return Err(EgressError::Inside);
            }
            if !hop.keeps_body {
                body = None;
                headers.remove(CONTENT_TYPE);
            }
            if hop.stranger {
                headers.clear();
                headers.insert(ACCEPT, HeaderValue::from_static(letter.accept));
            }
            (target, method, leave) = (Cow::Owned(Target::of(hop.url)), hop.method, to);
        }
        Err(EgressError::Redirects { limit: limits::REDIRECTS })
    }
}

/// The headers of a letter. The caller's own `accept` and `content-type` win.
fn head_of(letter: &Letter<'_>) -> Result<HeaderMap, EgressError> {
    let mut map = HeaderMap::new();
    for header in letter.headers {
        let name = HeaderName::from_bytes(header.name().as_bytes())
            .map_err(|_| EgressError::Refused("a header's name has characters that it cannot carry"))?;
        map.append(name, header.to_value()?);
    }
    if !map.contains_key(ACCEPT) {
        map.insert(ACCEPT, HeaderValue::from_static(letter.accept));
    }
    if letter.body.is_some() && !map.contains_key(CONTENT_TYPE) {
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    Ok(map)
}
