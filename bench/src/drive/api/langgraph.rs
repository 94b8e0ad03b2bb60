//! The LangGraph server of `bench/peers`: a POST runs a thread and answers with
//! its text until it ends or an interrupt pauses it; a second POST resumes it.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::header::HeaderMap;
use serde_json::{Value, json};

use super::kept::Kept;
use super::{Seat, accepted, body, each_event};
use crate::drive::DriveError;
use crate::drive::errand::{Errand, Watch};
use crate::http::Peer;

#[derive(Debug)]
pub struct LangGraph {
    peer: Arc<Peer>,
    kept: Kept,
}

impl LangGraph {
    pub fn new(server: SocketAddr) -> Self {
        Self { peer: Peer::new(server, HeaderMap::new()), kept: Kept::default() }
    }

    pub fn seat(&self) -> Seat {
        self.kept.seat()
    }

    /// The whole talk as one update: an update for each message would write the
    /// whole state each time.
    pub async fn add_history(&self, seat: &Seat, texts: &[String]) -> Result<(), DriveError> {
        let messages: Vec<Value> =
            texts.iter().map(|text| json!({"role": "user", "content": text})).collect();
        let path = format!("/threads/{}/state", seat.0);
        let answer = self.peer.post(&path, body(&json!({"messages": messages}))).await?;
        accepted("the messages", answer).await?.read_all().await?;
        Ok(())
    }

    pub async fn run(&self, seat: &Seat, errand: &Errand) -> Result<Watch, DriveError> {
        let mut watch = Watch::start();
        let asked = json!({"messages": [{"role": "user", "content": errand.prompt()}]});
        if self.follow(seat, &asked, &mut watch).await? == Stretch::Paused {
            watch.pause();
            if errand.abandon {
                return watch.end(errand);
            }
            let resumed = json!({"resume": {"screen": "a page"}});
            if self.follow(seat, &resumed, &mut watch).await? == Stretch::Paused {
                return Err(DriveError::Failed("it paused again".to_owned()));
            }
        }
        watch.end(errand)
    }

    async fn follow(&self, seat: &Seat, asked: &Value, watch: &mut Watch) -> Result<Stretch, DriveError> {
        let path = format!("/threads/{}/runs/stream", seat.0);
        let answer = accepted("a run", self.peer.post(&path, body(asked)).await?).await?;
        let mut end = None;
        each_event(answer, watch, |event, watch| {
            match event.name {
                "message" => watch.live += 1,
                "paused" => end = Some(Stretch::Paused),
                "end" => end = Some(Stretch::Done),
                _ => {}
            }
            Ok(())
        })
        .await?;
        end.ok_or_else(|| DriveError::Failed("the stream was cut".to_owned()))
    }
}

/// How a stretch of events ended.
#[derive(Debug, PartialEq, Eq)]
enum Stretch {
    Done,
    Paused,
}
