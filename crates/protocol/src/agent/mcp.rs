//! The MCP servers of an agent (row G4), as written and as checked.
//!
//! An agent names a server of the operator, or a remote one by its address. A
//! command to start is the operator's alone: there is no field for it here.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use super::parse::BadConfig;
use crate::limits;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpSection {
    pub servers: Vec<McpServer>,
}

/// A server of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct McpServer {
    /// Part of its tools' names. Without a `url` it names a server of the operator.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<McpTransport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<serde_json::Map<String, Value>>,
    /// The server's own names of the tools that the agent gets. Missing means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    /// A run does not start without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// How long it may take to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub start_timeout_ms: Option<u64>,
    /// How long a call may be silent. Progress counts as a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub timeout_ms: Option<u64>,
    /// How long a call may take in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub total_timeout_ms: Option<u64>,
    /// Its results do not taint the run, and its hints are believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
}

impl McpServer {
    /// The operator's server of this name, as it is.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            url: None,
            transport: None,
            headers: None,
            allowed_tools: None,
            required: None,
            start_timeout_ms: None,
            timeout_ms: None,
            total_timeout_ms: None,
            trusted: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum McpTransport {
    /// Streamable HTTP.
    #[serde(alias = "streamable-http", alias = "streamableHttp")]
    Http,
    /// Read for older configurations; the server is asked by streamable HTTP.
    Sse,
}

/// Can `text` be the name of a server? It is part of its tools' names.
pub fn is_mcp_server_name(text: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    starts && text.len() <= limits::MCP_SERVER_NAME && text.chars().all(fine)
}

/// What a name must be, for errors.
pub fn mcp_server_name_rule() -> String {
    format!(
        "must start with a letter or digit, then letters, digits, hyphens and underscores, at most {} characters",
        limits::MCP_SERVER_NAME
    )
}

/// Two names that differ only in case or in `-` and `_` would be read as one.
pub fn mcp_server_key(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

pub(super) fn check(section: &McpSection) -> Result<(), BadConfig> {
    if section.servers.len() > limits::MCP_SERVERS {
        return Err(BadConfig::at(
            "mcp.servers",
            format!("at most {} servers are allowed", limits::MCP_SERVERS),
        ));
    }
    let mut seen = HashSet::new();
    for (i, server) in section.servers.iter().enumerate() {
        let path = format!("mcp.servers[{i}]");
        check_server(server, &path)?;
        if !seen.insert(mcp_server_key(&server.name)) {
            return Err(BadConfig::at(
                format!("{path}.name"),
                format!("server {} is defined twice (case, - and _ do not count)", server.name),
            ));
        }
    }
    Ok(())
}

fn check_server(server: &McpServer, path: &str) -> Result<(), BadConfig> {
    let at = |field: &str, why: &str| Err(BadConfig::at(format!("{path}.{field}"), why));
    if !is_mcp_server_name(&server.name) {
        return at("name", &mcp_server_name_rule());
    }
    match &server.url {
        Some(url) => check_url(url).or_else(|why| at("url", why))?,
        None if server.transport.is_some() || server.headers.is_some() => {
            return at(
                "url",
                "is required beside transport and headers; without it, the name alone names a server of the operator",
            );
        }
        None => {}
    }
    for (name, value) in server.headers.iter().flatten() {
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(token) {
            return at("headers", "a header name has characters that HTTP does not allow");
        }
        let Some(text) = value.as_str() else {
            return at(&format!("headers.{name}"), "must be a string");
        };
        if text.chars().any(|c| c.is_control()) {
            return at(&format!("headers.{name}"), "must not have control characters");
        }
    }
    let times = [
        ("startTimeoutMs", server.start_timeout_ms),
        ("timeoutMs", server.timeout_ms),
        ("totalTimeoutMs", server.total_timeout_ms),
    ];
    for (field, ms) in times {
        if ms.is_some_and(|ms| ms == 0 || ms > limits::MCP_TIMEOUT_MAX_MS) {
            return at(field, &format!("must be between 1 and {}", limits::MCP_TIMEOUT_MAX_MS));
        }
    }
    Ok(())
}

fn check_url(url: &str) -> Result<(), &'static str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Err("must start with https:// or http://");
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() {
        return Err("has no host");
    }
    if host.contains('@') {
        return Err("must not contain a user name or password");
    }
    Ok(())
}
