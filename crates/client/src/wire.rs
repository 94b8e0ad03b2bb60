//! Requests to the gateway: JSON in, JSON out, through the operator's door.
//! The address is the program's own setting, so it is checked for its form
//! and nothing else.

use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_egress::{Answer, Header, Letter, Patience, Target, Verb};

use crate::client::Client;
use crate::error::{ClientError, Refusal};

/// For answers that are one piece of JSON.
const PATIENCE: Patience =
    Patience { head: Duration::from_secs(60), idle: Duration::from_secs(60), bytes: 256 << 20 };
/// A stream has a sign of life every 15 seconds.
const STREAM: Patience =
    Patience { head: Duration::from_secs(60), idle: Duration::from_secs(45), bytes: u64::MAX };
/// What an error of the gateway is at most.
const REFUSAL_BYTES: usize = 64 << 10;
/// Tries of a request that may be repeated.
const TRIES: u32 = 5;

/// What the SDK calls itself (row H68).
pub(crate) const SDK: &str = concat!("client-rs/", env!("CARGO_PKG_VERSION"));

/// May the request be sent again if nobody knows what became of it?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It reads, or a second one has no second effect.
    Safely,
    /// It has an idempotency key of its own.
    Keyed,
    Never,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Ask<'a> {
    pub(crate) verb: Verb,
    pub(crate) target: Target,
    pub(crate) body: Option<&'a Value>,
    pub(crate) repeat: Repeat,
}

impl Client {
    pub(crate) fn below(&self, path: &str) -> Target {
        self.shared.base.below(path)
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, target: Target) -> Result<T, ClientError> {
        self.ask(Ask { verb: Verb::Get, target, body: None, repeat: Repeat::Safely }).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        repeat: Repeat,
    ) -> Result<T, ClientError> {
        self.ask(Ask { verb: Verb::Post, target: self.below(path), body: Some(body), repeat }).await
    }

    /// Sends until there is an answer, if that is allowed.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, ask: Ask<'_>) -> Result<T, ClientError> {
        let key = (ask.repeat == Repeat::Keyed).then(|| uuid::Uuid::now_v7().simple().to_string());
        let mut failures = 0;
        loop {
            let error = match self.once(&ask, key.as_deref()).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            failures += 1;
            let never_sent = matches!(&error, ClientError::Unreachable(cause) if cause.never_sent());
            let may_repeat = ask.repeat != Repeat::Never || never_sent;
            if failures >= TRIES || !may_repeat || !error.passes() {
                return Err(error);
            }
            tokio::time::sleep(self.shared.backoff.wait(failures, error.retry_after())).await;
        }
    }

    async fn once<T: DeserializeOwned>(&self, ask: &Ask<'_>, key: Option<&str>) -> Result<T, ClientError> {
        let mut headers = self.headers().await?;
        if let Some(key) = key {
            headers.push(Header::plain("idempotency-key", key.to_owned()));
        }
        let letter = Letter {
            verb: ask.verb,
            target: &ask.target,
            headers: &headers,
            accept: "application/json",
            body: ask.body.map(|body| Bytes::from(body.to_string())),
            patience: PATIENCE,
        };
        let mut answer = self.shared.door.send(letter).await.map_err(ClientError::Unreachable)?;
        self.hear(&answer);
        if !answer.is_success() {
            return Err(refusal(&mut answer).await);
        }
        let bytes = answer.body.read_all().await.map_err(ClientError::Unreachable)?;
        // 204 has no body: that is `null`.
        let bytes: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        serde_json::from_slice(bytes).map_err(|e| ClientError::Unreadable(e.to_string()))
    }

    /// Opens a stream after a position. `None` means that nothing will follow.
    pub(crate) async fn open(&self, path: &str, after: Option<i64>) -> Result<Option<Answer>, ClientError> {
        let mut headers = self.headers().await?;
        if let Some(after) = after {
            headers.push(Header::plain("last-event-id", after.to_string()));
        }
        let target = self.below(path);
        let letter = Letter {
            verb: Verb::Get,
            target: &target,
            headers: &headers,
            accept: "text/event-stream",
            body: None,
            patience: STREAM,
        };
        let mut answer = self.shared.door.send(letter).await.map_err(ClientError::Unreachable)?;
        self.hear(&answer);
        match answer.status {
            204 => Ok(None),
            _ if answer.is_success() => Ok(Some(answer)),
            _ => Err(refusal(&mut answer).await),
        }
    }

    async fn headers(&self) -> Result<Vec<Header>, ClientError> {
        let mut headers = self.shared.auth.headers().await?;
        headers.push(Header::plain("x-toolyard-sdk", SDK));
        Ok(headers)
    }

    /// Takes note of the gateway's version and of its warnings (row H68).
    fn hear(&self, answer: &Answer) {
        let version = answer.header("x-toolyard-version");
        let warning = answer.header("x-toolyard-warning");
        if version.is_some() || warning.is_some() {
            self.shared.note_gateway(version, warning);
        }
    }
}

/// The gateway's own words, or what else stands there.
async fn refusal(answer: &mut Answer) -> ClientError {
    let (status, retry_after) = (answer.status, answer.retry_after());
    let body = answer.body.peek(REFUSAL_BYTES).await;
    let value: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |field: &str| value.pointer(field).and_then(Value::as_str).map(str::to_owned);
    ClientError::Refused(Box::new(Refusal {
        status,
        code: text("/error/code").unwrap_or_else(|| "unknown".to_owned()),
        message: text("/error/message").unwrap_or_else(|| format!("the gateway answered status {status}")),
        limit: value.pointer("/error/limit").and_then(Value::as_u64),
        retry_after,
    }))
}
