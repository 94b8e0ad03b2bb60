//! Programs that execute tools and said so.

use serde_json::Value;
use toolyard_protocol::{ClientId, EntityId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Tx, args};

#[derive(Debug, Clone, PartialEq)]
pub struct Client {
    pub id: ClientId,
    pub entity: Option<EntityId>,
    pub kind: String,
    pub name: Option<String>,
    pub capabilities: Option<Value>,
    pub last_seen: Timestamp,
}

/// Registers a client, or renews it. An id belongs to the entity that took it
/// first; false if it belongs to another.
pub async fn put(tx: &mut Tx<'_>, tenant: &TenantId, client: &Client) -> Result<bool, StoreError> {
    write(tx, tenant, client, false).await
}

/// As [`put`], of a client on a socket. While it is there its presence says so,
/// see [`crate::presences`]; the moment it was seen says nothing.
pub async fn put_connected(tx: &mut Tx<'_>, tenant: &TenantId, client: &Client) -> Result<bool, StoreError> {
    write(tx, tenant, client, true).await
}

async fn write(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    client: &Client,
    by_socket: bool,
) -> Result<bool, StoreError> {
    let capabilities = client.capabilities.as_ref().map(Value::to_string);
    let changed = tx
        .exec(
            "INSERT INTO clients (tenant, id, entity, kind, name, capabilities, last_seen, by_socket) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
             ON CONFLICT (tenant, id) DO UPDATE SET kind = excluded.kind, name = excluded.name, capabilities = excluded.capabilities, last_seen = excluded.last_seen, by_socket = excluded.by_socket \
             WHERE coalesce(clients.entity, '') = coalesce(excluded.entity, '')",
            args![
                tenant.as_str(),
                client.id.as_str(),
                client.entity.as_ref().map(EntityId::as_str),
                &client.kind,
                client.name.as_deref(),
                capabilities.as_deref(),
                client.last_seen,
                by_socket
            ],
        )
        .await?;
    Ok(changed > 0)
}

pub async fn list(tx: &mut Tx<'_>, tenant: &TenantId, limit: u32) -> Result<Vec<Client>, StoreError> {
    tx.all(
        "SELECT id, entity, kind, name, capabilities, last_seen FROM clients WHERE tenant = $1 ORDER BY last_seen DESC LIMIT $2",
        args![tenant.as_str(), i64::from(limit)],
        |r| {
            Ok(Client {
                id: r.parsed(0, ClientId::parse)?,
                entity: r.opt_parsed(1, EntityId::parse)?,
                kind: r.text(2)?,
                name: r.opt_text(3)?,
                capabilities: r.json(4)?,
                last_seen: r.time(5)?,
            })
        },
    )
    .await
}
