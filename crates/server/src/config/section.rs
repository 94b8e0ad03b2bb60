//! The sections of the file, with their defaults beside them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_protocol::agent::OnConflict;
use toolyard_protocol::limits;
use toolyard_protocol::risk::Risk;

use super::hidden::Hidden;
use super::model::ModelEntry;
use super::watching::{Log, Telemetry};

/// The whole file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Address and port to listen on. Port 0 takes a free one.
    #[serde(deserialize_with = "super::listen::deserialize")]
    #[schemars(with = "String")]
    pub(crate) listen: SocketAddr,
    /// The address that people's browsers know the gateway by, as
    /// `https://gateway.example`. Logins at MCP servers come back to it, and
    /// agent cards name it (without it, the host that a request came to).
    /// Missing means `http://` and the address that it listens on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_url: Option<String>,
    /// Folder of the SQLite database, files and generated keys.
    pub(crate) data: PathBuf,
    /// `postgres://…` instead of SQLite in the data folder.
    pub(crate) database_url: Hidden,
    /// `redis://…` or `rediss://…`: several nodes on one PostgreSQL tell each
    /// other by it what they commit and stream. Empty means by PostgreSQL alone:
    /// readers on other nodes then get a step when it is whole.
    pub(crate) redis_url: Hidden,
    /// Folder of agent configurations (`*.json`), loaded at start and watched.
    pub(crate) agents_dir: PathBuf,
    pub(crate) mode: Mode,
    pub(crate) auth: AuthMode,
    /// The agent that requests without one get.
    pub(crate) default_agent: String,
    /// Origins of web pages that may call; a port may be `*`. Missing means
    /// every local page in development and none in production.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_origins: Option<Vec<String>>,
    /// Hosts inside private networks that tools and webhooks may reach, as
    /// `host` or `host:port`.
    pub(crate) allow_private_network: Vec<String>,
    /// Seconds that running work may take to end after a stop signal.
    pub(crate) drain_seconds: u64,
    pub(crate) keys: Keys,
    pub(crate) jwt: Jwt,
    pub(crate) env: Env,
    pub(crate) smtp: Smtp,
    pub(crate) permissions: Permissions,
    pub(crate) plugins: PluginSection,
    pub(crate) client_tools: ClientTools,
    pub(crate) limits: Limits,
    pub(crate) retention: Retention,
    pub(crate) knowledge: KnowledgeSection,
    pub(crate) log: Log,
    pub(crate) telemetry: Telemetry,
    /// Model providers by name.
    pub(crate) providers: BTreeMap<String, Provider>,
    /// Models that agents and requests may name, by id.
    pub(crate) models: BTreeMap<String, ModelEntry>,
    /// MCP servers that agents may name.
    pub(crate) mcp_servers: BTreeMap<String, toolyard_mcp::Entry>,
    /// A file of more of them, in the `mcpServers` form of other hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mcp_servers_file: Option<PathBuf>,
    pub(crate) mcp_server: McpServerSection,
    pub(crate) web_app: WebAppSection,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8787)),
            public_url: None,
            data: PathBuf::from(".toolyard"),
            database_url: Hidden::default(),
            redis_url: Hidden::default(),
            agents_dir: PathBuf::from("agents"),
            mode: Mode::default(),
            auth: AuthMode::default(),
            default_agent: "assistant".to_owned(),
            allowed_origins: None,
            allow_private_network: Vec::new(),
            drain_seconds: 8,
            keys: Keys::default(),
            jwt: Jwt::default(),
            env: Env::default(),
            smtp: Smtp::default(),
            permissions: Permissions::default(),
            plugins: PluginSection::default(),
            client_tools: ClientTools::default(),
            limits: Limits::default(),
            retention: Retention::default(),
            knowledge: KnowledgeSection::default(),
            log: Log::default(),
            telemetry: Telemetry::default(),
            providers: BTreeMap::new(),
            models: BTreeMap::new(),
            mcp_servers: BTreeMap::new(),
            mcp_servers_file: None,
            mcp_server: McpServerSection::default(),
            web_app: WebAppSection::default(),
        }
    }
}

