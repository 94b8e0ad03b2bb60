//! Environment variables over the file: each key has one `TOOLYARD_…` name.

use toml::{Table, Value};

/// How a variable's text becomes a value.
#[derive(Debug, Clone, Copy)]
enum Form {
    Text,
    Number,
    /// A number that may have a fraction.
    Fraction,
    Flag,
    /// Separated by commas.
    List,
}

/// A variable and the path of its key.
const NAMES: &[(&str, &[&str], Form)] = &[
    ("TOOLYARD_LISTEN", &["listen"], Form::Text),
    ("TOOLYARD_PUBLIC_URL", &["public_url"], Form::Text),
    ("TOOLYARD_DATA", &["data"], Form::Text),
    ("TOOLYARD_DATABASE_URL", &["database_url"], Form::Text),
    ("TOOLYARD_REDIS_URL", &["redis_url"], Form::Text),
    ("TOOLYARD_AGENTS_DIR", &["agents_dir"], Form::Text),
    ("TOOLYARD_MODE", &["mode"], Form::Text),
    ("TOOLYARD_AUTH", &["auth"], Form::Text),
    ("TOOLYARD_DEFAULT_AGENT", &["default_agent"], Form::Text),
    ("TOOLYARD_ALLOWED_ORIGINS", &["allowed_origins"], Form::List),
    ("TOOLYARD_DRAIN_SECONDS", &["drain_seconds"], Form::Number),
    ("TOOLYARD_MCP_SERVERS_FILE", &["mcp_servers_file"], Form::Text),
    ("TOOLYARD_MCP_SERVER_ENABLED", &["mcp_server", "enabled"], Form::Flag),
    ("TOOLYARD_MCP_SERVER_OWN_TOOLS", &["mcp_server", "own_tools"], Form::Flag),
    ("TOOLYARD_MCP_SERVER_TASK_AFTER_MS", &["mcp_server", "task_after_ms"], Form::Number),
    ("TOOLYARD_WEB_APP_MCP_ORIGINS", &["web_app", "mcp_origins"], Form::List),
    ("TOOLYARD_SECRET_KEY", &["keys", "secret"], Form::Text),
    ("TOOLYARD_PUBLIC_KEY", &["keys", "public"], Form::Text),
    ("TOOLYARD_MASTER_KEY", &["keys", "master"], Form::Text),
    ("TOOLYARD_ALLOW_PRIVATE_NETWORK", &["allow_private_network"], Form::List),
    ("TOOLYARD_ENV_ALLOW", &["env", "allow"], Form::List),
    ("TOOLYARD_JWT_SECRET", &["jwt", "secret"], Form::Text),
    ("TOOLYARD_JWT_JWKS_URL", &["jwt", "jwks_url"], Form::Text),
    ("TOOLYARD_JWT_ENTITY_CLAIM", &["jwt", "entity_claim"], Form::Text),
    ("TOOLYARD_JWT_TENANT_CLAIM", &["jwt", "tenant_claim"], Form::Text),
    ("TOOLYARD_JWT_ISSUER", &["jwt", "issuer"], Form::Text),
    ("TOOLYARD_JWT_AUDIENCE", &["jwt", "audience"], Form::Text),
    ("TOOLYARD_JWT_AUTO_ENTITIES", &["jwt", "auto_entities"], Form::Flag),
    ("TOOLYARD_SMTP_HOST", &["smtp", "host"], Form::Text),
    ("TOOLYARD_SMTP_PORT", &["smtp", "port"], Form::Number),
    ("TOOLYARD_SMTP_TLS", &["smtp", "tls"], Form::Text),
    ("TOOLYARD_SMTP_USER", &["smtp", "user"], Form::Text),
    ("TOOLYARD_SMTP_PASSWORD", &["smtp", "password"], Form::Text),
    ("TOOLYARD_SMTP_FROM", &["smtp", "from"], Form::Text),
    ("TOOLYARD_PERMISSIONS_ASK_FROM", &["permissions", "ask_from"], Form::Text),
    ("TOOLYARD_PLUGINS_THRESHOLD", &["plugins", "threshold"], Form::Number),
    ("TOOLYARD_PLUGINS_FETCH", &["plugins", "fetch"], Form::List),
    ("TOOLYARD_CLIENT_TOOLS_ON_CONFLICT", &["client_tools", "on_conflict"], Form::Text),
    ("TOOLYARD_LIMITS_BODY_BYTES", &["limits", "body_bytes"], Form::Number),
    ("TOOLYARD_LIMITS_CONVERSATION_BODY_BYTES", &["limits", "conversation_body_bytes"], Form::Number),
    ("TOOLYARD_LIMITS_RESULT_BODY_BYTES", &["limits", "result_body_bytes"], Form::Number),
    ("TOOLYARD_LIMITS_FILE_BYTES", &["limits", "file_bytes"], Form::Number),
    ("TOOLYARD_LIMITS_PUBLIC_RATE", &["limits", "public_rate"], Form::Number),
    ("TOOLYARD_LIMITS_SECRET_RATE", &["limits", "secret_rate"], Form::Number),
    ("TOOLYARD_LIMITS_BURST", &["limits", "burst"], Form::Number),
    ("TOOLYARD_LIMITS_ACTIVE_RUNS", &["limits", "active_runs"], Form::Number),
    ("TOOLYARD_LIMITS_CONNECTIONS", &["limits", "connections"], Form::Number),
    ("TOOLYARD_LIMITS_HEADER_SECONDS", &["limits", "header_seconds"], Form::Number),
    ("TOOLYARD_LIMITS_BODY_SECONDS", &["limits", "body_seconds"], Form::Number),
    ("TOOLYARD_LIMITS_READER_SECONDS", &["limits", "reader_seconds"], Form::Number),
    ("TOOLYARD_LIMITS_KEEP_ALIVE_SECONDS", &["limits", "keep_alive_seconds"], Form::Number),
    ("TOOLYARD_LIMITS_PEER_SECONDS", &["limits", "peer_seconds"], Form::Number),
    ("TOOLYARD_LIMITS_SOCKET_PING_SECONDS", &["limits", "socket_ping_seconds"], Form::Number),
    ("TOOLYARD_LIMITS_PUBLIC_TOOLS", &["limits", "public_tools"], Form::Number),
    ("TOOLYARD_LIMITS_SECRET_TOOLS", &["limits", "secret_tools"], Form::Number),
    ("TOOLYARD_LIMITS_TOOL_RESULT_TOKENS", &["limits", "tool_result_tokens"], Form::Number),
    ("TOOLYARD_RETENTION_FINISHED_RUNS_DAYS", &["retention", "finished_runs_days"], Form::Fraction),
    ("TOOLYARD_KNOWLEDGE_EMBEDDING", &["knowledge", "embedding"], Form::Text),
    ("TOOLYARD_LOG_FORMAT", &["log", "format"], Form::Text),
    ("TOOLYARD_LOG_LEVEL", &["log", "level"], Form::Text),
    ("TOOLYARD_TELEMETRY_OTLP_TRACES", &["telemetry", "otlp_traces"], Form::Text),
    ("TOOLYARD_TELEMETRY_ALL_AGENTS", &["telemetry", "all_agents"], Form::Flag),
    ("TOOLYARD_TELEMETRY_AUTHORIZATION", &["telemetry", "authorization"], Form::Text),
];

