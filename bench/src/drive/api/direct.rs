//! Straight to the mock: what an errand costs without any server. The client
//! keeps the history and does the tool loop itself.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::HeaderMap;
use serde_json::{Value, json};

use super::{Seat, accepted, body};
use crate::drive::DriveError;
use crate::drive::errand::{Errand, Tool, Watch};
use crate::frames::Frames;
use crate::http::Peer;

#[derive(Debug)]
pub struct Direct {
    peer: Arc<Peer>,
    next: AtomicU64,
    history: Mutex<HashMap<String, Vec<Value>>>,
}

impl Direct {
    pub fn new(upstream: SocketAddr) -> Self {
        let peer = Peer::new(upstream, HeaderMap::new());
        Self { peer, next: AtomicU64::new(0), history: Mutex::default() }
    }

    pub fn seat(&self) -> Seat {
        Seat(self.next.fetch_add(1, Ordering::Relaxed).to_string())
    }

    pub fn add_history(&self, seat: &Seat, text: &str) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let message = json!({"role": "user", "content": text});
        history.entry(seat.0.clone()).or_default().push(message);
    }

    pub async fn run(&self, seat: &Seat, errand: &Errand) -> Result<Watch, DriveError> {
        let mut messages = {
            let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
            history.get(&seat.0).cloned().unwrap_or_default()
        };
        let mut watch = Watch::start();
        messages.push(json!({"role": "user", "content": errand.prompt()}));
        if errand.tool != Tool::None {
            self.ask(&messages, &mut watch).await?;
            watch.pause();
            if errand.abandon {
                return watch.end(errand);
            }
            messages.push(json!({"role": "tool", "tool_call_id": "call", "content": "{}"}));
        }
        self.ask(&messages, &mut watch).await?;
        watch.end(errand)
    }

    async fn ask(&self, messages: &[Value], watch: &mut Watch) -> Result<(), DriveError> {
        let request = body(&json!({"model": "mock", "stream": true, "messages": messages}));
        let answer = self.peer.post("/v1/chat/completions", request).await?;
        let mut answer = accepted("the model call", answer).await?;
        let (mut frames, mut done) = (Frames::default(), false);
        while let Some(bytes) = answer.next().await? {
            watch.read(&bytes);
            frames.push(&bytes);
            while let Some(event) = frames.next_event() {
                done |= event.data == "[DONE]";
            }
        }
        if done { Ok(()) } else { Err(DriveError::Failed("the stream was cut".to_owned())) }
    }
}
