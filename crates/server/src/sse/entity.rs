//! The stream of an entity: those of its spaces in one. Each space has a reader
//! of its own; here their frames are put one behind the other, and an id says
//! how far all of them are. What a reader may see is decided there, not here.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{BoxStream, SelectAll, unfold};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolyard_protocol::{EntityId, SpaceId, limits};
use toolyard_store::{StoreError, entities, spaces};

use super::outlet::{self, Inlet, Outlet};
use super::places::{Blocks, Places};
use super::reader::{RECHECK, Reader};
use super::source::Source;
use crate::auth::Wanted;
use crate::http::meter;
use crate::routes::call::Call;
use crate::routes::viewer;

/// How often it is asked which spaces the entity is in.
const LOOK: Duration = Duration::from_secs(2);
/// Frames and bytes of one space that wait for their turn.
const BACKLOG: usize = 16;
const BACKLOG_BYTES: usize = 16 << 10;
/// A client has its patience for each part of what is sent.
const PART: usize = 16 << 10;

/// A piece of a space's stream; none at its end.
type Heard = (SpaceId, Option<Bytes>);

/// A space that is being read. Dropped, its reader ends.
struct Open {
    blocks: Blocks,
    _reading: DropGuard,
}

/// Why the stream ends: the client left or is slow, the key or the entity is
/// gone, or the gateway stops.
struct Over;

pub(super) struct Crowd {
    call: Call,
    entity: EntityId,
    places: Places,
    outlet: Outlet,
    open: HashMap<SpaceId, Open>,
    heard: SelectAll<BoxStream<'static, Heard>>,
    /// When the key was last looked at, and when something was last sent.
    checked: Instant,
    spoken: Instant,
}

impl Crowd {
    pub(super) fn new(call: Call, entity: EntityId, places: Places, outlet: Outlet) -> Self {
        let now = Instant::now();
        let (open, heard) = (HashMap::new(), SelectAll::new());
        Self { call, entity, places, outlet, open, heard, checked: now, spoken: now }
    }

    pub(super) async fn run(mut self) {
        // It has nothing to say by itself: why it ends is told by what is done.
        let _over = self.follow().await;
    }

    async fn follow(&mut self) -> Result<(), Over> {
        let shutdown = self.call.app.shutdown.clone();
        // Browsers come back after this many milliseconds.
        self.send(b"retry: 1000\n\n".to_vec()).await?;
        self.look().await?;
        let mut ticks = interval_at(Instant::now() + LOOK, LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Err(Over),
                () = self.outlet.closed() => return Err(Over),
                // Before what is heard: a busy space must not put it off for ever.
                _ = ticks.tick() => self.look().await?,
                Some((space, piece)) = self.heard.next() => match piece {
                    Some(piece) => self.tell(&space, &piece).await?,
                    // If the entity is still in it, it is read on from its place.
                    None => drop(self.open.remove(&space)),
                },
            }
        }
    }

    /// Hands on the frames that are whole, each durable one with the place that
    /// all spaces have reached with it.
    async fn tell(&mut self, space: &SpaceId, piece: &[u8]) -> Result<(), Over> {
        let Some(open) = self.open.get_mut(space) else { return Ok(()) };
        let mut text = Vec::with_capacity(piece.len());
        let places = &mut self.places;
        open.blocks.push(piece, |block| places.tell(space, block, &mut text));
        self.send(text).await
    }

    /// What falls due with time: the key, the spaces, a sign of life.
    async fn look(&mut self) -> Result<(), Over> {
        if self.checked.elapsed() >= RECHECK {
            self.checked = Instant::now();
            let (app, headers) = (&self.call.app, &self.call.headers);
            match app.auth.principal(&app.store, headers, Wanted::Either).await {
                Ok(principal) if principal == self.call.principal => {}
                // Trouble of the database is not the reader's fault.
                Err(refused) if refused.status().is_server_error() => {}
                Ok(_) | Err(_) => return Err(Over),
            }
        }
        let quiet = Duration::from_secs(self.call.app.config.limits.keep_alive_seconds);
        if self.spoken.elapsed() >= quiet {
            self.send(b": keep-alive\n\n".to_vec()).await?;
        }
        match spaces_of(&self.call, &self.entity).await {
            Ok(Some(now)) if now.len() <= limits::ENTITY_SPACES => self.take(now).await,
            // Asked again, the gateway says why.
            Ok(_) => Err(Over),
            // An outage makes streams wait, not fail.
            Err(_) => Ok(()),
        }
    }

    /// Reads what the entity is in from now on, and nothing else.
    async fn take(&mut self, now: Vec<SpaceId>) -> Result<(), Over> {
        self.open.retain(|space, _| now.contains(space));
        self.places.keep(&now);
        for space in now {
            if self.open.contains_key(&space) {
                continue;
            }
            let seen = viewer(&self.call.app, &self.call.principal, Some(&space)).await;
            let Ok(Some(viewer)) = seen else { continue };
            let (send, frames) = outlet::channel(BACKLOG, BACKLOG_BYTES);
            let from = self.places.of(&space);
            let reader = Reader::build(self.call.clone(), viewer, Source::Space(space.clone()), from, send);
            self.call.app.tasks.spawn("stream of a space", reader.run());
            let reading = CancellationToken::new();
            self.heard.push(pieces(space.clone(), frames, reading.clone()));
            self.open.insert(space, Open { blocks: Blocks::default(), _reading: reading.drop_guard() });
        }
        Ok(())
    }

    async fn send(&mut self, text: Vec<u8>) -> Result<(), Over> {
        if text.is_empty() {
            return Ok(());
        }
        self.spoken = Instant::now();
        let patience = Duration::from_secs(self.call.app.config.limits.reader_seconds);
        let mut text = Bytes::from(text);
        while !text.is_empty() {
            let part = text.split_to(text.len().min(PART));
            match tokio::time::timeout(patience, self.outlet.send(part)).await {
                Ok(Ok(())) => {}
                Ok(Err(_left)) => return Err(Over),
                Err(_) => {
                    meter::reader_cut();
                    if let Some(cut) = &self.call.cut {
                        cut.now();
                    }
                    return Err(Over);
                }
            }
        }
        Ok(())
    }
}

/// The spaces that an entity is in, one more than may be followed at most; none
/// if there is no such entity.
pub(crate) async fn spaces_of(call: &Call, entity: &EntityId) -> Result<Option<Vec<SpaceId>>, StoreError> {
    let (tenant, entity) = (call.tenant().clone(), entity.clone());
    let most = u32::try_from(limits::ENTITY_SPACES + 1).unwrap_or(u32::MAX);
    call.store()
        .read(move |tx| {
            Box::pin(async move {
                if entities::get(tx, &tenant, &entity).await?.is_none() {
                    return Ok(None);
                }
                Ok(Some(spaces::of_member(tx, &tenant, &entity, most).await?))
            })
        })
        .await
}

/// What a space's reader says, until it ends or nobody wants it any more.
fn pieces(space: SpaceId, frames: Inlet, reading: CancellationToken) -> BoxStream<'static, Heard> {
    let told = unfold(Some(frames), move |frames| {
        let (space, reading) = (space.clone(), reading.clone());
        async move {
            let mut frames = frames?;
            tokio::select! {
                biased;
                () = reading.cancelled() => None,
                piece = frames.next() => {
                    let more = piece.is_some().then_some(frames);
                    Some(((space, piece), more))
                }
            }
        }
    });
    told.boxed()
}
