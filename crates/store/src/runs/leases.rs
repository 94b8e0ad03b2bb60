//! Who advances a run: claims, releases, and what a node owns.

use toolyard_protocol::{RunId, TenantId};

use super::{After, Owner};
use crate::error::StoreError;
use crate::tx::{Row, Sql, Tx, args};

/// A run that a node took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    pub tenant: TenantId,
    pub run: RunId,
    pub epoch: i64,
    /// Its former owner died in the middle, or gave it up.
    pub recovered: bool,
    pub recoveries: i64,
}

/// Takes up to `limit` runs: first those that wait in the queue, then those of
/// dead nodes. Two statements, because one with OR reads the whole table. A
/// node's own runs are no orphans, also when its heartbeat is late: it has
/// them in hand.
pub async fn claim(tx: &mut Tx<'_>, owner: &Owner, limit: u32) -> Result<Vec<Claimed>, StoreError> {
    let now = tx.now().await?;
    let token = owner.token();
    let claimed = |recovered: bool| {
        move |r: &Row<'_>| {
            Ok(Claimed {
                tenant: r.parsed(0, TenantId::parse)?,
                run: r.parsed(1, RunId::parse)?,
                epoch: r.int(2)?,
                recovered: recovered || r.int(3)? > 0,
                recoveries: r.int(3)?,
            })
        }
    };
    let queued = Sql {
        sqlite: "UPDATE runs SET owner = $1, epoch = epoch + 1, wake_at = NULL, status = 'running', updated_at = $2 \
                 WHERE (tenant, id) IN (SELECT tenant, id FROM runs WHERE wake_at <= $2 ORDER BY wake_at LIMIT $3) \
                 RETURNING tenant, id, epoch, recoveries",
        postgres: "UPDATE runs SET owner = $1, epoch = epoch + 1, wake_at = NULL, status = 'running', updated_at = $2 \
                   WHERE (tenant, id) IN (SELECT tenant, id FROM runs WHERE wake_at <= $2 ORDER BY wake_at LIMIT $3 FOR UPDATE SKIP LOCKED) \
                   RETURNING tenant, id, epoch, recoveries",
    };
    let mut taken = tx.all(queued, args![&token, now, i64::from(limit)], claimed(false)).await?;
    let room = i64::from(limit) - i64::try_from(taken.len()).unwrap_or(i64::MAX);
    if room > 0 {
        let orphans = Sql {
            sqlite: "UPDATE runs SET owner = $1, epoch = epoch + 1, recoveries = recoveries + 1, updated_at = $2 \
                     WHERE (tenant, id) IN (SELECT tenant, id FROM runs WHERE owner <> $1 \
                       AND owner NOT IN (SELECT id || '#' || incarnation FROM nodes WHERE until > $2) LIMIT $3) \
                     RETURNING tenant, id, epoch, recoveries",
            postgres: "UPDATE runs SET owner = $1, epoch = epoch + 1, recoveries = recoveries + 1, updated_at = $2 \
                       WHERE (tenant, id) IN (SELECT tenant, id FROM runs WHERE owner <> $1 \
                         AND owner NOT IN (SELECT id || '#' || incarnation FROM nodes WHERE until > $2) LIMIT $3 FOR UPDATE SKIP LOCKED) \
                       RETURNING tenant, id, epoch, recoveries",
        };
        taken.extend(tx.all(orphans, args![&token, now, room], claimed(true)).await?);
    }
    Ok(taken)
}

/// Gives an owned run back to the queue, so that another node takes it at once.
pub async fn hand_back(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    epoch: i64,
    owner: &Owner,
) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let changed = tx
        .exec(
            "UPDATE runs SET owner = NULL, wake_at = $1, status = 'queued', updated_at = $1 WHERE tenant = $2 AND id = $3 AND epoch = $4 AND owner = $5",
            args![now, tenant.as_str(), run.as_str(), epoch, &owner.token()],
        )
        .await?;
    Ok(changed > 0)
}

