//! The rows of the log, and reading them.
//!
//! A row holds events of one append in their stored form, a line each, under
//! the seq of the last one. JSON has no line break of its own in that form, so
//! the lines are found without parsing.

use toolyard_protocol::event::{Event, ToolReturned, Undecodable};
use toolyard_protocol::{CallId, Guarded, RunId, SpaceId, TenantId, Timestamp};

use super::Logged;
use crate::error::StoreError;
use crate::tx::{Sql, Tx, args};

/// Bytes of a row that holds several events. Longer rows would be fewer, but
/// leave more of each page empty.
const ROW: usize = 1_000;

/// What one append writes, row by row: the last seq and the body.
pub(super) fn packed(after: i64, events: &[Event]) -> Vec<(i64, String)> {
    let mut rows: Vec<(i64, String)> = Vec::with_capacity(events.len());
    for (seq, event) in (after + 1..).zip(events) {
        let line = event.encode();
        match rows.last_mut() {
            Some((last, body)) if body.len() + 1 + line.len() <= ROW => {
                *last = seq;
                body.push('\n');
                body.push_str(&line);
            }
            _ => rows.push((seq, line)),
        }
    }
    rows
}

/// The lines of a row, each with its seq; `last` is the row's.
fn lines(last: i64, body: &str) -> impl Iterator<Item = (i64, &str)> {
    let breaks = i64::try_from(body.bytes().filter(|b| *b == b'\n').count()).unwrap_or(0);
    (last - breaks..).zip(body.split('\n'))
}

/// A row whose first event does not follow the one before it.
fn gap(last: i64) -> StoreError {
    let why = format!("events before seq {last} are missing from the log");
    StoreError::Undecodable(Undecodable::Broken { kind: "?".to_owned(), why })
}

/// Events after a position, in order.
pub async fn read(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    after: i64,
    limit: u32,
) -> Result<Vec<Logged>, StoreError> {
    let rows = tx
        .all(
            "SELECT seq, at, body FROM events WHERE tenant = $1 AND run = $2 AND seq > $3 ORDER BY seq LIMIT $4",
            args![tenant.as_str(), run.as_str(), after, i64::from(limit)],
            |r| Ok((r.int(0)?, r.time(1)?, r.text(2)?)),
        )
        .await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (mut read, mut expected) = (Vec::with_capacity(rows.len()), after + 1);
    for (last, at, body) in rows {
        for (seq, line) in lines(last, &body).skip_while(|(seq, _)| *seq <= after) {
            if read.len() == limit {
                return Ok(read);
            }
            if seq != expected {
                return Err(gap(last));
            }
            read.push(Logged { seq, at, event: Event::decode(line)? });
            expected += 1;
        }
    }
    Ok(read)
}

/// One event of a run.
pub async fn event(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    seq: i64,
) -> Result<Option<Event>, StoreError> {
    let row = tx
        .one(
            "SELECT seq, body FROM events WHERE tenant = $1 AND run = $2 AND seq >= $3 ORDER BY seq LIMIT 1",
            args![tenant.as_str(), run.as_str(), seq],
            |r| Ok((r.int(0)?, r.text(1)?)),
        )
        .await?;
    let Some((last, body)) = row else { return Ok(None) };
    let line = lines(last, &body).find(|(at, _)| *at == seq);
    Ok(line.map(|(_, line)| Event::decode(line)).transpose()?)
}

/// How a call of a run ended, with what a plugin made of it.
pub async fn result(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    call: &CallId,
) -> Result<Option<ToolReturned>, StoreError> {
    // Only rows that name the call are read.
    let sql = Sql {
        sqlite: "SELECT body FROM events WHERE tenant = $1 AND run = $2 AND instr(body, $3) > 0 ORDER BY seq",
        postgres: "SELECT body FROM events WHERE tenant = $1 AND run = $2 AND strpos(body, $3) > 0 ORDER BY seq",
    };
    let bodies = tx.all(sql, args![tenant.as_str(), run.as_str(), call.as_str()], |r| r.text(0)).await?;
    let mut found: Option<ToolReturned> = None;
    for line in bodies.iter().flat_map(|body| body.split('\n')).filter(|line| line.contains(call.as_str())) {
        match Event::decode(line)? {
            Event::ToolReturned(end) if end.call == *call => found = Some(end),
            Event::ResultAmended(new) if new.call == *call => {
                if let Some(end) = &mut found {
                    (end.outcome, end.value, end.error) = (new.outcome, new.value, new.error);
                    end.blob = Guarded::Hidden;
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The place of a run's newest event in its space.
pub(crate) async fn last_pos(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT pos FROM events WHERE tenant = $1 AND run = $2 ORDER BY seq DESC LIMIT 1";
    Ok(tx.one(sql, args![tenant.as_str(), run.as_str()], |r| r.opt_int(0)).await?.flatten())
}

/// An event of a space, in the space's order.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceEvent {
    pub pos: i64,
    pub run: RunId,
    pub logged: Logged,
}

/// Events of a space's runs after a position of the space.
pub async fn read_space(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    after: i64,
    limit: u32,
) -> Result<Vec<SpaceEvent>, StoreError> {
    // What a removed run has left is out of sight before it is swept.
    let rows: Vec<(i64, RunId, i64, Timestamp, String)> = tx
        .all(
            "SELECT e.pos - e.seq, e.run, e.seq, e.at, e.body FROM events e \
             WHERE e.tenant = $1 AND e.space = (SELECT nr FROM spaces WHERE tenant = $1 AND id = $2) AND e.pos > $3 \
             AND EXISTS (SELECT 1 FROM runs r WHERE r.tenant = $1 AND r.id = e.run) ORDER BY e.pos LIMIT $4",
            args![tenant.as_str(), space.as_str(), after, i64::from(limit)],
            |r| Ok((r.int(0)?, r.parsed(1, RunId::parse)?, r.int(2)?, r.time(3)?, r.text(4)?)),
        )
        .await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut read = Vec::with_capacity(rows.len());
    for (shift, run, last, at, body) in rows {
        for (seq, line) in lines(last, &body).skip_while(|(seq, _)| shift + seq <= after) {
            if read.len() == limit {
                return Ok(read);
            }
            let logged = Logged { seq, at, event: Event::decode(line)? };
            read.push(SpaceEvent { pos: shift + seq, run: run.clone(), logged });
        }
    }
    Ok(read)
}