impl Config {
    pub(crate) fn origins(&self) -> Vec<String> {
        match (&self.allowed_origins, self.mode) {
            (Some(given), _) => given.clone(),
            (None, Mode::Development) => {
                vec!["http://localhost:*".to_owned(), "http://127.0.0.1:*".to_owned()]
            }
            (None, Mode::Production) => Vec::new(),
        }
    }
    /// Where the web app may look for MCP servers, beside this gateway.
    pub(crate) fn web_app_origins(&self) -> Vec<String> {
        match (&self.web_app.mcp_origins, self.mode) {
            (Some(given), _) => given.clone(),
            (None, Mode::Development) => {
                vec!["http://localhost:*".to_owned(), "http://127.0.0.1:*".to_owned()]
            }
            (None, Mode::Production) => Vec::new(),
        }
    }
    /// Does an unknown JWT subject get an entity?
    pub(crate) fn auto_entities(&self) -> bool {
        self.jwt.auto_entities.unwrap_or(self.mode == Mode::Development)
    }
}

/// The web app that the gateway serves.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WebAppSection {
    /// Origins of MCP servers that people may add in the web app and that their
    /// browser then calls itself; a port may be `*`. The page's content security
    /// policy names them, and the browser reaches nothing else. Missing means
    /// every local one in development and none in production.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mcp_origins: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    #[default]
    Development,
    Production,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuthMode {
    /// Every request names a key.
    #[default]
    Keys,
    /// No key needed; only on a loopback address.
    Off,
}

/// Keys of the operator. They belong to the tenant `default`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Keys {
    pub(crate) secret: Hidden,
    pub(crate) public: Hidden,
    /// Closes stored secrets: 32 random bytes as base64 or hexadecimal text.
    /// Missing means `<data>/master.key`, which is made at the first start.
    pub(crate) master: Hidden,
}

/// The environment, as far as agents see it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Env {
    /// Variables that agents of the tenant `default` may use as `${env.NAME}`.
    pub(crate) allow: Vec<String>,
}

/// The operator's mail server, for notifications by letter.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Smtp {
    /// Missing means that no letters leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    /// Missing means 587, 465 with `tls`, 25 with `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<u16>,
    pub(crate) tls: SmtpTls,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    pub(crate) password: Hidden,
    /// The sender: `Toolyard <toolyard@example.com>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SmtpTls {
    /// Encrypted after the greeting, and never without.
    #[default]
    Starttls,
    /// Encrypted from the first byte.
    Tls,
    /// Not at all. Only for a server on this machine.
    None,
}

/// How a browser's user proves who they are.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Jwt {
    /// The HS256 secret. It also signs the addresses of files.
    pub(crate) secret: Hidden,
    /// Where the keys of a foreign issuer are (RS256, ES256, EdDSA). Tokens by
    /// the secret are then refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jwks_url: Option<String>,
    /// The claim that names the user; it is matched to an entity's externalId.
    pub(crate) entity_claim: String,
    /// The claim that must equal the tenant of the public key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tenant_claim: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) issuer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) audience: Option<String>,
    /// An unknown user gets an entity. Missing means: in development only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auto_entities: Option<bool>,
}

