//! Plugins: versions on their way through review, what is installed, the
//! newest that was ever admitted, and what was revoked. Documents are text
//! here; what they mean, and whether they may run, is said elsewhere.

use serde_json::Value;
use toolyard_protocol::manifest::PluginVersion;
use toolyard_protocol::{Hash, PluginId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Row, Tx, args};

/// Where a version stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Submitted,
    Approved,
    Rejected,
    Signed,
    Published,
}

impl State {
    const ALL: [Self; 5] = [Self::Submitted, Self::Approved, Self::Rejected, Self::Signed, Self::Published];
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Signed => "signed",
            Self::Published => "published",
        }
    }
    fn parse(text: &str) -> Result<Self, &'static str> {
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or("not a state")
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct VersionRow {
    pub plugin: PluginId,
    pub version: PluginVersion,
    /// Of what is signed.
    pub hash: Hash,
    pub document: String,
    pub state: State,
    /// JSON: the report of the audit.
    pub report: Value,
    /// What the reviewer said.
    pub note: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub id: PluginId,
    pub version: PluginVersion,
    pub hash: Hash,
    pub document: String,
    pub signed: bool,
    /// JSON: the names of its tools.
    pub tools: Value,
    /// JSON: the names of tools whose code is none.
    pub broken: Value,
    pub installed_at: Timestamp,
    /// It stays installed and runs nothing.
    pub switched_off: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevocationRow {
    /// `key`, `curator`, `plugin` or `version`.
    pub kind: String,
    pub target: String,
    /// Empty unless the kind is `version`.
    pub version: String,
    pub reason: String,
    pub actor: String,
    pub at: Timestamp,
}

fn hash(r: &Row<'_>, i: usize) -> Result<Hash, StoreError> {
    r.parsed(i, |t| Hash::from_hex(t).ok_or("not a hash"))
}

fn version(r: &Row<'_>) -> Result<VersionRow, StoreError> {
    Ok(VersionRow {
        plugin: r.parsed(0, PluginId::parse)?,
        version: r.parsed(1, PluginVersion::parse)?,
        hash: hash(r, 2)?,
        document: r.text(3)?,
        state: r.parsed(4, State::parse)?,
        report: r.json(5)?.unwrap_or_default(),
        note: r.text(6)?,
        created_at: r.time(7)?,
        updated_at: r.time(8)?,
    })
}

fn installed(r: &Row<'_>) -> Result<Installed, StoreError> {
    Ok(Installed {
        id: r.parsed(0, PluginId::parse)?,
        version: r.parsed(1, PluginVersion::parse)?,
        hash: hash(r, 2)?,
        document: r.text(3)?,
        signed: r.flag(4)?,
        tools: r.json(5)?.unwrap_or_default(),
        broken: r.json(6)?.unwrap_or_default(),
        installed_at: r.time(7)?,
        switched_off: r.flag(8)?,
    })
}

/// Stores a version, or another state of it.
pub async fn put_version(tx: &mut Tx<'_>, tenant: &TenantId, row: &VersionRow) -> Result<(), StoreError> {
    let (version, report) = (row.version.to_string(), row.report.to_string());
    tx.exec(
        "INSERT INTO plugin_versions (tenant, plugin, version, hash, document, state, report, note, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
         ON CONFLICT (tenant, plugin, version) DO UPDATE SET hash = excluded.hash, document = excluded.document, \
         state = excluded.state, report = excluded.report, note = excluded.note, updated_at = excluded.updated_at",
        args![
            tenant.as_str(),
            row.plugin.as_str(),
            &version,
            row.hash.as_str(),
            &row.document,
            row.state.as_str(),
            &report,
            &row.note,
            row.created_at,
            row.updated_at
        ],
    )
    .await?;
    Ok(())
}

pub async fn get_version(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    plugin: &PluginId,
    wanted: &PluginVersion,
) -> Result<Option<VersionRow>, StoreError> {
    tx.one(
        "SELECT plugin, version, hash, document, state, report, note, created_at, updated_at FROM plugin_versions WHERE tenant = $1 AND plugin = $2 AND version = $3",
        args![tenant.as_str(), plugin.as_str(), &wanted.to_string()],
        version,
    )
    .await
}

/// All versions of a plugin, the newest first.
pub async fn versions(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    plugin: &PluginId,
) -> Result<Vec<VersionRow>, StoreError> {
    let mut rows = tx
        .all(
            "SELECT plugin, version, hash, document, state, report, note, created_at, updated_at FROM plugin_versions WHERE tenant = $1 AND plugin = $2",
            args![tenant.as_str(), plugin.as_str()],
            version,
        )
        .await?;
    // No database knows the order of versions.
    rows.sort_by(|a, b| b.version.cmp(&a.version));
    Ok(rows)
}

/// Plugins that have versions here, by id.
pub async fn known(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<PluginId>, StoreError> {
    tx.all(
        "SELECT plugin FROM plugin_versions WHERE tenant = $1 AND plugin > $2 \
         UNION SELECT id FROM plugins WHERE tenant = $1 AND id > $2 ORDER BY 1 LIMIT $3",
        args![tenant.as_str(), after.unwrap_or(""), i64::from(limit)],
        |r| r.parsed(0, PluginId::parse),
    )
    .await
}

/// Installs, in the place of another version if there is one. What is switched
/// off stays so.
pub async fn install(tx: &mut Tx<'_>, tenant: &TenantId, row: &Installed) -> Result<(), StoreError> {
    let (version, tools, broken) = (row.version.to_string(), row.tools.to_string(), row.broken.to_string());
    tx.exec(
        "INSERT INTO plugins (tenant, id, version, hash, document, signed, tools, broken, installed_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (tenant, id) DO UPDATE SET version = excluded.version, hash = excluded.hash, \
         document = excluded.document, signed = excluded.signed, tools = excluded.tools, \
         broken = excluded.broken, installed_at = excluded.installed_at",
        args![
            tenant.as_str(),
            row.id.as_str(),
            &version,
            row.hash.as_str(),
            &row.document,
            row.signed,
            &tools,
            &broken,
            row.installed_at
        ],
    )
    .await?;
    Ok(())
}

pub async fn get(tx: &mut Tx<'_>, tenant: &TenantId, id: &PluginId) -> Result<Option<Installed>, StoreError> {
    tx.one(
        "SELECT id, version, hash, document, signed, tools, broken, installed_at, switched_off FROM plugins WHERE tenant = $1 AND id = $2",
        args![tenant.as_str(), id.as_str()],
        installed,
    )
    .await
}

/// All that a tenant has installed; there are few.
pub async fn list(tx: &mut Tx<'_>, tenant: &TenantId) -> Result<Vec<Installed>, StoreError> {
    tx.all(
        "SELECT id, version, hash, document, signed, tools, broken, installed_at, switched_off FROM plugins WHERE tenant = $1 ORDER BY id",
        args![tenant.as_str()],
        installed,
    )
    .await
}

/// Switches an installed plugin off or on. False if there is none.
pub async fn switch(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &PluginId,
    off: bool,
) -> Result<bool, StoreError> {
    let switched = tx
        .exec(
            "UPDATE plugins SET switched_off = $1 WHERE tenant = $2 AND id = $3",
            args![off, tenant.as_str(), id.as_str()],
        )
        .await?;
    Ok(switched > 0)
}

pub async fn uninstall(tx: &mut Tx<'_>, tenant: &TenantId, id: &PluginId) -> Result<bool, StoreError> {
    Ok(tx
        .exec("DELETE FROM plugins WHERE tenant = $1 AND id = $2", args![tenant.as_str(), id.as_str()])
        .await?
        > 0)
}

/// Remembers the newest version that was admitted. It outlives the plugin.
pub async fn pin(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    plugin: &PluginId,
    newest: (&PluginVersion, &Hash),
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    tx.exec(
        "INSERT INTO plugin_pins (tenant, plugin, version, hash, at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (tenant, plugin) DO UPDATE SET version = excluded.version, hash = excluded.hash, at = excluded.at",
        args![tenant.as_str(), plugin.as_str(), &newest.0.to_string(), newest.1.as_str(), now],
    )
    .await?;
    Ok(())
}

pub async fn pinned(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    plugin: &PluginId,
) -> Result<Option<(PluginVersion, Hash)>, StoreError> {
    tx.one(
        "SELECT version, hash FROM plugin_pins WHERE tenant = $1 AND plugin = $2",
        args![tenant.as_str(), plugin.as_str()],
        |r| Ok((r.parsed(0, PluginVersion::parse)?, hash(r, 1)?)),
    )
    .await
}

/// Revokes. Answers whether it was not revoked before; the first reason stays.
pub async fn revoke(tx: &mut Tx<'_>, tenant: &TenantId, row: &RevocationRow) -> Result<bool, StoreError> {
    let done = tx
        .exec(
            "INSERT INTO plugin_revocations (tenant, kind, target, version, reason, actor, at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tenant, kind, target, version) DO NOTHING",
            args![tenant.as_str(), &row.kind, &row.target, &row.version, &row.reason, &row.actor, row.at],
        )
        .await?;
    Ok(done > 0)
}

/// All that was revoked, the latest first.
pub async fn revocations(tx: &mut Tx<'_>, tenant: &TenantId) -> Result<Vec<RevocationRow>, StoreError> {
    tx.all(
        "SELECT kind, target, version, reason, actor, at FROM plugin_revocations WHERE tenant = $1 ORDER BY at DESC, kind, target, version",
        args![tenant.as_str()],
        |r| {
            Ok(RevocationRow {
                kind: r.text(0)?,
                target: r.text(1)?,
                version: r.text(2)?,
                reason: r.text(3)?,
                actor: r.text(4)?,
                at: r.time(5)?,
            })
        },
    )
    .await
}
