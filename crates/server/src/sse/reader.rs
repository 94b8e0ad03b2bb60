//! The reader algorithm. Join the feed first, then page the log, then send the
//! step so far, then follow. The log is the truth: a commit that the feed brings
//! is shown at once if it is the very next, else the log is read.
//!
//! What is sent is the native frames, or what a dialect's telling makes of them:
//! which pieces and events a reader gets, and in which order, is the same.

mod keeping;
mod pieces;

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use toolyard_dialects::native::{self, Frame};
use toolyard_dialects::telling::{Flow, Telling};
use toolyard_protocol::event::Event;
use toolyard_protocol::{Principal, RunId, Timestamp, Viewer, limits};
use toolyard_store::{Commit, Joined, News};

use super::outlet::Outlet;
use super::source::{Item, Source};
use super::steps::Steps;
use crate::app::App;
use crate::auth::Auth;
use crate::http::listen::Cut;
use crate::http::meter;
use crate::routes::call::{Call, Sight};

/// How often the log is read although no news came. On PostgreSQL a lost
/// notice costs at most this; on SQLite every commit is made by this process.
const POLL: Duration = Duration::from_secs(1);
const POLL_SQLITE: Duration = Duration::from_secs(5);
/// How often it is asked whether the key and the seat still hold.
pub(super) const RECHECK: Duration = Duration::from_secs(15);
/// A reader that lags twice within this is too slow for its stream.
const LAG_WINDOW: Duration = Duration::from_secs(30);
/// Pieces sent before the log is looked at again.
const PIECES: usize = 64;
/// A page that is larger is sent in several pieces.
const PAGE_BYTES: usize = 16 << 10;
/// Waits before the log is read again after the database failed.
const REST: Duration = Duration::from_millis(250);

/// Why a stream ends.
#[derive(Debug)]
enum End {
    /// All was said, or the gateway stops, or the client left.
    Done,
    /// The client reads too slowly.
    Slow,
    /// The key or the seat was taken away.
    Refused,
    /// What was sent is void.
    Void,
}

pub(super) struct Reader {
    app: Arc<App>,
    principal: Principal,
    viewer: Viewer,
    /// What the caller showed, to ask again whether it holds.
    shown: HeaderMap,
    cut: Option<Cut>,
    source: Source,
    cursor: i64,
    /// Events and messages that are read at once. Few of large ones, where the
    /// client is slow.
    at_once: u32,
    steps: Steps,
    finished: bool,
    /// It has read the log from its start.
    from_start: bool,
    /// When the key and the seat were last looked at.
    checked: Instant,
    /// When the log was last read.
    looked: Instant,
    /// When something was last sent.
    spoken: Instant,
    /// Written and not sent yet.
    frames: String,
    /// Until when what is written may wait for more.
    held: Option<Instant>,
    outlet: Outlet,
    /// Another dialect than the native one.
    telling: Option<Box<dyn Telling>>,
}

impl Reader {
    pub(super) fn new(call: Call, source: Source, cursor: i64, outlet: Outlet) -> Self {
        let viewer = match &call.sight {
            Sight::Backend(viewer) | Sight::Space(_, viewer) | Sight::Run(_, viewer) => viewer.clone(),
            // Without a seat nothing is seen: a member route always has one.
            Sight::Nothing => Viewer { kind: toolyard_protocol::KeyKind::Public, entity: None, role: None },
        };
        Self::build(call, viewer, source, cursor, outlet)
    }

    /// A reader of one run, in the words of a dialect.
    pub(super) fn telling(
        call: Call,
        viewer: Viewer,
        source: Source,
        outlet: Outlet,
        telling: Box<dyn Telling>,
    ) -> Self {
        Self { telling: Some(telling), ..Self::build(call, viewer, source, 0, outlet) }
    }

    pub(super) fn build(call: Call, viewer: Viewer, source: Source, cursor: i64, outlet: Outlet) -> Self {
        Self {
            from_start: cursor == 0 && source.lone_run().is_some(),
            app: call.app,
            principal: call.principal,
            viewer,
            shown: Auth::shown(&call.headers),
            cut: call.cut,
            source,
            cursor,
            at_once: limits::LOG_PAGE,
            steps: Steps::default(),
            finished: false,
            checked: Instant::now(),
            looked: Instant::now(),
            spoken: Instant::now(),
            frames: String::new(),
            held: None,
            outlet,
            telling: None,
        }
    }

    pub(super) async fn run(mut self) {
        let end = self.read().await;
        // The body is not polled while the socket is full: only the connection
        // itself can be ended.
        let slow = matches!(end, End::Slow);
        if slow {
            meter::reader_cut();
        }
        // In other dialects a body that ends early looks like one that ends well.
        let early = self.telling.is_some() && !self.finished;
        if let Some(cut) = self.cut.as_ref().filter(|_| slow || early) {
            cut.now();
        }
    }

