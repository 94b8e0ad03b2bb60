//! What a reader does beside reading: it looks whether its key still holds,
//! keeps the connection open, and waits for its client and for the database.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};
use toolyard_protocol::event::BlobRef;
use toolyard_protocol::{Event, Guarded};
use toolyard_store::{StoreError, blobs};

use super::{End, RECHECK, REST, Reader};
use crate::auth::Wanted;
use crate::routes::viewer;
use crate::sse::outlet::Left;
use crate::sse::source::{Item, Source};

/// What is as large as this waits in no more than it needs.
const LARGE: usize = 4 << 10;
/// A client has its patience for each part of a frame, and once for all that is
/// in the queue before the log is read on.
const PART: usize = 16 << 10;

impl Reader {
    /// What falls due with time. Asked before every page and not by a timer:
    /// a stream that always has news must not put it off for ever.
    pub(super) async fn upkeep(&mut self) -> Result<(), End> {
        if self.checked.elapsed() >= RECHECK {
            // Words that wait for what follows do not wait for the database.
            if self.held.is_some() {
                self.send().await?;
            }
            Box::pin(self.recheck()).await?;
        }
        // A comment now and then keeps proxies from closing an idle stream.
        let quiet = Duration::from_secs(self.app.config.limits.keep_alive_seconds);
        if self.spoken.elapsed() >= quiet {
            let comment = self.telling.as_ref().map_or(": keep-alive\n\n", |telling| telling.keep_alive());
            self.frames.push_str(comment);
            self.spoken = Instant::now();
            self.send().await?;
        }
        Ok(())
    }

    /// Ends the stream of a revoked key, an expired token or a removed member.
    async fn recheck(&mut self) -> Result<(), End> {
        self.checked = Instant::now();
        let asked = self.app.auth.principal(&self.app.store, &self.shown, Wanted::Either).await;
        let principal = match asked {
            Ok(principal) => principal,
            // Trouble of the database is not the reader's fault.
            Err(refused) if refused.status().is_server_error() => return Ok(()),
            Err(_) => return Err(End::Refused),
        };
        if principal != self.principal {
            return Err(End::Refused);
        }
        let seen = match &self.source {
            Source::Space(space) | Source::Run { space: Some(space), .. } => {
                viewer(&self.app, &principal, Some(space)).await
            }
            // For who triggered it, which never changes.
            Source::Run { space: None, .. } => return Ok(()),
        };
        match seen {
            Ok(Some(viewer)) => {
                if let Some(telling) = &mut self.telling {
                    telling.see_as(viewer.clone());
                }
                self.viewer = viewer;
                Ok(())
            }
            Ok(None) => Err(End::Refused),
            Err(_) => Ok(()),
        }
    }

    /// Puts what is written into the stream. A full one waits for its client, for
    /// a while: as long as it reads on, it gets a large frame part by part.
    pub(super) async fn send(&mut self) -> Result<(), End> {
        self.held = None;
        if self.frames.is_empty() {
            return Ok(());
        }
        self.spoken = Instant::now();
        let mut frames = std::mem::take(&mut self.frames);
        if frames.len() >= LARGE {
            frames.shrink_to_fit();
        }
        let mut frames = Bytes::from(frames);
        while !frames.is_empty() {
            let part = frames.split_to(frames.len().min(PART));
            if let Err(part) = self.outlet.try_send(part) {
                Box::pin(self.wait_for_client(Some(part))).await?;
            }
        }
        Ok(())
    }

    /// Waits until the client has all that was sent. What it cannot take is not
    /// read from the log: it waits there and not in memory.
    pub(super) async fn drained(&mut self) -> Result<(), End> {
        if self.outlet.is_empty() { Ok(()) } else { Box::pin(self.wait_for_client(None)).await }
    }

    /// Waits for room for a part, or until there is nothing left to take. A frame
    /// may have many parts, so the gateway may stop and a key be revoked meanwhile.
    async fn wait_for_client(&mut self, part: Option<Bytes>) -> Result<(), End> {
        let end = Instant::now() + Duration::from_secs(self.app.config.limits.reader_seconds);
        loop {
            let recheck = self.checked + RECHECK;
            let sent = async {
                match &part {
                    Some(part) => self.outlet.send(part.clone()).await,
                    None => self.outlet.drained().await,
                }
            };
            tokio::select! {
                biased;
                () = self.app.shutdown.cancelled() => return Err(End::Done),
                sent = sent => return sent.map_err(|Left| End::Done),
                () = sleep_until(end.min(recheck)) => {}
            }
            let now = Instant::now();
            if now >= end {
                return Err(End::Slow);
            }
            if now >= recheck {
                self.recheck().await?;
            }
        }
    }

    /// Reads until the database answers: an outage makes streams wait, not fail.
    pub(super) async fn patiently<T, F, R>(&self, read: F) -> Result<T, End>
    where
        F: Fn() -> R,
        R: Future<Output = Result<T, StoreError>>,
    {
        loop {
            match read().await {
                Ok(value) => return Ok(value),
                Err(StoreError::Unavailable(_) | StoreError::Full(_)) => {}
                Err(error) => {
                    tracing::error!(%error, "a stream cannot read its log");
                    return Err(End::Done);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(REST) => {}
                () = self.app.shutdown.cancelled() => return Err(End::Done),
                () = self.outlet.closed() => return Err(End::Done),
            }
        }
    }

    /// Natively a large value is a preview and its hash. Clients of other
    /// dialects know no blobs: they get the value.
    pub(super) fn blob_of<'e>(&self, event: &'e Event) -> Option<&'e BlobRef> {
        match (&self.telling, event) {
            (Some(_), Event::ToolReturned(end)) => end.blob.shown(),
            _ => None,
        }
    }

    pub(super) async fn whole(&self, event: &Event) -> Result<Option<Event>, End> {
        let (Some(blob), Event::ToolReturned(end)) = (self.blob_of(event), event) else { return Ok(None) };
        let (store, tenant, hash) =
            (self.app.store.clone(), self.principal.tenant.clone(), blob.blob.clone());
        let bytes = self.patiently(|| {
            let (tenant, hash) = (tenant.clone(), hash.clone());
            store.read::<_, StoreError, _>(move |tx| {
                Box::pin(async move { blobs::get(tx, &tenant, &hash).await })
            })
        });
        let Some(value) = bytes.await?.and_then(|bytes| serde_json::from_slice(&bytes).ok()) else {
            return Ok(None);
        };
        let mut end = end.clone();
        end.value = Guarded::Shown(value);
        end.blob = Guarded::Hidden;
        Ok(Some(end.into()))
    }

    pub(super) async fn whole_item(&self, item: Item) -> Result<Item, End> {
        match item {
            Item::Event { pos, run, seq, at, event } => {
                let whole = self.whole(&event).await?;
                Ok(Item::Event { pos, run, seq, at, event: whole.map_or(event, Box::new) })
            }
            message @ Item::Message(_) => Ok(message),
        }
    }
}
