//! The queue between a stream's filler and its client, bounded in frames and
//! in bytes. What the connection has taken and not written yet counts too. So a
//! slow client costs what the queue may hold, and the one frame that its filler
//! is putting into it, part by part.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// The client left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Left;

#[derive(Debug)]
pub(super) struct Outlet {
    frames: mpsc::Sender<Sent>,
    room: Arc<Semaphore>,
    most: usize,
}

#[derive(Debug)]
pub(super) struct Inlet {
    frames: mpsc::Receiver<Sent>,
    /// Taken, and too large to be joined with what was before it.
    next: Option<Sent>,
}

type Sent = (Bytes, OwnedSemaphorePermit);

pub(super) fn channel(frames: usize, bytes: usize) -> (Outlet, Inlet) {
    let (send, receive) = mpsc::channel(frames);
    let outlet = Outlet { frames: send, room: Arc::new(Semaphore::new(bytes)), most: bytes };
    (outlet, Inlet { frames: receive, next: None })
}

impl Outlet {
    fn weight(&self, bytes: &Bytes) -> u32 {
        u32::try_from(bytes.len().min(self.most)).unwrap_or(u32::MAX)
    }

    /// Sends if there is room now, else gives the bytes back.
    pub(super) fn try_send(&self, bytes: Bytes) -> Result<(), Bytes> {
        let Ok(room) = self.room.clone().try_acquire_many_owned(self.weight(&bytes)) else {
            return Err(bytes);
        };
        self.frames.try_send((bytes, room)).map_err(|unsent| unsent.into_inner().0)
    }

    /// Waits for room. A frame larger than all of it goes alone.
    pub(super) async fn send(&self, bytes: Bytes) -> Result<(), Left> {
        let room = tokio::select! {
            room = self.room.clone().acquire_many_owned(self.weight(&bytes)) => room.map_err(|_| Left)?,
            () = self.frames.closed() => return Err(Left),
        };
        self.frames.send((bytes, room)).await.map_err(|_| Left)
    }

    /// So many bytes would go in now.
    pub(super) fn takes(&self, bytes: usize) -> bool {
        self.room.available_permits() >= bytes
    }

    /// All that was sent is written.
    pub(super) fn is_empty(&self) -> bool {
        self.takes(self.most)
    }

    /// Waits until all that was sent is written.
    pub(super) async fn drained(&self) -> Result<(), Left> {
        let all = u32::try_from(self.most).unwrap_or(u32::MAX);
        tokio::select! {
            room = self.room.acquire_many(all) => room.map(drop).map_err(|_| Left),
            () = self.frames.closed() => Err(Left),
        }
    }

    pub(super) async fn closed(&self) {
        self.frames.closed().await;
    }
}

/// Frames that are joined into one write at most, and their bytes: a copy of
/// what is larger costs more than a second write.
const JOINED: usize = 32;
const JOINED_BYTES: usize = 8 << 10;

/// Bytes on their way, and the room they take until the last is written.
struct Held {
    bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Inlet {
    /// The frames that are ready, small ones as one.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        let (first, mut room) = match self.next.take() {
            Some(frame) => frame,
            None => self.frames.recv().await?,
        };
        let mut all = BytesMut::new();
        for _ in 1..JOINED {
            let so_far = if all.is_empty() { first.len() } else { all.len() };
            let Ok((more, more_room)) = self.frames.try_recv() else { break };
            if so_far + more.len() > JOINED_BYTES {
                self.next = Some((more, more_room));
                break;
            }
            if all.is_empty() {
                all.reserve(4096);
                all.extend_from_slice(&first);
            }
            all.extend_from_slice(&more);
            room.merge(more_room);
        }
        let bytes = if all.is_empty() { first } else { all.freeze() };
        Some(Bytes::from_owner(Held { bytes, _room: room }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn bytes_are_bounded_and_a_large_frame_goes_alone() {
        let (out, mut inlet) = channel(8, 10);
        let frame = |n: usize| Bytes::from(vec![b'x'; n]);
        out.send(frame(6)).await.unwrap();
        assert!(out.send(frame(6)).now_or_never().is_none(), "no room for six more");
        assert!(out.takes(4) && !out.takes(5));
        let taken = inlet.next().await.unwrap();
        assert_eq!(taken.len(), 6);
        assert!(!out.is_empty() && out.drained().now_or_never().is_none(), "taken, but not written");
        drop(taken);
        assert!(out.is_empty() && out.drained().await.is_ok());
        out.send(frame(1000)).await.unwrap();
        assert!(out.send(frame(1)).now_or_never().is_none());
        assert_eq!(inlet.next().await.unwrap().len(), 1000);
        drop(inlet);
        assert_eq!(out.send(frame(1)).await, Err(Left));
    }

    #[tokio::test]
    async fn small_frames_are_joined_and_large_ones_are_not_copied() {
        let (out, mut inlet) = channel(8, 64 << 10);
        let large = Bytes::from(vec![b'x'; 16 << 10]);
        let at = large.as_ptr();
        for frame in [Bytes::from_static(b"a"), Bytes::from_static(b"b"), large, Bytes::from_static(b"c")] {
            out.send(frame).await.unwrap();
        }
        assert_eq!(inlet.next().await.unwrap(), "ab");
        let taken = inlet.next().await.unwrap();
        assert_eq!((taken.len(), taken.as_ptr()), (16 << 10, at));
        assert_eq!(inlet.next().await.unwrap(), "c");
        drop(taken);
        assert!(out.is_empty());
    }
}
