//! Plugins as callers see them. Code is shown to backends only.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolyard_plugins::bundle::Trust;
use toolyard_protocol::manifest::PluginVersion;
use toolyard_protocol::{CuratorId, Hash, PluginId, Timestamp};
use toolyard_store::plugins::{Installed, RevocationRow, VersionRow};

/// What a gateway says beside a plugin that nobody signed.
const WARNING: &str = "Nobody signed this plugin: its code is arbitrary code. Do not use it in production.";

/// A version on its way.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct VersionView {
    id: PluginId,
    version: PluginVersion,
    /// `submitted`, `approved`, `rejected`, `signed` or `published`.
    state: &'static str,
    hash: Hash,
    /// What the reviewer said.
    note: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OneVersion {
    version: VersionView,
    /// The document, with its signatures.
    plugin: Value,
    /// What the audit found.
    report: Value,
}

pub(super) fn version(row: VersionRow) -> OneVersion {
    let plugin = serde_json::from_str(&row.document).unwrap_or_default();
    OneVersion { plugin, report: row.report.clone(), version: short(row) }
}

pub(super) fn short(row: VersionRow) -> VersionView {
    VersionView {
        id: row.plugin,
        version: row.version,
        state: row.state.as_str(),
        hash: row.hash,
        note: row.note,
        created_at: row.created_at,
        updated_at: row.updated_at,
    }
}

/// A plugin that is installed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InstalledView {
    id: PluginId,
    version: PluginVersion,
    tools: Value,
    /// Tools that are left out, because their code is none.
    #[serde(skip_serializing_if = "is_empty")]
    broken: Value,
    /// Enough curators signed it, and all of that still holds.
    verified: bool,
    curators: Vec<CuratorId>,
    /// Nobody switched it off.
    enabled: bool,
    /// It may run now.
    usable: bool,
    /// Why it may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
    installed_at: Timestamp,
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct InstalledPlugin {
    pub(super) plugin: InstalledView,
}

pub(super) fn installed(row: Installed, trust: Result<Trust, String>) -> InstalledView {
    let (curators, warning, why) = match trust {
        Ok(Trust::Signed { by }) => (by, None, None),
        Ok(Trust::Unsigned) => (Vec::new(), Some(WARNING), None),
        Err(why) => (Vec::new(), None, Some(why)),
    };
    InstalledView {
        id: row.id,
        version: row.version,
        tools: row.tools,
        broken: row.broken,
        verified: !curators.is_empty(),
        curators,
        enabled: !row.switched_off,
        usable: why.is_none() && !row.switched_off,
        why,
        warning,
        installed_at: row.installed_at,
    }
}

/// A plugin: what is installed, and what else there is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PluginView {
    pub(super) id: PluginId,
    pub(super) installed: Option<InstalledView>,
    /// The newest first. Backends only.
    pub(super) versions: Vec<VersionView>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OnePlugin {
    pub(super) plugin: PluginView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PluginList {
    pub(super) plugins: Vec<PluginView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RevocationView {
    /// `key`, `curator`, `plugin` or `version`.
    kind: String,
    /// The id of what was revoked.
    target: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    reason: String,
    by: String,
    at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RevocationList {
    pub(super) revocations: Vec<RevocationView>,
}

pub(super) fn revocation(row: RevocationRow) -> RevocationView {
    RevocationView {
        kind: row.kind,
        target: row.target,
        version: row.version,
        reason: row.reason,
        by: row.actor,
        at: row.at,
    }
}
