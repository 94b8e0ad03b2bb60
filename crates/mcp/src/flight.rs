//! The calls in flight on one connection: who hears their progress, and who
//! answers a question that the server asks in between.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::{Notify, mpsc};

use crate::ask::{Ask, Question, Reply};
use crate::settings::Owner;

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Progress {
    pub progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Progress that waits to be heard; more is dropped, as only the last counts.
const HEARD: usize = 32;

struct Slot {
    owner: Owner,
    token: Option<String>,
    request: Option<String>,
    progress: mpsc::Sender<Progress>,
    ask: Option<Arc<dyn Ask>>,
    asking: Arc<AtomicU32>,
}

/// All calls of a connection.
#[derive(Default)]
pub(crate) struct Flights {
    slots: Mutex<HashMap<u64, Slot>>,
    next: AtomicU64,
    landed: Notify,
}

impl Flights {
    fn slots(&self) -> MutexGuard<'_, HashMap<u64, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a place for a call before it is sent.
    pub(crate) fn board(self: &Arc<Self>, owner: Owner, ask: Option<Arc<dyn Ask>>) -> Flight {
        let (progress, heard) = mpsc::channel(HEARD);
        let asking = Arc::new(AtomicU32::new(0));
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        let slot = Slot { owner, token: None, request: None, progress, ask, asking: Arc::clone(&asking) };
        self.slots().insert(key, slot);
        Flight { key, all: Arc::clone(self), heard, asking }
    }

    /// Gives progress to its call. A token that nobody waits for is dropped.
    pub(crate) fn progressed(&self, token: &str, progress: Progress) {
        let slots = self.slots();
        if let Some(slot) = slots.values().find(|slot| slot.token.as_deref() == Some(token)) {
            let _ = slot.progress.try_send(progress);
        }
    }

    /// Asks the user of the call that a question belongs to. A connection may
    /// be shared: if it is not clear whose question it is, nobody is asked.
    pub(crate) async fn ask(&self, request: Option<&str>, question: Question) -> Reply {
        let (ask, asking) = {
            let slots = self.slots();
            let mut open: Vec<(&u64, &Slot)> = slots.iter().collect();
            if let Some(id) = request {
                open.retain(|(_, slot)| slot.request.as_deref() == Some(id));
            }
            let one_owner = open.windows(2).all(|pair| pair[0].1.owner == pair[1].1.owner);
            let latest = open.into_iter().max_by_key(|(key, _)| **key).filter(|_| one_owner);
            match latest.and_then(|(_, slot)| Some((slot.ask.clone()?, Arc::clone(&slot.asking)))) {
                Some(found) => found,
                None => return Reply::Decline,
            }
        };
        if !question.is_safe() {
            return Reply::Decline;
        }
        asking.fetch_add(1, Ordering::SeqCst);
        let reply = ask.ask(question).await;
        asking.fetch_sub(1, Ordering::SeqCst);
        reply
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots().is_empty()
    }

    /// Returns once no call is in flight.
    pub(crate) async fn all_landed(&self) {
        loop {
            let landed = self.landed.notified();
            if self.is_empty() {
                return;
            }
            landed.await;
        }
    }
}

/// The place of one call. Dropping it frees the place.
pub(crate) struct Flight {
    key: u64,
    all: Arc<Flights>,
    heard: mpsc::Receiver<Progress>,
    asking: Arc<AtomicU32>,
}

impl Flight {
    /// Binds the place to the request that was sent.
    pub(crate) fn sent(&self, request: String, token: String) {
        if let Some(slot) = self.all.slots().get_mut(&self.key) {
            slot.request = Some(request);
            slot.token = Some(token);
        }
    }
    pub(crate) async fn progress(&mut self) -> Option<Progress> {
        self.heard.recv().await
    }
    /// Is a question open?
    pub(crate) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.all.slots().remove(&self.key);
        self.all.landed.notify_waiters();
    }
}
