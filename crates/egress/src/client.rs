//! The HTTP client behind the door: a pool of connections, and nothing that
//! the door does itself. No proxy: one from the environment would see the
//! operator's keys.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::connect::{CONNECT, Connector};
use crate::error::EgressError;
use crate::names::{Checked, LeadsInside};

/// How long an unused connection is kept.
const IDLE_CONNECTION: Duration = Duration::from_secs(60);
/// How often a request goes out again that the far side has not begun.
const AGAIN: usize = 2;
const AGENT: HeaderValue = HeaderValue::from_static(concat!("toolyard/", env!("CARGO_PKG_VERSION")));

pub(crate) type Request = http::Request<Full<Bytes>>;
pub(crate) type Response = http::Response<Incoming>;

/// Cheap to clone; all clones share their connections.
#[derive(Debug, Clone)]
pub(crate) struct Client(Arc<legacy::Client<Connector, Full<Bytes>>>);

impl Client {
    pub(crate) fn new(names: Checked) -> Result<Self, EgressError> {
        Self::within(names, CONNECT)
    }

    fn within(names: Checked, connect: Duration) -> Result<Self, EgressError> {
        let connector = Connector::new(names, connect).map_err(|e| EgressError::Unavailable(e.into()))?;
        Ok(Self(Arc::new(builder().build(connector))))
    }

    /// Sends what is written, and returns once the head of the answer is here.
    /// It is written once more if the far side says that it has not begun: a
    /// server that closes an HTTP/2 connection says so for what is on its way.
    pub(crate) async fn send(
        &self,
        write: impl Fn() -> Result<Request, EgressError>,
    ) -> Result<Response, EgressError> {
        let mut tries = 0;
        loop {
            match self.0.request(write()?).await {
                Ok(response) => return Ok(response),
                Err(error) if tries < AGAIN && is_untouched(&error) => tries += 1,
                Err(error) => return Err(unreachable(error)),
            }
        }
    }
}

/// Puts a request together. The caller's own `user-agent` wins.
pub(crate) fn request(method: Method, uri: Uri, mut headers: HeaderMap, body: Option<Bytes>) -> Request {
    headers.entry(USER_AGENT).or_insert(AGENT);
    let mut request = Request::new(Full::new(body.unwrap_or_default()));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request
}

/// Did the far side say that it did nothing with the request?
fn is_untouched(error: &legacy::Error) -> bool {
    let cause = error.source().and_then(Error::source);
    let Some(said) = cause.and_then(|cause| cause.downcast_ref::<h2::Error>()) else { return false };
    let closing = said.is_go_away() && said.reason() == Some(h2::Reason::NO_ERROR);
    let refused = said.is_reset() && said.reason() == Some(h2::Reason::REFUSED_STREAM);
    said.is_remote() && (closing || refused)
}

fn unreachable(error: legacy::Error) -> EgressError {
    let mut cause = error.source();
    while let Some(next) = cause {
        if next.is::<LeadsInside>() {
            return EgressError::Inside;
        }
        cause = next.source();
    }
    EgressError::Unreachable(error)
}

#[expect(clippy::disallowed_methods, reason = "the door is the one place that builds HTTP clients")]
fn builder() -> legacy::Builder {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder.timer(TokioTimer::new()).pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_CONNECTION);
    builder
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::net::TcpListener;
    use tokio::task::JoinSet;

    use super::*;
    use crate::names::SystemNames;

    fn names() -> Checked {
        Checked { names: Arc::new(SystemNames), public_only: false }
    }

    async fn get(client: &Client, url: &str) -> Result<Response, EgressError> {
        let uri: Uri = url.parse().unwrap();
        client.send(|| Ok(request(Method::GET, uri.clone(), HeaderMap::new(), None))).await
    }

    #[tokio::test]
    async fn what_was_never_connected_was_never_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        let client = Client::within(names(), Duration::from_millis(100)).unwrap();
        // The system takes the connection; nobody answers the handshake.
        let error = get(&client, &url).await.unwrap_err();
        assert!(matches!(error, EgressError::Unreachable(_)) && error.never_sent(), "{error:?}");
        assert!(error.causes().ends_with("no connection within 100ms"), "{}", error.causes());
        drop(listener);
        let error = get(&client, &url).await.unwrap_err();
        assert!(matches!(error, EgressError::Unreachable(_)) && error.never_sent(), "{error:?}");
    }

    /// Speaks HTTP/2 and refuses the first requests; the task's value is how
    /// many there were.
    async fn refusing(first: usize) -> (String, JoinSet<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut line = h2::server::handshake(listener.accept().await.unwrap().0).await.unwrap();
            let mut seen = 0;
            while let Some(Ok((_, mut answer))) = line.accept().await {
                seen += 1;
                if seen <= first {
                    answer.send_reset(h2::Reason::REFUSED_STREAM);
                } else {
                    answer.send_response(http::Response::new(()), true).unwrap();
                }
            }
            seen
        });
        (url, task)
    }

    #[tokio::test]
    async fn what_the_far_side_has_not_begun_goes_out_again_but_not_for_ever() {
        for (first, fine) in [(0, true), (AGAIN, true), (AGAIN + 1, false)] {
            let (url, mut task) = refusing(first).await;
            let connector = Connector::new(names(), CONNECT).unwrap();
            let client = Client(Arc::new(builder().http2_only(true).build(connector)));
            match get(&client, &url).await {
                Ok(response) => assert!(fine && response.version() == http::Version::HTTP_2),
                Err(error) => assert!(!fine && !error.never_sent(), "{error:?}"),
            }
            drop(client);
            assert_eq!(task.join_next().await.unwrap().unwrap(), first + usize::from(fine));
        }
    }
}
