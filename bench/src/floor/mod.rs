//! The bare server: the least work that gives the same observable behaviour as
//! the gateway. A message starts a run, its text streams, a client's tool pauses
//! it, the result continues it, and with a disk nothing is told before it is
//! stored. No keys, tenants, permissions, replay, plugins or tracing: it shows
//! what is reachable and is no product.
//!
//! | route | gives |
//! |---|---|
//! | `GET /ready` | 200 |
//! | `POST /threads/{id}/messages {"text", "run"?}` | the run's events until it ends or pauses |
//! | `POST /runs/{id}/results {"callId", "result"}` | the rest of its events |

mod advance;
mod disk;
mod reply;
mod routes;
mod yard;

use std::io;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

pub use disk::{Disk, Entry};
pub use yard::Yard;

/// Serves until the listener fails.
pub async fn serve(listener: TcpListener, yard: Arc<Yard>) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let yard = yard.clone();
        let service = service_fn(move |request| routes::answer(yard.clone(), request));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // A client that leaves ends its connection, never a run.
        tokio::spawn(async move { drop(connection.await) });
    }
}
