//! The bare server's protocol: each POST answers with the run's events until it
//! ends or pauses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::header::HeaderMap;
use serde_json::{Value, json};

use super::{Seat, accepted, body, each_event, text_at};
use crate::drive::DriveError;
use crate::drive::errand::{Errand, Watch};
use crate::http::{Answer, Peer};

#[derive(Debug)]
pub struct Floor {
    peer: Arc<Peer>,
    next: AtomicU64,
}

/// How a stretch of events ended.
enum Stretch {
    Done,
    Call(String),
}

impl Floor {
    pub fn new(server: SocketAddr) -> Self {
        Self { peer: Peer::new(server, HeaderMap::new()), next: AtomicU64::new(0) }
    }

    pub fn seat(&self) -> Seat {
        Seat(format!("t{}", self.next.fetch_add(1, Ordering::Relaxed)))
    }

    pub async fn add_history(&self, seat: &Seat, texts: &[String]) -> Result<(), DriveError> {
        let path = format!("/threads/{}/messages", seat.0);
        for text in texts {
            let answer = self.peer.post(&path, body(&json!({"text": text, "run": false}))).await?;
            accepted("a message", answer).await?.read_all().await?;
        }
        Ok(())
    }

    pub async fn run(&self, seat: &Seat, errand: &Errand) -> Result<Watch, DriveError> {
        let path = format!("/threads/{}/messages", seat.0);
        let mut watch = Watch::start();
        let answer = self.peer.post(&path, body(&json!({"text": errand.prompt()}))).await?;
        let answer = accepted("a message", answer).await?;
        if let Stretch::Call(call) = follow(answer, &mut watch).await? {
            watch.pause();
            if !errand.abandon {
                let path = format!("/runs/{}/results", seat.0);
                let result = json!({"callId": call, "result": {"screen": "a page"}});
                let answer = accepted("a result", self.peer.post(&path, body(&result)).await?).await?;
                if let Stretch::Call(call) = follow(answer, &mut watch).await? {
                    return Err(DriveError::Failed(format!("it asked for {call} again")));
                }
            }
        }
        watch.end(errand)
    }
}

async fn follow(answer: Answer, watch: &mut Watch) -> Result<Stretch, DriveError> {
    let mut end = None;
    each_event(answer, watch, |event, watch| {
        match event.name {
            "delta" => watch.live += 1,
            "done" => end = Some(Stretch::Done),
            "call" => {
                let call: Value = serde_json::from_str(event.data).unwrap_or_default();
                end = Some(Stretch::Call(text_at("a call", &call, "/callId")?));
            }
            "failed" => return Err(DriveError::Failed(event.data.to_owned())),
            _ => {}
        }
        Ok(())
    })
    .await?;
    end.ok_or_else(|| DriveError::Failed("the stream was cut".to_owned()))
}
