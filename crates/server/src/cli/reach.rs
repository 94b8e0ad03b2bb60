//! Where a command goes: to a running gateway, or to the database itself.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use secrecy::SecretString;
use serde_json::Value;
use toolyard_egress::{Door, Header, Letter, Patience, Target, Verb};
use toolyard_store::Store;

use super::{CliError, Common, local};
use crate::auth::stored_secret;
use crate::config::Config;
use crate::serve::presence;

const PATIENCE: Patience =
    Patience { head: Duration::from_secs(30), idle: Duration::from_secs(30), bytes: 64 << 20 };

pub(super) enum Reach {
    Gateway(Gateway),
    Database(Store),
}

/// A running gateway and the key for it.
pub(super) struct Gateway {
    door: Door,
    base: Target,
    key: SecretString,
}

/// Finds the gateway of `--url` or of the data folder; without one, opens the
/// database, whose lock says if there is a gateway after all. Makes nothing.
pub(super) async fn reach(common: &Common, config: &Config) -> Result<Reach, CliError> {
    find(common, config, local::open_kept(config)).await
}

/// As [`reach`], for a command that stores something: it may be the first one,
/// and then makes the database.
pub(super) async fn reach_or_make(common: &Common, config: &Config) -> Result<Reach, CliError> {
    find(common, config, local::open(config)).await
}

async fn find(
    common: &Common,
    config: &Config,
    database: impl Future<Output = Result<Store, CliError>>,
) -> Result<Reach, CliError> {
    let url = match &common.url {
        Some(url) => Some(url.clone()),
        None => running(config),
    };
    match url {
        Some(url) => Ok(Reach::Gateway(talk(&url, config)?)),
        None => Ok(Reach::Database(database.await?)),
    }
}

/// The gateway at an address, with the key for it.
pub(super) fn talk(url: &str, config: &Config) -> Result<Gateway, CliError> {
    let base = Target::parse(url).map_err(|e| CliError::said(format!("--url {url}: {e}")))?;
    let key = stored_secret(config).ok_or_else(|| {
        CliError::said(format!(
            "to talk to the gateway at {url}, set TOOLYARD_SECRET_KEY to a secret key of it"
        ))
    })?;
    let door = Door::operator().map_err(|e| CliError::said(e.causes()))?;
    Ok(Gateway { door, base, key })
}

/// The address of the data folder's gateway, if it runs. A killed gateway
/// leaves its file behind, and its port may be somebody else's by now: with
/// SQLite the folder's lock knows better.
pub(super) fn running(config: &Config) -> Option<String> {
    let presence = presence::read(&config.data)?;
    if config.database_url.is_empty() && !is_locked(&config.data) {
        return None;
    }
    let address = presence.url.strip_prefix("http://")?.parse().ok()?;
    listens(&address).then_some(presence.url)
}

/// Whether somebody takes connections there.
pub(super) fn listens(address: &SocketAddr) -> bool {
    std::net::TcpStream::connect_timeout(address, Duration::from_secs(2)).is_ok()
}

fn is_locked(data: &Path) -> bool {
    let lock = std::fs::File::open(data.join("lock"));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)))
}

impl Gateway {
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, CliError> {
        self.post_text(path, body.to_string()).await
    }

    /// JSON that is text already, word for word.
    pub(super) async fn post_text(&self, path: &str, body: String) -> Result<Value, CliError> {
        self.send(Verb::Post, &self.base.below(path), Some(body)).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Result<Value, CliError> {
        self.send(Verb::Put, &self.base.below(path), Some(body.to_string())).await
    }

    /// Reads the first page of a list, or one thing.
    pub(super) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, CliError> {
        let target = query.iter().fold(self.base.below(path), |t, (name, value)| t.asking(name, value));
        self.send(Verb::Get, &target, None).await
    }

    pub(super) async fn delete(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, CliError> {
        let target = query.iter().fold(self.base.below(path), |t, (name, value)| t.asking(name, value));
        self.send(Verb::Delete, &target, None).await
    }

    async fn send(&self, verb: Verb, target: &Target, body: Option<String>) -> Result<Value, CliError> {
        let letter = Letter {
            verb,
            target,
            headers: &[Header::bearer(&self.key)],
            accept: "application/json",
            body: body.map(Bytes::from),
            patience: PATIENCE,
        };
        let fault = |e: toolyard_egress::EgressError| {
            CliError::said(format!("{}: {}", self.base.origin(), e.causes()))
        };
        let mut answer = self.door.send(letter).await.map_err(fault)?;
        let bytes = answer.body.read_all().await.map_err(fault)?;
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if answer.is_success() {
            return Ok(value);
        }
        let message = value.pointer("/error/message").and_then(Value::as_str);
        let message = message.map_or_else(|| format!("status {}", answer.status), str::to_owned);
        Err(CliError::said(format!("{}: {message}", self.base.origin())))
    }
}
