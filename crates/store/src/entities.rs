//! Actors: humans, agents and systems.

use serde_json::Value;
use toolyard_protocol::{AgentName, EntityId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Row, Tx, args};

/// What an entity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntityKind {
    Human,
    Agent,
    System,
}

impl EntityKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Agent => "agent",
            Self::System => "system",
        }
    }
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Human, Self::Agent, Self::System].into_iter().find(|k| k.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    pub id: EntityId,
    pub kind: EntityKind,
    /// The caller's own name for it; a JWT's subject is matched to it.
    pub external_id: Option<String>,
    pub display_name: Option<String>,
    /// The agent that an entity of kind agent plays.
    pub agent: Option<AgentName>,
    pub metadata: Option<Value>,
    pub created_at: Timestamp,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, kind, external_id, display_name, agent, metadata, created_at FROM entities ",
            $rest
        )
    };
}

fn row(r: &Row<'_>) -> Result<Entity, StoreError> {
    Ok(Entity {
        id: r.parsed(0, EntityId::parse)?,
        kind: r.parsed(1, |t| EntityKind::parse(t).ok_or("not a kind"))?,
        external_id: r.opt_text(2)?,
        display_name: r.opt_text(3)?,
        agent: r.opt_parsed(4, AgentName::parse)?,
        metadata: r.json(5)?,
        created_at: r.time(6)?,
    })
}

pub async fn insert(tx: &mut Tx<'_>, tenant: &TenantId, entity: &Entity) -> Result<(), StoreError> {
    let metadata = entity.metadata.as_ref().map(Value::to_string);
    tx.exec(
        "INSERT INTO entities (tenant, id, kind, external_id, display_name, agent, metadata, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        args![
            tenant.as_str(),
            entity.id.as_str(),
            entity.kind.as_str(),
            entity.external_id.as_deref(),
            entity.display_name.as_deref(),
            entity.agent.as_ref().map(AgentName::as_str),
            metadata.as_deref(),
            entity.created_at
        ],
    )
    .await?;
    Ok(())
}

/// Writes the fields that people may change.
pub async fn update(tx: &mut Tx<'_>, tenant: &TenantId, entity: &Entity) -> Result<bool, StoreError> {
    let metadata = entity.metadata.as_ref().map(Value::to_string);
    let changed = tx
        .exec(
            "UPDATE entities SET external_id = $1, display_name = $2, agent = $3, metadata = $4 WHERE tenant = $5 AND id = $6",
            args![
                entity.external_id.as_deref(),
                entity.display_name.as_deref(),
                entity.agent.as_ref().map(AgentName::as_str),
                metadata.as_deref(),
                tenant.as_str(),
                entity.id.as_str()
            ],
        )
        .await?;
    Ok(changed > 0)
}

pub async fn get(tx: &mut Tx<'_>, tenant: &TenantId, id: &EntityId) -> Result<Option<Entity>, StoreError> {
    tx.one(select!("WHERE tenant = $1 AND id = $2"), args![tenant.as_str(), id.as_str()], row).await
}

pub async fn by_external(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    external: &str,
) -> Result<Option<Entity>, StoreError> {
    tx.one(select!("WHERE tenant = $1 AND external_id = $2"), args![tenant.as_str(), external], row).await
}

pub async fn list(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    kind: Option<EntityKind>,
    before: Option<&EntityId>,
    limit: u32,
) -> Result<Vec<Entity>, StoreError> {
    tx.all(
        select!(
            "WHERE tenant = $1 AND ($2 = '' OR kind = $2) AND ($3 = '' OR id < $3) ORDER BY id DESC LIMIT $4"
        ),
        args![
            tenant.as_str(),
            kind.map_or("", EntityKind::as_str),
            before.map_or("", EntityId::as_str),
            i64::from(limit)
        ],
        row,
    )
    .await
}

/// Removes an entity and what is kept of it or for it. What it said and did is
/// removed before, see [`crate::removal::entity`].
pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, id: &EntityId) -> Result<bool, StoreError> {
    let named = args![tenant.as_str(), id.as_str()];
    tx.exec("DELETE FROM members WHERE tenant = $1 AND entity = $2", named).await?;
    tx.exec("DELETE FROM grants WHERE tenant = $1 AND entity = $2", named).await?;
    tx.exec("DELETE FROM goals WHERE tenant = $1 AND entity = $2", named).await?;
    tx.exec("DELETE FROM memories WHERE tenant = $1 AND (agent = $2 OR writer = $2)", named).await?;
    tx.exec("DELETE FROM plans WHERE tenant = $1 AND (agent = $2 OR creator = $2)", named).await?;
    tx.exec("DELETE FROM inbox WHERE tenant = $1 AND entity = $2", named).await?;
    tx.exec("UPDATE inbox SET agent = NULL WHERE tenant = $1 AND agent = $2", named).await?;
    tx.exec("DELETE FROM compactions WHERE tenant = $1 AND agent_entity = $2", named).await?;
    tx.exec("DELETE FROM mcp_records WHERE tenant = $1 AND entity = $2", named).await?;
    tx.exec("DELETE FROM mcp_logins WHERE tenant = $1 AND entity = $2", named).await?;
    tx.exec("DELETE FROM mcp_locks WHERE tenant = $1 AND entity = $2", named).await?;
    tx.exec("DELETE FROM push_configs WHERE tenant = $1 AND owner = $2", named).await?;
    tx.exec(
        "DELETE FROM presence_tools WHERE tenant = $1 AND connection IN (SELECT connection FROM presences WHERE tenant = $1 AND entity = $2)",
        named,
    )
    .await?;
    tx.exec("DELETE FROM presences WHERE tenant = $1 AND entity = $2", named).await?;
    tx.exec("DELETE FROM clients WHERE tenant = $1 AND entity = $2", named).await?;
    crate::blobs::forget_entity(tx, tenant, id).await?;
    // Others read these too: they stay without a name.
    tx.exec("UPDATE documents SET entity = NULL WHERE tenant = $1 AND entity = $2", named).await?;
    tx.exec("UPDATE spaces SET owner = NULL WHERE tenant = $1 AND owner = $2", named).await?;
    Ok(tx.exec("DELETE FROM entities WHERE tenant = $1 AND id = $2", named).await? > 0)
}
