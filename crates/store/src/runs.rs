//! Run rows: a projection of the log, plus who may advance it.

mod leases;

use toolyard_protocol::run::{MessagePolicy, PauseReason, RunStatus};
use toolyard_protocol::{AgentName, EntityId, ErrorCode, Hash, NodeId, RunId, SpaceId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Row, Sql, Tx, args};

pub use leases::{
    Claimed, GaveUp, claim, claimable, give_up, hand_back, holds, owned, owned_by, park, seize,
};

/// One life of one node. A restarted node is another owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub node: NodeId,
    pub incarnation: String,
}

impl Owner {
    pub fn token(&self) -> String {
        format!("{}#{}", self.node, self.incarnation)
    }
}

/// A run as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    pub tenant: TenantId,
    pub id: RunId,
    pub space: Option<SpaceId>,
    pub agent_entity: Option<EntityId>,
    pub agent: AgentName,
    pub agent_hash: Hash,
    pub root: RunId,
    pub parent: Option<RunId>,
    pub triggered_by: Option<EntityId>,
    pub depth: i64,
    pub status: RunStatus,
    pub reason: Option<PauseReason>,
    pub on_message: MessagePolicy,
    pub last_seq: i64,
    pub epoch: i64,
    /// The owner's token.
    pub owner: Option<String>,
    pub recoveries: i64,
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What a new run row needs; its first events follow in the same transaction.
#[derive(Debug, Clone)]
pub struct NewRun {
    pub tenant: TenantId,
    pub id: RunId,
    pub space: Option<SpaceId>,
    pub agent_entity: Option<EntityId>,
    pub agent: AgentName,
    pub agent_hash: Hash,
    pub root: RunId,
    pub parent: Option<RunId>,
    pub triggered_by: Option<EntityId>,
    pub depth: i64,
    pub on_message: MessagePolicy,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT tenant, id, space, agent_entity, agent, agent_hash, root, parent, triggered_by, depth, status, reason, on_message, last_seq, epoch, owner, recoveries, error, created_at, updated_at FROM runs ",
            $rest
        )
    };
}

fn text_of<T: serde::Serialize>(value: T) -> Option<String> {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned))
}

fn named<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_value(serde_json::Value::String(text.to_owned()))
}

fn row(r: &Row<'_>) -> Result<RunRow, StoreError> {
    Ok(RunRow {
        tenant: r.parsed(0, TenantId::parse)?,
        id: r.parsed(1, RunId::parse)?,
        space: r.opt_parsed(2, SpaceId::parse)?,
        agent_entity: r.opt_parsed(3, EntityId::parse)?,
        agent: r.parsed(4, AgentName::parse)?,
        agent_hash: r.parsed(5, |t| Hash::from_hex(t).ok_or("not a hash"))?,
        root: r.parsed(6, RunId::parse)?,
        parent: r.opt_parsed(7, RunId::parse)?,
        triggered_by: r.opt_parsed(8, EntityId::parse)?,
        depth: r.int(9)?,
        status: r.parsed(10, |t| RunStatus::parse(t).ok_or("not a status"))?,
        reason: r.opt_parsed(11, named)?,
        on_message: r.parsed(12, named)?,
        last_seq: r.int(13)?,
        epoch: r.int(14)?,
        owner: r.opt_text(15)?,
        recoveries: r.int(16)?,
        error: r.opt_text(17)?,
        created_at: r.time(18)?,
        updated_at: r.time(19)?,
    })
}

/// Inserts a run without events: seq 0. With an owner it runs at once, else it
/// is queued. At most one live run per (space, agent entity): a second one is
/// refused with [`StoreError::Exists`].
pub async fn insert(tx: &mut Tx<'_>, run: &NewRun, owner: Option<&Owner>) -> Result<RunRow, StoreError> {
    insert_at(tx, run, owner, 0).await
}

