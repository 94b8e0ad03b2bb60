//! Tells readers on this node what is new. The log is the truth: news says that
//! it grew, and brings the newest commit along when this node wrote it. Missing
//! all of it costs a reader at most one poll.
//!
//! A hub exists while somebody reads the run or a step of it streams, so a
//! waiting run costs no memory.
//!
//! Between nodes the same things travel by Redis, or by PostgreSQL's
//! notifications, which carry no pieces.

mod ears;
mod heard;
mod link;
mod redis;
mod words;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use foldhash::{HashMap, HashMapExt as _, HashSet};
use tokio::sync::{broadcast, watch};
use toolyard_protocol::delta::Delta;
use toolyard_protocol::{RunId, SpaceId, TenantId};

pub use self::link::LinkState;
pub use self::redis::{RedisUrl, ask_redis};
pub(crate) use self::words::{read_news, write_news};

use self::ears::Ears;
use self::link::Link;
use self::words::Subject;
use crate::so_far::StepSoFar;
use crate::tx::{CallNews, Commit, Touched};

/// Batches of deltas a reader may lag behind before it must join again, which
/// costs it one look at the step so far. Every run and space that is read has
/// this much room, so a larger number is paid by each idle reader.
const BACKLOG: usize = 256;
/// News of calls that a listener may lag behind.
const CALLS_BACKLOG: usize = 1024;

/// The feed of this node. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed {
    hubs: Arc<Mutex<Hubs>>,
    calls: broadcast::Sender<CallsOf>,
    ears: Arc<Mutex<Ears>>,
    /// The way to other nodes by Redis, if there is one.
    link: Arc<OnceLock<Link>>,
}

impl Default for Feed {
    fn default() -> Self {
        let calls = broadcast::Sender::new(CALLS_BACKLOG);
        Self { hubs: Arc::default(), calls, ears: Arc::default(), link: Arc::default() }
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
    /// What got its first reader or lost its last, until the link has seen to it.
    changed: HashSet<Subject>,
}

#[derive(Debug)]
struct Hub {
    committed: watch::Sender<News>,
    /// Made by the first reader: its room is large, and most runs have none
    /// while they only commit.
    deltas: Option<broadcast::Sender<Arc<[Delta]>>>,
    readers: usize,
    so_far: HashMap<RunId, Streamed>,
    /// When other nodes were last asked for pieces that are missing here.
    asked: Option<Instant>,
}

/// A step as it streams, here or on another node.
#[derive(Debug)]
struct Streamed {
    step: StepSoFar,
    /// The other node.
    from: Option<Arc<str>>,
}

impl Streamed {
    fn key(&self) -> (u32, u32) {
        (self.step.step, self.step.attempt)
    }
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
        let committed = watch::Sender::new(News::default());
        Self { committed, deltas: None, readers: 0, so_far: HashMap::new(), asked: None }
    }
    fn is_idle(&self) -> bool {
        self.so_far.is_empty() && !self.has_readers() && self.committed.receiver_count() == 0
    }
    fn has_readers(&self) -> bool {
        self.readers > 0
    }
    fn join(&mut self, seat: Seat) -> Joined {
        self.readers += 1;
        Joined {
            committed: self.committed.subscribe(),
            deltas: self.deltas.get_or_insert_with(|| broadcast::Sender::new(BACKLOG)).subscribe(),
            so_far: self.so_far.values().map(|known| known.step.clone()).collect(),
            _seat: seat,
        }
    }
    fn deltas(&mut self, deltas: &Arc<[Delta]>) {
        let Some(first) = deltas.first() else { return };
        // All of one run.
        let own = || Streamed { step: StepSoFar::start(first), from: None };
        let known = self.so_far.entry(first.run.clone()).or_insert_with(own);
        if known.from.is_some() {
            *known = own();
        }
        deltas.iter().for_each(|delta| known.step.add(delta));
        if let Some(readers) = &self.deltas {
            // Nobody listening is fine.
            let _ = readers.send(deltas.clone());
        }
    }
    /// The whole reply is in the log: the step so far is no longer needed. One
    /// that begins anew elsewhere is void.
    fn forget_replied(&mut self, news: &Touched) {
        let Some(run) = &news.run else { return };
        let over = |known: &Streamed| {
            news.replied.is_some_and(|step| known.step.step <= step) || news.restarted && known.from.is_some()
        };
        if self.so_far.get(run).is_some_and(over) {
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
    /// What its reader follows. A worker follows nothing, it only hears.
    reads: Option<Subject>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut hubs = self.feed.hubs();
        let gone = self.reads.as_ref().is_some_and(|subject| hubs.leave(subject));
        hubs.sweep(self.run.as_ref(), self.space.as_ref());
        drop(hubs);
        if gone && let Some(subject) = self.reads.take() {
            self.feed.readers_changed(subject);
        }
    }
}

impl Feed {
    fn hubs(&self) -> std::sync::MutexGuard<'_, Hubs> {
        self.hubs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens to a run. Join first, then read the log: so nothing falls between.
    pub fn join_run(&self, run: &RunId) -> Joined {
        let reads = Subject::Run(run.clone());
        let seat = Seat { feed: self.clone(), run: Some(run.clone()), space: None, reads: Some(reads) };
        let mut hubs = self.hubs();
        let hub = hubs.runs.entry(run.clone()).or_insert_with(Hub::new);
        let (first, joined) = (!hub.has_readers(), hub.join(seat));
        drop(hubs);
        if first {
            self.readers_changed(Subject::Run(run.clone()));
        }
        joined
    }