    async fn read(&mut self) -> End {
        match self.follow_all().await {
            Ok(()) => End::Done,
            Err(end) => end,
        }
    }

    async fn follow_all(&mut self) -> Result<(), End> {
        match &mut self.telling {
            Some(telling) => telling.begin(&mut self.frames),
            // Browsers come back after this many milliseconds.
            None => self.frames.push_str("retry: 1000\n\n"),
        }
        let mut lagged: Option<Instant> = None;
        let mut joined = self.source.join(&self.app.store);
        Box::pin(self.check_cursor()).await?;
        let mut known = self.begin(&mut joined).await?;
        loop {
            if !std::mem::take(&mut known) {
                Box::pin(self.page()).await?;
            }
            if self.finished {
                return Ok(());
            }
            Box::pin(self.send_so_far(&mut joined)).await?;
            match self.follow(&mut joined).await? {
                Followed::Page => {}
                Followed::Ended => return Ok(()),
                Followed::Gap => joined = self.source.join(&self.app.store),
                Followed::Lagged => {
                    let now = Instant::now();
                    if lagged.is_some_and(|before| now - before < LAG_WINDOW) {
                        return Err(End::Slow);
                    }
                    lagged = Some(now);
                    joined = self.source.join(&self.app.store);
                }
            }
        }
    }

    /// Who comes right behind a commit of this node hears it from memory. False
    /// if the log must be asked.
    async fn begin(&mut self, joined: &mut Joined) -> Result<bool, End> {
        // News of other nodes may be behind what they stream.
        if !self.app.store.is_sqlite() && !joined.so_far.is_empty() {
            return Ok(false);
        }
        let next = |commit: &Arc<Commit>| commit.after == self.cursor;
        let follows = joined.committed.borrow().commit.as_ref().is_some_and(next);
        if follows { Box::pin(self.commit(&mut joined.committed)).await } else { Ok(false) }
    }

    /// A position ahead of the log is of another life, and one before an event
    /// that was removed has missed something: the reader starts over.
    async fn check_cursor(&mut self) -> Result<(), End> {
        if self.cursor == 0 {
            return Ok(());
        }
        let (store, tenant) = (self.app.store.clone(), self.principal.tenant.clone());
        let source = self.source.clone();
        let extent = self.patiently(|| source.extent(&store, &tenant)).await?.ok_or(End::Done)?;
        if (extent.gone_to..=extent.last).contains(&self.cursor) {
            return Ok(());
        }
        self.finished = extent.ended;
        let viewer = self.viewer.clone();
        let reset = self.patiently(|| source.reset(&store, &tenant, &viewer)).await?;
        let (frame, at) = reset.ok_or(End::Done)?;
        self.cursor = at;
        self.write(frame);
        self.send().await
    }

    /// Sends all that the log has after the cursor, as quickly as the client
    /// takes it.
    async fn page(&mut self) -> Result<(), End> {
        let (store, tenant) = (self.app.store.clone(), self.principal.tenant.clone());
        let source = self.source.clone();
        // Words that wait for what follows do not wait for the database.
        if self.held.is_some() {
            self.send().await?;
        }
        loop {
            self.upkeep().await?;
            self.drained().await?;
            self.looked = Instant::now();
            let (after, most) = (self.cursor, self.at_once);
            let (items, mut more) = self.patiently(|| source.page(&store, &tenant, after, most)).await?;
            self.at_once = most.saturating_mul(2).min(limits::LOG_PAGE);
            for (told, item) in (0..).zip(items) {
                if self.frames.len() >= PAGE_BYTES {
                    // The rest is not kept meanwhile, and next time less is read.
                    if !self.outlet.takes(self.frames.len()) {
                        (more, self.at_once) = (true, u32::max(told, 1));
                        break;
                    }
                    self.send().await?;
                }
                self.cursor = item.pos();
                let item = self.whole_item(item).await?;
                self.tell(&item)?;
                if self.finished {
                    return self.send().await;
                }
            }
            if !more {
                self.rest()?;
            }
            self.send().await?;
            if !more {
                return Ok(());
            }
        }
    }

