//! rmcp's HTTP client over the one door. rmcp decides what to send; this file
//! sends it, and says what came back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use secrecy::SecretString;
use serde_json::Value;
use tokio::sync::watch;
use toolyard_egress::{Answer, Door, EgressError, Header, Letter, Patience, Target, Verb};
use toolyard_protocol::limits;

use super::line::id_of;
use super::pending::{Pending, Spoilt, spoilt};
use super::sse::{self, Events};
use crate::fault::Fault;
use crate::settings::Remote;

/// The timers of a call decide; the door only must not be faster.
const LONG: Duration = Duration::from_millis(limits::MCP_TIMEOUT_MAX_MS);
/// For what nobody waits long: the end of a session.
const SHORT: Duration = Duration::from_secs(5);
/// How long a server may take to open its own stream.
const STREAM: Duration = Duration::from_secs(3);
/// Redirects within one origin that are followed.
const HOPS: usize = 5;
/// Bytes of a refusal that an error may quote.
const QUOTE: usize = 4096;
const ACCEPT: &str = "text/event-stream, application/json";

/// Gives the token of the user whom a connection serves.
pub(crate) trait Bearer: Send + Sync {
    /// `None` if the user has not logged in.
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, String>>;
    /// A new token in place of one that the server refused, if there can be one.
    fn renewed(&self) -> BoxFuture<'_, Result<Option<SecretString>, String>>;
}

/// One server behind the door, with the credentials of one owner.
#[derive(Clone)]
pub(crate) struct DoorClient {
    inner: Arc<Inner>,
}

struct Inner {
    door: Door,
    target: Target,
    headers: Vec<Header>,
    pending: Arc<Pending>,
    bearer: Option<Arc<dyn Bearer>>,
    asked_for_sse: bool,
    /// The server gave a session: it may send what it likes on a stream.
    has_session: AtomicBool,
    /// The request for that stream was answered, in whatever way.
    stream: watch::Sender<bool>,
}

type HttpError = StreamableHttpError<EgressError>;

