//! What is read: the log of one run, or everything of one space.

use toolyard_dialects::native::{self, Frame, RunSnapshot, SpaceSnapshot};
use toolyard_protocol::delta::Delta;
use toolyard_protocol::event::Event;
use toolyard_protocol::message::Message;
use toolyard_protocol::{RunId, SpaceId, TenantId, Timestamp, Viewer, limits};
use toolyard_store::log::{self, SpaceEvent};
use toolyard_store::{Joined, StepSoFar, Store, StoreError, Tx, messages, runs, spaces};

use crate::routes::view;

/// A stream's subject.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Run { run: RunId, space: Option<SpaceId> },
    Space(SpaceId),
}

/// Where the log of a subject stands.
pub(super) struct Extent {
    /// The newest position.
    pub(super) last: i64,
    /// The last position whose event was removed.
    pub(super) gone_to: i64,
    /// Nothing will follow.
    pub(super) ended: bool,
}

/// One durable thing of a stream, in its order.
#[derive(Debug)]
pub(super) enum Item {
    Event { pos: i64, run: RunId, seq: i64, at: Timestamp, event: Box<Event> },
    Message(Box<Message>),
}

impl Item {
    pub(super) fn pos(&self) -> i64 {
        match self {
            Self::Event { pos, .. } => *pos,
            Self::Message(message) => message.seq,
        }
    }
}

impl Source {
    pub(super) fn join(&self, store: &Store) -> Joined {
        match self {
            Self::Run { run, .. } => store.feed().join_run(run),
            Self::Space(space) => store.feed().join_space(space),
        }
    }

    /// Where its log stands; none if the subject is gone.
    pub(super) async fn extent(
        &self,
        store: &Store,
        tenant: &TenantId,
    ) -> Result<Option<Extent>, StoreError> {
        let (tenant, source) = (tenant.clone(), self.clone());
        store
            .read(move |tx| {
                Box::pin(async move {
                    Ok(match &source {
                        Self::Run { run, .. } => {
                            let row = runs::get(tx, &tenant, run).await?;
                            row.map(|row| Extent {
                                last: row.last_seq,
                                gone_to: 0,
                                ended: row.status.is_final(),
                            })
                        }
                        Self::Space(space) => {
                            let bounds = spaces::bounds(tx, &tenant, space).await?;
                            bounds.map(|(last, gone_to)| Extent { last, gone_to, ended: false })
                        }
                    })
                })
            })
            .await
    }

    /// What follows a position, a number of things at most, and whether there is
    /// more at once.
    pub(super) async fn page(
        &self,
        store: &Store,
        tenant: &TenantId,
        after: i64,
        most: u32,
    ) -> Result<(Vec<Item>, bool), StoreError> {
        let (tenant, source) = (tenant.clone(), self.clone());
        store
            .read(move |tx| {
                Box::pin(async move {
                    match &source {
                        Self::Run { run, .. } => page_of_run(tx, &tenant, run, after, most).await,
                        Self::Space(space) => page_of_space(tx, &tenant, space, after, most).await,
                    }
                })
            })
            .await
    }

    pub(super) fn frame(&self, item: &Item, viewer: &Viewer) -> Option<Frame> {
        match (self, item) {
            (Self::Run { run, .. }, Item::Event { seq, at, event, .. }) => {
                native::frame(run, *seq, *at, event, viewer)
            }
            (Self::Space(space), Item::Event { pos, run, seq, at, event }) => {
                native::space_frame(space, *pos, run, *seq, *at, event, viewer)
            }
            (Self::Space(_), Item::Message(message)) => Some(native::message_frame(message, viewer)),
            (Self::Run { .. }, Item::Message(_)) => None,
        }
    }

    /// The run whose commits can be shown as they come. A space's order is
    /// known to its tables only.
    pub(super) fn lone_run(&self) -> Option<&RunId> {
        match self {
            Self::Run { run, .. } => Some(run),
            Self::Space(_) => None,
        }
    }

    pub(super) fn delta_frame(&self, delta: &Delta, viewer: &Viewer, written: Option<&str>) -> Option<Frame> {
        match self {
            Self::Run { .. } => native::delta_frame(delta, viewer, written),
            Self::Space(space) => native::space_delta_frame(space, delta, viewer, written),
        }
    }

