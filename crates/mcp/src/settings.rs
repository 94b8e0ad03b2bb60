//! What the host knows of a server: how to reach it, whom it serves, how long
//! to wait for it. Parsed once, from the operator's file or an agent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolyard_egress::Target;
use toolyard_protocol::agent::{McpServer, is_mcp_server_name, mcp_server_name_rule};
use toolyard_protocol::{EntityId, Hash, TenantId, limits};

/// The name of a server in a configuration. It is part of its tools' names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ServerName(Arc<str>);

impl ServerName {
    pub fn parse(text: &str) -> Result<Self, BadServer> {
        if !is_mcp_server_name(text) {
            return Err(BadServer::at("name", mcp_server_name_rule()));
        }
        Ok(Self(Arc::from(text)))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a server's settings are refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct BadServer {
    pub path: String,
    pub why: String,
}

impl BadServer {
    pub(crate) fn at(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self { path: path.into(), why: why.into() }
    }
    /// The same fault, seen from further outside.
    #[must_use]
    pub fn under(self, path: &str) -> Self {
        Self { path: format!("{path}.{}", self.path), why: self.why }
    }
}

/// For whom a call is made. Connections and tokens never cross owners.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    pub tenant: TenantId,
    /// The user behind the run. Missing for work of the tenant itself.
    pub entity: Option<EntityId>,
}

/// Who shares one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// Everybody.
    Shared,
    /// The users of one tenant.
    Tenant,
    /// Nobody: one connection per user.
    User,
}

/// Whose agents may name a server of the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tenants {
    All,
    These(BTreeSet<TenantId>),
}

impl Tenants {
    /// The operator's own.
    pub fn operator() -> Self {
        Self::These([TenantId::default_tenant()].into())
    }
    pub fn has(&self, tenant: &TenantId) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.contains(tenant),
        }
    }
}

/// The two protocols that servers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// `initialize`, sessions: up to 2025-11-25.
    Legacy,
    /// `server/discover`, no sessions: 2026-07-28.
    Modern,
}

/// Who wrote the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    Operator,
    Agent,
}

/// A program to start. Only the operator's settings make one.
#[derive(Debug, Clone)]
pub struct Program {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, SecretString>,
    /// Names of the gateway's own variables that the program may see.
    pub inherit: Vec<String>,
    pub cwd: Option<PathBuf>,
}

/// A server behind an address.
#[derive(Debug, Clone)]
pub struct Remote {
    pub target: Target,
    pub headers: BTreeMap<String, SecretString>,
    /// Registered with the server's authorization server beforehand.
    pub client: Option<OauthClient>,
    /// Words of the configuration that asked for HTTP+SSE of 2024-11-05.
    pub asked_for_sse: bool,
}

/// A client that was registered by hand.
#[derive(Debug, Clone)]
pub struct OauthClient {
    pub id: String,
    pub secret: Option<SecretString>,
    pub scopes: Vec<String>,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Launch {
    Stdio(Program),
    Http(Remote),
}

impl Launch {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
        }
    }
}

/// A server, ready to be used.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    pub name: ServerName,
    pub origin: Origin,
    pub launch: Launch,
    /// The server's own names. Missing means all.
    pub allowed_tools: Option<BTreeSet<String>>,
    pub disabled_tools: BTreeSet<String>,
    pub enabled: bool,
    pub required: bool,
    /// Its hints are believed, its results do not taint.
    pub trusted: bool,
    pub sharing: Sharing,
    /// An operator's server acts with the operator's means.
    pub tenants: Tenants,
    /// Missing means: ask, and remember.
    pub era: Option<Era>,
    pub start: Duration,
    pub idle: Duration,
    pub total: Duration,
}

impl ServerSettings {
    /// With the default times and nobody's trust.
    pub fn new(name: ServerName, origin: Origin, launch: Launch) -> Self {
        // A program, or an address with the operator's own credentials, serves
        // everybody; elsewhere each user may have a login.
        let sharing = match (origin, &launch) {
            (Origin::Operator, Launch::Stdio(_)) => Sharing::Shared,
            (Origin::Operator, Launch::Http(remote)) if !remote.headers.is_empty() => Sharing::Shared,
            (Origin::Operator | Origin::Agent, _) => Sharing::User,
        };
        Self {
            name,
            origin,
            launch,
            allowed_tools: None,
            disabled_tools: BTreeSet::new(),
            enabled: true,
            required: false,
            trusted: false,
            sharing,
            tenants: Tenants::operator(),
            era: None,
            start: Duration::from_millis(limits::MCP_START_MS),
            idle: Duration::from_millis(limits::TOOL_TIMEOUT_MS),
            total: Duration::from_millis(limits::MCP_TOTAL_MS),
        }
    }

