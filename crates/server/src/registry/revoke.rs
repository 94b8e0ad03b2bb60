//! What is trusted no longer. Nothing takes it back: a new key, a new version
//! or a new id is the way on.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_protocol::manifest::PluginVersion;
use toolyard_protocol::{CuratorId, Hash, PluginId};
use toolyard_store::plugins::{self, RevocationRow};
use toolyard_store::{Tx, audit as journal};

use super::Desk;
use crate::http::Refusal;
use crate::routes::answer;

/// One of `key`, `curator` or `plugin`; a `version` belongs to its plugin.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Revoke {
    /// The id of a curator's key.
    #[serde(default)]
    pub(crate) key: Option<String>,
    #[serde(default)]
    pub(crate) curator: Option<CuratorId>,
    #[serde(default)]
    pub(crate) plugin: Option<PluginId>,
    #[serde(default)]
    pub(crate) version: Option<PluginVersion>,
    /// Whoever calls a tool of it reads this.
    pub(crate) reason: String,
}

pub(crate) async fn revoke(tx: &mut Tx<'_>, desk: &Desk, asked: Revoke) -> Result<RevocationRow, Refusal> {
    let reason = answer::label("reason", Some(asked.reason.clone()))?.unwrap_or_default();
    let (kind, target, version) = what(asked)?;
    let at = tx.now().await?;
    let kind = kind.to_owned();
    let row = RevocationRow { kind, target, version, reason, actor: desk.actor.clone(), at };
    if plugins::revoke(tx, &desk.tenant, &row).await? {
        tracing::warn!(kind = %row.kind, target = %row.target, version = %row.version, "revoked");
        let detail = format!("{} {}", row.version, row.reason);
        let action = format!("{}.revoke", if row.kind == "version" { "plugin" } else { &row.kind });
        journal::write(tx, &desk.tenant, &desk.actor, &action, &row.target, Some(detail.trim())).await?;
    }
    Ok(row)
}

fn what(asked: Revoke) -> Result<(&'static str, String, String), Refusal> {
    let none = String::new;
    match (asked.key, asked.curator, asked.plugin, asked.version) {
        (Some(key), None, None, None) => {
            let id = Hash::from_hex(&key.to_ascii_lowercase());
            let id = id.ok_or_else(|| Refusal::bad_request("key: not the id of a curator's key"))?;
            Ok(("key", id.as_str().to_owned(), none()))
        }
        (None, Some(curator), None, None) => Ok(("curator", curator.to_string(), none())),
        (None, None, Some(plugin), None) => Ok(("plugin", plugin.to_string(), none())),
        (None, None, Some(plugin), Some(version)) => Ok(("version", plugin.to_string(), version.to_string())),
        _ => Err(Refusal::bad_request("Name one of key, curator or plugin; a version belongs to a plugin")),
    }
}
