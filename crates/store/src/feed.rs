//! Tells readers on this node what is new. The log is the truth: news says that
//! it grew, and brings the newest commit along when this node wrote it. Missing
//! all of it costs a reader at most one poll.
//!
//! A hub exists while somebody reads the run or a step of it streams, so a
//! waiting run costs no memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{broadcast, watch};
use toolyard_protocol::delta::Delta;
use toolyard_protocol::{RunId, SpaceId, TenantId};

use crate::so_far::StepSoFar;
use crate::tx::{CallNews, Commit, Touched};

/// Batches of deltas a reader may lag behind before it must join again.
const BACKLOG: usize = 1024;

/// The in-process feed. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed {
    hubs: Arc<Mutex<Hubs>>,
    calls: broadcast::Sender<CallsOf>,
}

impl Default for Feed {
    fn default() -> Self {
        Self { hubs: Arc::default(), calls: broadcast::Sender::new(BACKLOG) }
    }
}

/// A run whose client calls changed.
#[derive(Debug, Clone, PartialEq)]
pub struct CallsOf {
    pub tenant: TenantId,
    pub run: RunId,
    pub news: CallNews,
}

#[derive(Debug, Default)]
struct Hubs {
    runs: HashMap<RunId, Hub>,
    spaces: HashMap<SpaceId, Hub>,
}

#[derive(Debug)]
struct Hub {
    committed: watch::Sender<News>,
    /// Made by the first reader: its room is large, and most runs have none
    /// while they only commit.
    deltas: Option<broadcast::Sender<Arc<[Delta]>>>,
    so_far: HashMap<RunId, StepSoFar>,
}

/// The newest thing that was committed.
#[derive(Debug, Clone, Default)]
pub struct News {
    /// The last seq of a run; of a space, a count of its news.
    pub seq: i64,
    /// The events that came last, if this node wrote them: who has read up to
    /// them need not ask the database.
    pub commit: Option<Arc<Commit>>,
}

impl Hub {
    fn new() -> Self {
        Self { committed: watch::Sender::new(News::default()), deltas: None, so_far: HashMap::new() }
    }
    fn is_idle(&self) -> bool {
        self.so_far.is_empty() && !self.has_readers() && self.committed.receiver_count() == 0
    }
    fn has_readers(&self) -> bool {
        self.deltas.as_ref().is_some_and(|deltas| deltas.receiver_count() > 0)
    }
    fn join(&mut self, seat: Seat) -> Joined {
        Joined {
            committed: self.committed.subscribe(),
            deltas: self.deltas.get_or_insert_with(|| broadcast::Sender::new(BACKLOG)).subscribe(),
            so_far: self.so_far.values().cloned().collect(),
            _seat: seat,
        }
    }
    fn deltas(&mut self, deltas: &Arc<[Delta]>) {
        let Some(first) = deltas.first() else { return };
        // All of one run.
        let so_far = self.so_far.entry(first.run.clone()).or_insert_with(|| StepSoFar::start(first));
        deltas.iter().for_each(|delta| so_far.add(delta));
        if let Some(readers) = &self.deltas {
            // Nobody listening is fine.
            let _ = readers.send(deltas.clone());
        }
    }
    /// The whole reply is in the log: the step so far is no longer needed.
    fn forget_replied(&mut self, news: &Touched) {
        if let (Some(run), Some(step)) = (&news.run, news.replied)
            && self.so_far.get(run).is_some_and(|s| s.step <= step)
        {
            self.so_far.remove(run);
        }
    }
}

/// A reader's ear, and what of the current steps it missed.
#[derive(Debug)]
pub struct Joined {
    pub committed: watch::Receiver<News>,
    /// Pieces that came together come together.
    pub deltas: broadcast::Receiver<Arc<[Delta]>>,
    pub so_far: Vec<StepSoFar>,
    // Last, so that the receivers are gone when it looks for idle hubs.
    _seat: Seat,
}

/// Hears of commits to one run.
#[derive(Debug)]
pub struct Watch {
    pub committed: watch::Receiver<News>,
    _seat: Seat,
}

/// Clears the hub away when its last listener leaves.
#[derive(Debug)]
struct Seat {
    feed: Feed,
    run: Option<RunId>,
    space: Option<SpaceId>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.feed.hubs().sweep(self.run.as_ref(), self.space.as_ref());
    }
}

impl Feed {
    fn hubs(&self) -> std::sync::MutexGuard<'_, Hubs> {
        self.hubs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens to a run. Join first, then read the log: so nothing falls between.
    pub fn join_run(&self, run: &RunId) -> Joined {
        let seat = Seat { feed: self.clone(), run: Some(run.clone()), space: None };
        self.hubs().runs.entry(run.clone()).or_insert_with(Hub::new).join(seat)
    }

