//! The feed's side of the way to other nodes by Redis: what goes out waits in a
//! bounded queue, what comes in goes to the hubs. The connection is in `redis`.
//!
//! Nothing here is needed to lose nothing. News that does not arrive is found
//! in the database, pieces that do not arrive are asked for, and the whole step
//! follows as an event.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::{Notify, mpsc, watch};
use toolyard_protocol::delta::Delta;
use toolyard_protocol::{ConnectionId, RunId, SpaceId};

use super::ears::Ears;
use super::words::{self, Subject, Word};
use super::{Feed, Hub, Hubs};
use crate::so_far::StepSoFar;
use crate::tx::Touched;

/// Messages that wait for Redis. What does not fit is lost, pieces before news:
/// they may not take the last quarter.
const QUEUE: usize = 8192;
const QUEUE_FOR_NEWS: usize = 2048;
const QUEUE_BYTES: usize = 16 << 20;

/// How Redis does, for whoever runs the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    pub up: bool,
    /// Messages that found no room in the queue.
    pub lost: u64,
}

/// A message on its way out.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) channel: String,
    pub(super) text: String,
}

#[derive(Debug)]
pub(super) struct Link {
    /// The name of the database on this Redis: several may share it.
    root: String,
    me: ConnectionId,
    out: mpsc::Sender<Parcel>,
    bytes: AtomicUsize,
    lost: AtomicU64,
    up: watch::Sender<bool>,
    /// News was lost.
    spilled: Notify,
    /// Readers came or went.
    pub(super) changed: Notify,
}

impl Link {
    pub(super) fn new(root: String) -> (Self, mpsc::Receiver<Parcel>) {
        let (out, parcels) = mpsc::channel(QUEUE);
        let link = Self {
            root,
            me: ConnectionId::mint(),
            out,
            bytes: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            up: watch::Sender::new(false),
            spilled: Notify::new(),
            changed: Notify::new(),
        };
        (link, parcels)
    }

    /// The channel of all nodes.
    pub(super) fn common(&self) -> String {
        self.root.clone()
    }
    pub(super) fn channel(&self, subject: &Subject) -> String {
        format!("{}:{}", self.root, subject.write())
    }
    /// The channel on which the node hears itself.
    pub(super) fn mirror(&self) -> String {
        format!("{}:b:{}", self.root, self.me)
    }

    pub(super) fn is_up(&self) -> bool {
        *self.up.borrow()
    }

    /// A parcel left the queue.
    pub(super) fn took(&self, parcel: &Parcel) {
        self.bytes.fetch_sub(parcel.text.len(), Ordering::Relaxed);
    }

    /// Puts a message into the queue, unless less than `room` would be left.
    fn send(&self, channel: String, text: String, room: usize) -> bool {
        let bytes = text.len();
        if self.out.capacity() > room {
            let queued = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
            if queued <= QUEUE_BYTES && self.out.try_send(Parcel { channel, text }).is_ok() {
                return true;
            }
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
        false
    }

    fn send_to(&self, run: &RunId, space: Option<&SpaceId>, text: String) {
        if let Some(space) = space {
            let channel = self.channel(&Subject::Space(space.clone()));
            self.send(channel, text.clone(), QUEUE_FOR_NEWS);
        }
        self.send(self.channel(&Subject::Run(run.clone())), text, QUEUE_FOR_NEWS);
    }

    pub(super) fn pieces(&self, run: &RunId, space: Option<&SpaceId>, deltas: &[Delta]) {
        if self.is_up()
            && let Some(text) = words::pieces(self.me.as_str(), deltas)
        {
            self.send_to(run, space, text);
        }
    }

    pub(super) fn forgot(&self, run: &RunId, space: Option<&SpaceId>) {
        if self.is_up() {
            self.send_to(run, space, words::forgot(self.me.as_str(), run));
        }
    }

    pub(super) fn question(&self, subject: &Subject) -> Parcel {
        Parcel { channel: self.common(), text: words::ask(self.me.as_str(), subject) }
    }

    fn ask(&self, subject: &Subject) {
        let Parcel { channel, text } = self.question(subject);
        self.send(channel, text, QUEUE_FOR_NEWS);
    }

    fn answer(&self, subject: &Subject, step: &StepSoFar) {
        if let Some(text) = words::so_far(self.me.as_str(), step) {
            self.send(self.channel(subject), text, QUEUE_FOR_NEWS);
        }
    }

    fn news(&self, news: &Touched) {
        if !self.send(self.common(), words::news(self.me.as_str(), news), 0) {
            self.spilled.notify_one();
        }
    }
}

impl Feed {
    pub(super) fn ears(&self) -> std::sync::MutexGuard<'_, Ears> {
        self.ears.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How Redis does, if it is used.
    pub fn link(&self) -> Option<LinkState> {
        let link = self.link.get()?;
        Some(LinkState { up: link.is_up(), lost: link.lost.load(Ordering::Relaxed) })
    }

