//! What users hold at MCP servers: tokens, and how the gateway is known there.
//! All of it is sealed bytes; the store cannot read them.

use toolyard_protocol::{EntityId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::secrets::Sealed;
use crate::tx::{Tx, args};

/// One record of one user at one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub tenant: TenantId,
    pub entity: EntityId,
    /// A hash of the server's address.
    pub server: String,
}

/// A record that has not expired.
pub async fn get(tx: &mut Tx<'_>, place: &Place, record: &str) -> Result<Option<Sealed>, StoreError> {
    let now = tx.now().await?;
    tx.one(
        "SELECT sealed, key_id FROM mcp_records WHERE tenant = $1 AND entity = $2 AND server = $3 AND record = $4 \
         AND (expires_at IS NULL OR expires_at > $5)",
        args![place.tenant.as_str(), place.entity.as_str(), &place.server, record, now],
        |r| Ok(Sealed { bytes: r.bytes(0)?, key_id: r.text(1)? }),
    )
    .await
}

/// Writes a record, and forgets those of this user that have expired.
pub async fn put(
    tx: &mut Tx<'_>,
    place: &Place,
    record: &str,
    sealed: &Sealed,
    expires_at: Option<Timestamp>,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    tx.exec(
        "DELETE FROM mcp_records WHERE tenant = $1 AND entity = $2 AND expires_at <= $3",
        args![place.tenant.as_str(), place.entity.as_str(), now],
    )
    .await?;
    tx.exec(
        "INSERT INTO mcp_records (tenant, entity, server, record, sealed, key_id, expires_at, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
         ON CONFLICT (tenant, entity, server, record) DO UPDATE SET sealed = excluded.sealed, key_id = excluded.key_id, \
         expires_at = excluded.expires_at, at = excluded.at",
        args![
            place.tenant.as_str(),
            place.entity.as_str(),
            &place.server,
            record,
            sealed.bytes.as_slice(),
            &sealed.key_id,
            expires_at,
            now
        ],
    )
    .await?;
    Ok(())
}

pub async fn delete(tx: &mut Tx<'_>, place: &Place, record: &str) -> Result<bool, StoreError> {
    let gone = tx
        .exec(
            "DELETE FROM mcp_records WHERE tenant = $1 AND entity = $2 AND server = $3 AND record = $4",
            args![place.tenant.as_str(), place.entity.as_str(), &place.server, record],
        )
        .await?;
    Ok(gone > 0)
}

/// Takes the place for `ms`, unless another holder has it.
pub async fn lock(tx: &mut Tx<'_>, place: &Place, holder: &str, ms: u64) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let taken = tx
        .exec(
            "INSERT INTO mcp_locks (tenant, entity, server, holder, until) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (tenant, entity, server) DO UPDATE SET holder = excluded.holder, until = excluded.until \
             WHERE mcp_locks.until <= $6",
            args![
                place.tenant.as_str(),
                place.entity.as_str(),
                &place.server,
                holder,
                now.plus_millis(ms),
                now
            ],
        )
        .await?;
    Ok(taken > 0)
}

/// Lets go of a place, if this holder still has it.
pub async fn unlock(tx: &mut Tx<'_>, place: &Place, holder: &str) -> Result<(), StoreError> {
    tx.exec(
        "DELETE FROM mcp_locks WHERE tenant = $1 AND entity = $2 AND server = $3 AND holder = $4",
        args![place.tenant.as_str(), place.entity.as_str(), &place.server, holder],
    )
    .await?;
    Ok(())
}
