//! The log of a run: append and read.
//!
//! A *worker append* names its epoch, owner and the seq it has seen; a *fact
//! append* comes from any node under the run's lock. Both keep the ledger and
//! the run row in step with the events, in one transaction.

use std::sync::Arc;

use toolyard_protocol::event::Event;
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::wait::LedgerChange;
use toolyard_protocol::{ErrorCode, RunId, SpaceId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::runs::{self, After, NewRun, Owner, RunRow};
use crate::spaces::{self, Positions};
use crate::tx::{CallNews, Commit, Touched, Tx, args};
use crate::waits;

mod rows;
pub(crate) use rows::last_pos;
pub use rows::{SpaceEvent, event, read, read_space, result};

/// An event with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    pub seq: i64,
    pub at: Timestamp,
    pub event: Event,
}

/// An append by the run's owner.
#[derive(Debug, Clone)]
pub struct Append<'a> {
    pub tenant: &'a TenantId,
    pub run: &'a RunId,
    pub root: &'a RunId,
    pub space: Option<&'a SpaceId>,
    /// A child run belongs to its parent's space and does not speak there.
    pub child: bool,
    pub epoch: i64,
    pub owner: &'a Owner,
    /// The last seq that the worker has folded.
    pub expected: i64,
    pub events: &'a Arc<[Event]>,
    pub after: &'a After,
    /// Places in the space to take behind the events, for what is said there.
    pub speaks: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Facts came in between: fold them and ask the engine again.
    #[error("expected seq {expected}, found {actual}")]
    Conflict { expected: i64, actual: i64 },
    /// Somebody else owns the run now, or nobody: stop.
    #[error("the run is owned at epoch {held}")]
    Fenced { held: i64 },
    #[error("the run is gone")]
    Gone,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where an append ended up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub seq: i64,
    pub at: Timestamp,
    /// The first of the places behind the events, in a space.
    pub free_pos: Option<i64>,
}

/// The run's row after an append, if the run is still its owner's.
macro_rules! moves {
    ($let_go:literal) => {
        concat!(
            "UPDATE runs SET ",
            $let_go,
            "last_seq = $1, status = $2, reason = $3, error = $4, recoveries = recoveries * $5, updated_at = $6 \
             WHERE tenant = $7 AND id = $8 AND epoch = $9 AND last_seq = $10 AND owner = $11"
        )
    };
}

/// Appends what the worker decided, if it still may.
pub async fn append(tx: &mut Tx<'_>, append: &Append<'_>) -> Result<Appended, AppendError> {
    let now = tx.now().await?;
    let count = i64::try_from(append.events.len()).unwrap_or(i64::MAX);
    let last = append.expected + count;
    let token = append.owner.token();
    // What is not set costs its index nothing.
    let moves = match (append.after.release, append.after.status.is_final()) {
        (false, false) => moves!(""),
        (true, false) => moves!("owner = NULL, "),
        (false, true) => moves!("live = 0, "),
        (true, true) => moves!("owner = NULL, live = 0, "),
    };
    let moved = tx
        .exec(
            moves,
            args![
                last,
                append.after.status.as_str(),
                append.after.reason_text().as_deref(),
                append.after.error.map(ErrorCode::as_str),
                i64::from(!append.events.iter().any(is_progress)),
                now,
                append.tenant.as_str(),
                append.run.as_str(),
                append.epoch,
                append.expected,
                &token,
            ],
        )
        .await?;
    if moved == 0 {
        return Err(refusal(tx, append, &token).await?);
    }
    let Append { tenant, run, root, space, child, epoch, .. } = *append;
    let place = Place { tenant, run, root, space, child, epoch, taken: None };
    let free_pos = write_events(tx, &place, append.expected, append.events, append.speaks, now).await?;
    Ok(Appended { seq: last, at: now, free_pos })
}

/// Only these say that a recovery went well. A step that starts over and fails
/// again must run out of tries.
fn is_progress(event: &Event) -> bool {
    matches!(
        event,
        Event::ModelReplied(_) | Event::ToolReturned(_) | Event::RunPaused(_) | Event::RunFinished(_)
    )
}

async fn refusal(tx: &mut Tx<'_>, append: &Append<'_>, token: &str) -> Result<AppendError, StoreError> {
    let found = tx
        .one(
            "SELECT epoch, last_seq, owner FROM runs WHERE tenant = $1 AND id = $2",
            args![append.tenant.as_str(), append.run.as_str()],
            |r| Ok((r.int(0)?, r.int(1)?, r.opt_text(2)?)),
        )
        .await?;
    Ok(match found {
        None => AppendError::Gone,
        // A released run is fenced too: with an unchanged epoch it would look like a conflict for ever.
        Some((held, _, owner)) if held != append.epoch || owner.as_deref() != Some(token) => {
            AppendError::Fenced { held }
        }
        Some((_, actual, _)) => AppendError::Conflict { expected: append.expected, actual },
    })
}

/// What a fact does to the run's ownership.
#[derive(Debug, Clone, Copy)]
pub enum Wake<'a> {
    /// Nothing: the run stays with its owner, or stays parked.
    No,
    /// A parked run becomes runnable. With an owner it starts there at once,
    /// without one it is queued.
    Yes(Option<&'a Owner>),
}

/// What a fact append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactAppended {
    pub seq: i64,
    pub at: Timestamp,
    /// The epoch that the given owner now holds, if the fact made it the owner.
    pub assigned: Option<i64>,
}

