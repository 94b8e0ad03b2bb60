//! Who signs plugins for a tenant, and their keys. Private keys that the
//! gateway holds are sealed.

use serde_json::Value;
use toolyard_protocol::{CuratorId, Hash, TenantId, Timestamp};

use crate::error::StoreError;
use crate::secrets::Sealed;
use crate::tx::{Arg, Row, Tx, args};

/// A signer. What `plugins` and `signers` mean is the caller's to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CuratorRow {
    pub id: CuratorId,
    pub name: String,
    /// JSON: the plugins that it may sign.
    pub plugins: Value,
    /// JSON: the keys of the gateway that may use its held key.
    pub signers: Value,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// SHA-256 of the public key.
    pub id: Hash,
    pub curator: CuratorId,
    pub algorithm: String,
    /// Base64.
    pub public_key: String,
    pub sealed: Option<Sealed>,
    pub expires_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

fn curator(r: &Row<'_>) -> Result<CuratorRow, StoreError> {
    Ok(CuratorRow {
        id: r.parsed(0, CuratorId::parse)?,
        name: r.text(1)?,
        plugins: r.json(2)?.unwrap_or_default(),
        signers: r.json(3)?.unwrap_or_default(),
        created_at: r.time(4)?,
    })
}

fn key(r: &Row<'_>) -> Result<KeyRow, StoreError> {
    let sealed = match r.opt_text(4)? {
        Some(key_id) => Some(Sealed { bytes: r.bytes(5)?, key_id }),
        None => None,
    };
    Ok(KeyRow {
        id: r.parsed(0, |t| Hash::from_hex(t).ok_or("not a hash"))?,
        curator: r.parsed(1, CuratorId::parse)?,
        algorithm: r.text(2)?,
        public_key: r.text(3)?,
        sealed,
        expires_at: r.opt_time(6)?,
        created_at: r.time(7)?,
    })
}

/// Stores a curator, or another version of it. Answers whether it is new.
pub async fn put(tx: &mut Tx<'_>, tenant: &TenantId, row: &CuratorRow) -> Result<bool, StoreError> {
    let (t, id) = (tenant.as_str(), row.id.as_str());
    let (plugins, signers) = (row.plugins.to_string(), row.signers.to_string());
    let changed = tx
        .exec(
            "UPDATE curators SET name = $1, plugins = $2, signers = $3 WHERE tenant = $4 AND id = $5",
            args![&row.name, &plugins, &signers, t, id],
        )
        .await?;
    if changed > 0 {
        return Ok(false);
    }
    tx.exec(
        "INSERT INTO curators (tenant, id, name, plugins, signers, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
        args![t, id, &row.name, &plugins, &signers, row.created_at],
    )
    .await?;
    Ok(true)
}

pub async fn get(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &CuratorId,
) -> Result<Option<CuratorRow>, StoreError> {
    tx.one(
        "SELECT id, name, plugins, signers, created_at FROM curators WHERE tenant = $1 AND id = $2",
        args![tenant.as_str(), id.as_str()],
        curator,
    )
    .await
}

/// All of a tenant; there are few.
pub async fn list(tx: &mut Tx<'_>, tenant: &TenantId) -> Result<Vec<CuratorRow>, StoreError> {
    tx.all(
        "SELECT id, name, plugins, signers, created_at FROM curators WHERE tenant = $1 ORDER BY id",
        args![tenant.as_str()],
        curator,
    )
    .await
}

/// Forgets a curator and its keys.
pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, id: &CuratorId) -> Result<bool, StoreError> {
    let (t, id) = (tenant.as_str(), id.as_str());
    tx.exec("DELETE FROM curator_keys WHERE tenant = $1 AND curator = $2", args![t, id]).await?;
    Ok(tx.exec("DELETE FROM curators WHERE tenant = $1 AND id = $2", args![t, id]).await? > 0)
}

/// One key belongs to one curator: a second one gets [`StoreError::Exists`].
pub async fn add_key(tx: &mut Tx<'_>, tenant: &TenantId, row: &KeyRow) -> Result<(), StoreError> {
    let sealed = row.sealed.as_ref();
    let (head, tail) = (
        [
            Arg::from(tenant.as_str()),
            Arg::from(row.id.as_str()),
            Arg::from(row.curator.as_str()),
            Arg::from(&row.algorithm),
            Arg::from(&row.public_key),
        ],
        [Arg::from(row.expires_at), Arg::from(row.created_at)],
    );
    match sealed {
        Some(sealed) => {
            let kept = [Arg::from(sealed.bytes.as_slice()), Arg::from(&sealed.key_id)];
            tx.exec(
                "INSERT INTO curator_keys (tenant, id, curator, algorithm, public_key, sealed, seal_id, expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                &[head.as_slice(), &kept, &tail].concat(),
            )
            .await?;
        }
        None => {
            tx.exec(
                "INSERT INTO curator_keys (tenant, id, curator, algorithm, public_key, expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
                &[head.as_slice(), &tail].concat(),
            )
            .await?;
        }
    }
    Ok(())
}

/// The keys of all curators of a tenant.
pub async fn keys(tx: &mut Tx<'_>, tenant: &TenantId) -> Result<Vec<KeyRow>, StoreError> {
    tx.all(
        "SELECT id, curator, algorithm, public_key, seal_id, sealed, expires_at, created_at FROM curator_keys WHERE tenant = $1 ORDER BY created_at, id",
        args![tenant.as_str()],
        key,
    )
    .await
}