impl Default for Jwt {
    fn default() -> Self {
        Self {
            secret: Hidden::default(),
            jwks_url: None,
            entity_claim: "sub".to_owned(),
            tenant_claim: None,
            issuer: None,
            audience: None,
            auto_entities: None,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Permissions {
    /// The lowest risk that asks a person, for tools that reach outside.
    pub(crate) ask_from: Risk,
}

impl Default for Permissions {
    fn default() -> Self {
        Self { ask_from: Risk::High }
    }
}

/// Tools that requests bring.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ClientTools {
    /// When a request's tool has the name of one of the agent's: `error`
    /// refuses the request, `prefix` offers it as `client_<name>`. An agent's
    /// `clientTools.onConflict` wins.
    pub(crate) on_conflict: OnConflict,
}

/// Plugins that tenants install.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PluginSection {
    /// Distinct curators that must have signed a plugin.
    pub(crate) threshold: usize,
    /// Hosts that plugins may reach with `fetch`, of those that they ask for,
    /// as `host` or `host:port`. `*` means whatever they ask for.
    pub(crate) fetch: Vec<String>,
}

impl Default for PluginSection {
    fn default() -> Self {
        Self { threshold: 1, fetch: Vec::new() }
    }
}

/// What one request, one key and the gateway may take.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Bytes of a body on routes without a limit of their own.
    pub(crate) body_bytes: usize,
    /// Bytes of a body that brings messages.
    pub(crate) conversation_body_bytes: usize,
    /// Bytes of a body that brings tool results.
    pub(crate) result_body_bytes: usize,
    /// Bytes of an uploaded file.
    pub(crate) file_bytes: usize,
    /// Requests per second of one user of a public key; 0 means no limit.
    pub(crate) public_rate: u32,
    /// Requests per second of a secret key; 0 means no limit.
    pub(crate) secret_rate: u32,
    /// Requests above the rate that may come at once.
    pub(crate) burst: u32,
    /// Runs that this gateway works on at the same time.
    pub(crate) active_runs: usize,
    /// Open connections.
    pub(crate) connections: usize,
    /// Seconds for the head of a request, and between two requests.
    pub(crate) header_seconds: u64,
    /// Seconds between two pieces of a body.
    pub(crate) body_seconds: u64,
    /// Seconds that the reader of a stream may read nothing before it is cut.
    pub(crate) reader_seconds: u64,
    /// Seconds after which a stream that has nothing to say sends a comment, so
    /// that no proxy closes it.
    pub(crate) keep_alive_seconds: u64,
    /// Seconds that sent bytes may stay unacknowledged before the connection is
    /// dropped: so a peer that vanished without a word is noticed.
    pub(crate) peer_seconds: u64,
    /// Seconds between two pings to a connected program. With each the key is
    /// looked at again; after two and a half times as long a silent one is cut.
    pub(crate) socket_ping_seconds: u64,
    /// Tools that one request with a public key may bring.
    pub(crate) public_tools: usize,
    /// Tools that one request with a secret key may bring.
    pub(crate) secret_tools: usize,
    /// Tokens of one tool result that a model reads, at about four characters
    /// each. The rest is cut, with a mark; the prebuilt tool `readResult` reads on.
    pub(crate) tool_result_tokens: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: limits::BODY_BYTES,
            conversation_body_bytes: limits::CONVERSATION_BODY_BYTES,
            result_body_bytes: limits::RESULT_BODY_BYTES,
            file_bytes: limits::FILE_BYTES,
            public_rate: 50,
            secret_rate: 0,
            burst: 200,
            active_runs: 512,
            connections: 20_000,
            header_seconds: 15,
            body_seconds: 10,
            reader_seconds: 20,
            keep_alive_seconds: 15,
            peer_seconds: 30,
            socket_ping_seconds: limits::SOCKET_PING_SECONDS,
            public_tools: limits::PUBLIC_TOOLS,
            secret_tools: limits::SECRET_TOOLS,
            tool_result_tokens: limits::TOOL_RESULT_TOKENS,
        }
    }
}

/// How long things are kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Retention {
    /// Days after its end that a run is removed with the runs below it: events,
    /// waits, large results. What was said stays in its space. A part of a day
    /// is fine. Missing means never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) finished_runs_days: Option<f64>,
}

impl Retention {
    pub(crate) fn finished_runs(&self) -> Option<Duration> {
        self.finished_runs_days.and_then(|days| Duration::try_from_secs_f64(days * 86_400.0).ok())
    }
}

/// Agents as MCP servers, at `/mcp/{agent}`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct McpServerSection {
    pub(crate) enabled: bool,
    /// Agents may let MCP clients call their own tools (`mcpServer.tools`).
    pub(crate) own_tools: bool,
    /// A call that takes longer becomes a task, if the client knows tasks.
    pub(crate) task_after_ms: u64,
}

impl Default for McpServerSection {
    fn default() -> Self {
        Self { enabled: true, own_tools: true, task_after_ms: limits::MCP_TASK_AFTER_MS }
    }
}

/// Documents that agents search.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct KnowledgeSection {
    /// `provider/model` that makes vectors, so that documents are found by
    /// meaning too. Missing means by words alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) embedding: Option<String>,
}

impl KnowledgeSection {
    /// Provider and model.
    pub(crate) fn embedder(&self) -> Option<(String, String)> {
        let (provider, model) = self.embedding.as_deref()?.split_once('/')?;
        Some((provider.to_owned(), model.to_owned()))
    }
}

/// A model provider.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    pub(crate) kind: ProviderKind,
    /// Missing means the vendor's own address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_key_env: Option<String>,
}

/// Which wire a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProviderKind {
    Demo,
    /// Chat completions, of OpenAI or of any server that speaks them.
    #[serde(rename = "openai")]
    OpenAi,
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    Anthropic,
    Gemini,
    /// Converse. Keys and region come from the AWS variables.
    Bedrock,
}