    /// May somebody who looked at the database then go on waiting for news?
    pub fn may_rest(&self, looked: Instant) -> bool {
        self.ears().may_rest(looked)
    }

    /// Must a commit be told by PostgreSQL? Not if all nodes hear Redis.
    pub(crate) fn must_notify(&self) -> bool {
        !self.link.get().is_some_and(Link::is_up) || self.ears().doubted()
    }

    /// Tells other nodes of commits by Redis, once they are durable.
    pub(crate) fn tell(&self, touched: &[Touched]) {
        if let Some(link) = self.link.get().filter(|link| link.is_up()) {
            touched.iter().for_each(|news| link.news(news));
        }
    }

    /// PostgreSQL's notifications come, or do not.
    pub(crate) fn listens(&self, works: bool) {
        self.ears().notifications(works);
    }

    /// Another node may have lost news.
    pub(crate) fn doubt(&self) {
        self.ears().doubt();
    }

    /// Waits until this node may have lost news, or cannot hear Redis.
    pub(crate) async fn deaf(&self) {
        let Some(link) = self.link.get() else { return std::future::pending().await };
        let mut up = link.up.subscribe();
        tokio::select! {
            _ = up.wait_for(|up| !up) => {}
            () = link.spilled.notified() => {}
        }
    }

    /// Redis answers, or does not. Answers whether that is new.
    pub(super) fn link_is(&self, up: bool) -> bool {
        let Some(link) = self.link.get() else { return false };
        let new = link.up.send_replace(up) != up;
        if new {
            self.ears().redis(up);
        }
        if !up {
            let mut hubs = self.hubs();
            let Hubs { runs, spaces, .. } = &mut *hubs;
            runs.values_mut().chain(spaces.values_mut()).for_each(Hub::deafen);
        }
        new
    }

    pub(super) fn readers_changed(&self, subject: Subject) {
        if let Some(link) = self.link.get() {
            self.hubs().changed.insert(subject);
            link.changed.notify_one();
        }
    }

    /// All that somebody here reads.
    pub(super) fn read_here(&self) -> Vec<Subject> {
        let mut hubs = self.hubs();
        hubs.changed.clear();
        let runs = hubs.runs.iter().filter(|(_, hub)| hub.has_readers());
        let runs = runs.map(|(run, _)| Subject::Run(run.clone()));
        let spaces = hubs.spaces.iter().filter(|(_, hub)| hub.has_readers());
        runs.chain(spaces.map(|(space, _)| Subject::Space(space.clone()))).collect()
    }

    /// Of what changed: what has readers now, and what has none.
    pub(super) fn changed_here(&self) -> (Vec<Subject>, Vec<Subject>) {
        let mut hubs = self.hubs();
        let changed = std::mem::take(&mut hubs.changed);
        changed.into_iter().partition(|subject| hubs.of(subject).is_some_and(|hub| hub.has_readers()))
    }

    /// A message of another node.
    pub(super) fn hear(&self, channel: &str, text: &str) {
        let Some(link) = self.link.get() else { return };
        let Some((from, word)) = words::read(link.me.as_str(), text) else { return };
        let subject = channel.strip_prefix(&link.root).and_then(|rest| rest.strip_prefix(':'));
        let subject = subject.and_then(Subject::read);
        match (subject, word) {
            (None, Word::News(news)) => self.publish(&[news]),
            (None, Word::Ask(subject)) => {
                let mut hubs = self.hubs();
                let Some(hub) = hubs.of(&subject) else { return };
                let own = hub.so_far.values().filter(|known| known.from.is_none());
                own.for_each(|known| link.answer(&subject, &known.step));
            }
            (Some(subject), word) => {
                let mut hubs = self.hubs();
                // Whoever left meanwhile needs nothing.
                let Some(hub) = hubs.of(&subject).filter(|hub| hub.has_readers()) else { return };
                match word {
                    Word::Pieces(deltas) => {
                        if hub.hear(from, deltas) {
                            link.ask(&subject);
                        }
                    }
                    Word::SoFar(step) => hub.told(from, step),
                    Word::Forgot(run) => hub.forgot(from, &run),
                    Word::News(_) | Word::Ask(_) => {}
                }
            }
            (None, Word::Pieces(_) | Word::SoFar(_) | Word::Forgot(_)) => {}
        }
    }
}