/// As [`insert`], with the seq of the events that its transaction writes next.
pub(crate) async fn insert_at(
    tx: &mut Tx<'_>,
    run: &NewRun,
    owner: Option<&Owner>,
    last_seq: i64,
) -> Result<RunRow, StoreError> {
    let now = tx.now().await?;
    let status = if owner.is_some() { RunStatus::Running } else { RunStatus::Queued };
    let token = owner.map(Owner::token);
    let on_message = text_of(run.on_message).unwrap_or_default();
    tx.exec(
        "INSERT INTO runs (tenant, id, space, agent_entity, agent, agent_hash, root, parent, triggered_by, depth, status, live, on_message, last_seq, epoch, owner, wake_at, recoveries, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1, $12, $13, 1, $14, $15, 0, $16, $16)",
        args![
            run.tenant.as_str(),
            run.id.as_str(),
            run.space.as_ref().map(SpaceId::as_str),
            run.agent_entity.as_ref().map(EntityId::as_str),
            run.agent.as_str(),
            run.agent_hash.as_str(),
            run.root.as_str(),
            run.parent.as_ref().map(RunId::as_str),
            run.triggered_by.as_ref().map(EntityId::as_str),
            run.depth,
            status.as_str(),
            &on_message,
            last_seq,
            token.as_deref(),
            if owner.is_some() { None } else { Some(now) },
            now,
        ],
    )
    .await?;
    Ok(RunRow {
        tenant: run.tenant.clone(),
        id: run.id.clone(),
        space: run.space.clone(),
        agent_entity: run.agent_entity.clone(),
        agent: run.agent.clone(),
        agent_hash: run.agent_hash.clone(),
        root: run.root.clone(),
        parent: run.parent.clone(),
        triggered_by: run.triggered_by.clone(),
        depth: run.depth,
        status,
        reason: None,
        on_message: run.on_message,
        last_seq,
        epoch: 1,
        owner: token,
        recoveries: 0,
        error: None,
        created_at: now,
        updated_at: now,
    })
}

pub async fn get(tx: &mut Tx<'_>, tenant: &TenantId, run: &RunId) -> Result<Option<RunRow>, StoreError> {
    tx.one(select!("WHERE tenant = $1 AND id = $2"), args![tenant.as_str(), run.as_str()], row).await
}

/// Reads a run and holds it until the transaction ends. Run rows are locked
/// before waits, waits before spaces.
pub async fn lock(tx: &mut Tx<'_>, tenant: &TenantId, run: &RunId) -> Result<Option<RunRow>, StoreError> {
    let sql = Sql {
        sqlite: select!("WHERE tenant = $1 AND id = $2"),
        postgres: select!("WHERE tenant = $1 AND id = $2 FOR UPDATE"),
    };
    tx.one(sql, args![tenant.as_str(), run.as_str()], row).await
}

/// A run and those above it, nearest first, all held until the transaction
/// ends. Whatever touches several runs of a tree holds the root first, so that
/// no two of them wait for each other.
pub async fn lock_family(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
) -> Result<Option<(RunRow, Vec<RunRow>)>, StoreError> {
    // SQLite's writer holds everything; PostgreSQL must find the root before it locks.
    if tx.is_postgres() {
        let Some(known) = get(tx, tenant, run).await? else { return Ok(None) };
        if known.root != known.id {
            lock(tx, tenant, &known.root).await?;
        }
    }
    let Some(row) = lock(tx, tenant, run).await? else { return Ok(None) };
    let mut above = Vec::new();
    let mut next = row.parent.clone();
    while let Some(id) = next {
        let Some(found) = lock(tx, tenant, &id).await? else { break };
        next = found.parent.clone();
        above.push(found);
    }
    Ok(Some((row, above)))
}

/// The runs below a root, oldest first.
pub async fn below(tx: &mut Tx<'_>, tenant: &TenantId, root: &RunId) -> Result<Vec<RunRow>, StoreError> {
    tx.all(
        select!("WHERE tenant = $1 AND root = $2 AND parent IS NOT NULL ORDER BY id"),
        args![tenant.as_str(), root.as_str()],
        row,
    )
    .await
}

/// The live run of an agent in a space, held until the transaction ends.
pub async fn lock_live(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    agent: &EntityId,
) -> Result<Option<RunRow>, StoreError> {
    let sql = Sql {
        sqlite: select!("WHERE tenant = $1 AND space = $2 AND agent_entity = $3 AND live = 1"),
        postgres: select!("WHERE tenant = $1 AND space = $2 AND agent_entity = $3 AND live = 1 FOR UPDATE"),
    };
    tx.one(sql, args![tenant.as_str(), space.as_str(), agent.as_str()], row).await
}

