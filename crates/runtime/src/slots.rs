//! How many runs this node works on at once.

use std::sync::Arc;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The node's capacity. A freed slot wakes the scheduler.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    free: Arc<Semaphore>,
    freed: Arc<Notify>,
}

/// The right to work on one run. Dropping it frees the slot and wakes the scheduler.
#[derive(Debug)]
pub(crate) struct Slot {
    permit: Option<OwnedSemaphorePermit>,
    freed: Arc<Notify>,
    used: bool,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.permit.take();
        if self.used {
            self.freed.notify_one();
        }
    }
}

impl Slot {
    /// Frees a slot that was not used: nobody needs to hear of it.
    pub(crate) fn give_back(mut self) {
        self.used = false;
    }
}

impl Slots {
    pub(crate) fn new(count: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(count)), freed: Arc::new(Notify::new()) }
    }
    /// Up to `most` slots, without waiting.
    pub(crate) fn take(&self, most: usize) -> Vec<Slot> {
        let mut slots = Vec::new();
        while slots.len() < most
            && let Ok(permit) = self.free.clone().try_acquire_owned()
        {
            slots.push(Slot { permit: Some(permit), freed: self.freed.clone(), used: true });
        }
        slots
    }
    pub(crate) fn free(&self) -> usize {
        self.free.available_permits()
    }
    /// Waits until a slot was freed, or something was queued.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }
    /// Tells the scheduler to look at the queue.
    pub(crate) fn nudge(&self) {
        self.freed.notify_one();
    }
}
