//! Goals: what an entity wants to reach, over all its runs and spaces.

use serde_json::Value;
use toolyard_protocol::{EntityId, GoalId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Row, Tx, args};

#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    pub id: GoalId,
    pub entity: EntityId,
    pub description: String,
    pub priority: i64,
    pub long_term: bool,
    pub completed: bool,
    pub metadata: Option<Value>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, entity, description, priority, long_term, completed, metadata, created_at, updated_at FROM goals ",
            $rest
        )
    };
}

fn row(r: &Row<'_>) -> Result<Goal, StoreError> {
    Ok(Goal {
        id: r.parsed(0, GoalId::parse)?,
        entity: r.parsed(1, EntityId::parse)?,
        description: r.text(2)?,
        priority: r.int(3)?,
        long_term: r.flag(4)?,
        completed: r.flag(5)?,
        metadata: r.json(6)?,
        created_at: r.time(7)?,
        updated_at: r.time(8)?,
    })
}

pub async fn insert(tx: &mut Tx<'_>, tenant: &TenantId, goal: &Goal) -> Result<(), StoreError> {
    let metadata = goal.metadata.as_ref().map(Value::to_string);
    tx.exec(
        "INSERT INTO goals (tenant, id, entity, description, priority, long_term, completed, metadata, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        args![
            tenant.as_str(),
            goal.id.as_str(),
            goal.entity.as_str(),
            &goal.description,
            goal.priority,
            goal.long_term,
            goal.completed,
            metadata.as_deref(),
            goal.created_at,
            goal.updated_at
        ],
    )
    .await?;
    Ok(())
}

/// Writes what may change. False if its entity has no such goal.
pub async fn update(tx: &mut Tx<'_>, tenant: &TenantId, goal: &Goal) -> Result<bool, StoreError> {
    let metadata = goal.metadata.as_ref().map(Value::to_string);
    let changed = tx
        .exec(
            "UPDATE goals SET description = $1, priority = $2, long_term = $3, completed = $4, metadata = $5, updated_at = $6 WHERE tenant = $7 AND id = $8 AND entity = $9",
            args![
                &goal.description,
                goal.priority,
                goal.long_term,
                goal.completed,
                metadata.as_deref(),
                goal.updated_at,
                tenant.as_str(),
                goal.id.as_str(),
                goal.entity.as_str()
            ],
        )
        .await?;
    Ok(changed > 0)
}

pub async fn get(tx: &mut Tx<'_>, tenant: &TenantId, id: &GoalId) -> Result<Option<Goal>, StoreError> {
    tx.one(select!("WHERE tenant = $1 AND id = $2"), args![tenant.as_str(), id.as_str()], row).await
}

/// All goals of an entity, the most urgent first, then the oldest (row G21).
pub async fn of_entity(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    entity: &EntityId,
) -> Result<Vec<Goal>, StoreError> {
    tx.all(
        select!("WHERE tenant = $1 AND entity = $2 ORDER BY priority DESC, created_at, id"),
        args![tenant.as_str(), entity.as_str()],
        row,
    )
    .await
}

/// Newest first; of one entity if given.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    entity: Option<&EntityId>,
    before: Option<&GoalId>,
    limit: u32,
) -> Result<Vec<Goal>, StoreError> {
    tx.all(
        select!("WHERE tenant = $1 AND ($2 = '' OR entity = $2) AND ($3 = '' OR id < $3) ORDER BY id DESC LIMIT $4"),
        args![
            tenant.as_str(),
            entity.map_or("", EntityId::as_str),
            before.map_or("", GoalId::as_str),
            i64::from(limit)
        ],
        row,
    )
    .await
}

pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, id: &GoalId) -> Result<bool, StoreError> {
    let gone = tx
        .exec("DELETE FROM goals WHERE tenant = $1 AND id = $2", args![tenant.as_str(), id.as_str()])
        .await?;
    Ok(gone > 0)
}
