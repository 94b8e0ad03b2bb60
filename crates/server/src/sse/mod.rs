//! Streams of runs, spaces and entities: the log from a position, then what is new.
//!
//! Only durable events carry an id, so a reader that comes back with it misses
//! nothing. The task that fills a stream is not part of the response body: a
//! client that stops reading is cut from outside.

mod cursor;
mod entity;
mod outlet;
mod places;
mod reader;
mod source;
mod steps;

use axum::body::Body;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use toolyard_dialects::telling::Telling;
use toolyard_protocol::{EntityId, RunId, SpaceId, Viewer};
use toolyard_runtime::Tasks;

pub(crate) use cursor::cursor;
pub(crate) use entity::spaces_of;
pub(crate) use places::Places;
pub(crate) use source::Source;

use crate::http::{Refusal, meter};
use crate::routes::call::Call;
use entity::Crowd;
use outlet::Inlet;
use reader::Reader;

/// The run whose telling an answer is.
pub(crate) const RUN: HeaderName = HeaderName::from_static("x-toolyard-run");

/// Frames and bytes that wait for a client to read them. When either is full,
/// the filler waits `limits.reader_seconds` for room for the next part, and as
/// long for the queue to empty before it reads the log on; then the connection
/// is cut and the client comes back.
const BACKLOG: usize = 64;
const BACKLOG_BYTES: usize = 64 << 10;

/// Answers a request with a stream from a position. The head travels with the
/// first frames.
pub(crate) async fn open(call: Call, source: Source, from: i64) -> Response {
    let (send, frames) = outlet::channel(BACKLOG, BACKLOG_BYTES);
    let tasks = call.app.tasks.clone();
    spawn(&tasks, Reader::new(call, source, from, send).run());
    answer(frames).await
}

/// Answers a request with everything of the spaces that an entity is in.
pub(crate) async fn open_entity(call: Call, entity: EntityId, from: Places) -> Response {
    let (send, frames) = outlet::channel(BACKLOG, BACKLOG_BYTES);
    let tasks = call.app.tasks.clone();
    spawn(&tasks, Crowd::new(call, entity, from, send).run());
    answer(frames).await
}

async fn answer(mut frames: Inlet) -> Response {
    let first = frames.next().await;
    let mut response = body(first, frames);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

/// Where a caller who asks for a stream instead of an answer wants it to begin.
pub(crate) fn wanted(call: &Call) -> Result<Option<i64>, Refusal> {
    if accepts_stream(&call.headers) { cursor(call).map(Some) } else { Ok(None) }
}

/// Of a stream and JSON, whichever is listed first is meant.
fn accepts_stream(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges = lists.flat_map(|list| list.split(',')).filter_map(|range| {
        let mut words = range.split(';').map(|word| word.trim().to_ascii_lowercase());
        let name = words.next()?;
        let refused = words.any(|word| matches!(word.as_str(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        (!refused).then_some(name)
    });
    let meant = ranges.find(|name| matches!(name.as_str(), "text/event-stream" | "application/json"));
    meant.as_deref() == Some("text/event-stream")
}

/// Answers a request that made something with the run that follows from it.
pub(crate) async fn follow(call: Call, run: RunId, space: SpaceId, from: i64) -> Response {
    let name = HeaderValue::from_str(run.as_str()).ok();
    let mut response = open(call, Source::Run { run, space: Some(space) }, from).await;
    *response.status_mut() = StatusCode::CREATED;
    if let Some(name) = name {
        response.headers_mut().insert(RUN, name);
    }
    response
}

/// Answers a request with a run, in the words of a dialect. What a client of
/// that dialect looks for in the head is the caller's to add.
pub(crate) fn tell(
    call: Call,
    viewer: Viewer,
    run: RunId,
    space: Option<SpaceId>,
    telling: Box<dyn Telling>,
) -> Response {
    let (send, frames) = outlet::channel(BACKLOG, BACKLOG_BYTES);
    let tasks = call.app.tasks.clone();
    // Progress and results may also be told natively: for that the run has a name.
    let name = HeaderValue::from_str(run.as_str()).ok();
    let source = Source::Run { run, space };
    spawn(&tasks, Reader::telling(call, viewer, source, send, telling).run());
    let mut response = body(None, frames);
    if let Some(name) = name {
        response.headers_mut().insert(RUN, name);
    }
    response
}

fn spawn(tasks: &Tasks, reading: impl Future<Output = ()> + Send + 'static) {
    let counted = meter::Reader::enter();
    tasks.spawn("stream", async move {
        reading.await;
        drop(counted);
    });
}

fn body(first: Option<Bytes>, frames: Inlet) -> Response {
    let body = futures::stream::unfold((first, frames), |(first, mut frames)| async move {
        let bytes = match first {
            Some(bytes) => bytes,
            None => frames.next().await?,
        };
        Some((Ok::<_, std::convert::Infallible>(bytes), (None, frames)))
    });
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_what_is_named_first_and_not_refused() {
        let accepts = |lists: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for list in lists {
                headers.append(ACCEPT, HeaderValue::from_static(list));
            }
            accepts_stream(&headers)
        };
        for yes in [
            "text/event-stream",
            "TEXT/Event-Stream",
            "text/event-stream;q=0.5, application/json",
            "text/html, text/event-stream",
        ] {
            assert!(accepts(&[yes]), "{yes}");
        }
        for no in [
            "",
            "*/*",
            "application/json",
            "application/json, text/event-stream",
            "text/event-stream;q=0",
            "text/event-streams",
        ] {
            assert!(!accepts(&[no]), "{no}");
        }
        assert!(accepts(&["text/html", "text/event-stream"]), "of two lines");
    }
}
