//! Commands that may start or wake runs: a transaction with a few free slots
//! in hand, and the workers that follow it.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use toolyard_engine::facts;
use toolyard_protocol::event::{Event, RunCreated};
use toolyard_protocol::{ApiError, CallId, ErrorCode, TenantId, Timestamp};
use toolyard_store::log::{self, Wake};
use toolyard_store::runs::{Owner, RunRow};
use toolyard_store::{Commit, StoreError, Tx, failpoint};

use crate::earlier::Earlier;
use crate::refused::Refused;
use crate::runtime::{Runtime, Start, Tail};
use crate::slots::Slot;
use crate::tally::{self, Ended};

/// Slots that one command may take at once; further runs are queued.
pub(crate) const STARTS: usize = 4;
/// Two commands may race to start one agent's run; the loser looks again.
const TRIES: usize = 4;

/// The runs that a transaction made this node the owner of, and whether it
/// left one to the queue.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    runs: Vec<Start>,
    queued: bool,
}

/// The slots in hand and the runs that took one.
#[derive(Debug)]
pub(crate) struct Desk {
    runtime: Arc<Runtime>,
    free: usize,
    pub(crate) starts: Starts,
    /// Calls that ended: counted once it is committed.
    pub(crate) ended: Vec<Ended>,
    /// When calls began, as far as whoever ends them knows.
    began: HashMap<CallId, Timestamp>,
}

impl Desk {
    pub(crate) fn new(runtime: Arc<Runtime>, free: usize) -> Self {
        Self { runtime, free, starts: Starts::default(), ended: Vec::new(), began: HashMap::new() }
    }

    /// Says when a call began, for its count.
    pub(crate) fn began(&mut self, call: &CallId, at: Timestamp) {
        self.began.insert(call.clone(), at);
    }

    /// The owner of one more run, while slots last.
    pub(crate) fn owner(&self) -> Option<Owner> {
        (self.starts.runs.len() < self.free).then(|| self.runtime.owner.clone())
    }

    /// The events that the next new run begins with: its birth, and its start if
    /// there is a slot for it.
    pub(crate) fn first_events(&self) -> usize {
        1 + usize::from(self.owner().is_some())
    }

    /// A run that has its owner starts with the commit; one without waits for
    /// a slot.
    pub(crate) fn place(&mut self, start: Option<Start>) {
        match start {
            Some(start) => self.starts.runs.push(start),
            None => self.starts.queued = true,
        }
    }

    /// What was said before a run that starts now, where that is cheap to know.
    pub(crate) async fn earlier(
        &self,
        tx: &mut Tx<'_>,
        tenant: &TenantId,
        created: Option<&RunCreated>,
    ) -> Result<Option<Earlier>, StoreError> {
        match created.filter(|_| self.runtime.store.is_sqlite()) {
            Some(created) => Earlier::bring(tx, tenant, created).await,
            None => Ok(None),
        }
    }

    /// Appends facts to a live run and wakes it if they make it runnable.
    pub(crate) async fn wake(
        &mut self,
        tx: &mut Tx<'_>,
        live: &RunRow,
        events: Vec<Event>,
        waits_left: usize,
    ) -> Result<(), StoreError> {
        let owner = self.owner();
        let wakes = facts::wakes(&events, waits_left);
        let now = tx.now().await?;
        for end in tally::ends(&events) {
            self.ended.push(Ended {
                tenant: live.tenant.clone(),
                agent: live.agent.clone(),
                version: live.agent_hash.clone(),
                tool: end.tool.clone(),
                // Only calls of tools wait.
                known: true,
                outcome: end.outcome,
                at: now,
                ms: self.began.get(&end.call).map(|began| now.since(*began)),
            });
        }
        let wake = if wakes { Wake::Yes(owner.as_ref()) } else { Wake::No };
        // Before the commit: no fact that follows it is missed.
        let watch = self.runtime.store.feed().watch_run(&live.id);
        let events = Arc::from(events);
        let done = log::append_fact(tx, live, &events, wake).await?;
        if let Some(epoch) = done.assigned {
            let (tenant, run) = (live.tenant.clone(), live.id.clone());
            let commit = Commit { epoch, after: live.last_seq, at: done.at, events };
            let created = self.runtime.parking.created(&live.tenant, &live.id);
            let earlier = self.earlier(tx, &live.tenant, created.as_ref()).await?;
            let tail = Some(Tail { commit, watch, earlier });
            self.place(Some(Start { tenant, run, epoch, tail, recovered: false }));
        } else if let Some(start) = self.starts.runs.iter_mut().find(|start| start.run == live.id)
            && let Some(Tail { commit, .. }) = &mut start.tail
        {
            // One transaction may tell a run several facts: its worker begins with all of them.
            commit.events = commit.events.iter().chain(events.iter()).cloned().collect();
        } else if wakes && owner.is_none() {
            self.place(None);
        }
        Ok(())
    }
}

/// One transaction of such a command.
pub(crate) type Op<T> =
    Box<dyn for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<(T, Starts), Refused>> + Send>;

impl Runtime {
    /// Slots for the runs that a transaction may start.
    pub(crate) fn slots_for(&self, most: usize) -> Vec<Slot> {
        if self.draining.is_cancelled() { Vec::new() } else { self.slots.take(most) }
    }

    /// Works on the runs that took a slot.
    pub(crate) fn begin_all(self: &Arc<Self>, starts: Starts, slots: Vec<Slot>) {
        starts.runs.into_iter().zip(slots).for_each(|(start, slot)| self.begin(start, slot));
        // Whoever frees a slot from now on tells the scheduler.
        if starts.queued {
            self.slots.queued();
        }
    }

    /// Runs a command's transaction, again if it lost a race, and starts the
    /// workers of the runs that it made this node the owner of. Both outlive a
    /// caller that hangs up in between.
    pub(crate) async fn starting<T: Send + 'static>(
        self: &Arc<Self>,
        most: usize,
        make: impl Fn(Arc<Self>, Desk) -> Op<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let runtime = self.clone();
        let done =
            self.tasks().detached(Box::pin(async move { runtime.starting_here(most, make).await })).await;
        done.unwrap_or_else(|| Err(ApiError::new(ErrorCode::Internal, "Internal error")))
    }

    async fn starting_here<T: Send + 'static>(
        self: &Arc<Self>,
        most: usize,
        make: impl Fn(Arc<Self>, Desk) -> Op<T> + Send,
    ) -> Result<T, ApiError> {
        for _ in 0..TRIES {
            let slots = self.slots_for(most);
            let desk = Desk::new(self.clone(), slots.len());
            let op = make(self.clone(), desk);
            let done = self.store.write(op).await;
            match done.and_then(|done| Ok(failpoint::pass("start.after_commit").map(|()| done)?)) {
                Ok((value, starts)) => {
                    self.begin_all(starts, slots);
                    return Ok(value);
                }
                Err(Refused::Store(StoreError::Exists(_))) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Err(ApiError::new(ErrorCode::RunBusy, "This agent is busy in this space. Try again"))
    }
}
