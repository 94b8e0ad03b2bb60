//! From the engine's word to the log, and the run's own sense of time.

use std::time::Instant;

use toolyard_engine::{Input, Run};
use toolyard_protocol::Timestamp;
use toolyard_protocol::event::{BlobRef, Event};
use toolyard_store::log::{AppendError, Appended};
use toolyard_store::{StoreError, failpoint, runs};

use super::deed::{Deed, Done};
use super::scribe::{Scribe, after, asked_for};
use super::{Stop, Worker};
use crate::starting::Desk;
use crate::tally::{self, Ended};

/// The database's time, carried on by this process between commits.
#[derive(Debug)]
pub(super) struct DatabaseClock {
    seen: Timestamp,
    at: Instant,
}

impl Default for DatabaseClock {
    fn default() -> Self {
        Self { seen: Timestamp::default(), at: Instant::now() }
    }
}

impl DatabaseClock {
    pub(super) fn saw(&mut self, now: Timestamp) {
        if now > self.seen {
            *self = Self { seen: now, at: Instant::now() };
        }
    }
    pub(super) fn now(&self) -> Timestamp {
        self.seen.plus_millis(u64::try_from(self.at.elapsed().as_millis()).unwrap_or(0))
    }
}

/// Why a deed and its append did not happen.
pub(super) enum Undone {
    Append(AppendError),
    /// The deed itself is refused: the model hears why.
    Refused(String),
    /// What it answers is not wanted any more.
    Stale,
}

impl From<AppendError> for Undone {
    fn from(e: AppendError) -> Self {
        Self::Append(e)
    }
}

impl From<StoreError> for Undone {
    fn from(e: StoreError) -> Self {
        Self::Append(AppendError::Store(e))
    }
}

impl Worker {
    /// Tells the engine and appends what follows. On a conflict the new facts
    /// are folded and the engine hears the same input again.
    pub(super) async fn tell(&mut self, input: Input) -> Result<(), Stop> {
        self.tell_with(input, Vec::new()).await
    }

    pub(super) async fn tell_with(
        &mut self,
        input: Input,
        blobs: Vec<(BlobRef, Vec<u8>)>,
    ) -> Result<(), Stop> {
        let mut failures = 0;
        loop {
            let scribe = self.scribe();
            let Some((next, draft)) = scribe.draft(input.clone(), blobs.clone()) else { return Ok(()) };
            let kind = Kind::of(&draft.events);
            let kin = scribe.has_kin();
            let slots = if kin { self.rt.slots_for(1) } else { Vec::new() };
            let mut desk = Desk::new(self.rt.clone(), slots.len());
            let written = match kind.before() {
                Ok(()) => {
                    let write = self.rt.store.write(move |tx| {
                        Box::pin(async move {
                            let done = scribe.write(tx, &draft, &mut desk).await?;
                            Ok::<_, AppendError>((done, desk, draft.events))
                        })
                    });
                    write.await
                }
                Err(e) => Err(e.into()),
            };
            match written.and_then(|done| Ok(kind.after().map(|()| done)?)) {
                Ok((done, desk, events)) => {
                    let at = done.at;
                    self.wrote(next, done);
                    if kin {
                        self.rt.begin_all(desk.starts, slots);
                    }
                    self.rt.count(desk.ended);
                    self.count(&events, at);
                    return Ok(());
                }
                Err(e) => self.mend(e, &mut failures).await?,
            }
        }
    }

    /// Does something of our own database's and logs what came of it, in one
    /// transaction. A deed that is refused leaves nothing but its failure.
    pub(super) async fn act(&mut self, deed: Deed) -> Result<(), Stop> {
        let mut failures = 0;
        self.began.insert(deed.call.clone(), Instant::now());
        loop {
            // Another try may find that the first one was heard.
            if !self.run.due().iter().any(|effect| effect.id() == deed.id) {
                return Ok(());
            }
            let (scribe, mine) = (self.scribe(), deed.clone());
            let slots = self.rt.slots_for(1);
            let desk = Desk::new(self.rt.clone(), slots.len());
            let written = match failpoint::pass("append.before_commit") {
                Ok(()) => self.rt.store.write(move |tx| Box::pin(mine.perform(tx, scribe, desk))).await,
                Err(e) => Err(e.into()),
            };
            let passed = |done| Ok(failpoint::pass("append.after_commit").map(|()| done)?);
            match written.and_then(passed) {
                Ok(Done { next, appended, events, desk }) => {
                    let at = appended.at;
                    self.wrote(next, appended);
                    self.rt.begin_all(desk.starts, slots);
                    self.rt.count(desk.ended);
                    self.count(&events, at);
                    return Ok(());
                }
                Err(Undone::Stale) => return Ok(()),
                Err(Undone::Refused(text)) => return self.tell(deed.failed(text)).await,
                Err(Undone::Append(e)) => self.mend(e, &mut failures).await?,
            }
        }
    }

