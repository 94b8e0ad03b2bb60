//! Streams that come back by themselves. A reader that lost its connection
//! asks for what follows the last durable event it has seen, so that nothing
//! is missing and nothing comes twice.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::Stream;
use futures::stream::unfold;
use toolyard_egress::Body;
use toolyard_protocol::sse::{SseEvent, SseSplitter};

use crate::client::Client;
use crate::error::ClientError;
use crate::event::{Event, EventKind};

/// Bytes of one frame.
const FRAME_BYTES: usize = 64 << 20;

/// A stream of events. It ends after the last event of a run; the stream of a
/// space does not end. An error is its last item.
pub struct EventStream {
    events: Pin<Box<dyn Stream<Item = Result<Event, ClientError>> + Send>>,
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventStream")
    }
}

impl Stream for EventStream {
    type Item = Result<Event, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.as_mut().poll_next(cx)
    }
}

impl EventStream {
    /// `after` is the last position that the reader has seen.
    pub(crate) fn new(client: Client, path: String, after: Option<i64>) -> Self {
        let patience = client.shared.reconnect_for;
        let follower = Follower {
            client,
            path,
            after,
            wire: None,
            ready: VecDeque::new(),
            failures: 0,
            since: Instant::now(),
            patience,
            ended: false,
        };
        let events = unfold(follower, |mut follower| async move {
            let item = follower.next().await?;
            Some((item, follower))
        });
        Self { events: Box::pin(events) }
    }
}

struct Wire {
    body: Body,
    splitter: SseSplitter,
}

struct Follower {
    client: Client,
    path: String,
    after: Option<i64>,
    wire: Option<Wire>,
    ready: VecDeque<SseEvent>,
    /// Connections in a row that brought nothing.
    failures: u32,
    /// When the last bytes came.
    since: Instant,
    /// How long to go on without a sign of life while the gateway is away.
    patience: Duration,
    ended: bool,
}

impl Follower {
    async fn next(&mut self) -> Option<Result<Event, ClientError>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(Ok(self.take(&frame)));
            }
            if self.ended {
                return None;
            }
            let read = match self.wire.as_mut() {
                None => self.connect().await,
                Some(wire) => match wire.body.next().await {
                    Ok(Some(bytes)) => {
                        // A sign of life is enough: a quiet space is no trouble.
                        self.since = Instant::now();
                        let mut frames = Vec::new();
                        let split = wire.splitter.push(&bytes, &mut frames);
                        self.ready.extend(frames);
                        split.map_err(|e| ClientError::Unreadable(e.to_string()))
                    }
                    // The gateway closed a stream that has more to tell.
                    Ok(None) => {
                        self.wire = None;
                        self.pause(None).await;
                        Ok(())
                    }
                    Err(cause) => {
                        self.wire = None;
                        Err(ClientError::Unreachable(cause))
                    }
                },
            };
            if let Err(error) = read {
                self.wire = None;
                if !error.passes() || self.since.elapsed() > self.patience {
                    self.ended = true;
                    return Some(Err(error));
                }
                self.pause(error.retry_after()).await;
            }
        }
    }

    async fn connect(&mut self) -> Result<(), ClientError> {
        match self.client.open(&self.path, self.after).await? {
            None => self.ended = true,
            Some(answer) => {
                let splitter = SseSplitter::new(FRAME_BYTES);
                self.wire = Some(Wire { body: answer.body, splitter });
            }
        }
        Ok(())
    }

    async fn pause(&mut self, asked: Option<Duration>) {
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(self.client.shared.backoff.wait(self.failures, asked)).await;
    }

    fn take(&mut self, frame: &SseEvent) -> Event {
        self.failures = 0;
        let event = Event::read(frame);
        // A reset may lead back.
        self.after = event.id.or(self.after);
        let of_run = self.path.starts_with("/api/runs/");
        if of_run && matches!(event.kind, EventKind::Finished(_)) {
            self.ended = true;
            self.wire = None;
            self.ready.clear();
        }
        event
    }
}