    pub(super) fn so_far_frame(&self, so_far: &StepSoFar, viewer: &Viewer) -> Frame {
        let StepSoFar { run, step, attempt, .. } = so_far;
        match self {
            Self::Run { .. } => native::step_so_far(run, *step, *attempt, so_far.pieces(), viewer),
            Self::Space(space) => {
                native::space_step_so_far(space, run, *step, *attempt, so_far.pieces(), viewer)
            }
        }
    }

    /// For a reader whose position is not in the log: all as it stands, and
    /// the position to go on from.
    pub(super) async fn reset(
        &self,
        store: &Store,
        tenant: &TenantId,
        viewer: &Viewer,
    ) -> Result<Option<(Frame, i64)>, StoreError> {
        let (tenant, source, viewer) = (tenant.clone(), self.clone(), viewer.clone());
        store
            .read(move |tx| {
                Box::pin(async move {
                    match &source {
                        Self::Run { run, .. } => reset_run(tx, &tenant, run, &viewer).await,
                        Self::Space(space) => reset_space(tx, &tenant, space, &viewer).await,
                    }
                })
            })
            .await
    }
}

async fn page_of_run(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    after: i64,
    most: u32,
) -> Result<(Vec<Item>, bool), StoreError> {
    let logged = log::read(tx, tenant, run, after, most).await?;
    let more = logged.len() >= most as usize;
    let item = |l: log::Logged| Item::Event {
        pos: l.seq,
        run: run.clone(),
        seq: l.seq,
        at: l.at,
        event: Box::new(l.event),
    };
    Ok((logged.into_iter().map(item).collect(), more))
}

/// Events and messages of a space in one order. Messages are read second: what
/// an event's position promises to be there is there by then.
async fn page_of_space(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    after: i64,
    most: u32,
) -> Result<(Vec<Item>, bool), StoreError> {
    let full = most as usize;
    let events = log::read_space(tx, tenant, space, after, most).await?;
    let posted = messages::page(tx, tenant, space, Some(after), None, most).await?;
    // A list that is cut short says nothing of what comes after its end.
    let ends = [
        (events.len() >= full).then(|| events.last().map(|e| e.pos)).flatten(),
        (posted.len() >= full).then(|| posted.last().map(|m| m.seq)).flatten(),
    ];
    let end = ends.into_iter().flatten().min();
    let event = |SpaceEvent { pos, run, logged }| Item::Event {
        pos,
        run,
        seq: logged.seq,
        at: logged.at,
        event: Box::new(logged.event),
    };
    // What a run says is told by its events.
    let said = posted.into_iter().filter(|m| m.run.is_none()).map(|m| Item::Message(Box::new(m)));
    let mut items: Vec<Item> = events.into_iter().map(event).chain(said).collect();
    items.sort_by_key(Item::pos);
    items.retain(|item| end.is_none_or(|end| item.pos() <= end));
    Ok((items, end.is_some()))
}

async fn reset_run(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    viewer: &Viewer,
) -> Result<Option<(Frame, i64)>, StoreError> {
    let Some(row) = runs::get(tx, tenant, run).await? else { return Ok(None) };
    let last = row.last_seq;
    let waits = view::open_waits(tx, tenant, run, viewer).await?;
    let said = match &row.space {
        Some(space) => messages::page(tx, tenant, space, None, None, limits::PAGE_MAX).await?,
        None => Vec::new(),
    };
    let said = said.iter().filter(|m| m.run.as_ref() == Some(run));
    let messages = said.map(|m| native::message_view(m, viewer)).collect();
    let snapshot = RunSnapshot { run: view::run(row, viewer), messages, waits };
    Ok(Some((native::reset_frame(&snapshot), last)))
}

async fn reset_space(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &SpaceId,
    viewer: &Viewer,
) -> Result<Option<(Frame, i64)>, StoreError> {
    let Some(space) = spaces::get(tx, tenant, id).await? else { return Ok(None) };
    let said = messages::page(tx, tenant, id, None, None, limits::PAGE_MAX).await?;
    let rows = runs::list(tx, tenant, Some(id), None, None, limits::PAGE_MAX).await?;
    let mut waits = Vec::new();
    for row in rows.iter().filter(|row| !row.status.is_final()) {
        waits.extend(view::open_waits(tx, tenant, &row.id, viewer).await?);
    }
    let snapshot = SpaceSnapshot {
        space: id.clone(),
        last_pos: space.last_pos,
        runs: rows.into_iter().map(|row| view::run(row, viewer)).collect(),
        messages: said.iter().map(|m| native::message_view(m, viewer)).collect(),
        waits,
    };
    Ok(Some((native::space_reset_frame(&snapshot), space.last_pos)))
}