/// Variables of this program that are no keys of the file.
const OTHERS: &[&str] = &["TOOLYARD_CONFIG", "TOOLYARD_URL", "TOOLYARD_MCP_PUBLIC_KEY", "TOOLYARD_MCP_TOKEN"];
/// Variables of builds that are made to be broken, and of the tests around them.
const BREAKING: &[&str] = &[
    "TOOLYARD_FAILPOINT",
    "TOOLYARD_FAILPOINT_DICE",
    "TOOLYARD_CLOCK_SKEW",
    "TOOLYARD_SQLITE_PAGES",
    "TOOLYARD_TEST_POSTGRES_URL",
];

/// A variable whose text does not fit, or that nobody knows.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadVariable {
    #[error("{name} must be {wanted}")]
    Unfit { name: &'static str, wanted: &'static str },
    #[error("{0} is not a variable of this program")]
    Unknown(String),
}

/// Refuses a variable that looks like ours and is not: it is misspelt. `named`
/// are those that the file itself speaks of.
pub(super) fn check_names(
    names: impl IntoIterator<Item = String>,
    named: impl Fn(&str) -> bool,
) -> Result<(), BadVariable> {
    let known = |name: &str| {
        NAMES.iter().any(|(known, ..)| *known == name)
            || OTHERS.contains(&name)
            || BREAKING.contains(&name)
            || named(name)
    };
    match names.into_iter().find(|name| name.starts_with("TOOLYARD_") && !known(name)) {
        Some(name) => Err(BadVariable::Unknown(name)),
        None => Ok(()),
    }
}

/// Puts the variables over the file.
pub(super) fn overlay(table: &mut Table, read: impl Fn(&str) -> Option<String>) -> Result<(), BadVariable> {
    for &(name, path, form) in NAMES {
        let Some(text) = read(name) else { continue };
        let bad = |wanted| BadVariable::Unfit { name, wanted };
        let value = match form {
            Form::Text => Value::String(text),
            Form::Number => Value::Integer(text.trim().parse().map_err(|_| bad("a whole number"))?),
            Form::Fraction => Value::Float(text.trim().parse().map_err(|_| bad("a number"))?),
            Form::Flag => Value::Boolean(text.trim().parse().map_err(|_| bad("true or false"))?),
            Form::List => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Value::Array(items.map(|item| Value::String(item.to_owned())).collect())
            }
        };
        put(table, path, value);
    }
    Ok(())
}

/// Whether a variable says what a key is.
pub(super) fn is_said(key: &str, read: impl Fn(&str) -> Option<String>) -> bool {
    NAMES.iter().any(|(name, path, _)| path.join(".") == key && read(name).is_some())
}

fn put(table: &mut Table, path: &[&str], value: Value) {
    match path {
        [] => {}
        [last] => {
            table.insert((*last).to_owned(), value);
        }
        [first, rest @ ..] => {
            let below = table.entry(*first).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(below) = below {
                put(below, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::Config;

    #[test]
    fn every_variable_names_a_key_that_exists() {
        for &(name, path, form) in NAMES {
            let text = match (form, path.last().copied()) {
                (Form::Number, _) => "7",
                (Form::Fraction, _) => "0.5",
                (Form::Flag, _) => "true",
                (_, Some("listen")) => "127.0.0.1:1",
                (_, Some("mode")) => "production",
                (_, Some("auth")) => "off",
                (_, Some("format")) => "json",
                (_, Some("ask_from")) => "low",
                (_, Some("tls")) => "none",
                (_, Some("on_conflict")) => "prefix",
                (Form::Text | Form::List, _) => "x",
            };
            let mut table = Table::new();
            overlay(&mut table, |asked| (asked == name).then(|| text.to_owned())).unwrap();
            let read: Result<Config, _> = Value::Table(table).try_into();
            assert!(read.is_ok(), "{name}: {read:?}");
        }
    }
}