/// Inserts a run with its first events. With an owner it runs at once, else it
/// is queued; see [`runs::insert`]. The events go to the positions that were taken
/// for them, if there are as many.
pub async fn begin(
    tx: &mut Tx<'_>,
    new: &NewRun,
    owner: Option<&Owner>,
    events: &Arc<[Event]>,
    taken: Option<Positions>,
) -> Result<RunRow, StoreError> {
    let last = i64::try_from(events.len()).unwrap_or(i64::MAX);
    let run = runs::insert_at(tx, new, owner, last).await?;
    let place = Place { taken, ..Place::of(&run, run.epoch) };
    write_events(tx, &place, 0, events, 0, run.created_at).await?;
    Ok(run)
}

/// Appends a fact to a run that this transaction holds (see [`crate::runs::lock`]).
pub async fn append_fact(
    tx: &mut Tx<'_>,
    run: &RunRow,
    events: &Arc<[Event]>,
    wake: Wake<'_>,
) -> Result<FactAppended, StoreError> {
    let now = tx.now().await?;
    let last = run.last_seq + i64::try_from(events.len()).unwrap_or(i64::MAX);
    // A run that somebody works on hears of the fact by itself, and a queued one is claimed soon.
    let wakes = run.owner.is_none() && !run.status.is_final() && run.status != RunStatus::Queued;
    let woken = match wake {
        Wake::Yes(Some(owner)) if wakes => {
            Some((Some(owner.token()), run.epoch + 1, RunStatus::Running, None))
        }
        Wake::Yes(None) if wakes => Some((None, run.epoch, RunStatus::Queued, Some(now))),
        Wake::Yes(_) | Wake::No => None,
    };
    let (tenant, id) = (run.tenant.as_str(), run.id.as_str());
    let epoch = woken.as_ref().map_or(run.epoch, |(_, epoch, _, _)| *epoch);
    match &woken {
        Some((owner, epoch, status, wake_at)) => {
            tx.exec(
                "UPDATE runs SET last_seq = $1, owner = $2, epoch = $3, status = $4, reason = NULL, wake_at = $5, updated_at = $6 WHERE tenant = $7 AND id = $8",
                args![last, owner.as_deref(), *epoch, status.as_str(), *wake_at, now, tenant, id],
            )
            .await?;
        }
        // Nothing else is touched: a run that rests until its next try must keep that moment.
        None => {
            tx.exec(
                "UPDATE runs SET last_seq = $1, updated_at = $2 WHERE tenant = $3 AND id = $4",
                args![last, now, tenant, id],
            )
            .await?;
        }
    }
    write_events(tx, &Place::of(run, epoch), run.last_seq, events, 0, now).await?;
    Ok(FactAppended { seq: last, at: now, assigned: (epoch != run.epoch).then_some(epoch) })
}

pub(crate) struct Place<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) run: &'a RunId,
    pub(crate) root: &'a RunId,
    pub(crate) space: Option<&'a SpaceId>,
    pub(crate) child: bool,
    pub(crate) epoch: i64,
    /// In the space, for these events.
    taken: Option<Positions>,
}

impl<'a> Place<'a> {
    fn of(run: &'a RunRow, epoch: i64) -> Self {
        Self {
            tenant: &run.tenant,
            run: &run.id,
            root: &run.root,
            space: run.space.as_ref(),
            child: run.parent.is_some(),
            epoch,
            taken: None,
        }
    }

    /// The space whose readers hear of this run's events.
    fn heard_in(&self) -> Option<&'a SpaceId> {
        self.space.filter(|_| !self.child)
    }
}

/// Answers the first position behind the events, in a space.
pub(crate) async fn write_events(
    tx: &mut Tx<'_>,
    place: &Place<'_>,
    after: i64,
    events: &Arc<[Event]>,
    speaks: usize,
    now: Timestamp,
) -> Result<Option<i64>, StoreError> {
    // Run, waits, space: the order in which all transactions lock.
    for (seq, event) in (after + 1..).zip(events.iter()) {
        if let Some(change) = LedgerChange::of(event) {
            waits::apply(tx, place, &change, seq, now).await?;
        }
    }
    let wanted = events.len() + speaks;
    debug_assert!(place.taken.is_none_or(|taken| taken.count == wanted), "positions were taken for others");
    let taken = match (place.heard_in(), place.taken.filter(|taken| taken.count == wanted)) {
        (Some(_), Some(taken)) => Some(taken),
        (Some(space), None) => Some(spaces::take_positions(tx, place.tenant, space, wanted).await?),
        (None, _) => None,
    };
    let (number, first_pos) = (taken.map(|taken| taken.space), taken.map(|taken| taken.first));
    let count = i64::try_from(events.len()).unwrap_or(0);
    for (last, body) in rows::packed(after, events) {
        // The events lie behind each other in both orders.
        let pos = first_pos.map(|first| first + last - after - 1);
        tx.exec(
            "INSERT INTO events (tenant, run, seq, at, body, space, pos) VALUES ($1, $2, $3, $4, $5, $6, $7)",
            args![place.tenant.as_str(), place.run.as_str(), last, now, &body, number, pos],
        )
        .await?;
    }
    let replied = events.iter().rev().find_map(|event| match event {
        Event::ModelReplied(reply) => Some(reply.step),
        _ => None,
    });
    tx.touched.push(Touched {
        tenant: place.tenant.clone(),
        run: Some(place.run.clone()),
        seq: after + count,
        space: place.heard_in().cloned(),
        replied,
        restarted: events.iter().any(|event| matches!(event, Event::StepRestarted(_))),
        calls: CallNews::of(events),
        commit: Some(Arc::new(Commit { epoch: place.epoch, after, at: now, events: events.clone() })),
    });
    Ok(first_pos.map(|first| first + count))
}
