//! The ledger: what runs wait for. Rows follow the log, see
//! [`toolyard_protocol::wait::LedgerChange`].

use toolyard_protocol::tool::Visibility;
use toolyard_protocol::wait::{LedgerChange, Wait, WaitKind};
use toolyard_protocol::{
    CallId, ClientId, ConnectionId, RunId, SpaceId, TenantId, Timestamp, ToolName, WaitId,
};

use crate::error::StoreError;
use crate::log::Place;
use crate::runs::{Owner, RunRow};
use crate::tx::{Row, Tx, args};

/// A wait with what only the ledger knows.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitRow {
    pub tenant: TenantId,
    pub space: Option<SpaceId>,
    pub wait: Wait,
    /// The event that opened it.
    pub opened_seq: i64,
    /// The event that ended it.
    pub ended_seq: Option<i64>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT tenant, run, id, root, space, kind, call, tool, visibility, rule, payload, opened_seq, opened_at, expires_at, claim_client, claim_until, ended_seq FROM waits ",
            $rest
        )
    };
}

/// Nobody has said "mine", or not any more: the claim lapsed, or the
/// connection that made it is gone with its node or alone.
macro_rules! free {
    ($now:literal) => {
        concat!(
            "(claim_client IS NULL OR claim_until <= ",
            $now,
            " OR (claim_connection IS NOT NULL AND NOT EXISTS (SELECT 1 FROM presences q JOIN nodes n ON n.id = q.node AND n.incarnation = q.incarnation \
               WHERE q.tenant = waits.tenant AND q.connection = waits.claim_connection AND n.until > ",
            $now,
            ")))"
        )
    };
}

/// Who says "mine".
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    pub client: &'a ClientId,
    /// The socket that the call goes to, if there is one.
    pub connection: Option<&'a ConnectionId>,
    pub until: Timestamp,
}

