//! Tenants and their keys. Only hashes of keys are stored.

use toolyard_protocol::{Hash, KeyId, KeyKind, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Row, Tx, args};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub tenant: TenantId,
    pub id: KeyId,
    pub kind: KeyKind,
    pub label: String,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT tenant, id, kind, label, created_at, revoked_at FROM keys ", $rest)
    };
}

fn row(r: &Row<'_>) -> Result<Key, StoreError> {
    Ok(Key {
        tenant: r.parsed(0, TenantId::parse)?,
        id: r.parsed(1, KeyId::parse)?,
        kind: if r.text(2)? == "secret" { KeyKind::Secret } else { KeyKind::Public },
        label: r.text(3)?,
        created_at: r.time(4)?,
        revoked_at: r.opt_time(5)?,
    })
}

/// A tenant is born with its first key.
pub async fn insert(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    kind: KeyKind,
    hash: &Hash,
    label: &str,
) -> Result<Key, StoreError> {
    let now = tx.now().await?;
    tx.exec(
        "INSERT INTO tenants (id, created_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING",
        args![tenant.as_str(), now],
    )
    .await?;
    let id = KeyId::mint();
    let kind_text = match kind {
        KeyKind::Secret => "secret",
        KeyKind::Public => "public",
    };
    tx.exec(
        "INSERT INTO keys (tenant, id, kind, hash, label, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
        args![tenant.as_str(), id.as_str(), kind_text, hash.as_str(), label, now],
    )
    .await?;
    Ok(Key { tenant: tenant.clone(), id, kind, label: label.to_owned(), created_at: now, revoked_at: None })
}

/// Finds a key by its hash, revoked ones too. The one query without a tenant:
/// it is the one that finds it.
pub async fn by_hash(tx: &mut Tx<'_>, hash: &Hash) -> Result<Option<Key>, StoreError> {
    tx.one(select!("WHERE hash = $1"), args![hash.as_str()], row).await
}

pub async fn list(tx: &mut Tx<'_>, tenant: Option<&TenantId>) -> Result<Vec<Key>, StoreError> {
    tx.all(
        select!("WHERE ($1 = '' OR tenant = $1) ORDER BY tenant, id"),
        args![tenant.map_or("", TenantId::as_str)],
        row,
    )
    .await
}

/// Removes all keys of a label but the newest; answers which.
pub async fn drop_oldest(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    label: &str,
    keep: u32,
) -> Result<Vec<KeyId>, StoreError> {
    let named = args![tenant.as_str(), label, i64::from(keep)];
    let old = tx
        .all(
            "SELECT id FROM keys WHERE tenant = $1 AND label = $2 AND id NOT IN (SELECT id FROM keys WHERE tenant = $1 AND label = $2 ORDER BY created_at DESC, id DESC LIMIT $3) ORDER BY id",
            named,
            |r| r.parsed(0, KeyId::parse),
        )
        .await?;
    for id in &old {
        tx.exec("DELETE FROM keys WHERE tenant = $1 AND id = $2", args![tenant.as_str(), id.as_str()])
            .await?;
    }
    Ok(old)
}

pub async fn revoke(tx: &mut Tx<'_>, tenant: &TenantId, id: &KeyId) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let changed = tx
        .exec(
            "UPDATE keys SET revoked_at = $1 WHERE tenant = $2 AND id = $3 AND revoked_at IS NULL",
            args![now, tenant.as_str(), id.as_str()],
        )
        .await?;
    Ok(changed > 0)
}
