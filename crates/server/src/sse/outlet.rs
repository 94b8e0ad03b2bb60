//! The queue between a stream's filler and its client, bounded in frames and
//! in bytes. What the connection has taken and not written yet counts too: a
//! slow client costs what the queue may hold and no more.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// The client left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Left;

#[derive(Debug)]
pub(super) struct Outlet {
    frames: mpsc::Sender<(Bytes, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
    most: usize,
}

#[derive(Debug)]
pub(super) struct Inlet(mpsc::Receiver<(Bytes, OwnedSemaphorePermit)>);

pub(super) fn channel(frames: usize, bytes: usize) -> (Outlet, Inlet) {
    let (send, receive) = mpsc::channel(frames);
    (Outlet { frames: send, room: Arc::new(Semaphore::new(bytes)), most: bytes }, Inlet(receive))
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

    /// Half of it is free.
    pub(super) fn has_room(&self) -> bool {
        self.room.available_permits() >= self.most / 2
    }

    /// Waits until half of it is free.
    pub(super) async fn room(&self) -> Result<(), Left> {
        let half = u32::try_from(self.most / 2).unwrap_or(u32::MAX);
        tokio::select! {
            room = self.room.acquire_many(half) => room.map(drop).map_err(|_| Left),
            () = self.frames.closed() => Err(Left),
        }
    }

    pub(super) async fn closed(&self) {
        self.frames.closed().await;
    }
}

/// Frames that are joined into one write at most.
const JOINED: usize = 32;

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
    /// All frames that are ready, as one.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        let (first, mut room) = self.0.recv().await?;
        let Ok((second, more_room)) = self.0.try_recv() else { return Some(held(first, room)) };
        room.merge(more_room);
        let mut all = BytesMut::with_capacity((first.len() + second.len()).max(4096));
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        for _ in 2..JOINED {
            let Ok((more, more_room)) = self.0.try_recv() else { break };
            room.merge(more_room);
            all.extend_from_slice(&more);
        }
        Some(held(all.freeze(), room))
    }
}

fn held(bytes: Bytes, room: OwnedSemaphorePermit) -> Bytes {
    Bytes::from_owner(Held { bytes, _room: room })
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
        assert!(!out.has_room() && out.room().now_or_never().is_none(), "less than half is free");
        let taken = inlet.next().await.unwrap();
        assert_eq!(taken.len(), 6);
        assert!(!out.has_room(), "taken, but not written");
        drop(taken);
        assert!(out.has_room() && out.room().await.is_ok());
        out.send(frame(1000)).await.unwrap();
        assert!(out.send(frame(1)).now_or_never().is_none());
        assert_eq!(inlet.next().await.unwrap().len(), 1000);
        drop(inlet);
        assert_eq!(out.send(frame(1)).await, Err(Left));
    }
}
