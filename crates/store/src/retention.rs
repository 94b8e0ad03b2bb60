//! Runs that are removed by age: found, taken out of sight at once, and their
//! logs and large values removed in small pieces afterwards.
//!
//! What a run was goes; what was said in its space stays there, as messages
//! that no run stands behind any more. A run without a space leaves nothing.

use toolyard_protocol::event::Event;
use toolyard_protocol::{RunId, SpaceId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::runs::{self, RunRow};
use crate::tx::{Sql, Tx, args};
use crate::{audit, blobs, log, push_configs};

/// Rows of the log that one transaction removes.
const ROWS: i64 = 256;
/// Large values that one transaction removes: each has up to 10 MB.
const VALUES: u32 = 4;
/// Who removes them, in the audit.
const ACTOR: &str = "retention";

/// Root runs of a tenant that may be old enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub old: Vec<RunId>,
    /// Where the next page begins; none if all that follow are too young.
    pub next: Option<RunId>,
}

/// The next tenant that has runs, in their order.
pub async fn next_tenant(tx: &mut Tx<'_>, after: Option<&TenantId>) -> Result<Option<TenantId>, StoreError> {
    let after = after.map_or("", TenantId::as_str);
    let sql = "SELECT min(tenant) FROM runs WHERE tenant > $1";
    let found = tx.one(sql, args![after], |r| r.opt_parsed(0, TenantId::parse)).await?;
    Ok(found.flatten())
}

/// A page of runs that ended before a moment. Ids grow with time, so the old
/// ones come first: no index is needed, and waiting runs are only passed by.
pub async fn ended_before(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    before: Timestamp,
    after: Option<&RunId>,
    limit: u32,
) -> Result<Page, StoreError> {
    let rows = tx
        .all(
            "SELECT id, CAST(CASE WHEN live = 0 AND parent IS NULL AND updated_at < $1 THEN 1 ELSE 0 END AS BIGINT), created_at \
             FROM runs WHERE tenant = $2 AND id > $3 ORDER BY id LIMIT $4",
            args![before, tenant.as_str(), after.map_or("", RunId::as_str), i64::from(limit)],
            |r| Ok((r.parsed(0, RunId::parse)?, r.flag(1)?, r.time(2)?)),
        )
        .await?;
    let full = rows.len() == usize::try_from(limit).unwrap_or(usize::MAX);
    let young = rows.last().is_none_or(|(_, _, created)| *created >= before);
    let next = rows.last().filter(|_| full && !young).map(|(id, ..)| id.clone());
    let old = rows.into_iter().filter(|(_, old, _)| *old).map(|(id, ..)| id).collect();
    Ok(Page { old, next })
}

/// Takes a root run and those below it out of sight, if all have ended and it
/// did before a moment. [`sweep`] removes the rest.
pub async fn retire(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    before: Timestamp,
) -> Result<bool, StoreError> {
    let Some((root, below)) = family(tx, tenant, run).await? else { return Ok(false) };
    let ended = root.status.is_final() && below.iter().all(|child| child.status.is_final());
    if !ended || root.updated_at >= before {
        return Ok(false);
    }
    take_out(tx, &root, &below).await?;
    audit::write(tx, tenant, ACTOR, "run.delete", run.as_str(), None).await?;
    Ok(true)
}

/// As [`retire`], however old it is and also if it is live: whoever works on it
/// finds it gone.
pub(crate) async fn remove(tx: &mut Tx<'_>, tenant: &TenantId, run: &RunId) -> Result<bool, StoreError> {
    let Some((root, below)) = family(tx, tenant, run).await? else { return Ok(false) };
    take_out(tx, &root, &below).await?;
    Ok(true)
}

/// A root run and those below it, held until the transaction ends.
async fn family(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
) -> Result<Option<(RunRow, Vec<RunRow>)>, StoreError> {
    let root = runs::lock(tx, tenant, run).await?.filter(|root| root.parent.is_none());
    let Some(root) = root else { return Ok(None) };
    let mut below = Vec::new();
    for child in runs::below(tx, tenant, run).await? {
        below.extend(runs::lock(tx, tenant, &child.id).await?);
    }
    Ok(Some((root, below)))
}

