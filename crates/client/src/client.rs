//! The client: one gateway, one key, the tools and plugins of this program.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolyard_egress::{Door, Target};
use toolyard_protocol::ClientId;

use crate::auth::Auth;
use crate::backoff::Backoff;
use crate::call::ToolCall;
use crate::error::ClientError;
use crate::journal::{Journal, Outcome};
use crate::plugin::Registry;

/// A line of the debug log.
type Log = Arc<dyn Fn(&str) + Send + Sync>;
type Listener = Arc<dyn Fn(&ClientEvent) + Send + Sync>;

/// What a client does, for whoever watches it.
#[derive(Debug, Clone)]
pub enum ClientEvent {
    StreamStart,
    StreamEnd,
    ToolStart(ToolCall),
    /// Also for a tool that failed.
    ToolEnd {
        call: ToolCall,
        outcome: Outcome,
        took: Duration,
    },
    MaxToolRoundsReached {
        limit: u32,
    },
    /// The gateway cannot serve something that this client may ask for.
    GatewayWarning(String),
}

/// Talks to one gateway. Cheap to clone; all clones are one client.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) door: Door,
    pub(crate) base: Target,
    pub(crate) auth: Auth,
    pub(crate) backoff: Backoff,
    pub(crate) reconnect_for: Duration,
    pub(crate) tool_timeout: Option<Duration>,
    pub(crate) journal: Journal,
    pub(crate) registry: Mutex<Registry>,
    pub(crate) name: Option<String>,
    id: ClientId,
    log: Option<Log>,
    listeners: Mutex<Vec<Listener>>,
    gateway: Mutex<GatewayNotes>,
}

#[derive(Debug, Default)]
struct GatewayNotes {
    version: Option<String>,
    warnings: BTreeSet<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.shared.base).finish_non_exhaustive()
    }
}

/// Settings of a client.
#[must_use]
pub struct ClientBuilder {
    base_url: String,
    auth: Auth,
    id: Option<ClientId>,
    name: Option<String>,
    journal: Journal,
    tool_timeout: Option<Duration>,
    backoff: Backoff,
    reconnect_for: Duration,
    log: Option<Log>,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("auth", &self.auth).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// Where the gateway is: `http://127.0.0.1:8787`.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }
    /// A stable id of this program, for claims. Missing gets the one of the
    /// journal's file, else a new one.
    pub fn client_id(mut self, id: ClientId) -> Self {
        self.id = Some(id);
        self
    }
    /// What people read in the gateway's list of clients.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
    /// Where outcomes are kept until the gateway has them.
    pub fn journal(mut self, journal: Journal) -> Self {
        self.journal = journal;
        self
    }
    /// How long a tool may take that has no limit of its own. Without it a
    /// tool may take as long as the gateway waits.
    pub fn tool_timeout(mut self, limit: Duration) -> Self {
        self.tool_timeout = Some(limit);
        self
    }
    /// The waits between tries of requests and of streams.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }
    /// How long a stream tries to come back while the gateway is away.
    pub fn reconnect_for(mut self, limit: Duration) -> Self {
        self.reconnect_for = limit;
        self
    }
    /// Gets a line for each registration, execution and hook (row H34).
    pub fn debug(mut self, log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.log = Some(Arc::new(log));
        self
    }

    /// Checks the settings. Nothing is asked of the gateway yet.
    pub fn build(self) -> Result<Client, ClientError> {
        let base = Target::parse(&self.base_url)
            .map_err(|e| ClientError::settings(format!("base_url {:?}: {e}", self.base_url)))?;
        let door = Door::operator().map_err(|e| ClientError::settings(e.causes()))?;
        let id = self.id.or_else(|| self.journal.client()).unwrap_or_else(ClientId::mint);
        let shared = Shared {
            door,
            base,
            auth: self.auth,
            backoff: self.backoff,
            reconnect_for: self.reconnect_for,
            tool_timeout: self.tool_timeout,
            journal: self.journal,
            registry: Mutex::default(),
            name: self.name,
            id,
            log: self.log,
            listeners: Mutex::default(),
            gateway: Mutex::default(),
        };
        Ok(Client { shared: Arc::new(shared) })
    }
}

impl Client {
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            base_url: String::new(),
            auth: Auth::none(),
            id: None,
            name: None,
            journal: Journal::memory(),
            tool_timeout: None,
            backoff: Backoff::default(),
            reconnect_for: Duration::from_secs(600),
            log: None,
        }
    }

    /// Who claims calls.
    pub fn id(&self) -> &ClientId {
        &self.shared.id
    }

    /// The gateway's version, once it has answered (row H68).
    pub fn gateway_version(&self) -> Option<String> {
        lock(&self.shared.gateway).version.clone()
    }

    /// Reads any route that has no function of its own here.
    pub async fn request(&self, path: &str) -> Result<serde_json::Value, ClientError> {
        self.get(self.below(path)).await
    }

    /// What the gateway said that it cannot serve.
    pub fn gateway_warnings(&self) -> Vec<String> {
        lock(&self.shared.gateway).warnings.iter().cloned().collect()
    }

    /// Hears what this client does, until the client ends.
    pub fn on_event(&self, listener: impl Fn(&ClientEvent) + Send + Sync + 'static) {
        lock(&self.shared.listeners).push(Arc::new(listener));
    }
}

impl Shared {
    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.registry)
    }

    /// One line of what happens, for whoever debugs a plugin.
    pub(crate) fn say(&self, line: impl FnOnce() -> String) {
        if self.log.is_none() && !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let line = line();
        tracing::debug!("{line}");
        if let Some(log) = &self.log {
            log(&line);
        }
    }

    pub(crate) fn tell(&self, event: &ClientEvent) {
        let listeners: Vec<Listener> = lock(&self.listeners).clone();
        for listener in listeners {
            listener(event);
        }
    }

    pub(crate) fn note_gateway(&self, version: Option<&str>, warning: Option<&str>) {
        let mut notes = lock(&self.gateway);
        if let Some(version) = version
            && notes.version.as_deref() != Some(version)
        {
            notes.version = Some(version.to_owned());
        }
        // A gateway that repeats itself is heard once.
        let new =
            warning.filter(|text| notes.warnings.len() < 64 && notes.warnings.insert((*text).to_owned()));
        drop(notes);
        if let Some(text) = new {
            tracing::warn!("the gateway warns: {text}");
            self.tell(&ClientEvent::GatewayWarning(text.to_owned()));
        }
    }
}