    /// Sends what was committed last, if it follows the cursor. False if the
    /// log must be asked.
    async fn commit(&mut self, news: &mut watch::Receiver<News>) -> Result<bool, End> {
        let News { seq, commit } = news.borrow_and_update().clone();
        let Some(run) = self.source.lone_run().cloned() else { return Ok(false) };
        if seq <= self.cursor {
            return Ok(true);
        }
        let Some(commit) = commit.filter(|commit| commit.after == self.cursor) else { return Ok(false) };
        self.upkeep().await?;
        for event in commit.events.iter() {
            self.cursor += 1;
            // What is written does not wait for the database.
            if self.blob_of(event).is_some() {
                self.send().await?;
            }
            let whole = self.whole(event).await?;
            self.tell_event(&run, self.cursor, commit.at, whole.as_ref().unwrap_or(event))?;
            if self.finished {
                break;
            }
        }
        self.rest()?;
        self.send_commit(&commit.events).await?;
        Ok(true)
    }

    /// Says the next durable thing.
    fn tell(&mut self, item: &Item) -> Result<(), End> {
        if let (Source::Run { .. }, Item::Event { run, seq, at, event, .. }) = (&self.source, item) {
            return self.tell_event(run, *seq, *at, event);
        }
        if let Some(frame) = self.source.frame(item, &self.viewer) {
            self.write(frame);
        }
        if let Item::Event { run, event, .. } = item {
            self.steps.logged(run, event);
        }
        Ok(())
    }

    /// Says the next event of one run.
    fn tell_event(&mut self, run: &RunId, seq: i64, at: Timestamp, event: &Event) -> Result<(), End> {
        self.steps.logged(run, event);
        if let Some(telling) = &mut self.telling {
            let flow = telling.event(seq, at, event, &mut self.frames);
            return self.said(flow);
        }
        if let Some(frame) = native::frame(run, seq, at, event, &self.viewer) {
            self.write(frame);
        }
        self.finished |= matches!(event, Event::RunFinished(_));
        Ok(())
    }

    /// The log was read to its end.
    fn rest(&mut self) -> Result<(), End> {
        match &mut self.telling {
            Some(telling) if !self.finished => {
                let flow = telling.rest(&mut self.frames);
                self.said(flow)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What a telling said leads to.
    fn said(&mut self, flow: Flow) -> Result<(), End> {
        match flow {
            Flow::On => Ok(()),
            Flow::Over => {
                self.finished = true;
                Ok(())
            }
            Flow::Cut => Err(End::Void),
        }
    }

    /// Waits for news. Pieces are sent by themselves; anything else goes back to
    /// the log. Here a reader spends its life, so what it does now and then lies
    /// elsewhere: each of thousands that wait is as large as all that it might do.
    async fn follow(&mut self, joined: &mut Joined) -> Result<Followed, End> {
        let poll = if self.app.store.is_sqlite() { POLL_SQLITE } else { POLL };
        let mut ticks = interval_at(Instant::now() + poll, poll);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pieces = 0;
        loop {
            tokio::select! {
                biased;
                () = self.app.shutdown.cancelled() => return Err(End::Done),
                () = self.outlet.closed() => return Err(End::Done),
                // Pieces before commits: the end of a step that is all here is
                // shown as pieces. A few at a time, so that commits are heard.
                heard = joined.deltas.recv() => match heard {
                    Ok(deltas) => {
                        if !self.pieces(&deltas, &mut joined.committed).await? {
                            return Ok(Followed::Gap);
                        }
                        pieces += deltas.len();
                        if pieces >= PIECES {
                            pieces = 0;
                            self.upkeep().await?;
                            if !Box::pin(self.commit(&mut joined.committed)).await? {
                                return Ok(Followed::Page);
                            }
                        }
                    }
                    Err(RecvError::Lagged(_)) => return Ok(Followed::Lagged),
                    Err(RecvError::Closed) => return Ok(Followed::Gap),
                },
                changed = joined.committed.changed() => {
                    if changed.is_err() {
                        return Ok(Followed::Gap);
                    }
                    if !Box::pin(self.commit(&mut joined.committed)).await? {
                        return Ok(Followed::Page);
                    }
                }
                () = sleep_until(self.held.unwrap_or_else(Instant::now)), if self.held.is_some() => {
                    self.send().await?;
                }
                _ = ticks.tick() => {
                    if !self.app.store.feed().may_rest(self.looked.into_std()) {
                        return Ok(Followed::Page);
                    }
                }
            }
            if self.finished {
                self.send().await?;
                return Ok(Followed::Ended);
            }
        }
    }

    /// Adds to what is sent next.
    fn write(&mut self, frame: Frame) {
        if self.frames.is_empty() {
            self.frames = frame.encode();
        } else {
            self.frames.push_str(frame.as_str());
        }
    }
}

/// What following led to.
#[derive(Debug)]
enum Followed {
    /// Read the log on.
    Page,
    /// Nothing will follow.
    Ended,
    /// Join again: pieces are missing.
    Gap,
    /// As `Gap`, because this reader was too slow.
    Lagged,
}
