//! What came back: a head, then a body that is read within limits.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::door::Patience;
use crate::error::EgressError;

/// Longer than any silence that is waited for.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// The head of an answer, with its body still on the wire. Dropping it closes
/// the connection or stream.
pub struct Answer {
    pub status: u16,
    headers: HeaderMap,
    pub body: Body,
}

impl Answer {
    pub(crate) fn new(response: http::Response<Incoming>, patience: Patience) -> Self {
        let (head, body) = response.into_parts();
        Self { status: head.status.as_u16(), headers: head.headers, body: Body::new(body, patience) }
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The media type, in lower case and without parameters.
    pub fn media_type(&self) -> Option<String> {
        let text = self.header(CONTENT_TYPE.as_str())?;
        Some(text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// All headers that are text; names are in lower case.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// How long the other side asks us to stay away. A date counts from the
    /// answer's own date, so that no clock is needed.
    pub fn retry_after(&self) -> Option<Duration> {
        if let Some(ms) = self.header("retry-after-ms").and_then(|text| text.trim().parse().ok()) {
            return Some(Duration::from_millis(ms));
        }
        let text = self.header(RETRY_AFTER.as_str())?.trim();
        if let Ok(seconds) = text.parse::<f64>() {
            return Duration::try_from_secs_f64(seconds).ok();
        }
        let parse = |date: &str| jiff::fmt::rfc2822::parse(date).ok();
        let until = parse(text)?;
        let now = parse(self.header(DATE.as_str())?)?;
        let seconds = until.timestamp().as_second() - now.timestamp().as_second();
        Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}

/// A body on its way.
pub struct Body {
    incoming: Incoming,
    idle: Duration,
    limit: u64,
    seen: u64,
    /// One timer for all pieces: putting it off costs less than a new one.
    silence: Option<Pin<Box<Sleep>>>,
}

impl Body {
    fn new(incoming: Incoming, patience: Patience) -> Self {
        Self { incoming, idle: patience.idle, limit: patience.bytes, seen: 0, silence: None }
    }

    /// Changes how long the next pieces may take.
    pub fn set_idle(&mut self, idle: Duration) {
        self.idle = idle;
    }

    /// The next bytes, or `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, EgressError> {
        let until = Instant::now() + self.idle.min(LONGEST);
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep_until(until)));
        silence.as_mut().reset(until);
        let read = tokio::select! {
            biased;
            read = data(&mut self.incoming) => read,
            () = silence => return Err(EgressError::Timeout { after: self.idle }),
        };
        let Some(bytes) = read.map_err(EgressError::Broken)? else { return Ok(None) };
        self.seen = self.seen.saturating_add(bytes.len() as u64);
        if self.seen > self.limit {
            return Err(EgressError::TooLarge { limit: self.limit });
        }
        Ok(Some(bytes))
    }

    /// The rest of the body at once.
    pub async fn read_all(&mut self) -> Result<Vec<u8>, EgressError> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next().await? {
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }

    /// The start of the body, for a look at why something was refused. Stops
    /// at `max` bytes or at the first trouble.
    pub async fn peek(&mut self, max: usize) -> Vec<u8> {
        let mut start = Vec::new();
        while start.len() < max
            && let Ok(Some(bytes)) = self.next().await
        {
            start.extend_from_slice(&bytes);
        }
        start.truncate(max);
        start
    }
}

/// The next frame that holds bytes. Trailers are passed over.
async fn data(incoming: &mut Incoming) -> Result<Option<Bytes>, hyper::Error> {
    while let Some(frame) = incoming.frame().await {
        if let Ok(bytes) = frame?.into_data() {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("seen", &self.seen).finish_non_exhaustive()
    }
}
