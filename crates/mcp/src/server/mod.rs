//! The server side: an agent, or whatever stands behind a [`Desk`], for MCP
//! clients of both eras on one address.
//!
//! [`Server::answer`] takes one HTTP request whose caller is known. Of the
//! newer era each request stands alone. The older era has sessions: they live
//! in this process and belong to who opened them; a client whose session is
//! gone starts a new one. No type of rmcp leaves this room.

mod clerk;
mod desk;
mod refusal;
mod relay;
mod visit;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;
use toolyard_protocol::limits;

use clerk::Clerk;
pub use desk::{Card, Change, Desk, Fault};
use refusal::Asked;
pub use relay::Relay;
pub use visit::Visit;

const SESSION: &str = "mcp-session-id";

/// The body of an answer: whole, or a stream.
pub type Body = BoxBody<Bytes, Infallible>;

/// Which pages and names may reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sites {
    /// Programs and pages of this machine.
    Local,
    /// Whoever calls has checked Host and Origin already.
    Checked,
}

/// All MCP callers of a process.
#[derive(Debug)]
pub struct Server {
    sessions: Arc<LocalSessionManager>,
    /// Whose a session is, and in which order they came.
    owners: Mutex<HashMap<String, (String, u64)>>,
    config: StreamableHttpServerConfig,
}

impl Server {
    /// Streams end when `shutdown` is cancelled.
    pub fn new(sites: Sites, shutdown: CancellationToken) -> Self {
        let config = StreamableHttpServerConfig::default().with_cancellation_token(shutdown);
        let config = match sites {
            Sites::Local => config
                .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
                .enforce_origin_validation(),
            Sites::Checked => config.disable_allowed_hosts().disable_allowed_origins(),
        };
        let config = config.with_max_request_body_bytes(limits::MCP_SERVER_BODY_BYTES);
        let mut sessions = LocalSessionManager::default();
        // A call may be silent for long: its session lives on.
        sessions.session_config.keep_alive = Some(Duration::from_secs(limits::MCP_SERVER_SESSION_SECONDS));
        Self { sessions: Arc::new(sessions), owners: Mutex::default(), config }
    }

    /// Answers one request. `owner` names the caller and what it talks to; a
    /// session that another owner opened is not there.
    pub async fn answer(&self, desk: Arc<dyn Desk>, owner: &str, request: Request<Bytes>) -> Response<Body> {
        let asked = Asked::of(&request);
        let named = request.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if let Some(id) = &named
            && self.owners().get(id).is_none_or(|(opened, _)| opened != owner)
        {
            return asked.no_session();
        }
        if named.is_none() && self.is_full().await {
            return asked.too_many_sessions();
        }
        let clerk = Clerk::new(desk);
        let service =
            StreamableHttpService::new(move || Ok(clerk.clone()), self.sessions.clone(), self.config.clone());
        let response = asked.in_json(service.handle(request.map(Full::new)).await).await;
        if named.is_none()
            && let Some(id) = response.headers().get(SESSION).and_then(|id| id.to_str().ok())
        {
            let oldest = self.remember(id, owner);
            if let Some(oldest) = oldest {
                // It may have ended by itself.
                let _ = self.sessions.close_session(&oldest.into()).await;
            }
        }
        response
    }

    /// Notes whose a new session is. The caller's oldest, if it has too many.
    fn remember(&self, id: &str, owner: &str) -> Option<String> {
        let mut owners = self.owners();
        let newest = owners.values().map(|(_, n)| *n).max().unwrap_or_default();
        owners.insert(id.to_owned(), (owner.to_owned(), newest + 1));
        let own = || owners.iter().filter(|(_, (of, _))| of == owner);
        let full = own().count() > limits::MCP_SERVER_SESSIONS_EACH;
        let oldest = own().min_by_key(|(_, (_, n))| *n).map(|(id, _)| id.clone()).filter(|_| full)?;
        owners.remove(&oldest);
        Some(oldest)
    }

    /// Forgets whose the sessions were that have ended, then counts.
    async fn is_full(&self) -> bool {
        let open = self.sessions.sessions.read().await;
        let mut owners = self.owners();
        owners.retain(|id, _| open.contains_key(id.as_str()));
        owners.len() >= limits::MCP_SERVER_SESSIONS
    }

    fn owners(&self) -> std::sync::MutexGuard<'_, HashMap<String, (String, u64)>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
