//! A plain HTTP/1.1 client that keeps its connections: the floor's way to the
//! model, and the load client's way to every server. One host, no TLS.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::HeaderMap;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("the connection failed: {0}")]
    Connection(#[from] std::io::Error),
    #[error("the exchange failed: {0}")]
    Exchange(#[from] hyper::Error),
    #[error("the request is not valid: {0}")]
    Request(#[from] hyper::http::Error),
}

type Line = SendRequest<Full<Bytes>>;

/// One server, its idle connections, and the headers every request carries.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    headers: HeaderMap,
    idle: Mutex<Vec<Line>>,
}

/// An answer whose body is still coming. Read to its end, its connection is
/// used again; dropped before, the connection is closed.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    line: Option<Line>,
    peer: Arc<Peer>,
}

impl Peer {
    pub fn new(address: SocketAddr, headers: HeaderMap) -> Arc<Self> {
        Arc::new(Self { address, headers, idle: Mutex::default() })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn get(self: &Arc<Self>, path: &str) -> Result<Answer, HttpError> {
        self.send(Method::GET, path, Bytes::new(), None).await
    }

    pub async fn post(self: &Arc<Self>, path: &str, body: Bytes) -> Result<Answer, HttpError> {
        self.send(Method::POST, path, body, None).await
    }

    /// Posts, and wants a stream of events as the answer.
    pub async fn post_and_follow(self: &Arc<Self>, path: &str, body: Bytes) -> Result<Answer, HttpError> {
        self.send(Method::POST, path, body, Some("text/event-stream")).await
    }

    async fn send(
        self: &Arc<Self>,
        method: Method,
        path: &str,
        body: Bytes,
        accept: Option<&'static str>,
    ) -> Result<Answer, HttpError> {
        let mut line = self.line().await?;
        let mut request = Request::builder().method(method).uri(path).body(Full::new(body))?;
        *request.headers_mut() = self.headers.clone();
        let host = hyper::header::HeaderValue::from_str(&self.address.to_string());
        request.headers_mut().insert(hyper::header::HOST, host.map_err(hyper::http::Error::from)?);
        if request.method() == Method::POST {
            let json = hyper::header::HeaderValue::from_static("application/json");
            request.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
        }
        if let Some(accept) = accept.map(hyper::header::HeaderValue::from_static) {
            request.headers_mut().insert(hyper::header::ACCEPT, accept);
        }
        let answer: Response<Incoming> = line.send_request(request).await?;
        let (head, body) = answer.into_parts();
        let (status, headers) = (head.status, head.headers);
        Ok(Answer { status, headers, body, line: Some(line), peer: self.clone() })
    }

    /// An idle connection that is still open, or a new one.
    async fn line(&self) -> Result<Line, HttpError> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(mut line) = idle else { return self.connect().await };
            if line.ready().await.is_ok() {
                return Ok(line);
            }
        }
    }

    async fn connect(&self) -> Result<Line, HttpError> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (line, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        // A broken connection shows in the request that uses it.
        tokio::spawn(async move { drop(connection.await) });
        Ok(line)
    }
}

impl Answer {
    /// The next bytes of the body; `None` at its end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(bytes) = frame?.into_data() {
                return Ok(Some(bytes));
            }
        }
        if let Some(line) = self.line.take() {
            self.peer.idle.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
        Ok(None)
    }

    /// The whole body.
    pub async fn read_all(mut self) -> Result<Vec<u8>, HttpError> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.next().await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }
}
