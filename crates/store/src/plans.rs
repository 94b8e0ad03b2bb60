//! Plans: runs that are to start later. The moment is the database's time.

use toolyard_protocol::{EntityId, PlanId, RunId, SpaceId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Row, Tx, args};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanStatus {
    Pending,
    Completed,
    Canceled,
    /// It came due and could not start; its error says why.
    Failed,
}

impl PlanStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
        }
    }
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Completed, Self::Canceled, Self::Failed]
            .into_iter()
            .find(|s| s.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub tenant: TenantId,
    pub id: PlanId,
    /// The agent entity whose run it starts.
    pub agent: EntityId,
    /// For whom the run will work.
    pub creator: Option<EntityId>,
    /// Where it runs. None until its first run makes a space for it.
    pub space: Option<SpaceId>,
    pub name: String,
    pub instruction: String,
    pub cron: Option<String>,
    pub timezone: String,
    pub scheduled_at: Option<Timestamp>,
    /// Set while it is pending.
    pub next_run_at: Option<Timestamp>,
    pub last_run_at: Option<Timestamp>,
    pub last_run: Option<RunId>,
    pub runs: i64,
    pub status: PlanStatus,
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT tenant, id, agent, creator, space, name, instruction, cron, timezone, scheduled_at, next_run_at, last_run_at, last_run, runs, status, error, created_at, updated_at FROM plans ",
            $rest
        )
    };
}

fn row(r: &Row<'_>) -> Result<Plan, StoreError> {
    Ok(Plan {
        tenant: r.parsed(0, TenantId::parse)?,
        id: r.parsed(1, PlanId::parse)?,
        agent: r.parsed(2, EntityId::parse)?,
        creator: r.opt_parsed(3, EntityId::parse)?,
        space: r.opt_parsed(4, SpaceId::parse)?,
        name: r.text(5)?,
        instruction: r.text(6)?,
        cron: r.opt_text(7)?,
        timezone: r.text(8)?,
        scheduled_at: r.opt_time(9)?,
        next_run_at: r.opt_time(10)?,
        last_run_at: r.opt_time(11)?,
        last_run: r.opt_parsed(12, RunId::parse)?,
        runs: r.int(13)?,
        status: r.parsed(14, |t| PlanStatus::parse(t).ok_or("not a status"))?,
        error: r.opt_text(15)?,
        created_at: r.time(16)?,
        updated_at: r.time(17)?,
    })
}

pub async fn insert(tx: &mut Tx<'_>, plan: &Plan) -> Result<(), StoreError> {
    tx.exec(
        "INSERT INTO plans (tenant, id, agent, creator, space, name, instruction, cron, timezone, scheduled_at, next_run_at, last_run_at, last_run, runs, status, error, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
        args![
            plan.tenant.as_str(),
            plan.id.as_str(),
            plan.agent.as_str(),
            plan.creator.as_ref().map(EntityId::as_str),
            plan.space.as_ref().map(SpaceId::as_str),
            &plan.name,
            &plan.instruction,
            plan.cron.as_deref(),
            &plan.timezone,
            plan.scheduled_at,
            plan.next_run_at,
            plan.last_run_at,
            plan.last_run.as_ref().map(RunId::as_str),
            plan.runs,
            plan.status.as_str(),
            plan.error.as_deref(),
            plan.created_at,
            plan.updated_at
        ],
    )
    .await?;
    Ok(())
}

/// Writes a plan over the one that was due, or next, at `expected`. False if
/// it has changed since: somebody else was quicker.
pub async fn replace(
    tx: &mut Tx<'_>,
    plan: &Plan,
    status: PlanStatus,
    expected: Option<Timestamp>,
) -> Result<bool, StoreError> {
    let changed = tx
        .exec(
            "UPDATE plans SET space = $1, name = $2, instruction = $3, cron = $4, timezone = $5, scheduled_at = $6, next_run_at = $7, last_run_at = $8, last_run = $9, runs = $10, status = $11, error = $12, updated_at = $13 \
             WHERE tenant = $14 AND id = $15 AND status = $16 AND coalesce(next_run_at, -1) = $17",
            args![
                plan.space.as_ref().map(SpaceId::as_str),
                &plan.name,
                &plan.instruction,
                plan.cron.as_deref(),
                &plan.timezone,
                plan.scheduled_at,
                plan.next_run_at,
                plan.last_run_at,
                plan.last_run.as_ref().map(RunId::as_str),
                plan.runs,
                plan.status.as_str(),
                plan.error.as_deref(),
                plan.updated_at,
                plan.tenant.as_str(),
                plan.id.as_str(),
                status.as_str(),
                expected.map_or(-1, Timestamp::millis)
            ],
        )
        .await?;
    Ok(changed > 0)
}

