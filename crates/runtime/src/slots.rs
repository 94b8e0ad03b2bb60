//! How many runs this node works on at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The node's capacity. A freed slot wakes the scheduler while runs may be
/// queued; otherwise nobody needs to hear of it.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    free: Arc<Semaphore>,
    bell: Arc<Bell>,
}

#[derive(Debug, Default)]
struct Bell {
    rung: Notify,
    /// A run may wait in the queue for a slot.
    queued: AtomicBool,
}

/// The right to work on one run. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Slot {
    permit: Option<OwnedSemaphorePermit>,
    bell: Arc<Bell>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The slot first, then the bell: whoever hears it finds it free.
        self.permit.take();
        if self.bell.queued.load(Ordering::SeqCst) {
            self.bell.rung.notify_one();
        }
    }
}

impl Slots {
    pub(crate) fn new(count: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(count)), bell: Arc::default() }
    }
    /// Up to `most` slots, without waiting.
    pub(crate) fn take(&self, most: usize) -> Vec<Slot> {
        let mut slots = Vec::new();
        while slots.len() < most
            && let Ok(permit) = self.free.clone().try_acquire_owned()
        {
            slots.push(Slot { permit: Some(permit), bell: self.bell.clone() });
        }
        slots
    }
    pub(crate) fn free(&self) -> usize {
        self.free.available_permits()
    }
    /// Waits until there may be something in the queue and a slot for it.
    pub(crate) async fn freed(&self) {
        self.bell.rung.notified().await;
    }
    /// A run was queued: look at it now, and whenever a slot is freed.
    pub(crate) fn queued(&self) {
        self.bell.queued.store(true, Ordering::SeqCst);
        self.bell.rung.notify_one();
    }
    /// The scheduler looks now; what is queued from here on says so again.
    pub(crate) fn looking(&self) {
        self.bell.queued.store(false, Ordering::SeqCst);
    }
}
