//! The server that the official MCP conformance suite talks to: our transport
//! and both its eras, and behind them the fixtures that the suite asks for.
//! `scripts/mcp-conformance` runs it. It prints its address and serves until it
//! is ended.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a program for tests")]
#![allow(clippy::disallowed_methods, reason = "it plays the part of a gateway's edge")]

mod asking;
mod desk;
mod tasks;
mod tools;

use std::sync::Arc;

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolyard_mcp::server::{Body, Server, Sites};

use desk::Fixtures;

#[tokio::main]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}/mcp", listener.local_addr().unwrap());
    let server = Arc::new(Server::new(Sites::Local, CancellationToken::new()));
    let fixtures = Arc::new(Fixtures::new());
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let (server, fixtures) = (server.clone(), fixtures.clone());
        // tidy: spawn — a connection of a program for tests
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(server.clone(), fixtures.clone(), request));
            // A client that hangs up is no news.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

async fn answer(
    server: Arc<Server>,
    fixtures: Arc<Fixtures>,
    request: Request<Incoming>,
) -> Result<Response<Body>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(server.answer(fixtures, "the suite", Request::from_parts(parts, body)).await)
}