/// Says which run a plan started last.
pub async fn name_run(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &PlanId,
    run: &RunId,
) -> Result<(), StoreError> {
    tx.exec(
        "UPDATE plans SET last_run = $1 WHERE tenant = $2 AND id = $3",
        args![run.as_str(), tenant.as_str(), id.as_str()],
    )
    .await?;
    Ok(())
}

pub async fn get(tx: &mut Tx<'_>, tenant: &TenantId, id: &PlanId) -> Result<Option<Plan>, StoreError> {
    tx.one(select!("WHERE tenant = $1 AND id = $2"), args![tenant.as_str(), id.as_str()], row).await
}

/// The plans of an agent that somebody may read: their own, and those of the
/// space they are in. The next to run first.
pub async fn readable(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    agent: &EntityId,
    user: Option<&EntityId>,
    space: Option<&SpaceId>,
    limit: u32,
) -> Result<Vec<Plan>, StoreError> {
    tx.all(
        select!(
            "WHERE tenant = $1 AND agent = $2 AND (coalesce(creator, '') = $3 OR ($4 <> '' AND space = $4)) ORDER BY coalesce(next_run_at, 9223372036854775807), id LIMIT $5"
        ),
        args![
            tenant.as_str(),
            agent.as_str(),
            user.map_or("", EntityId::as_str),
            space.map_or("", SpaceId::as_str),
            i64::from(limit)
        ],
        row,
    )
    .await
}

/// How many pending plans an agent has for somebody.
pub async fn count_pending(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    agent: &EntityId,
    creator: Option<&EntityId>,
) -> Result<i64, StoreError> {
    let found = tx
        .one(
            "SELECT count(*) FROM plans WHERE tenant = $1 AND agent = $2 AND coalesce(creator, '') = $3 AND status = 'pending'",
            args![tenant.as_str(), agent.as_str(), creator.map_or("", EntityId::as_str)],
            |r| r.int(0),
        )
        .await?;
    Ok(found.unwrap_or(0))
}

/// Newest first, for people; of one creator or status if given.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    creator: Option<&EntityId>,
    status: Option<PlanStatus>,
    before: Option<&PlanId>,
    limit: u32,
) -> Result<Vec<Plan>, StoreError> {
    tx.all(
        select!(
            "WHERE tenant = $1 AND ($2 = '' OR creator = $2) AND ($3 = '' OR status = $3) AND ($4 = '' OR id < $4) ORDER BY id DESC LIMIT $5"
        ),
        args![
            tenant.as_str(),
            creator.map_or("", EntityId::as_str),
            status.map_or("", PlanStatus::as_str),
            before.map_or("", PlanId::as_str),
            i64::from(limit)
        ],
        row,
    )
    .await
}

/// Plans whose moment has come, of all tenants, the longest overdue first.
pub async fn due(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<Plan>, StoreError> {
    let now = tx.now().await?;
    let found = tx
        .all(
            select!("WHERE next_run_at <= $1 ORDER BY next_run_at LIMIT $2"),
            args![now, i64::from(limit)],
            |r| Ok(row(r)),
        )
        .await?;
    // A row that this release cannot read must not keep the others waiting.
    let readable = found.into_iter().filter_map(|row| {
        row.inspect_err(|e| tracing::error!(error = %e, "a due plan cannot be read; it is left alone")).ok()
    });
    Ok(readable.collect())
}

/// When the next plan is due, if there is one.
pub async fn next_due(tx: &mut Tx<'_>) -> Result<Option<Timestamp>, StoreError> {
    let next = tx
        .one("SELECT min(next_run_at) FROM plans WHERE next_run_at IS NOT NULL", &[], |r| r.opt_time(0))
        .await?;
    Ok(next.flatten())
}

pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, id: &PlanId) -> Result<bool, StoreError> {
    let gone = tx
        .exec("DELETE FROM plans WHERE tenant = $1 AND id = $2", args![tenant.as_str(), id.as_str()])
        .await?;
    Ok(gone > 0)
}
