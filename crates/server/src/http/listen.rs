//! The accept loop: one task per connection, with time limits on heads, small
//! buffers, and a way to cut a connection from outside its body stream.
//!
//! HTTP/1.1 only: a proxy in front speaks HTTP/2 and TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::config::Limits;
use toolyard_runtime::Tasks;

/// Bytes read ahead of the handler, and written ahead of the peer. The head of a
/// request fits into it.
const BUFFER: usize = 32 << 10;
/// Bytes that the system keeps for a peer and has not sent yet. Without a bound
/// it takes megabytes for a reader that does not read.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 128 << 10;
/// Rest after a failed accept, which is usually "no file descriptors left".
const REST: Duration = Duration::from_millis(50);

/// Cuts the connection that a request came on. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Cut(CancellationToken);

impl Cut {
    pub(crate) fn now(&self) {
        self.0.cancel();
    }
}

/// Accepts until the token is cancelled, then lets connections finish.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    limits: &Limits,
    tasks: Tasks,
    shutdown: CancellationToken,
) {
    let seats = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let head = Duration::from_secs(limits.header_seconds);
    let peer_patience = Duration::from_secs(limits.peer_seconds);
    loop {
        let Ok(seat) = seats.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => return,
        };
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        tune(&socket, peer_patience);
        let (router, shutdown) = (router.clone(), shutdown.clone());
        tasks.spawn("connection", async move {
            serve(socket, peer, router, head, shutdown).await;
            drop(seat);
        });
    }
}

/// A peer that vanished without a word is noticed after `patience`.
fn tune(socket: &TcpStream, patience: Duration) {
    let socket = socket2::SockRef::from(socket);
    // A socket that refuses an option still works.
    let _ = socket.set_tcp_nodelay(true);
    #[cfg(target_os = "linux")]
    {
        let _ = socket.set_tcp_user_timeout(Some(patience));
        let _ = socket.set_tcp_notsent_lowat(UNSENT);
    }
    let interval = (patience / 3).max(Duration::from_secs(1));
    let alive = socket2::TcpKeepalive::new().with_time(patience).with_interval(interval);
    let _ = socket.set_tcp_keepalive(&alive);
}

/// The bytes of a request's head, but for the few that stand between its words.
fn length(request: &Request) -> usize {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    request.headers().iter().fold(target, |sum, (name, value)| sum + name.as_str().len() + value.len() + 4)
}

async fn serve(
    socket: TcpStream,
    peer: SocketAddr,
    router: Router,
    head: Duration,
    shutdown: CancellationToken,
) {
    let cut = CancellationToken::new();
    let tag = Cut(cut.clone());
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(tag.clone());
        // What fits into one read may be longer than what is read ahead.
        let answer = (length(&request) <= BUFFER).then(|| router.clone().oneshot(request));
        async move {
            match answer {
                Some(answer) => answer.await,
                None => Ok(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response()),
            }
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head).max_buf_size(BUFFER);
    let connection = builder.serve_connection(TokioIo::new(socket), service).with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = cut.cancelled() => return,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = cut.cancelled() => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}