    /// Hears of a run's commits only, as its worker does.
    pub fn watch_run(&self, run: &RunId) -> Watch {
        let seat = Seat { feed: self.clone(), run: Some(run.clone()), space: None, reads: None };
        let mut hubs = self.hubs();
        let hub = hubs.runs.entry(run.clone()).or_insert_with(Hub::new);
        Watch { committed: hub.committed.subscribe(), _seat: seat }
    }

    /// Listens to all runs and messages of a space.
    pub fn join_space(&self, space: &SpaceId) -> Joined {
        let reads = Subject::Space(space.clone());
        let seat = Seat { feed: self.clone(), run: None, space: Some(space.clone()), reads: Some(reads) };
        let mut hubs = self.hubs();
        let hub = hubs.spaces.entry(space.clone()).or_insert_with(Hub::new);
        let (first, joined) = (!hub.has_readers(), hub.join(seat));
        drop(hubs);
        if first {
            self.readers_changed(Subject::Space(space.clone()));
        }
        joined
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
        hubs.runs.entry(run.clone()).or_insert_with(Hub::new).deltas(&deltas);
        if let Some(space) = space {
            hubs.spaces.entry(space.clone()).or_insert_with(Hub::new).deltas(&deltas);
        }
        // Still under the lock: whoever asks for the step so far must not get
        // these pieces twice.
        if let Some(link) = self.link.get() {
            link.pieces(&run, space, &deltas);
        }
    }

    /// Forgets an unfinished step: its worker stopped, a new attempt starts over.
    pub fn forget(&self, run: &RunId, space: Option<&SpaceId>) {
        let mut hubs = self.hubs();
        let own = |hub: &mut Hub| {
            let own = hub.so_far.get(run).is_some_and(|known| known.from.is_none());
            own.then(|| hub.so_far.remove(run));
            own
        };
        let of_run = hubs.runs.get_mut(run).is_some_and(own);
        let of_space = space.and_then(|s| hubs.spaces.get_mut(s)).is_some_and(own);
        hubs.sweep(Some(run), space);
        if (of_run || of_space)
            && let Some(link) = self.link.get()
        {
            link.forgot(run, space);
        }
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
    fn of(&mut self, subject: &Subject) -> Option<&mut Hub> {
        match subject {
            Subject::Run(run) => self.runs.get_mut(run),
            Subject::Space(space) => self.spaces.get_mut(space),
        }
    }

    /// A reader leaves. True if it was the last.
    fn leave(&mut self, subject: &Subject) -> bool {
        let Some(hub) = self.of(subject) else { return false };
        hub.readers = hub.readers.saturating_sub(1);
        if hub.has_readers() {
            return false;
        }
        hub.deltas = None;
        hub.deafen();
        true
    }

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
