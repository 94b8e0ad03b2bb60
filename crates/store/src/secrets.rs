//! Secrets of a tenant, by name. The store holds sealed bytes and never the
//! key that opens them.

use toolyard_protocol::{SecretName, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Tx, args};

/// Bytes that only the holder of a master key can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub bytes: Vec<u8>,
    /// Which master key closed it.
    pub key_id: String,
}

/// What may be shown of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: SecretName,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Stores a secret, or another value of it. Answers whether the name is new.
pub async fn put(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    name: &SecretName,
    sealed: &Sealed,
) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let (t, n) = (tenant.as_str(), name.as_str());
    let changed = tx
        .exec(
            "UPDATE secrets SET sealed = $1, key_id = $2, updated_at = $3 WHERE tenant = $4 AND name = $5",
            args![sealed.bytes.as_slice(), &sealed.key_id, now, t, n],
        )
        .await?;
    if changed > 0 {
        return Ok(false);
    }
    tx.exec(
        "INSERT INTO secrets (tenant, name, sealed, key_id, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5)",
        args![t, n, sealed.bytes.as_slice(), &sealed.key_id, now],
    )
    .await?;
    Ok(true)
}

pub async fn get(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    name: &SecretName,
) -> Result<Option<Sealed>, StoreError> {
    tx.one(
        "SELECT sealed, key_id FROM secrets WHERE tenant = $1 AND name = $2",
        args![tenant.as_str(), name.as_str()],
        |r| Ok(Sealed { bytes: r.bytes(0)?, key_id: r.text(1)? }),
    )
    .await
}

/// By name, without values. `after` continues behind the last name of a page.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<Listed>, StoreError> {
    tx.all(
        "SELECT name, created_at, updated_at FROM secrets WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3",
        args![tenant.as_str(), after.unwrap_or(""), i64::from(limit)],
        |r| {
            Ok(Listed {
                name: r.parsed(0, SecretName::parse)?,
                created_at: r.time(1)?,
                updated_at: r.time(2)?,
            })
        },
    )
    .await
}

pub async fn count(tx: &mut Tx<'_>, tenant: &TenantId) -> Result<i64, StoreError> {
    let count = tx
        .one("SELECT COUNT(*) FROM secrets WHERE tenant = $1", args![tenant.as_str()], |r| r.int(0))
        .await?;
    Ok(count.unwrap_or(0))
}

pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, name: &SecretName) -> Result<bool, StoreError> {
    Ok(tx
        .exec("DELETE FROM secrets WHERE tenant = $1 AND name = $2", args![tenant.as_str(), name.as_str()])
        .await?
        > 0)
}

/// How many secrets of all tenants another master key closed.
pub async fn closed_by_others(tx: &mut Tx<'_>, key_id: &str) -> Result<i64, StoreError> {
    let count =
        tx.one("SELECT COUNT(*) FROM secrets WHERE key_id <> $1", args![key_id], |r| r.int(0)).await?;
    Ok(count.unwrap_or(0))
}