impl DoorClient {
    pub(crate) fn new(
        door: Door,
        remote: &Remote,
        pending: Arc<Pending>,
        bearer: Option<Arc<dyn Bearer>>,
    ) -> Self {
        let headers =
            remote.headers.iter().map(|(name, value)| Header::secret(name.clone(), value.clone())).collect();
        let (target, asked_for_sse) = (remote.target.clone(), remote.asked_for_sse);
        let inner = Inner {
            door,
            target,
            headers,
            pending,
            bearer,
            asked_for_sse,
            has_session: AtomicBool::new(false),
            stream: watch::Sender::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Waits until the server's own stream is open, if there will be one. A
    /// server that asks the user something before would ask nobody.
    pub(crate) async fn stream_is_open(&self) {
        if self.inner.has_session.load(Ordering::Relaxed) {
            let mut seen = self.inner.stream.subscribe();
            let _ = tokio::time::timeout(STREAM, seen.wait_for(|answered| *answered)).await;
        }
    }

    async fn send(
        &self,
        verb: Verb,
        extra: Vec<Header>,
        body: Option<Bytes>,
        head: Duration,
    ) -> Result<Answer, EgressError> {
        let mut headers = self.inner.headers.clone();
        headers.extend(extra);
        let mut target = self.inner.target.clone();
        for _ in 0..=HOPS {
            let letter = Letter {
                verb,
                target: &target,
                headers: &headers,
                accept: ACCEPT,
                body: body.clone(),
                // The bytes are counted per message, not per stream.
                patience: Patience { head, idle: LONG, bytes: u64::MAX },
            };
            let answer = self.inner.door.send(letter).await?;
            match redirect(&target, &answer) {
                None => return Ok(answer),
                Some(next) => target = next,
            }
        }
        Err(EgressError::Refused("the server redirects too often"))
    }

    async fn headers(
        &self,
        session: Option<&str>,
        token: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Vec<Header>, HttpError> {
        let mut headers = Vec::with_capacity(custom.len() + 2);
        for (name, value) in custom {
            if let Ok(text) = value.to_str() {
                headers.push(Header::plain(name.as_str().to_owned(), text.to_owned()));
            }
        }
        if let Some(session) = session {
            headers.push(Header::plain("mcp-session-id", session.to_owned()));
        }
        let token = match (&self.inner.bearer, token) {
            (Some(bearer), _) => bearer.token().await.map_err(|why| {
                self.inner.pending.failed(None, Fault::passing(why));
                HttpError::UnexpectedServerResponse("no token".into())
            })?,
            (None, token) => token.map(SecretString::from),
        };
        headers.extend(token.as_ref().map(Header::bearer));
        Ok(headers)
    }

    /// The same headers with a new token, after the server refused the old one.
    async fn renewed(&self, headers: &[Header]) -> Option<Vec<Header>> {
        let is_token = |header: &Header| header.name() == "authorization";
        if !headers.iter().any(is_token) {
            return None;
        }
        let token = self.inner.bearer.as_ref()?.renewed().await.ok().flatten()?;
        let mut headers: Vec<Header> = headers.iter().filter(|header| !is_token(header)).cloned().collect();
        headers.push(Header::bearer(&token));
        Some(headers)
    }

    fn failed(&self, id: Option<&str>, error: EgressError) -> HttpError {
        let text = error.causes();
        let fault = match &error {
            EgressError::Refused(_) => Fault::lasting(text),
            // A server that redirects has not taken the message.
            EgressError::Astray(why) if matches!(**why, EgressError::Refused(_)) => Fault::lasting(text),
            _ if error.never_sent() => Fault::never_sent(text),
            _ => Fault::passing(text),
        };
        self.inner.pending.failed(id.map(str::to_owned), fault);
        HttpError::Client(error)
    }

    /// A status that is no answer, as rmcp and the host know it.
    async fn refused(&self, id: Option<&str>, answer: &mut Answer) -> HttpError {
        let status = answer.status;
        let challenge = answer.header("www-authenticate").map(str::to_owned);
        let note = |fault| self.inner.pending.failed(id.map(str::to_owned), fault);
        if status == 401 {
            note(Fault::login(challenge.clone()));
            return HttpError::AuthRequired(AuthRequiredError::new(challenge.unwrap_or_default()));
        }
        if let (403, Some(challenge)) = (status, challenge) {
            note(Fault::login(Some(challenge.clone())));
            let scope = scope_of(&challenge);
            return HttpError::InsufficientScope(InsufficientScopeError::new(challenge, scope));
        }
        let after = answer.retry_after();
        let body = String::from_utf8_lossy(&answer.body.peek(QUOTE).await).into_owned();
        let fault = Fault::status(status, after, &body);
        let text = fault.text.clone();
        note(fault);
        HttpError::UnexpectedServerResponse(text.into())
    }
}

/// The next address, if the answer is a redirect that keeps method and body
/// and stays at its origin. Others are answers: another origin would see the
/// session and the headers.
fn redirect(from: &Target, answer: &Answer) -> Option<Target> {
    if !matches!(answer.status, 307 | 308) {
        return None;
    }
    let next = url::Url::parse(from.exposed()).ok()?.join(answer.header("location")?).ok()?;
    let next = Target::parse(next.as_str()).ok()?;
    (next.origin() == from.origin()).then_some(next)
}

fn scope_of(challenge: &str) -> Option<String> {
    let rest = challenge.split_once("scope=\"")?.1;
    Some(rest.split_once('"')?.0.to_owned())
}

impl StreamableHttpClient for DoorClient {
    type Error = EgressError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        self.inner.pending.sent(&message);
        let (id, discovers) = match &message {
            ClientJsonRpcMessage::Request(request) => {
                (Some(request.id.to_string()), matches!(request.request, ClientRequest::DiscoverRequest(_)))
            }
            ClientJsonRpcMessage::Response(_)
            | ClientJsonRpcMessage::Notification(_)
            | ClientJsonRpcMessage::Error(_) => (None, false),
        };
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let headers = self.headers(session_id.as_deref(), auth_header, custom_headers).await?;
        let failed = |e| self.failed(id.as_deref(), e);
        let mut answer =
            self.send(Verb::Post, headers.clone(), Some(body.clone()), LONG).await.map_err(failed)?;
        // Refused means not done, so that a second try is no second call.
        if answer.status == 401
            && let Some(headers) = self.renewed(&headers).await
        {
            answer = self.send(Verb::Post, headers, Some(body), LONG).await.map_err(failed)?;
        }
        let session = answer.header("mcp-session-id").map(str::to_owned);
        if session.is_some() {
            self.inner.has_session.store(true, Ordering::Relaxed);
        }
        if matches!(answer.status, 202 | 204) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let kind = answer.media_type().unwrap_or_default();
        if !answer.is_success() {
            return self.not_ok(answer, id.as_deref(), session_id.is_some(), discovers).await;
        }
        match (kind.as_str(), id) {
            ("text/event-stream", id) => {
                let events = sse::events(answer.body, Arc::clone(&self.inner.pending), id);
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            // Nobody waits for an answer to these, whatever it is.
            (_, None) => Ok(StreamableHttpPostResponse::Accepted),
            ("application/json", Some(id)) => {
                let message = self.read_json(&mut answer, &id).await?;
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            (_, Some(_)) => {
                let text = format!("the server answered with {kind:?} instead of JSON or an event stream");
                self.inner.pending.failed(None, Fault::lasting(text));
                Err(HttpError::UnexpectedContentType(Some(kind)))
            }
        }
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let headers = self.headers(Some(&session_id), auth_header, custom_headers).await?;
        // A server that keeps its session loses nothing of ours.
        self.send(Verb::Delete, headers, None, SHORT).await.map_err(HttpError::Client)?;
        Ok(())
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, HttpError> {
        let mut headers = self.headers(session_id.as_deref(), auth_header, custom_headers).await?;
        headers.extend(last_event_id.map(|id| Header::plain("last-event-id", id)));
        let answer = self.send(Verb::Get, headers, None, LONG).await;
        self.inner.stream.send_replace(true);
        let mut answer = answer.map_err(HttpError::Client)?;
        if answer.status == 405 {
            return Err(HttpError::ServerDoesNotSupportSse);
        }
        if !answer.is_success() {
            // The stream is an extra: its trouble is not the server's fault.
            let status = answer.status;
            let _ = answer.body.peek(QUOTE).await;
            return Err(HttpError::UnexpectedServerResponse(format!("HTTP {status}").into()));
        }
        if answer.media_type().as_deref() != Some("text/event-stream") {
            return Err(HttpError::ServerDoesNotSupportSse);
        }
        Ok(sse::events(answer.body, Arc::clone(&self.inner.pending), None))
    }
}

impl DoorClient {
    async fn read_json(&self, answer: &mut Answer, id: &str) -> Result<ServerJsonRpcMessage, HttpError> {
        let mut bytes = Vec::new();
        let made = |why| serde_json::from_value(spoilt(id, why)).map_err(HttpError::from);
        loop {
            match answer.body.next().await {
                Ok(None) => break,
                Ok(Some(piece)) => bytes.extend_from_slice(&piece),
                Err(_) => return made(Spoilt::Cut),
            }
            if bytes.len() > limits::MCP_MESSAGE_BYTES {
                return made(Spoilt::TooLarge);
            }
        }
        let Ok(value) = serde_json::from_slice::<Value>(&bytes) else {
            return made(Spoilt::Unreadable);
        };
        serde_json::from_value(self.inner.pending.wrap(value)).or_else(|_| made(Spoilt::Unreadable))
    }

    /// A request that was refused. An error of the protocol inside is an
    /// answer; a session that the server forgot is made anew by rmcp.
    async fn not_ok(
        &self,
        mut answer: Answer,
        id: Option<&str>,
        had_session: bool,
        discovers: bool,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let status = answer.status;
        if matches!(status, 401 | 403 | 429) || status >= 500 {
            return Err(self.refused(id, &mut answer).await);
        }
        if status == 404 && had_session {
            return Err(HttpError::SessionExpired);
        }
        let body = answer.body.peek(QUOTE).await;
        let error = serde_json::from_slice::<Value>(&body).ok().filter(|body| body.get("error").is_some());
        // A legacy server that restarted answers 400 without an id where the
        // protocol wants 404. Such an error answers no request.
        let names_us = id_of(&body).as_deref() == id && id.is_some();
        if status == 400 && had_session && !names_us {
            return Err(HttpError::SessionExpired);
        }
        if let (Some(id), true) = (id, discovers || names_us) {
            // rmcp reads from the error whether the server is of the older era.
            let error = error.as_ref().and_then(|body| body.get("error")).cloned().unwrap_or_else(
                || serde_json::json!({ "code": -32600, "message": format!("HTTP {status}") }),
            );
            let mut message = spoilt(id, Spoilt::Unreadable);
            message["error"] = error;
            let read = serde_json::from_value(message)?;
            return Ok(StreamableHttpPostResponse::Json(read, None));
        }
        let mut fault = Fault::status(status, answer.retry_after(), &String::from_utf8_lossy(&body));
        if self.inner.asked_for_sse && matches!(status, 404 | 405) {
            fault
                .text
                .push_str("; the HTTP+SSE transport of 2024-11-05 is not supported, only streamable HTTP");
        }
        let text = fault.text.clone();
        self.inner.pending.failed(id.map(str::to_owned), fault);
        Err(HttpError::UnexpectedServerResponse(text.into()))
    }
}
