//! Conversations that the client keeps, for servers that keep none.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Seat;

#[derive(Debug, Default)]
pub(super) struct Kept {
    next: AtomicU64,
    talks: Mutex<HashMap<String, Vec<String>>>,
}

impl Kept {
    pub(super) fn seat(&self) -> Seat {
        Seat(format!("t{}", self.next.fetch_add(1, Ordering::Relaxed)))
    }

    /// A name that no other request of this client has.
    pub(super) fn name(&self) -> String {
        self.seat().0
    }

    pub(super) fn add(&self, seat: &Seat, texts: &[String]) {
        let mut talks = self.talks.lock().unwrap_or_else(PoisonError::into_inner);
        talks.entry(seat.0.clone()).or_default().extend_from_slice(texts);
    }

    /// What was said in a conversation, and what the user says now.
    pub(super) fn with(&self, seat: &Seat, prompt: String) -> Vec<String> {
        let talks = self.talks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut texts = talks.get(&seat.0).cloned().unwrap_or_default();
        texts.push(prompt);
        texts
    }
}
