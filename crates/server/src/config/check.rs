//! Settings that are well written but cannot work, refused at the start.

use toolyard_egress::{Opened, Target};
use toolyard_protocol::manifest::FetchHost;
use toolyard_protocol::{AgentName, SecretName, limits};
use toolyard_store::RedisUrl;

use super::section::{AuthMode, Config, Mode, SmtpTls};

/// The shortest HS256 secret: as long as its hash.
const JWT_SECRET_BYTES: usize = 32;
/// The shortest key that somebody may choose.
const KEY_BYTES: usize = 16;

/// The most days that runs may be kept: a hundred years.
const KEPT_DAYS: f64 = 36_500.0;

/// The longest name of a model.
const NAME_CHARS: usize = 64;

#[derive(Debug, thiserror::Error)]
#[error("{key}: {why}")]
pub(crate) struct BadSetting {
    pub(super) key: &'static str,
    why: String,
}

fn bad(key: &'static str, why: impl Into<String>) -> BadSetting {
    BadSetting { key, why: why.into() }
}

/// Looks at one kind of setting.
type Check = fn(&Config) -> Result<(), BadSetting>;

/// All that cannot work, one of each kind.
pub(super) fn check(config: &Config) -> Vec<BadSetting> {
    let checks: [Check; 15] = [
        check_auth,
        check_issuer,
        check_private_network,
        check_plugins,
        check_env,
        check_database,
        check_redis,
        check_smtp,
        check_knowledge,
        check_keys,
        check_models,
        check_origins,
        check_public_url,
        check_retention,
        check_limits,
    ];
    let names = AgentName::parse(&config.default_agent).map(|_| ());
    let names = names.map_err(|e| bad("default_agent", e.to_string()));
    checks.iter().filter_map(|check| check(config).err()).chain(names.err()).collect()
}

fn check_auth(config: &Config) -> Result<(), BadSetting> {
    if config.auth == AuthMode::Off {
        if !config.listen.ip().is_loopback() {
            return Err(bad("auth", "\"off\" is allowed only when listen is a loopback address"));
        }
        if config.mode == Mode::Production {
            return Err(bad("auth", "\"off\" is not allowed in production mode"));
        }
    }
    Ok(())
}

fn check_private_network(config: &Config) -> Result<(), BadSetting> {
    Opened::parse(&config.allow_private_network).map_err(|why| bad("allow_private_network", why))?;
    Ok(())
}

fn check_plugins(config: &Config) -> Result<(), BadSetting> {
    if !(1..=limits::PLUGIN_SIGNATURES).contains(&config.plugins.threshold) {
        let most = limits::PLUGIN_SIGNATURES;
        return Err(bad("plugins.threshold", format!("must be 1 to {most}")));
    }
    for host in config.plugins.fetch.iter().filter(|host| *host != "*") {
        FetchHost::parse(host).map_err(|why| bad("plugins.fetch", why.to_string()))?;
    }
    Ok(())
}

fn check_env(config: &Config) -> Result<(), BadSetting> {
    for name in &config.env.allow {
        SecretName::parse(name)
            .map_err(|_| bad("env.allow", format!("{name:?} is not the name of a variable")))?;
    }
    Ok(())
}

fn check_database(config: &Config) -> Result<(), BadSetting> {
    let url = config.database_url.expose();
    if !url.is_empty() && !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(bad("database_url", "must start with postgres:// (or be empty for SQLite)"));
    }
    Ok(())
}

fn check_knowledge(config: &Config) -> Result<(), BadSetting> {
    let embedding = config.knowledge.embedding.as_deref();
    if embedding
        .is_some_and(|name| !matches!(name.split_once('/'), Some((p, m)) if !p.is_empty() && !m.is_empty()))
    {
        return Err(bad("knowledge.embedding", "must be provider/model, as openai/text-embedding-3-small"));
    }
    Ok(())
}

fn check_origins(config: &Config) -> Result<(), BadSetting> {
    for (key, origins) in
        [("allowed_origins", config.origins()), ("web_app.mcp_origins", config.web_app_origins())]
    {
        if let Some(origin) = origins.iter().find(|o| crate::http::origin::Pattern::parse(o).is_none()) {
            let why =
                format!("{origin:?} is not an origin such as https://app.example or http://localhost:*");
            return Err(bad(key, why));
        }
    }
    Ok(())
}

fn check_retention(config: &Config) -> Result<(), BadSetting> {
    let days = config.retention.finished_runs_days;
    if days.is_some_and(|days| !(days > 0.0 && days <= KEPT_DAYS)) {
        let why = format!("must be more than 0 and at most {KEPT_DAYS}; without it runs are kept for ever");
        return Err(bad("retention.finished_runs_days", why));
    }
    Ok(())
}

fn check_limits(config: &Config) -> Result<(), BadSetting> {
    let own = &config.limits;
    for (key, value) in [
        ("limits.body_bytes", own.body_bytes),
        ("limits.conversation_body_bytes", own.conversation_body_bytes),
        ("limits.result_body_bytes", own.result_body_bytes),
        ("limits.file_bytes", own.file_bytes),
        ("limits.active_runs", own.active_runs),
        ("limits.connections", own.connections),
        ("limits.tool_result_tokens", own.tool_result_tokens),
    ] {
        if value == 0 {
            return Err(bad(key, "must be at least 1"));
        }
    }
    for (key, value) in [
        ("limits.header_seconds", own.header_seconds),
        ("limits.body_seconds", own.body_seconds),
        ("limits.reader_seconds", own.reader_seconds),
        ("limits.keep_alive_seconds", own.keep_alive_seconds),
        ("limits.peer_seconds", own.peer_seconds),
        ("limits.socket_ping_seconds", own.socket_ping_seconds),
    ] {
        if value == 0 {
            return Err(bad(key, "must be at least 1"));
        }
    }
    Ok(())
}

