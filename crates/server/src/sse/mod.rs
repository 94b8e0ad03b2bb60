//! Streams of runs and spaces: the log from a position, then what is new.
//!
//! Only durable events carry an id, so a reader that comes back with it misses
//! nothing. The task that fills a stream is not part of the response body: a
//! client that stops reading is cut from outside.

mod cursor;
mod outlet;
mod reader;
mod source;
mod steps;

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};

pub(crate) use cursor::cursor;
pub(crate) use source::Source;

use crate::http::meter;
use crate::routes::call::Call;
use reader::Reader;

/// Frames and bytes that wait for a client to read them. When either is full,
/// the filler waits; after `limits.reader_seconds` the connection is cut and
/// the client comes back.
const BACKLOG: usize = 64;
const BACKLOG_BYTES: usize = 256 << 10;
/// A comment now and then keeps proxies from closing an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Answers a request with a stream from a position. The head travels with the
/// first frames.
pub(crate) async fn open(call: Call, source: Source, from: i64) -> Response {
    let (send, mut frames) = outlet::channel(BACKLOG, BACKLOG_BYTES);
    let tasks = call.app.tasks.clone();
    let counted = meter::Reader::enter();
    let reader = Reader::new(call, source, from, send);
    tasks.spawn("stream", async move {
        reader.run().await;
        drop(counted);
    });
    let first = frames.next().await;
    let body = futures::stream::unfold((first, frames), |(first, mut frames)| async move {
        let bytes = match first {
            Some(bytes) => bytes,
            None => frames.next().await?,
        };
        Some((Ok::<_, std::convert::Infallible>(bytes), (None, frames)))
    });
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}