async fn take_out(tx: &mut Tx<'_>, root: &RunRow, below: &[RunRow]) -> Result<(), StoreError> {
    for row in below.iter().chain([root]) {
        leave(tx, row).await?;
    }
    if let Some(space) = &root.space {
        leave_space(tx, root, space).await?;
    }
    for row in below.iter().chain([root]) {
        let named = args![row.tenant.as_str(), row.id.as_str()];
        tx.exec("DELETE FROM runs WHERE tenant = $1 AND id = $2", named).await?;
    }
    Ok(())
}

async fn leave(tx: &mut Tx<'_>, row: &RunRow) -> Result<(), StoreError> {
    let named = args![row.tenant.as_str(), row.id.as_str()];
    tx.exec("DELETE FROM waits WHERE tenant = $1 AND run = $2", named).await?;
    push_configs::delete_all(tx, &row.tenant, &row.id).await?;
    if let Some(space) = &row.space {
        blobs::leave_to_space(tx, &row.tenant, &row.id, space).await?;
    }
    let remains = "INSERT INTO remains (tenant, run) VALUES ($1, $2) ON CONFLICT (tenant, run) DO NOTHING";
    tx.exec(remains, named).await?;
    Ok(())
}

/// Tells the readers of a run's space that it is gone; its words stay without it.
async fn leave_space(tx: &mut Tx<'_>, root: &RunRow, space: &SpaceId) -> Result<(), StoreError> {
    let (t, s, id) = (root.tenant.as_str(), space.as_str(), root.id.as_str());
    // All of it lies behind what it read first.
    let from = match log::event(tx, &root.tenant, &root.id, 1).await {
        Ok(Some(Event::RunCreated(created))) => created.history_to,
        Ok(_) | Err(StoreError::Undecodable(_)) => 0,
        Err(e) => return Err(e),
    };
    let Some(last) = log::last_pos(tx, &root.tenant, &root.id).await? else { return Ok(()) };
    // The words of its last append lie right behind the events, one message per turn at most.
    tx.exec(
        "UPDATE messages SET run = NULL WHERE tenant = $1 AND space = $2 AND pos > $3 AND pos <= $4 AND run = $5",
        args![t, s, from, last.saturating_add(root.last_seq), id],
    )
    .await?;
    tx.exec(
        "UPDATE spaces SET gone_to = $1 WHERE tenant = $2 AND id = $3 AND gone_to < $1",
        args![last, t, s],
    )
    .await?;
    Ok(())
}

/// Removes one more piece of what retired runs left; answers whether there may
/// be more.
pub async fn sweep(tx: &mut Tx<'_>) -> Result<bool, StoreError> {
    let next = Sql {
        sqlite: "SELECT tenant, run FROM remains LIMIT 1",
        postgres: "SELECT tenant, run FROM remains LIMIT 1 FOR UPDATE SKIP LOCKED",
    };
    let found = tx.one(next, &[], |r| Ok((r.parsed(0, TenantId::parse)?, r.parsed(1, RunId::parse)?)));
    let Some((tenant, run)) = found.await? else { return Ok(false) };
    let (t, id) = (tenant.as_str(), run.as_str());
    let rows = tx
        .exec(
            "DELETE FROM events WHERE tenant = $1 AND run = $2 AND seq <= \
             (SELECT max(seq) FROM (SELECT seq FROM events WHERE tenant = $1 AND run = $2 ORDER BY seq LIMIT $3) AS first)",
            args![t, id, ROWS],
        )
        .await?;
    let more = i64::try_from(rows).is_ok_and(|rows| rows >= ROWS);
    if !more && !blobs::forget_some(tx, &tenant, &run, VALUES).await? {
        tx.exec("DELETE FROM remains WHERE tenant = $1 AND run = $2", args![t, id]).await?;
    }
    Ok(true)
}
