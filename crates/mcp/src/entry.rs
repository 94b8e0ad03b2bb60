//! A server in the operator's words: `[mcp_servers.NAME]` of toolyard.toml and
//! the `mcpServers` JSON that other hosts read. Both are this one form.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_egress::Target;
use toolyard_protocol::agent::mcp_server_key;
use toolyard_protocol::{TenantId, limits};

use crate::environment;
use crate::settings::{
    BadServer, Era, Launch, OauthClient, Origin, Program, Remote, ServerName, ServerSettings, Sharing,
    Tenants, check_header,
};

/// One server as written. `${NAME}` and `${NAME:-default}` in command, args,
/// env, cwd, url and headers stand for variables of the gateway.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Entry {
    /// `stdio` or `http`. Missing means: by `command` or `url`.
    #[serde(rename = "type", alias = "transport", skip_serializing_if = "Option::is_none")]
    pub kind: Option<EntryKind>,
    /// The program to start. It gets no shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables of the program.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Veiled>,
    /// Variables of the gateway that the program may see too.
    #[serde(alias = "envVars", skip_serializing_if = "Vec::is_empty")]
    pub env_vars: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    #[serde(alias = "serverUrl", skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(alias = "http_headers", skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Veiled>,
    /// The variable of the gateway that holds a bearer token.
    #[serde(alias = "bearerTokenEnvVar", skip_serializing_if = "Option::is_none")]
    pub bearer_token_env_var: Option<String>,
    /// A client registered with the server's authorization server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OauthEntry>,
    /// The server's own names of tools that agents may use. Missing means all.
    #[serde(alias = "allowedTools", alias = "enabled_tools", skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    #[serde(alias = "disabledTools", skip_serializing_if = "Vec::is_empty")]
    pub disabled_tools: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// As other hosts say `enabled = false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// A run does not start without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Its hints are believed and its results do not taint a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
    /// Tenants whose agents may name it; `*` means all. Missing means `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenants: Option<Vec<String>>,
    /// Who shares one connection. Missing means everybody for a program and for
    /// an address with headers, or each tenant alone if several may name it,
    /// else each user alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    /// The protocol it speaks. Missing means: ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<Era>,
    /// Seconds that it may take to start.
    #[serde(alias = "startupTimeoutSec", skip_serializing_if = "Option::is_none")]
    pub startup_timeout_sec: Option<f64>,
    /// Seconds that a call may be silent.
    #[serde(alias = "toolTimeoutSec", skip_serializing_if = "Option::is_none")]
    pub tool_timeout_sec: Option<f64>,
    /// Seconds that a call may take in all.
    #[serde(alias = "totalTimeoutSec", skip_serializing_if = "Option::is_none")]
    pub total_timeout_sec: Option<f64>,
}

/// A value that is often a secret. It is read and never shown.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("writeOnly" = true))]
pub struct Veiled(String);