/// Which calls to look for.
#[derive(Debug, Clone, Copy)]
pub enum Offerable<'a> {
    Run(&'a RunId),
    /// All of them, behind one that was seen.
    Behind(Option<&'a (Timestamp, WaitId)>),
}

fn row(r: &Row<'_>) -> Result<WaitRow, StoreError> {
    let claim = r.opt_parsed(14, ClientId::parse)?.zip(r.opt_time(15)?);
    let private = r.text(8)? == "private";
    Ok(WaitRow {
        tenant: r.parsed(0, TenantId::parse)?,
        space: r.opt_parsed(4, SpaceId::parse)?,
        opened_seq: r.int(11)?,
        ended_seq: r.opt_int(16)?,
        wait: Wait {
            run: r.parsed(1, RunId::parse)?,
            id: r.parsed(2, WaitId::parse)?,
            root: r.parsed(3, RunId::parse)?,
            kind: r.parsed(5, |t| WaitKind::parse(t).ok_or("not a kind"))?,
            call: r.parsed(6, CallId::parse)?,
            tool: r.parsed(7, ToolName::parse)?,
            visibility: if private { Visibility::Private } else { Visibility::Public },
            rule: r.parsed(9, |t| serde_json::from_str(t))?,
            payload: r.parsed(10, |t| serde_json::from_str(t))?,
            opened_at: r.time(12)?,
            expires_at: r.opt_time(13)?,
            claim,
        },
    })
}

pub(crate) async fn apply(
    tx: &mut Tx<'_>,
    place: &Place<'_>,
    change: &LedgerChange,
    seq: i64,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (tenant, run) = (place.tenant.as_str(), place.run.as_str());
    match change {
        LedgerChange::Open(new) => {
            let rule = serde_json::to_string(&new.rule).unwrap_or_default();
            let visibility = match new.visibility {
                Visibility::Private => "private",
                Visibility::Public => "public",
            };
            tx.exec(
                "INSERT INTO waits (tenant, run, id, root, space, kind, call, tool, visibility, rule, payload, opened_seq, opened_at, expires_at) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
                args![
                    tenant,
                    run,
                    new.id.as_str(),
                    place.root.as_str(),
                    place.space.map(SpaceId::as_str),
                    new.kind.as_str(),
                    new.call.as_str(),
                    new.tool.as_str(),
                    visibility,
                    &rule,
                    &new.payload.to_string(),
                    seq,
                    now,
                    new.expires_at,
                ],
            )
            .await?;
        }
        LedgerChange::End(wait) => {
            tx.exec(
                "UPDATE waits SET ended_seq = $1 WHERE tenant = $2 AND run = $3 AND id = $4 AND ended_seq IS NULL",
                args![seq, tenant, run, wait.as_str()],
            )
            .await?;
        }
        LedgerChange::EndCall(call) => {
            tx.exec(
                "UPDATE waits SET ended_seq = $1 WHERE tenant = $2 AND run = $3 AND call = $4 AND ended_seq IS NULL",
                args![seq, tenant, run, call.as_str()],
            )
            .await?;
        }
    }
    Ok(())
}

/// All waits of a run, open and ended, in the order they opened.
pub async fn of_run(tx: &mut Tx<'_>, tenant: &TenantId, run: &RunId) -> Result<Vec<WaitRow>, StoreError> {
    // They are few, and the database would make a table to sort them.
    let mut rows =
        tx.all(select!("WHERE tenant = $1 AND run = $2"), args![tenant.as_str(), run.as_str()], row).await?;
    rows.sort_by(|a, b| (a.opened_seq, &a.wait.id).cmp(&(b.opened_seq, &b.wait.id)));
    Ok(rows)
}

/// The open waits of a run, in the order they opened.
pub async fn open_of_run(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
) -> Result<Vec<WaitRow>, StoreError> {
    let mut rows = of_run(tx, tenant, run).await?;
    rows.retain(|row| row.ended_seq.is_none());
    Ok(rows)
}

/// The waits of the runs below a root, open and ended.
pub async fn below(tx: &mut Tx<'_>, tenant: &TenantId, root: &RunId) -> Result<Vec<WaitRow>, StoreError> {
    tx.all(
        select!("WHERE tenant = $1 AND root = $2 AND run <> root ORDER BY opened_at, id"),
        args![tenant.as_str(), root.as_str()],
        row,
    )
    .await
}

/// Closes every wait of a run that ends without saying how its calls ended.
pub async fn close_all(tx: &mut Tx<'_>, run: &RunRow) -> Result<(), StoreError> {
    tx.exec(
        "UPDATE waits SET ended_seq = $1 WHERE tenant = $2 AND run = $3 AND ended_seq IS NULL",
        args![run.last_seq + 1, run.tenant.as_str(), run.id.as_str()],
    )
    .await?;
    Ok(())
}

/// One wait, wherever its run is.
pub async fn find(tx: &mut Tx<'_>, tenant: &TenantId, wait: &WaitId) -> Result<Option<WaitRow>, StoreError> {
    // A wait's name follows from its call's, so the calls' index finds it too.
    let call = wait.call_text();
    let minted = format!("call_{call}");
    tx.one(
        select!("WHERE tenant = $1 AND call IN ($2, $3) AND id = $4"),
        args![tenant.as_str(), &minted, call, wait.as_str()],
        row,
    )
    .await
}

/// The waits of one call, wherever its run is.
pub async fn of_call(tx: &mut Tx<'_>, tenant: &TenantId, call: &CallId) -> Result<Vec<WaitRow>, StoreError> {
    tx.all(
        select!("WHERE tenant = $1 AND call = $2 ORDER BY opened_seq, id"),
        args![tenant.as_str(), call.as_str()],
        row,
    )
    .await
}

/// Open waits of a tenant, oldest first; `after` continues behind a row.
pub async fn list_open(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: Option<&RunId>,
    space: Option<&SpaceId>,
    kind: Option<WaitKind>,
    after: Option<&(Timestamp, WaitId)>,
    limit: u32,
) -> Result<Vec<WaitRow>, StoreError> {
    if let Some(run) = run {
        // The few waits of one run and of those below it, by their keys.
        let mut rows = open_of_run(tx, tenant, run).await?;
        let below = below(tx, tenant, run).await?;
        rows.extend(below.into_iter().filter(|row| row.ended_seq.is_none()));
        rows.retain(|r| {
            let behind = after.is_none_or(|(at, id)| (r.wait.opened_at, &r.wait.id) > (*at, id));
            behind
                && kind.is_none_or(|k| r.wait.kind == k)
                && space.is_none_or(|s| r.space.as_ref() == Some(s))
        });
        rows.sort_by(|a, b| (a.wait.opened_at, &a.wait.id).cmp(&(b.wait.opened_at, &b.wait.id)));
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        return Ok(rows);
    }
    let (since, behind) = after.map_or((i64::MIN, ""), |(at, id)| (at.millis(), id.as_str()));
    tx.all(
        select!(
            "WHERE tenant = $1 AND ended_seq IS NULL AND ($2 = '' OR space = $2) AND ($3 = '' OR kind = $3) AND (opened_at > $4 OR (opened_at = $4 AND id > $5)) ORDER BY opened_at, id LIMIT $6"
        ),
        args![
            tenant.as_str(),
            space.map_or("", SpaceId::as_str),
            kind.map_or("", WaitKind::as_str),
            since,
            behind,
            i64::from(limit)
        ],
        row,
    )
    .await
}

/// Waits whose moment has come, of all tenants, the longest overdue first.
pub async fn due(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<WaitRow>, StoreError> {
    let now = tx.now().await?;
    let found = tx
        .all(
            select!("WHERE ended_seq IS NULL AND expires_at <= $1 ORDER BY expires_at LIMIT $2"),
            args![now, i64::from(limit)],
            |r| Ok(row(r)),
        )
        .await?;
    // A row that this release cannot read must not keep the others waiting.
    let readable = found.into_iter().filter_map(|row| {
        row.inspect_err(|e| tracing::error!(error = %e, "a due wait cannot be read; it is left alone")).ok()
    });
    Ok(readable.collect())
}

/// How many waits of each kind are open, of all tenants, for metrics.
pub async fn counts(tx: &mut Tx<'_>) -> Result<Vec<(String, i64)>, StoreError> {
    tx.all("SELECT kind, count(*) FROM waits WHERE ended_seq IS NULL GROUP BY kind ORDER BY kind", &[], |r| {
        Ok((r.text(0)?, r.int(1)?))
    })
    .await
}

/// When the next wait is due, if any has a moment.
pub async fn next_due(tx: &mut Tx<'_>) -> Result<Option<Timestamp>, StoreError> {
    let next = tx
        .one(
            "SELECT min(expires_at) FROM waits WHERE ended_seq IS NULL AND expires_at IS NOT NULL",
            &[],
            |r| r.opt_time(0),
        )
        .await?;
    Ok(next.flatten())
}

/// Says "mine" for a client. False if another client holds it.
pub async fn claim(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    wait: &WaitId,
    client: &ClientId,
    until: Timestamp,
) -> Result<bool, StoreError> {
    claim_for(tx, tenant, run, wait, Claim { client, connection: None, until }).await
}

/// As [`claim`], perhaps for a socket. A connection that is gone holds nothing
/// any more.
pub async fn claim_for(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    wait: &WaitId,
    claim: Claim<'_>,
) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let changed = tx
        .exec(
            concat!(
                "UPDATE waits SET claim_client = $1, claim_until = $2, claim_connection = $3 WHERE tenant = $4 AND run = $5 AND id = $6 AND ended_seq IS NULL \
                 AND (claim_client = $1 OR ",
                free!("$7"),
                ")"
            ),
            args![
                claim.client.as_str(),
                claim.until,
                claim.connection.map(ConnectionId::as_str),
                tenant.as_str(),
                run.as_str(),
                wait.as_str(),
                now
            ],
        )
        .await?;
    Ok(changed > 0)
}

/// Open client calls that nobody has claimed, whose tools a program holds that
/// is connected to this node; oldest first.
pub async fn offerable(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    owner: &Owner,
    of: Offerable<'_>,
    limit: u32,
) -> Result<Vec<WaitRow>, StoreError> {
    let now = tx.now().await?;
    let (run, since, behind) = match of {
        Offerable::Run(run) => (run.as_str(), i64::MIN, ""),
        Offerable::Behind(None) => ("", i64::MIN, ""),
        Offerable::Behind(Some((at, id))) => ("", at.millis(), id.as_str()),
    };
    tx.all(
        concat!(
            select!(""),
            "WHERE tenant = $1 AND ended_seq IS NULL AND kind = 'client' AND ($2 = '' OR run = $2) AND ",
            free!("$3"),
            " AND (opened_at > $4 OR (opened_at = $4 AND id > $5)) AND EXISTS (SELECT 1 FROM presence_tools t JOIN presences p ON p.tenant = t.tenant AND p.connection = t.connection \
               WHERE t.tenant = waits.tenant AND t.tool = waits.tool AND p.node = $6 AND p.incarnation = $7) ORDER BY opened_at, id LIMIT $8"
        ),
        args![
            tenant.as_str(),
            run,
            now,
            since,
            behind,
            owner.node.as_str(),
            &owner.incarnation,
            i64::from(limit)
        ],
        row,
    )
    .await
}

/// Counts one more word of progress. None if the wait has ended, else how many
/// there are now.
pub async fn progressed(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    wait: &WaitId,
) -> Result<Option<i64>, StoreError> {
    tx.one(
        "UPDATE waits SET progressed = progressed + 1 WHERE tenant = $1 AND run = $2 AND id = $3 AND ended_seq IS NULL RETURNING progressed",
        args![tenant.as_str(), run.as_str(), wait.as_str()],
        |r| r.int(0),
    )
    .await
}
