//! What must leave the gateway because of a commit: written in that commit,
//! delivered afterwards at least once, with the row's id as key.

use serde_json::Value;
use toolyard_protocol::{TenantId, Timestamp};

use crate::error::StoreError;
use crate::runs::Owner;
use crate::tx::{Tx, args};

/// In the hand of another node, which is not alive at a moment.
macro_rules! orphaned {
    ($now:literal, $by:literal) => {
        concat!(
            "(held_by <> '' AND held_by <> ",
            $by,
            " AND held_by NOT IN (SELECT id || '#' || incarnation FROM nodes WHERE until > ",
            $now,
            "))"
        )
    };
}

#[derive(Debug, Clone, PartialEq)]
pub struct Parcel {
    pub tenant: TenantId,
    pub id: String,
    pub kind: String,
    pub payload: Value,
    pub attempts: i64,
}

pub async fn put(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &str,
    kind: &str,
    payload: &Value,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    tx.exec(
        "INSERT INTO outbox (tenant, id, kind, payload, attempts, due_at, created_at) VALUES ($1, $2, $3, $4, 0, $5, $5) ON CONFLICT (tenant, id) DO NOTHING",
        args![tenant.as_str(), id, kind, &payload.to_string(), now],
    )
    .await?;
    Ok(())
}

/// Takes due parcels for a delivery attempt, and those that a node had in hand
/// when it died. Each comes back at `retry_at` unless [`delivered`] is told.
pub async fn take(
    tx: &mut Tx<'_>,
    by: &Owner,
    retry_at: Timestamp,
    limit: u32,
) -> Result<Vec<Parcel>, StoreError> {
    let now = tx.now().await?;
    let sql = crate::tx::Sql {
        sqlite: concat!(
            "UPDATE outbox SET attempts = attempts + 1, due_at = $1, held_by = $2 WHERE (tenant, id) IN \
             (SELECT tenant, id FROM outbox WHERE due_at <= $3 OR ",
            orphaned!("$3", "$2"),
            " ORDER BY due_at LIMIT $4) RETURNING tenant, id, kind, payload, attempts"
        ),
        postgres: concat!(
            "UPDATE outbox SET attempts = attempts + 1, due_at = $1, held_by = $2 WHERE (tenant, id) IN \
             (SELECT tenant, id FROM outbox WHERE due_at <= $3 OR ",
            orphaned!("$3", "$2"),
            " ORDER BY due_at LIMIT $4 FOR UPDATE SKIP LOCKED) RETURNING tenant, id, kind, payload, attempts"
        ),
    };
    tx.all(sql, args![retry_at, &by.token(), now, i64::from(limit)], |r| {
        Ok(Parcel {
            tenant: r.parsed(0, TenantId::parse)?,
            id: r.text(1)?,
            kind: r.text(2)?,
            payload: r.json(3)?.unwrap_or_default(),
            attempts: r.int(4)?,
        })
    })
    .await
}

pub async fn delivered(tx: &mut Tx<'_>, tenant: &TenantId, id: &str) -> Result<(), StoreError> {
    tx.exec("DELETE FROM outbox WHERE tenant = $1 AND id = $2", args![tenant.as_str(), id]).await?;
    Ok(())
}

/// Puts a parcel back untried.
pub async fn put_back(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &str,
    until: Timestamp,
) -> Result<(), StoreError> {
    tx.exec(
        "UPDATE outbox SET due_at = $1, attempts = attempts - 1, held_by = '' WHERE tenant = $2 AND id = $3",
        args![until, tenant.as_str(), id],
    )
    .await?;
    Ok(())
}

/// Says when a parcel is tried again.
pub async fn postpone(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &str,
    until: Timestamp,
) -> Result<(), StoreError> {
    tx.exec(
        "UPDATE outbox SET due_at = $1, held_by = '' WHERE tenant = $2 AND id = $3",
        args![until, tenant.as_str(), id],
    )
    .await?;
    Ok(())
}

/// When the next parcel is due, of all tenants: now, if a node died with one in hand.
pub async fn next_due(tx: &mut Tx<'_>, by: &Owner) -> Result<Option<Timestamp>, StoreError> {
    let now = tx.now().await?;
    let left = concat!("SELECT 1 FROM outbox WHERE ", orphaned!("$2", "$1"), " LIMIT 1");
    if tx.one(left, args![&by.token(), now], |_| Ok(())).await?.is_some() {
        return Ok(Some(now));
    }
    let due = tx.one("SELECT MIN(due_at) FROM outbox", &[], |r| r.opt_time(0)).await?;
    Ok(due.flatten())
}
