//! How a connection is made: name, TCP and TLS, all within one time.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use crate::names::Checked;
use crate::tls;

/// How long a call may take to connect.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// How long a connection is silent before the system asks whether anybody is
/// there, and between two such questions.
const PROBE: Duration = Duration::from_secs(15);
/// After so many questions without an answer nobody is there.
const PROBES: u32 = 3;
/// How long what was sent may stay without an answer of the far system.
#[cfg(target_os = "linux")]
const UNHEARD: Duration = Duration::from_secs(30);

/// The connection was not made in time.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {0:?}")]
struct TooSlow(Duration);

/// Makes connections. Gives up after `limit`, whatever it waits for.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    inner: HttpsConnector<HttpConnector<Checked>>,
    limit: Duration,
}

impl Connector {
    pub(crate) fn new(names: Checked, limit: Duration) -> Result<Self, rustls::Error> {
        let mut tcp = HttpConnector::new_with_resolver(names);
        // It also carries TLS.
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Each address of a name gets its share: one that is silent leaves time for the next.
        tcp.set_connect_timeout(Some(limit));
        tcp.set_keepalive(Some(PROBE));
        tcp.set_keepalive_interval(Some(PROBE));
        tcp.set_keepalive_retries(Some(PROBES));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(UNHEARD));
        Ok(Self { inner: HttpsConnector::from((tcp, tls::settings()?)), limit })
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (limit, connecting) = (self.limit, self.inner.call(to));
        Box::pin(
            async move { timeout(limit, connecting).await.unwrap_or_else(|_| Err(TooSlow(limit).into())) },
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;
    use crate::names::{Found, Names, SystemNames};

    const SHORT: Duration = Duration::from_millis(100);

    #[derive(Debug)]
    struct Silent;

    impl Names for Silent {
        fn find(&self, _: &str) -> Found {
            Box::pin(std::future::pending())
        }
    }

    async fn connect(names: Arc<dyn Names>, to: &str) -> Box<dyn Error + Send + Sync> {
        let mut connector = Connector::new(Checked { names, public_only: false }, SHORT).unwrap();
        connector.call(to.parse().unwrap()).await.err().unwrap()
    }

    #[tokio::test]
    async fn a_handshake_that_nobody_answers_ends_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = format!("https://{}/", listener.local_addr().unwrap());
        let (error, accepted) = tokio::join!(connect(Arc::new(SystemNames), &to), listener.accept());
        assert!(error.is::<TooSlow>(), "{error:?}");
        // It was the handshake that was waited for, and it offers HTTP/2 first.
        let mut hello = Vec::new();
        accepted.unwrap().0.read_to_end(&mut hello).await.unwrap();
        let offer = b"\x02h2\x08http/1.1";
        assert!(hello.windows(offer.len()).any(|part| part == offer), "{hello:?}");
    }

    #[tokio::test]
    async fn a_name_service_that_is_silent_ends_in_time() {
        let error = connect(Arc::new(Silent), "http://example.com/").await;
        assert!(error.is::<TooSlow>(), "{error:?}");
    }
}
