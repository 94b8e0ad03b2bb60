//! Notifications for people, as the gateway itself shows them.

use serde_json::Value;
use toolyard_protocol::{AgentName, EntityId, NoticeId, RunId, SpaceId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Row, Tx, args};

#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    pub id: NoticeId,
    /// Whom it is for.
    pub entity: EntityId,
    pub title: String,
    pub body: String,
    /// `info`, `warning` or `urgent`.
    pub level: String,
    pub data: Option<Value>,
    pub agent: Option<AgentName>,
    pub space: Option<SpaceId>,
    pub run: Option<RunId>,
    pub read_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, entity, title, body, level, data, agent, space, run, read_at, created_at FROM inbox ",
            $rest
        )
    };
}

fn row(r: &Row<'_>) -> Result<Notice, StoreError> {
    Ok(Notice {
        id: r.parsed(0, NoticeId::parse)?,
        entity: r.parsed(1, EntityId::parse)?,
        title: r.text(2)?,
        body: r.text(3)?,
        level: r.text(4)?,
        data: r.json(5)?,
        agent: r.opt_parsed(6, AgentName::parse)?,
        space: r.opt_parsed(7, SpaceId::parse)?,
        run: r.opt_parsed(8, RunId::parse)?,
        read_at: r.opt_time(9)?,
        created_at: r.time(10)?,
    })
}

/// Writes a notification, once per id.
pub async fn put(tx: &mut Tx<'_>, tenant: &TenantId, notice: &Notice) -> Result<(), StoreError> {
    let data = notice.data.as_ref().map(Value::to_string);
    tx.exec(
        "INSERT INTO inbox (tenant, id, entity, title, body, level, data, agent, space, run, read_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
         ON CONFLICT (tenant, id) DO NOTHING",
        args![
            tenant.as_str(),
            notice.id.as_str(),
            notice.entity.as_str(),
            &notice.title,
            &notice.body,
            &notice.level,
            data.as_deref(),
            notice.agent.as_ref().map(AgentName::as_str),
            notice.space.as_ref().map(SpaceId::as_str),
            notice.run.as_ref().map(RunId::as_str),
            notice.read_at,
            notice.created_at
        ],
    )
    .await?;
    Ok(())
}

pub async fn get(tx: &mut Tx<'_>, tenant: &TenantId, id: &NoticeId) -> Result<Option<Notice>, StoreError> {
    tx.one(select!("WHERE tenant = $1 AND id = $2"), args![tenant.as_str(), id.as_str()], row).await
}

/// Newest first; of one entity if given, and only what it has not read.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    entity: Option<&EntityId>,
    unread: bool,
    before: Option<&NoticeId>,
    limit: u32,
) -> Result<Vec<Notice>, StoreError> {
    tx.all(
        select!(
            "WHERE tenant = $1 AND ($2 = '' OR entity = $2) AND ($3 = 0 OR read_at IS NULL) AND ($4 = '' OR id < $4) ORDER BY id DESC LIMIT $5"
        ),
        args![
            tenant.as_str(),
            entity.map_or("", EntityId::as_str),
            unread,
            before.map_or("", NoticeId::as_str),
            i64::from(limit)
        ],
        row,
    )
    .await
}

/// Says when it was read, or that it was not.
pub async fn mark(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &NoticeId,
    read_at: Option<Timestamp>,
) -> Result<bool, StoreError> {
    let changed = tx
        .exec(
            "UPDATE inbox SET read_at = $1 WHERE tenant = $2 AND id = $3",
            args![read_at, tenant.as_str(), id.as_str()],
        )
        .await?;
    Ok(changed > 0)
}

pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, id: &NoticeId) -> Result<bool, StoreError> {
    let gone = tx
        .exec("DELETE FROM inbox WHERE tenant = $1 AND id = $2", args![tenant.as_str(), id.as_str()])
        .await?;
    Ok(gone > 0)
}