    /// Counts the calls that an append of this worker ended.
    fn count(&mut self, events: &[Event], at: Timestamp) {
        let Some(created) = self.run.created() else { return };
        let Some(version) = created.agent_version.shown() else { return };
        let (mut ended, agent) = (Vec::new(), created.agent.clone());
        let at_once = asked_for(events);
        for end in tally::ends(events) {
            let began = self.began.remove(&end.call);
            let ms = began.map(|began| u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
            ended.push(Ended {
                tenant: self.tenant.clone(),
                agent: agent.clone(),
                version: version.clone(),
                tool: end.tool.clone(),
                known: self.tools().is_some_and(|tools| tools.set.find(end.tool.as_str()).is_some()),
                outcome: end.outcome,
                at,
                ms: ms.or_else(|| at_once.contains(&end.call).then_some(0)),
            });
        }
        self.rt.count(ended);
    }

    fn scribe(&self) -> Scribe {
        Scribe {
            tenant: self.tenant.clone(),
            id: self.id.clone(),
            owner: self.rt.owner.clone(),
            epoch: self.epoch,
            seq: self.seq,
            now: self.now(),
            run: self.run.clone(),
            agent: self.agent.as_ref().ok().cloned(),
            first_open_turn: self.first_open_turn,
            taint_told: self.taint_told,
            watched: self.rt.store.feed().has_readers(&self.id, self.space().as_ref()),
            tools: self.tools.clone().filter(|_| self.doomed.is_none() && !self.looks_at_results()),
        }
    }

    fn wrote(&mut self, next: Run, done: Appended) {
        self.run = next;
        self.seq = done.seq;
        self.clock.saw(done.at);
        self.first_open_turn = self.run.turn();
        self.released = self.run.is_finished() || self.run.is_parked();
        self.taint_told |= self.run.tainted();
    }

    /// After a failed append: what the next try needs, or the end.
    async fn mend(&mut self, e: AppendError, failures: &mut usize) -> Result<(), Stop> {
        match e {
            AppendError::Conflict { .. } => {}
            AppendError::Fenced { .. } | AppendError::Gone => return Err(Stop::Lost),
            AppendError::Store(StoreError::Unavailable(_) | StoreError::Full(_)) => {
                // The answer may be lost and the commit done: then the next try meets a conflict.
                self.rest(*failures).await?;
                *failures += 1;
            }
            AppendError::Store(e) => return Err(Stop::Broken(e)),
        }
        self.catch_up().await?;
        Ok(())
    }

    /// Lets go of a run that is parked as its log already says. False if there
    /// is more in the log, which is folded now.
    pub(super) async fn park(&mut self) -> Result<bool, Stop> {
        if self.released {
            return Ok(true);
        }
        let (after, seen) = (after(&self.run), self.seq);
        let (tenant, run) = (self.tenant.clone(), self.id.clone());
        let (epoch, owner) = (self.epoch, self.rt.owner.clone());
        let parked = self.rt.store.write(move |tx| {
            Box::pin(async move { runs::park(tx, &tenant, &run, epoch, &owner, seen, &after).await })
        });
        if parked.await? {
            return Ok(true);
        }
        self.hear_facts().await?;
        Ok(false)
    }

    /// Puts the run back into the queue, for whoever has room.
    pub(super) async fn release(&mut self) -> Result<(), Stop> {
        let (tenant, run) = (self.tenant.clone(), self.id.clone());
        let (epoch, owner) = (self.epoch, self.rt.owner.clone());
        self.rt
            .store
            .write(move |tx| Box::pin(async move { runs::hand_back(tx, &tenant, &run, epoch, &owner).await }))
            .await?;
        failpoint::pass("release.after_commit")?;
        Ok(())
    }
}

/// What an append means, for the named places where tests break it.
#[derive(Clone, Copy)]
enum Kind {
    Finish,
    Pause,
    Other,
}

impl Kind {
    fn of(events: &[Event]) -> Self {
        match events.last() {
            Some(Event::RunFinished(_)) => Self::Finish,
            Some(Event::RunPaused(_)) => Self::Pause,
            _ => Self::Other,
        }
    }
    fn before(self) -> Result<(), StoreError> {
        failpoint::pass("append.before_commit")?;
        match self {
            Self::Finish => failpoint::pass("finish.before_commit"),
            Self::Pause | Self::Other => Ok(()),
        }
    }
    fn after(self) -> Result<(), StoreError> {
        failpoint::pass("append.after_commit")?;
        match self {
            Self::Finish => failpoint::pass("finish.after_commit"),
            Self::Pause => failpoint::pass("pause.after_commit"),
            Self::Other => Ok(()),
        }
    }
}
