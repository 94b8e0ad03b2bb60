//! The routes of the bare server.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::advance::{advance, keep, result};
use super::disk::Entry;
use super::yard::Yard;

/// Events that wait for a slow client before its run does.
const AHEAD: usize = 64;

type Answer = Response<Either<Events, Full<Bytes>>>;

#[derive(Deserialize)]
struct NewMessage {
    text: String,
    /// Only store it.
    #[serde(default = "yes")]
    run: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewResult<'a> {
    call_id: String,
    #[serde(borrow)]
    result: &'a RawValue,
}

/// The events of a run as the body of an answer.
#[derive(Debug)]
pub(super) struct Events(mpsc::Receiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}

pub(super) async fn answer(yard: Arc<Yard>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let (head, body) = request.into_parts();
    let path: Vec<&str> = head.uri.path().split('/').collect();
    if head.method == Method::GET && matches!(path.as_slice(), ["", "ready"]) {
        return Ok(plain(StatusCode::OK, "ready"));
    }
    let Ok(body) = body.collect().await else { return Ok(plain(StatusCode::BAD_REQUEST, "cut")) };
    let body = body.to_bytes();
    Ok(match path.as_slice() {
        ["", "threads", thread, "messages"] => message(yard, thread, &body).await,
        ["", "runs", run, "results"] => take_result(yard, run, &body).await,
        _ => plain(StatusCode::NOT_FOUND, "no such route"),
    })
}

async fn message(yard: Arc<Yard>, thread: &str, body: &[u8]) -> Answer {
    let Ok(NewMessage { text, run }) = serde_json::from_slice(body) else {
        return plain(StatusCode::BAD_REQUEST, "not a message");
    };
    let message = json!({"role": "user", "content": text}).to_string();
    let entry = Entry { thread: thread.to_owned(), waits_for: None, message };
    if keep(&yard, vec![entry]).await.is_err() {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "not stored");
    }
    if run { start(yard, thread) } else { plain(StatusCode::CREATED, "stored") }
}

/// A thread has one run at a time, so the thread names it.
async fn take_result(yard: Arc<Yard>, run: &str, body: &[u8]) -> Answer {
    let Ok(NewResult { call_id, result: value }) = serde_json::from_slice(body) else {
        return plain(StatusCode::BAD_REQUEST, "not a result");
    };
    if !yard.take_wait(run, &call_id) {
        return plain(StatusCode::CONFLICT, "nobody waits for this call");
    }
    if keep(&yard, vec![result(run, &call_id, value.get())]).await.is_err() {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "not stored");
    }
    start(yard, run)
}

fn start(yard: Arc<Yard>, thread: &str) -> Answer {
    let (out, events) = mpsc::channel(AHEAD);
    tokio::spawn(advance(yard, thread.to_owned(), out));
    let mut answer = Response::new(Either::Left(Events(events)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    answer
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Either::Right(Full::new(Bytes::from_static(text.as_bytes()))));
    *answer.status_mut() = status;
    answer
}