/// Newest first; `before` continues after the last row of a page.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: Option<&SpaceId>,
    status: Option<RunStatus>,
    before: Option<&RunId>,
    limit: u32,
) -> Result<Vec<RunRow>, StoreError> {
    let (status, before) = (status.map_or("", RunStatus::as_str), before.map_or("", RunId::as_str));
    // A statement of its own per question: with OR the index would not be used.
    match space {
        Some(space) => {
            tx.all(
                select!(
                    "WHERE tenant = $1 AND space = $2 AND ($3 = '' OR status = $3) AND ($4 = '' OR id < $4) ORDER BY id DESC LIMIT $5"
                ),
                args![tenant.as_str(), space.as_str(), status, before, i64::from(limit)],
                row,
            )
            .await
        }
        None => {
            tx.all(
                select!(
                    "WHERE tenant = $1 AND ($2 = '' OR status = $2) AND ($3 = '' OR id < $3) ORDER BY id DESC LIMIT $4"
                ),
                args![tenant.as_str(), status, before, i64::from(limit)],
                row,
            )
            .await
        }
    }
}

/// What the row says after an append.
#[derive(Debug, Clone)]
pub struct After {
    pub status: RunStatus,
    pub reason: Option<PauseReason>,
    /// The owner lets go: the run is parked or finished.
    pub release: bool,
    pub error: Option<ErrorCode>,
}

impl After {
    pub(crate) fn reason_text(&self) -> Option<String> {
        self.reason.and_then(text_of)
    }
}

/// How many runs have each status, for `doctor` and metrics.
pub async fn counts(tx: &mut Tx<'_>) -> Result<Vec<(String, i64)>, StoreError> {
    tx.all("SELECT status, count(*) FROM runs GROUP BY status ORDER BY status", &[], |r| {
        Ok((r.text(0)?, r.int(1)?))
    })
    .await
}

/// Runs that have not ended, of all tenants, the oldest first.
pub async fn live(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<(TenantId, RunId)>, StoreError> {
    tx.all("SELECT tenant, id FROM runs WHERE live = 1 ORDER BY id LIMIT $1", args![i64::from(limit)], |r| {
        Ok((r.parsed(0, TenantId::parse)?, r.parsed(1, RunId::parse)?))
    })
    .await
}

/// Runs that were isolated because they cannot be replayed.
pub async fn poisoned(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<RunRow>, StoreError> {
    tx.all(select!("WHERE error = 'poisoned' ORDER BY id DESC LIMIT $1"), args![i64::from(limit)], row).await
}

/// Removes a run and all of it, with the runs below it. The caller has checked
/// that it is not live.
pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, run: &RunId) -> Result<bool, StoreError> {
    for child in below(tx, tenant, run).await? {
        delete_one(tx, tenant, &child.id).await?;
    }
    delete_one(tx, tenant, run).await
}

async fn delete_one(tx: &mut Tx<'_>, tenant: &TenantId, run: &RunId) -> Result<bool, StoreError> {
    let (t, id) = (tenant.as_str(), run.as_str());
    let last = crate::log::last_pos(tx, tenant, run).await?;
    tx.exec("DELETE FROM events WHERE tenant = $1 AND run = $2", args![t, id]).await?;
    tx.exec("DELETE FROM waits WHERE tenant = $1 AND run = $2", args![t, id]).await?;
    tx.exec("DELETE FROM messages WHERE tenant = $1 AND run = $2", args![t, id]).await?;
    // Its readers have missed something from here on.
    tx.exec(
        "UPDATE spaces SET gone_to = $1 WHERE tenant = $2 AND id = (SELECT space FROM runs WHERE tenant = $2 AND id = $3) AND gone_to < $1",
        args![last, t, id],
    )
    .await?;
    crate::push_configs::delete_all(tx, tenant, run).await?;
    crate::blobs::forget_run(tx, tenant, run).await?;
    Ok(tx.exec("DELETE FROM runs WHERE tenant = $1 AND id = $2", args![t, id]).await? > 0)
}
