//! Remembered permissions. Their meaning is the engine's; here they are JSON.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use toolyard_protocol::{EntityId, GrantId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Row, Tx, args};

/// A database that this process has open may hold a grant. Most never do, and every
/// call of a tool would ask for them. It is set before a grant is committed and never
/// taken back: at worst somebody looks and finds none.
static GIVEN: AtomicBool = AtomicBool::new(false);

/// False only if there is no grant: this process writes the database alone.
pub(crate) fn may_be_given() -> bool {
    GIVEN.load(Ordering::SeqCst)
}

/// Looks once, when a SQLite database is opened.
pub(crate) fn look(conn: &rusqlite::Connection) -> rusqlite::Result<()> {
    if conn.query_row("SELECT EXISTS (SELECT 1 FROM grants)", [], |row| row.get(0))? {
        GIVEN.store(true, Ordering::SeqCst);
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq)]
pub struct GrantRow {
    pub id: GrantId,
    /// Whose runs it is for; none = all of the tenant.
    pub entity: Option<EntityId>,
    /// The tool's key: `<service>:<tool>` or the tool's name.
    pub tool: String,
    pub body: Value,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

fn row(r: &Row<'_>) -> Result<GrantRow, StoreError> {
    Ok(GrantRow {
        id: r.parsed(0, GrantId::parse)?,
        entity: r.opt_parsed(1, EntityId::parse)?,
        tool: r.text(2)?,
        body: r.json(3)?.unwrap_or_default(),
        created_at: r.time(4)?,
        expires_at: r.opt_time(5)?,
    })
}

pub async fn insert(tx: &mut Tx<'_>, tenant: &TenantId, grant: &GrantRow) -> Result<(), StoreError> {
    GIVEN.store(true, Ordering::SeqCst);
    tx.exec(
        "INSERT INTO grants (tenant, id, entity, tool, body, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        args![
            tenant.as_str(),
            grant.id.as_str(),
            grant.entity.as_ref().map(EntityId::as_str),
            &grant.tool,
            &grant.body.to_string(),
            grant.created_at,
            grant.expires_at
        ],
    )
    .await?;
    Ok(())
}

/// Grants that have not expired: those of an entity and those of everybody.
pub async fn of_entity(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    entity: Option<&EntityId>,
) -> Result<Vec<GrantRow>, StoreError> {
    let now = tx.now().await?;
    tx.all(
        "SELECT id, entity, tool, body, created_at, expires_at FROM grants WHERE tenant = $1 AND (entity IS NULL OR entity = $2) AND (expires_at IS NULL OR expires_at > $3) ORDER BY id",
        args![tenant.as_str(), entity.map_or("", EntityId::as_str), now],
        row,
    )
    .await
}

/// Grants of a tenant, newest first: all, or those of one entity.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    entity: Option<&EntityId>,
    limit: u32,
) -> Result<Vec<GrantRow>, StoreError> {
    tx.all(
        "SELECT id, entity, tool, body, created_at, expires_at FROM grants WHERE tenant = $1 AND ($2 = '' OR entity = $2) ORDER BY id DESC LIMIT $3",
        args![tenant.as_str(), entity.map_or("", EntityId::as_str), i64::from(limit)],
        row,
    )
    .await
}

pub async fn get(tx: &mut Tx<'_>, tenant: &TenantId, id: &GrantId) -> Result<Option<GrantRow>, StoreError> {
    tx.one(
        "SELECT id, entity, tool, body, created_at, expires_at FROM grants WHERE tenant = $1 AND id = $2",
        args![tenant.as_str(), id.as_str()],
        row,
    )
    .await
}

pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, id: &GrantId) -> Result<bool, StoreError> {
    Ok(tx
        .exec("DELETE FROM grants WHERE tenant = $1 AND id = $2", args![tenant.as_str(), id.as_str()])
        .await?
        > 0)
}
