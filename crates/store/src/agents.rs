//! Agents and their versions, and toolsets, by content hash.

use serde_json::Value;
use toolyard_protocol::tool::Toolset;
use toolyard_protocol::{AgentId, AgentName, Hash, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Row, Tx, args};

#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    pub id: AgentId,
    pub name: AgentName,
    /// The version that new runs use.
    pub hash: Hash,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What an upsert did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upserted {
    Created,
    Changed,
    /// The same hash: nothing was written.
    Same,
}

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT id, name, hash, created_at, updated_at FROM agents ", $rest)
    };
}

fn row(r: &Row<'_>) -> Result<Agent, StoreError> {
    Ok(Agent {
        id: r.parsed(0, AgentId::parse)?,
        name: r.parsed(1, AgentName::parse)?,
        hash: r.parsed(2, |t| Hash::from_hex(t).ok_or("not a hash"))?,
        created_at: r.time(3)?,
        updated_at: r.time(4)?,
    })
}

/// Stores a configuration under its name. Versions are kept: runs point to them.
pub async fn upsert(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    name: &AgentName,
    config: &Value,
) -> Result<(Agent, Upserted), StoreError> {
    let now = tx.now().await?;
    let hash = Hash::of_json(config);
    let found = by_name(tx, tenant, name).await?;
    if let Some(agent) = found.as_ref().filter(|a| a.hash == hash) {
        return Ok((agent.clone(), Upserted::Same));
    }
    put_version(tx, tenant, &hash, config).await?;
    let done = if found.is_some() { Upserted::Changed } else { Upserted::Created };
    let id = found.map_or_else(AgentId::mint, |a| a.id);
    tx.exec(
        "INSERT INTO agents (tenant, id, name, hash, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5) \
         ON CONFLICT (tenant, name) DO UPDATE SET hash = excluded.hash, updated_at = excluded.updated_at",
        args![tenant.as_str(), id.as_str(), name.as_str(), hash.as_str(), now],
    )
    .await?;
    let stored = by_name(tx, tenant, name).await?;
    stored
        .map(|agent| (agent, done))
        .ok_or_else(|| StoreError::broken("an agent vanished while it was stored"))
}

pub async fn by_name(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    name: &AgentName,
) -> Result<Option<Agent>, StoreError> {
    tx.one(select!("WHERE tenant = $1 AND name = $2"), args![tenant.as_str(), name.as_str()], row).await
}

pub async fn get(tx: &mut Tx<'_>, tenant: &TenantId, id: &AgentId) -> Result<Option<Agent>, StoreError> {
    tx.one(select!("WHERE tenant = $1 AND id = $2"), args![tenant.as_str(), id.as_str()], row).await
}

/// The agent of an id or a name.
pub async fn named(tx: &mut Tx<'_>, tenant: &TenantId, text: &str) -> Result<Option<Agent>, StoreError> {
    if let Ok(id) = AgentId::parse(text)
        && let Some(agent) = get(tx, tenant, &id).await?
    {
        return Ok(Some(agent));
    }
    match AgentName::parse(text) {
        Ok(name) => by_name(tx, tenant, &name).await,
        Err(_) => Ok(None),
    }
}

pub async fn list(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<Agent>, StoreError> {
    tx.all(
        select!("WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3"),
        args![tenant.as_str(), after.unwrap_or(""), i64::from(limit)],
        row,
    )
    .await
}

/// Removes an agent. Its versions stay for the runs that use them.
pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, id: &AgentId) -> Result<bool, StoreError> {
    Ok(tx
        .exec("DELETE FROM agents WHERE tenant = $1 AND id = $2", args![tenant.as_str(), id.as_str()])
        .await?
        > 0)
}

/// The configuration of a version.
pub async fn version(tx: &mut Tx<'_>, tenant: &TenantId, hash: &Hash) -> Result<Option<Value>, StoreError> {
    let found = tx
        .one(
            "SELECT config FROM agent_versions WHERE tenant = $1 AND hash = $2",
            args![tenant.as_str(), hash.as_str()],
            |r| r.json(0),
        )
        .await?;
    Ok(found.flatten())
}

/// Stores a configuration without a name: one that another agent holds.
pub async fn put_version(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    hash: &Hash,
    config: &Value,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    tx.exec(
        "INSERT INTO agent_versions (tenant, hash, config, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (tenant, hash) DO NOTHING",
        args![tenant.as_str(), hash.as_str(), &config.to_string(), now],
    )
    .await?;
    Ok(())
}

/// Stores a toolset; the same tools are stored once.
pub async fn put_toolset(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    hash: &Hash,
    tools: &Toolset,
) -> Result<(), StoreError> {
    let text = serde_json::to_string(tools).unwrap_or_default();
    tx.exec(
        "INSERT INTO toolsets (tenant, hash, tools) VALUES ($1, $2, $3) ON CONFLICT (tenant, hash) DO NOTHING",
        args![tenant.as_str(), hash.as_str(), &text],
    )
    .await?;
    Ok(())
}

pub async fn toolset(tx: &mut Tx<'_>, tenant: &TenantId, hash: &Hash) -> Result<Option<Toolset>, StoreError> {
    tx.one(
        "SELECT tools FROM toolsets WHERE tenant = $1 AND hash = $2",
        args![tenant.as_str(), hash.as_str()],
        |r| r.parsed(0, |t| serde_json::from_str(t)),
    )
    .await
}
