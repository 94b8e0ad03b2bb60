//! Logins at MCP servers that have begun: who began which one. A login is
//! found by the hash of its state, and once.

use toolyard_protocol::{EntityId, Hash, TenantId, Timestamp, limits};

use crate::error::StoreError;
use crate::tx::{Row, Tx, args};

/// A login that a user may come back from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub tenant: TenantId,
    pub entity: EntityId,
    /// The server as an agent names it, as JSON.
    pub server: String,
    pub expires_at: Timestamp,
}

fn row(r: &Row<'_>) -> Result<Login, StoreError> {
    Ok(Login {
        tenant: r.parsed(0, TenantId::parse)?,
        entity: r.parsed(1, EntityId::parse)?,
        server: r.text(2)?,
        expires_at: r.time(3)?,
    })
}

/// Remembers a login, and forgets what is too old or too much of this user.
pub async fn insert(tx: &mut Tx<'_>, state: &Hash, login: &Login) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let (tenant, entity) = (login.tenant.as_str(), login.entity.as_str());
    tx.exec("DELETE FROM mcp_logins WHERE tenant = $1 AND expires_at <= $2", args![tenant, now]).await?;
    tx.exec(
        "DELETE FROM mcp_logins WHERE state IN (SELECT state FROM mcp_logins WHERE tenant = $1 AND entity = $2 \
         ORDER BY expires_at DESC LIMIT 1000 OFFSET $3)",
        args![tenant, entity, i64::try_from(limits::MCP_LOGINS).unwrap_or(i64::MAX) - 1],
    )
    .await?;
    tx.exec(
        "INSERT INTO mcp_logins (state, tenant, entity, server, expires_at) VALUES ($1, $2, $3, $4, $5)",
        args![state.as_str(), tenant, entity, &login.server, login.expires_at],
    )
    .await?;
    Ok(())
}

/// Is there such a login? Without a tenant: this is what finds it.
pub async fn is_open(tx: &mut Tx<'_>, state: &Hash) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let found = tx
        .one(
            "SELECT expires_at FROM mcp_logins WHERE state = $1 AND expires_at > $2",
            args![state.as_str(), now],
            |r| r.time(0),
        )
        .await?;
    Ok(found.is_some())
}

/// Takes a login out: nobody finds it a second time.
pub async fn take(tx: &mut Tx<'_>, state: &Hash) -> Result<Option<Login>, StoreError> {
    let now = tx.now().await?;
    let found = tx
        .one(
            "SELECT tenant, entity, server, expires_at FROM mcp_logins WHERE state = $1 AND expires_at > $2",
            args![state.as_str(), now],
            row,
        )
        .await?;
    // Of two that read it at once, one removes it.
    let gone = tx.exec("DELETE FROM mcp_logins WHERE state = $1", args![state.as_str()]).await?;
    Ok(found.filter(|_| gone > 0))
}