    /// A server of an agent. Without a URL it is the operator's server of that
    /// name, which the agent may narrow and never widen. `reveal` turns the
    /// text of a header into its value (`${secret.NAME}`).
    pub fn of_agent(
        server: &McpServer,
        operator: &[Self],
        reveal: &dyn Fn(&str) -> Result<SecretString, String>,
    ) -> Result<Self, BadServer> {
        let name = ServerName::parse(&server.name)?;
        let mut settings = match &server.url {
            None => operator.iter().find(|known| known.name == name).cloned().ok_or_else(|| {
                BadServer::at(
                    "name",
                    format!("the operator has no MCP server {name}; a remote one needs a url"),
                )
            })?,
            Some(url) => Self::remote(name, url, server, reveal)?,
        };
        if let Some(allowed) = &server.allowed_tools {
            let allowed: BTreeSet<String> = allowed.iter().cloned().collect();
            settings.allowed_tools = Some(match settings.allowed_tools.take() {
                Some(outer) => outer.intersection(&allowed).cloned().collect(),
                None => allowed,
            });
        }
        settings.required = server.required.unwrap_or(settings.required);
        settings.trusted &= server.trusted.unwrap_or(true);
        let ms = |given: Option<u64>, old: Duration| given.map_or(old, Duration::from_millis);
        settings.start = ms(server.start_timeout_ms, settings.start);
        settings.idle = ms(server.timeout_ms, settings.idle);
        settings.total = ms(server.total_timeout_ms, settings.total).max(settings.idle);
        Ok(settings)
    }

    fn remote(
        name: ServerName,
        url: &str,
        server: &McpServer,
        reveal: &dyn Fn(&str) -> Result<SecretString, String>,
    ) -> Result<Self, BadServer> {
        let target = Target::parse(url).map_err(|e| BadServer::at("url", e.to_string()))?;
        let mut headers = BTreeMap::new();
        for (header, value) in server.headers.iter().flatten() {
            let path = format!("headers.{header}");
            check_header(header).map_err(|why| BadServer::at(&path, why))?;
            let text = value.as_str().unwrap_or_default();
            headers
                .insert(header.to_ascii_lowercase(), reveal(text).map_err(|why| BadServer::at(&path, why))?);
        }
        let asked_for_sse = server.transport == Some(toolyard_protocol::agent::McpTransport::Sse);
        let launch = Launch::Http(Remote { target, headers, client: None, asked_for_sse });
        let mut settings = Self::new(name, Origin::Agent, launch);
        settings.trusted = server.trusted.unwrap_or(false);
        Ok(settings)
    }

    /// May the model see the tool that the server calls `raw`?
    pub fn offers(&self, raw: &str) -> bool {
        !self.disabled_tools.contains(raw) && self.allowed_tools.as_ref().is_none_or(|all| all.contains(raw))
    }

    /// Knows a connection again: all that reaches the server, secrets too.
    pub(crate) fn fingerprint(&self) -> Hash {
        let launch = match &self.launch {
            Launch::Stdio(p) => json!([p.command, p.args, exposed(&p.env), p.inherit, p.cwd]),
            Launch::Http(r) => json!([
                r.target.exposed(),
                exposed(&r.headers),
                r.client.as_ref().map(|c| json!([
                    c.id,
                    c.scopes,
                    c.secret.as_ref().map(|s| s.expose_secret())
                ])),
            ]),
        };
        Hash::of_json(&json!([self.name, self.origin, self.launch.word(), launch, self.era]))
    }

    /// Whose connection a call of `owner` uses.
    pub(crate) fn share(&self, owner: &Owner) -> Share {
        match self.sharing {
            Sharing::Shared => Share { tenant: None, entity: None },
            Sharing::Tenant => Share { tenant: Some(owner.tenant.clone()), entity: None },
            Sharing::User => Share { tenant: Some(owner.tenant.clone()), entity: owner.entity.clone() },
        }
    }
}

/// The part of an owner that keeps connections apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Share {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<EntityId>,
}

fn exposed(map: &BTreeMap<String, SecretString>) -> BTreeMap<&str, &str> {
    map.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect()
}

/// Headers that the protocol writes itself.
const RESERVED: [&str; 12] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
];

pub(crate) fn check_header(name: &str) -> Result<(), String> {
    if http::HeaderName::try_from(name).is_err() {
        return Err("is not the name of a header".to_owned());
    }
    if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        return Err("is written by the protocol and cannot be set".to_owned());
    }
    Ok(())
}
