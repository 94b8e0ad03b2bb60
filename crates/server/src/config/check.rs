//! Settings that are well written but cannot work, refused at the start.

use toolyard_protocol::AgentName;

use super::section::{AuthMode, Config, Mode};

/// The shortest HS256 secret: as long as its hash.
const JWT_SECRET_BYTES: usize = 32;
/// The shortest key that somebody may choose.
const KEY_BYTES: usize = 16;

#[derive(Debug, thiserror::Error)]
#[error("{key}: {why}")]
pub(crate) struct BadSetting {
    key: &'static str,
    why: String,
}

fn bad(key: &'static str, why: impl Into<String>) -> BadSetting {
    BadSetting { key, why: why.into() }
}

pub(super) fn check(config: &Config) -> Result<(), BadSetting> {
    if config.auth == AuthMode::Off {
        if !config.listen.ip().is_loopback() {
            return Err(bad("auth", "\"off\" is allowed only when listen is a loopback address"));
        }
        if config.mode == Mode::Production {
            return Err(bad("auth", "\"off\" is not allowed in production mode"));
        }
    }
    if config.jwt.jwks_url.is_some() {
        return Err(bad("jwt.jwks_url", "is not supported yet; use jwt.secret (HS256)"));
    }
    let url = config.database_url.expose();
    if !url.is_empty() && !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(bad("database_url", "must start with postgres:// (or be empty for SQLite)"));
    }
    check_keys(config)?;
    check_models(config)?;
    for origin in config.origins() {
        if crate::http::origin::Pattern::parse(&origin).is_none() {
            return Err(bad(
                "allowed_origins",
                format!("{origin:?} is not an origin such as https://app.example or http://localhost:*"),
            ));
        }
    }
    AgentName::parse(&config.default_agent).map_err(|e| bad("default_agent", e.to_string()))?;
    let limits = &config.limits;
    for (key, value) in [
        ("limits.body_bytes", limits.body_bytes),
        ("limits.conversation_body_bytes", limits.conversation_body_bytes),
        ("limits.result_body_bytes", limits.result_body_bytes),
        ("limits.file_bytes", limits.file_bytes),
        ("limits.active_runs", limits.active_runs),
        ("limits.connections", limits.connections),
    ] {
        if value == 0 {
            return Err(bad(key, "must be at least 1"));
        }
    }
    for (key, value) in [
        ("limits.header_seconds", limits.header_seconds),
        ("limits.body_seconds", limits.body_seconds),
        ("limits.reader_seconds", limits.reader_seconds),
    ] {
        if value == 0 {
            return Err(bad(key, "must be at least 1"));
        }
    }
    Ok(())
}

fn check_models(config: &Config) -> Result<(), BadSetting> {
    for (id, model) in &config.models {
        if id.is_empty() || id.contains('/') {
            return Err(bad("models", format!("{id:?} is no name: it must not be empty or hold a /")));
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
