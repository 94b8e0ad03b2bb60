//! What is trusted no longer. Nothing takes it back: a new key, a new version
//! or a new id is the way on.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_protocol::manifest::PluginVersion;
use toolyard_protocol::{CuratorId, ErrorCode, Hash, PluginId};
use toolyard_store::plugins::{self, RevocationRow};
use toolyard_store::{Tx, audit as journal, curators};

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
    /// Also what nobody here knows yet. Without it an id that is misspelt is
    /// not found.
    #[serde(default)]
    pub(crate) ahead: bool,
}

pub(crate) async fn revoke(tx: &mut Tx<'_>, desk: &Desk, asked: Revoke) -> Result<RevocationRow, Refusal> {
    let reason = answer::label("reason", Some(asked.reason.clone()))?.unwrap_or_default();
    if !asked.ahead {
        check_known(tx, desk, &asked).await?;
    }
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

/// Refuses what was never seen here: a revocation that names the wrong thing
/// looks as if the right one were harmless now.
async fn check_known(tx: &mut Tx<'_>, desk: &Desk, asked: &Revoke) -> Result<(), Refusal> {
    let (kind, target, version) = what(asked.clone())?;
    let before = plugins::revocations(tx, &desk.tenant).await?;
    let same = |row: &RevocationRow| (&*row.kind, &row.target, &row.version) == (kind, &target, &version);
    if before.iter().any(same) {
        return Ok(());
    }
    let (known, what) = match (&asked.curator, &asked.plugin) {
        (Some(id), _) => (curators::get(tx, &desk.tenant, id).await?.is_some(), format!("Curator {id}")),
        (None, Some(id)) => match &asked.version {
            None => (was_seen(tx, desk, id, None).await?, format!("Plugin {id}")),
            Some(v) => (was_seen(tx, desk, id, Some(v)).await?, format!("Version {v} of plugin {id}")),
        },
        (None, None) => {
            let keys = curators::keys(tx, &desk.tenant).await?;
            (keys.iter().any(|key| key.id.as_str() == target), format!("Key {target}"))
        }
    };
    if known {
        return Ok(());
    }
    let text = format!(
        "{what} not found: nothing was revoked. To revoke it before it comes here, say ahead (--ahead, or \"ahead\": true)"
    );
    Err(Refusal::new(ErrorCode::NotFound, text))
}

/// Whether a plugin, or a version of it, is installed, was, or is on its way
/// through review.
async fn was_seen(
    tx: &mut Tx<'_>,
    desk: &Desk,
    id: &PluginId,
    version: Option<&PluginVersion>,
) -> Result<bool, Refusal> {
    let fits = |found: &PluginVersion| version.is_none_or(|wanted| wanted == found);
    let tenant = &desk.tenant;
    Ok(plugins::get(tx, tenant, id).await?.is_some_and(|row| fits(&row.version))
        // A version below the newest one may have been installed before it.
        || plugins::pinned(tx, tenant, id)
            .await?
            .is_some_and(|(newest, _)| version.is_none_or(|wanted| *wanted <= newest))
        || plugins::versions(tx, tenant, id).await?.iter().any(|row| fits(&row.version)))
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
