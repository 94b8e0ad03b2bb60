//! Programs that are connected right now, and the tools they hold. A row is
//! good as long as the node that wrote it lives, so a connection costs two
//! commits however long it lasts.

use toolyard_protocol::{ClientId, ConnectionId, EntityId, TenantId, ToolName};

use crate::error::StoreError;
use crate::runs::Owner;
use crate::tx::{Tx, args};

/// A connected program.
#[derive(Debug, Clone, PartialEq)]
pub struct Presence {
    pub connection: ConnectionId,
    pub client: ClientId,
    /// None for a backend.
    pub entity: Option<EntityId>,
    pub tools: Vec<ToolName>,
}

/// Who holds a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Holder {
    pub client: ClientId,
    pub entity: Option<EntityId>,
}

/// Says that a program is connected to this node. Earlier connections of the
/// same client count no more, wherever they are.
pub async fn enter(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    owner: &Owner,
    presence: &Presence,
) -> Result<(), StoreError> {
    let args = args![tenant.as_str(), presence.client.as_str()];
    tx.exec(
        "DELETE FROM presence_tools WHERE tenant = $1 AND connection IN (SELECT connection FROM presences WHERE tenant = $1 AND client = $2)",
        args,
    )
    .await?;
    tx.exec("DELETE FROM presences WHERE tenant = $1 AND client = $2", args).await?;
    let now = tx.now().await?;
    tx.exec(
        "INSERT INTO presences (tenant, connection, client, entity, node, incarnation, at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        args![
            tenant.as_str(),
            presence.connection.as_str(),
            presence.client.as_str(),
            presence.entity.as_ref().map(EntityId::as_str),
            owner.node.as_str(),
            &owner.incarnation,
            now
        ],
    )
    .await?;
    for tool in &presence.tools {
        tx.exec(
            "INSERT INTO presence_tools (tenant, tool, connection) VALUES ($1, $2, $3) ON CONFLICT (tenant, tool, connection) DO NOTHING",
            args![tenant.as_str(), tool.as_str(), presence.connection.as_str()],
        )
        .await?;
    }
    Ok(())
}

/// Says that it is gone.
pub async fn leave(tx: &mut Tx<'_>, tenant: &TenantId, connection: &ConnectionId) -> Result<(), StoreError> {
    let args = args![tenant.as_str(), connection.as_str()];
    tx.exec("DELETE FROM presence_tools WHERE tenant = $1 AND connection = $2", args).await?;
    tx.exec("DELETE FROM presences WHERE tenant = $1 AND connection = $2", args).await?;
    Ok(())
}

/// Who is connected to a living node and holds a tool.
pub async fn holders(tx: &mut Tx<'_>, tenant: &TenantId, tool: &ToolName) -> Result<Vec<Holder>, StoreError> {
    let now = tx.now().await?;
    tx.all(
        "SELECT p.client, p.entity FROM presence_tools t JOIN presences p ON p.tenant = t.tenant AND p.connection = t.connection \
         WHERE t.tenant = $1 AND t.tool = $2 AND EXISTS (SELECT 1 FROM nodes n WHERE n.id = p.node AND n.incarnation = p.incarnation AND n.until > $3) \
         ORDER BY p.at, p.connection LIMIT 1000",
        args![tenant.as_str(), tool.as_str(), now],
        |r| Ok(Holder { client: r.parsed(0, ClientId::parse)?, entity: r.opt_parsed(1, EntityId::parse)? }),
    )
    .await
}

/// The clients that are connected to a living node.
pub async fn connected(tx: &mut Tx<'_>, tenant: &TenantId) -> Result<Vec<ClientId>, StoreError> {
    let now = tx.now().await?;
    tx.all(
        "SELECT DISTINCT p.client FROM presences p WHERE p.tenant = $1 AND EXISTS (SELECT 1 FROM nodes n WHERE n.id = p.node AND n.incarnation = p.incarnation AND n.until > $2) ORDER BY p.client",
        args![tenant.as_str(), now],
        |r| r.parsed(0, ClientId::parse),
    )
    .await
}

/// Removes the rows of nodes that are gone. They count for nothing already.
pub async fn sweep(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let now = tx.now().await?;
    tx.exec(
        "DELETE FROM presences WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = presences.node AND n.incarnation = presences.incarnation AND n.until > $1)",
        args![now],
    )
    .await?;
    tx.exec(
        "DELETE FROM presence_tools WHERE NOT EXISTS (SELECT 1 FROM presences p WHERE p.tenant = presence_tools.tenant AND p.connection = presence_tools.connection)",
        &[],
    )
    .await?;
    Ok(())
}