/// Lets go of a run that stands as it is: parked, with nothing to append. False
/// if it is another owner's, or if its log goes on behind `seen`: a fact that
/// came meanwhile counts on this owner to hear it.
pub async fn park(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    epoch: i64,
    owner: &Owner,
    seen: i64,
    after: &After,
) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let changed = tx
        .exec(
            "UPDATE runs SET owner = NULL, status = $1, reason = $2, live = $3, updated_at = $4 WHERE tenant = $5 AND id = $6 AND epoch = $7 AND owner = $8 AND last_seq = $9",
            args![
                after.status.as_str(),
                after.reason_text().as_deref(),
                !after.status.is_final(),
                now,
                tenant.as_str(),
                run.as_str(),
                epoch,
                &owner.token(),
                seen
            ],
        )
        .await?;
    Ok(changed > 0)
}

/// Takes a run from whoever works on it, so that what follows in this
/// transaction is its new owner's. Answers the epoch.
pub async fn seize(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    owner: &Owner,
) -> Result<Option<i64>, StoreError> {
    let now = tx.now().await?;
    tx.one(
        "UPDATE runs SET owner = $1, epoch = epoch + 1, wake_at = NULL, updated_at = $2 WHERE tenant = $3 AND id = $4 AND live = 1 RETURNING epoch",
        args![&owner.token(), now, tenant.as_str(), run.as_str()],
        |r| r.int(0),
    )
    .await
}

/// Why a run is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GaveUp {
    /// It failed here. After some tries it is isolated.
    Failed,
    /// A newer release wrote its log. It waits for one that can read it.
    Unreadable,
}

/// Lets go of a run that could not be advanced: another try follows after
/// `retry_ms`. A failure counts as a recovery.
pub async fn give_up(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    epoch: i64,
    owner: &Owner,
    why: GaveUp,
    retry_ms: u64,
) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let counted = i64::from(why == GaveUp::Failed);
    let changed = tx
        .exec(
            "UPDATE runs SET owner = NULL, wake_at = $1, recoveries = recoveries + $2, updated_at = $3 WHERE tenant = $4 AND id = $5 AND epoch = $6 AND owner = $7",
            args![now.plus_millis(retry_ms), counted, now, tenant.as_str(), run.as_str(), epoch, &owner.token()],
        )
        .await?;
    Ok(changed > 0)
}

/// Is there anything for [`claim`] to take? Cheap, so that an idle node only reads.
pub async fn claimable(tx: &mut Tx<'_>) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let queued = tx.one("SELECT 1 FROM runs WHERE wake_at <= $1 LIMIT 1", args![now], |_| Ok(())).await?;
    if queued.is_some() {
        return Ok(true);
    }
    let orphan = tx
        .one(
            "SELECT 1 FROM runs WHERE owner IS NOT NULL AND owner NOT IN (SELECT id || '#' || incarnation FROM nodes WHERE until > $1) LIMIT 1",
            args![now],
            |_| Ok(()),
        )
        .await?;
    Ok(orphan.is_some())
}

/// Runs that this node owns right now.
pub async fn owned(tx: &mut Tx<'_>, owner: &Owner) -> Result<i64, StoreError> {
    let count =
        tx.one("SELECT count(*) FROM runs WHERE owner = $1", args![&owner.token()], |r| r.int(0)).await?;
    Ok(count.unwrap_or(0))
}

/// Does this owner still hold the run, at this epoch?
pub async fn holds(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    epoch: i64,
    owner: &Owner,
) -> Result<bool, StoreError> {
    let held = tx
        .one(
            "SELECT 1 FROM runs WHERE tenant = $1 AND id = $2 AND epoch = $3 AND owner = $4",
            args![tenant.as_str(), run.as_str(), epoch, &owner.token()],
            |_| Ok(()),
        )
        .await?;
    Ok(held.is_some())
}

/// The runs that this node owns, as if it had just claimed them again.
pub async fn owned_by(tx: &mut Tx<'_>, owner: &Owner) -> Result<Vec<Claimed>, StoreError> {
    tx.all("SELECT tenant, id, epoch, recoveries FROM runs WHERE owner = $1", args![&owner.token()], |r| {
        Ok(Claimed {
            tenant: r.parsed(0, TenantId::parse)?,
            run: r.parsed(1, RunId::parse)?,
            epoch: r.int(2)?,
            recovered: true,
            recoveries: r.int(3)?,
        })
    })
    .await
}