    /// Hears of a run's commits only, as its worker does.
    pub fn watch_run(&self, run: &RunId) -> Watch {
        let seat = Seat { feed: self.clone(), run: Some(run.clone()), space: None };
        let mut hubs = self.hubs();
        let hub = hubs.runs.entry(run.clone()).or_insert_with(Hub::new);
        Watch { committed: hub.committed.subscribe(), _seat: seat }
    }

    /// Listens to all runs and messages of a space.
    pub fn join_space(&self, space: &SpaceId) -> Joined {
        let seat = Seat { feed: self.clone(), run: None, space: Some(space.clone()) };
        self.hubs().spaces.entry(space.clone()).or_insert_with(Hub::new).join(seat)
    }

    /// Hears of client calls of all runs. Whoever lags behind looks at the ledger.
    pub fn watch_calls(&self) -> broadcast::Receiver<CallsOf> {
        self.calls.subscribe()
    }

    /// Does somebody on this node follow the run, or its space? Its worker
    /// does not count.
    pub fn has_readers(&self, run: &RunId, space: Option<&SpaceId>) -> bool {
        let hubs = self.hubs();
        let of_space = || space.and_then(|s| hubs.spaces.get(s)).is_some_and(Hub::has_readers);
        hubs.runs.get(run).is_some_and(Hub::has_readers) || of_space()
    }

    /// Streams pieces of one run to whoever listens.
    pub fn deltas(&self, space: Option<&SpaceId>, deltas: Vec<Delta>) {
        let Some(run) = deltas.first().map(|delta| delta.run.clone()) else { return };
        let deltas: Arc<[Delta]> = deltas.into();
        let mut hubs = self.hubs();
        hubs.runs.entry(run).or_insert_with(Hub::new).deltas(&deltas);
        if let Some(space) = space {
            hubs.spaces.entry(space.clone()).or_insert_with(Hub::new).deltas(&deltas);
        }
    }

    /// Forgets an unfinished step: its worker stopped, a new attempt starts over.
    pub fn forget(&self, run: &RunId, space: Option<&SpaceId>) {
        let mut hubs = self.hubs();
        if let Some(hub) = hubs.runs.get_mut(run) {
            hub.so_far.remove(run);
        }
        if let Some(hub) = space.and_then(|s| hubs.spaces.get_mut(s)) {
            hub.so_far.remove(run);
        }
        hubs.sweep(Some(run), space);
    }

    /// Tells of commits, once they are durable.
    pub(crate) fn publish(&self, touched: &[Touched]) {
        if touched.is_empty() {
            return;
        }
        let mut hubs = self.hubs();
        for news in touched {
            if let Some(run) = &news.run
                && news.calls != CallNews::default()
                && self.calls.receiver_count() > 0
            {
                // The count was right a moment ago: nobody listening is fine.
                let _ = self.calls.send(CallsOf {
                    tenant: news.tenant.clone(),
                    run: run.clone(),
                    news: news.calls,
                });
            }
            if let Some(hub) = news.run.as_ref().and_then(|run| hubs.runs.get_mut(run)) {
                hub.forget_replied(news);
                // PostgreSQL tells a node of its own commits too: those are no news.
                hub.committed.send_if_modified(|told| {
                    let newer = news.seq > told.seq;
                    if newer {
                        *told = News { seq: news.seq, commit: news.commit.clone() };
                    }
                    newer
                });
            }
            if let Some(hub) = news.space.as_ref().and_then(|space| hubs.spaces.get_mut(space)) {
                hub.forget_replied(news);
                hub.committed.send_modify(|told| told.seq = told.seq.wrapping_add(1));
            }
            hubs.sweep(news.run.as_ref(), news.space.as_ref());
        }
        crate::failpoint!("feed.after_publish");
    }

    /// How many hubs are in memory: waiting runs have none.
    pub fn len(&self) -> usize {
        let hubs = self.hubs();
        hubs.runs.len() + hubs.spaces.len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Hubs {
    fn sweep(&mut self, run: Option<&RunId>, space: Option<&SpaceId>) {
        if let Some(run) = run
            && self.runs.get(run).is_some_and(Hub::is_idle)
        {
            self.runs.remove(run);
        }
        if let Some(space) = space
            && self.spaces.get(space).is_some_and(Hub::is_idle)
        {
            self.spaces.remove(space);
        }
    }
}