/// A gateway on SQLite is alone.
fn check_redis(config: &Config) -> Result<(), BadSetting> {
    if config.redis_url.is_empty() {
        return Ok(());
    }
    RedisUrl::parse(config.redis_url.expose()).map_err(|why| bad("redis_url", why))?;
    if config.database_url.is_empty() {
        return Err(bad("redis_url", "needs database_url: nodes that share Redis also share PostgreSQL"));
    }
    Ok(())
}

fn check_smtp(config: &Config) -> Result<(), BadSetting> {
    let smtp = &config.smtp;
    let Some(host) = &smtp.host else { return Ok(()) };
    if smtp.from.as_ref().is_none_or(|from| !from.contains('@')) {
        return Err(bad("smtp.from", "must be the sender's mail address"));
    }
    if smtp.user.is_some() == smtp.password.is_empty() {
        return Err(bad("smtp", "user and password belong together"));
    }
    let here = ["localhost", "127.0.0.1", "::1"].contains(&host.as_str());
    if smtp.tls == SmtpTls::None && !here {
        return Err(bad("smtp.tls", "\"none\" is for a mail server on this machine only"));
    }
    Ok(())
}

/// Codes of logins come to this address.
fn check_public_url(config: &Config) -> Result<(), BadSetting> {
    let Some(url) = &config.public_url else { return Ok(()) };
    let target = Target::parse(url).map_err(|e| bad("public_url", e.to_string()))?;
    if target.origin() != url.trim_end_matches('/') {
        return Err(bad("public_url", "must be an address without a path, as https://gateway.example"));
    }
    if target.origin().starts_with("http://") && !target.is_loopback() {
        return Err(bad("public_url", "must start with https:// (http:// is for a loopback address only)"));
    }
    Ok(())
}

/// Whoever can change the keys on their way is every user.
fn check_issuer(config: &Config) -> Result<(), BadSetting> {
    let Some(url) = &config.jwt.jwks_url else { return Ok(()) };
    let target = Target::parse(url).map_err(|e| bad("jwt.jwks_url", e.to_string()))?;
    if target.origin().starts_with("http://") && !target.is_loopback() {
        return Err(bad("jwt.jwks_url", "must start with https:// (http:// is for a loopback address only)"));
    }
    Ok(())
}

fn check_models(config: &Config) -> Result<(), BadSetting> {
    if let Some(name) = config.providers.keys().find(|name| name.is_empty() || name.contains('/')) {
        return Err(bad("providers", format!("{name:?} is no name: it must not be empty or hold a /")));
    }
    for (id, model) in &config.models {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
        if id.is_empty() || id.len() > NAME_CHARS || !id.chars().all(fits) {
            let rule = format!("letters, digits, `.`, `_`, `-`, `:`; at most {NAME_CHARS}");
            return Err(bad("models", format!("{id:?} is no name of a model ({rule})")));
        }
        if model.model.trim().is_empty() {
            return Err(bad("models", format!("the model of {id:?} must not be empty")));
        }
        if model.max_tokens == Some(0) || model.context_tokens.is_some_and(|n| n < limits::CONTEXT_TOKENS_MIN)
        {
            let least = limits::CONTEXT_TOKENS_MIN;
            let why = format!("{id:?}: max_tokens must be at least 1, context_tokens at least {least}");
            return Err(bad("models", why));
        }
        if model.temperature.is_some_and(|t| !(0.0..=2.0).contains(&t)) {
            return Err(bad("models", format!("{id:?}: temperature must lie between 0 and 2")));
        }
        let is_type = |text: &String| text.split('/').filter(|part| !part.trim().is_empty()).count() == 2;
        if let Some(odd) = model.files.iter().flatten().find(|text| !is_type(text)) {
            let why = format!("{id:?}: files: {odd:?} is no media type like application/pdf or image/*");
            return Err(bad("models", why));
        }
        let Some(price) = model.price else { continue };
        let told = [Some(price.input), Some(price.output), price.cached, price.cache_write];
        if told.into_iter().flatten().any(|dollars| !dollars.is_finite() || dollars < 0.0) {
            return Err(bad("models", format!("the price of {id:?} must be 0 or more dollars")));
        }
    }
    Ok(())
}

fn check_keys(config: &Config) -> Result<(), BadSetting> {
    let (secret, public, jwt) = (&config.keys.secret, &config.keys.public, &config.jwt.secret);
    for (name, key) in [("keys.secret", secret), ("keys.public", public)] {
        if !key.is_empty() && key.expose().len() < KEY_BYTES {
            return Err(bad(name, format!("must have at least {KEY_BYTES} characters")));
        }
    }
    if !secret.is_empty() && secret.expose() == public.expose() {
        return Err(bad("keys", "secret and public must differ"));
    }
    if !jwt.is_empty() && jwt.expose().len() < JWT_SECRET_BYTES {
        return Err(bad("jwt.secret", format!("must have at least {JWT_SECRET_BYTES} bytes")));
    }
    if config.jwt.entity_claim.is_empty() {
        return Err(bad("jwt.entity_claim", "must not be empty"));
    }
    Ok(())
}