impl fmt::Debug for Veiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl Serialize for Veiled {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("(hidden)")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    Stdio,
    #[serde(alias = "streamable-http", alias = "streamable_http", alias = "streamableHttp")]
    Http,
    Sse,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OauthEntry {
    pub client_id: String,
    /// The variable of the gateway that holds the client's secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_env_var: Option<String>,
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// Looks up a variable of the gateway.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads a file in the `mcpServers` form: `{"mcpServers": {"name": {…}}}`.
pub fn read_file_form(text: &str, lookup: Lookup<'_>) -> Result<Vec<ServerSettings>, BadServer> {
    let value: Value = serde_json::from_str(text).map_err(|e| BadServer::at("mcpServers", e.to_string()))?;
    let Some(Value::Object(servers)) = value.get("mcpServers").or_else(|| value.get("servers")) else {
        return Err(BadServer::at("mcpServers", "must be an object of servers by name"));
    };
    let mut entries = BTreeMap::new();
    for (name, value) in servers {
        let entry: Entry = serde_path_to_error::deserialize(value).map_err(|e| {
            let inner = e.path().to_string();
            let why = e.into_inner().to_string();
            let path = if inner == "." { name.clone() } else { format!("{name}.{inner}") };
            BadServer::at(path, why).under("mcpServers")
        })?;
        entries.insert(name.clone(), entry);
    }
    read_entries(&entries, lookup).map_err(|bad| bad.under("mcpServers"))
}

/// Checks the operator's servers by name.
pub fn read_entries(
    entries: &BTreeMap<String, Entry>,
    lookup: Lookup<'_>,
) -> Result<Vec<ServerSettings>, BadServer> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut servers = Vec::with_capacity(entries.len());
    for (name, entry) in entries {
        if let Some(other) = seen.insert(mcp_server_key(name), name) {
            return Err(BadServer::at(
                name,
                format!("its tools would have the same names as those of {other}"),
            ));
        }
        servers.push(read_entry(name, entry, lookup).map_err(|bad| bad.under(name))?);
    }
    Ok(servers)
}

fn read_entry(name: &str, entry: &Entry, lookup: Lookup<'_>) -> Result<ServerSettings, BadServer> {
    let name = ServerName::parse(name)?;
    let launch = match (&entry.command, &entry.url, entry.kind) {
        (Some(_), Some(_), _) => {
            return Err(BadServer::at("url", "stands beside command; a server has one of them"));
        }
        (Some(_), None, Some(EntryKind::Http | EntryKind::Sse)) => {
            return Err(BadServer::at("type", "says http, but there is a command and no url"));
        }
        (None, Some(_), Some(EntryKind::Stdio)) => {
            return Err(BadServer::at("type", "says stdio, but there is a url and no command"));
        }
        (None, None, _) => return Err(BadServer::at("command", "is required, or url")),
        (Some(command), None, _) => Launch::Stdio(program(command, entry, lookup)?),
        (None, Some(url), kind) => Launch::Http(remote(url, kind, entry, lookup)?),
    };
    let mut settings = ServerSettings::new(name, Origin::Operator, launch);
    settings.allowed_tools = entry.allowed_tools.as_ref().map(|all| all.iter().cloned().collect());
    settings.disabled_tools = entry.disabled_tools.iter().cloned().collect::<BTreeSet<_>>();
    settings.enabled = entry.enabled.unwrap_or(true) && !entry.disabled.unwrap_or(false);
    settings.required = entry.required.unwrap_or(false);
    settings.trusted = entry.trusted.unwrap_or(false);
    if let Some(names) = &entry.tenants {
        settings.tenants = tenants(names)?;
        // What one tenant does to a program is not the next one's business.
        if settings.sharing == Sharing::Shared && settings.tenants != Tenants::operator() {
            settings.sharing = Sharing::Tenant;
        }
    }
    settings.sharing = entry.sharing.unwrap_or(settings.sharing);
    settings.era = entry.era;
    settings.start = seconds("startup_timeout_sec", entry.startup_timeout_sec, settings.start)?;
    settings.idle = seconds("tool_timeout_sec", entry.tool_timeout_sec, settings.idle)?;
    settings.total =
        seconds("total_timeout_sec", entry.total_timeout_sec, settings.total)?.max(settings.idle);
    Ok(settings)
}

fn tenants(names: &[String]) -> Result<Tenants, BadServer> {
    if names.iter().any(|name| name == "*") {
        return Ok(Tenants::All);
    }
    let read = |(i, name): (usize, &String)| {
        let bad = |_| BadServer::at(format!("tenants[{i}]"), format!("{name:?} is not the name of a tenant"));
        TenantId::parse(name).map_err(bad)
    };
    names.iter().enumerate().map(read).collect::<Result<_, _>>().map(Tenants::These)
}

fn program(command: &str, entry: &Entry, lookup: Lookup<'_>) -> Result<Program, BadServer> {
    if !entry.headers.is_empty() || entry.bearer_token_env_var.is_some() || entry.oauth.is_some() {
        return Err(BadServer::at("headers", "and tokens belong to a url, not to a command"));
    }
    let command = expand("command", command, lookup)?;
    if command.trim().is_empty() {
        return Err(BadServer::at("command", "must not be empty"));
    }
    let mut args = Vec::with_capacity(entry.args.len());
    for (i, arg) in entry.args.iter().enumerate() {
        args.push(expand(&format!("args[{i}]"), arg, lookup)?);
    }
    let mut env = BTreeMap::new();
    for (name, value) in &entry.env {
        let path = format!("env.{name}");
        if let Some(why) = environment::refusal(name) {
            return Err(BadServer::at(path, why));
        }
        env.insert(name.clone(), SecretString::from(expand(&path, &value.0, lookup)?));
    }
    for (i, name) in entry.env_vars.iter().enumerate() {
        if let Some(why) = environment::refusal(name) {
            return Err(BadServer::at(format!("env_vars[{i}]"), format!("{name} {why}")));
        }
    }
    let cwd = match &entry.cwd {
        Some(path) => Some(PathBuf::from(expand("cwd", &path.to_string_lossy(), lookup)?)),
        None => None,
    };
    Ok(Program { command, args, env, inherit: entry.env_vars.clone(), cwd })
}

fn remote(
    url: &str,
    kind: Option<EntryKind>,
    entry: &Entry,
    lookup: Lookup<'_>,
) -> Result<Remote, BadServer> {
    if !entry.args.is_empty() || !entry.env.is_empty() || entry.cwd.is_some() {
        return Err(BadServer::at("args", "env and cwd belong to a command, not to a url"));
    }
    let url = expand("url", url, lookup)?;
    let target = Target::parse(&url).map_err(|e| BadServer::at("url", e.to_string()))?;
    let mut headers = BTreeMap::new();
    for (name, value) in &entry.headers {
        let path = format!("headers.{name}");
        check_header(name).map_err(|why| BadServer::at(&path, why))?;
        let text = expand(&path, &value.0, lookup)?;
        if http::HeaderValue::from_str(&text).is_err() {
            return Err(BadServer::at(path, "has characters that a header cannot carry"));
        }
        headers.insert(name.to_ascii_lowercase(), SecretString::from(text));
    }
    if let Some(variable) = &entry.bearer_token_env_var {
        let token = lookup(variable)
            .ok_or_else(|| BadServer::at("bearer_token_env_var", format!("{variable} is not set")))?;
        headers.insert("authorization".to_owned(), SecretString::from(format!("Bearer {token}")));
    }
    let client = match &entry.oauth {
        None => None,
        Some(oauth) => Some(OauthClient {
            id: oauth.client_id.clone(),
            scopes: oauth.scopes.clone(),
            secret: match &oauth.client_secret_env_var {
                None => None,
                Some(variable) => Some(SecretString::from(lookup(variable).ok_or_else(|| {
                    BadServer::at("oauth.client_secret_env_var", format!("{variable} is not set"))
                })?)),
            },
        }),
    };
    Ok(Remote { target, headers, client, asked_for_sse: kind == Some(EntryKind::Sse) })
}

fn seconds(path: &str, given: Option<f64>, old: Duration) -> Result<Duration, BadServer> {
    let Some(seconds) = given else { return Ok(old) };
    let most = limits::MCP_TIMEOUT_MAX_MS / 1000;
    let fits = seconds.is_finite() && seconds > 0.0 && seconds <= most as f64;
    if !fits {
        return Err(BadServer::at(path, format!("must be more than 0 and at most {most} seconds")));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Replaces `${NAME}` and `${NAME:-default}`. Only the operator's own file
/// comes here: nobody else may read the gateway's variables.
fn expand(path: &str, text: &str, lookup: Lookup<'_>) -> Result<String, BadServer> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        out.push_str(&rest[..start]);
        let after = &rest[start + 2..];
        let Some(end) = after.find('}') else {
            return Err(BadServer::at(path, "has a ${ without its }"));
        };
        let (name, default) = match after[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&after[..end], None),
        };
        let name = name.strip_prefix("env:").or_else(|| name.strip_prefix("env.")).unwrap_or(name);
        match lookup(name).filter(|value| !value.is_empty()).or_else(|| default.map(str::to_owned)) {
            Some(value) => out.push_str(&value),
            None => return Err(BadServer::at(path, format!("the variable {name} is not set"))),
        }
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}
