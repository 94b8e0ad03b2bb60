//! Straight to the mock: what an errand costs without any server. The client
//! keeps the history and does the tool loop itself.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::header::HeaderMap;
use serde_json::{Value, json};

use super::kept::Kept;
use super::{Seat, accepted, body, each_event};
use crate::drive::DriveError;
use crate::drive::errand::{Errand, Tool, Watch};
use crate::http::Peer;

#[derive(Debug)]
pub struct Direct {
    peer: Arc<Peer>,
    kept: Kept,
}

impl Direct {
    pub fn new(upstream: SocketAddr) -> Self {
        Self { peer: Peer::new(upstream, HeaderMap::new()), kept: Kept::default() }
    }

    pub fn seat(&self) -> Seat {
        self.kept.seat()
    }

    pub fn add_history(&self, seat: &Seat, texts: &[String]) {
        self.kept.add(seat, texts);
    }

    pub async fn run(&self, seat: &Seat, errand: &Errand) -> Result<Watch, DriveError> {
        let mut watch = Watch::start();
        let said = self.kept.with(seat, errand.prompt());
        let mut messages: Vec<Value> =
            said.into_iter().map(|text| json!({"role": "user", "content": text})).collect();
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
        let answer = accepted("the model call", answer).await?;
        let mut done = false;
        each_event(answer, watch, |event, _| {
            done |= event.data == "[DONE]";
            Ok(())
        })
        .await?;
        if done { Ok(()) } else { Err(DriveError::Failed("the stream was cut".to_owned())) }
    }
}
