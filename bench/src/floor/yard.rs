//! The state of the bare server: threads as ready JSON, and who waits.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyper::header::HeaderMap;

use super::disk::{Disk, Entry};
use crate::http::Peer;

/// The agent that every server of the rig serves.
const HEAD: &str = r#"{"model":"mock","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"You are a helpful assistant."}"#;
const TAIL: &str = r#"],"tools":[{"type":"function","function":{"name":"get_time","description":"The current time.","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"read_screen","description":"What the user sees.","parameters":{"type":"object","properties":{}}}}]}"#;

/// One conversation.
#[derive(Debug, Default)]
struct Thread {
    /// Messages as the model reads them, each with a comma before it.
    history: String,
    messages: usize,
    waits_for: Option<String>,
}

/// All conversations, the way to the model and the way to the disk.
#[derive(Debug)]
pub struct Yard {
    threads: Mutex<HashMap<String, Thread>>,
    pub(super) upstream: Arc<Peer>,
    pub(super) disk: Disk,
}

impl Yard {
    /// A server that knows what the disk knows.
    pub fn new(upstream: SocketAddr, disk: Disk, left: Vec<Entry>) -> Arc<Self> {
        let yard = Self { threads: Mutex::default(), upstream: Peer::new(upstream, HeaderMap::new()), disk };
        for entry in left {
            yard.remember(&entry);
        }
        Arc::new(yard)
    }

    fn threads(&self) -> MutexGuard<'_, HashMap<String, Thread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over a stored line.
    pub(super) fn remember(&self, entry: &Entry) {
        let mut threads = self.threads();
        if !threads.contains_key(&entry.thread) {
            threads.insert(entry.thread.clone(), Thread::default());
        }
        if let Some(thread) = threads.get_mut(&entry.thread) {
            thread.history.push(',');
            thread.history.push_str(&entry.message);
            thread.messages += 1;
            thread.waits_for.clone_from(&entry.waits_for);
        }
    }

    /// The request for the thread's next step.
    pub(super) fn request(&self, thread: &str) -> Bytes {
        let threads = self.threads();
        let history = threads.get(thread).map_or("", |thread| thread.history.as_str());
        let mut body = String::with_capacity(HEAD.len() + history.len() + TAIL.len());
        body.push_str(HEAD);
        body.push_str(history);
        body.push_str(TAIL);
        Bytes::from(body)
    }

    /// Ends the wait of a thread's run: true for the first result only.
    pub(super) fn take_wait(&self, thread: &str, call: &str) -> bool {
        let mut threads = self.threads();
        let Some(thread) = threads.get_mut(thread) else { return false };
        let fits = thread.waits_for.as_deref() == Some(call);
        if fits {
            thread.waits_for = None;
        }
        fits
    }
}
