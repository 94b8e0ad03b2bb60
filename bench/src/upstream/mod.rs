//! The mock model: OpenAI's chat completions, streamed, as cheap as possible.
//!
//! The prompt's [`Marker`] says what to answer. Each piece of text is the time
//! of its sending, so that a client at the far end of any server knows how long
//! the piece was on its way and whether one is missing.

mod script;

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::marker::Marker;
use script::Script;

type Reply = Response<Either<Script, Full<Bytes>>>;

/// Serves until the listener fails.
pub async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
        // A client that leaves ends its connection, nothing else.
        tokio::spawn(async move { drop(connection.await) });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Reply, Infallible> {
    if request.method() != Method::POST || !request.uri().path().ends_with("/chat/completions") {
        return Ok(refuse(StatusCode::NOT_FOUND, "no such route"));
    }
    let Ok(body) = request.into_body().collect().await else {
        return Ok(refuse(StatusCode::BAD_REQUEST, "the body was cut"));
    };
    let body = body.to_bytes();
    let text = std::str::from_utf8(&body).unwrap_or_default();
    let Some((marker, rest)) = Marker::last(text) else {
        return Ok(refuse(StatusCode::BAD_REQUEST, "the prompt has no marker"));
    };
    // A result after the marker: the tool was called, now comes the text.
    let called = rest.contains("\"tool_call_id\"");
    let mut reply = Response::new(Either::Left(Script::new(marker, called)));
    let kind = hyper::header::HeaderValue::from_static("text/event-stream");
    reply.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
    Ok(reply)
}

fn refuse(status: StatusCode, why: &'static str) -> Reply {
    let mut reply = Response::new(Either::Right(Full::new(Bytes::from_static(why.as_bytes()))));
    *reply.status_mut() = status;
    reply
}
