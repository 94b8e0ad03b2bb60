//! The AI SDK's chat: each POST brings the whole conversation and is answered by
//! a UI message stream. A result of the client's tool is a part of the
//! assistant's message in the next POST.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::header::HeaderMap;
use serde_json::{Value, json};

use super::kept::Kept;
use super::{Seat, accepted, body, each_event, text_at};
use crate::drive::DriveError;
use crate::drive::errand::{Errand, Watch};
use crate::http::Peer;

#[derive(Debug)]
pub struct AiSdk {
    peer: Arc<Peer>,
    kept: Kept,
}

/// How an answer ended.
#[derive(Debug, Default)]
struct Ending {
    finish: Option<String>,
    /// The last call that nobody has answered.
    open: Option<String>,
}

impl AiSdk {
    pub fn new(server: SocketAddr) -> Self {
        Self { peer: Peer::new(server, HeaderMap::new()), kept: Kept::default() }
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
        let say = |(n, text): (usize, String)| json!({"id": n.to_string(), "role": "user", "parts": [{"type": "text", "text": text}]});
        let mut messages: Vec<Value> = said.into_iter().enumerate().map(say).collect();
        let mut ending = self.ask(seat, &messages, &mut watch).await?;
        if let Some(call) = ending.open.take() {
            watch.pause();
            if errand.abandon {
                return watch.end(errand);
            }
            messages.push(json!({"id": "answer", "role": "assistant", "parts": [
                {"type": "step-start"},
                {"type": "tool-read_screen", "toolCallId": call, "state": "output-available", "input": {}, "output": {"screen": "a page"}},
            ]}));
            ending = self.ask(seat, &messages, &mut watch).await?;
        }
        match ending.finish.as_deref() {
            Some("stop") => watch.end(errand),
            other => Err(DriveError::Failed(format!("it finished with {other:?}"))),
        }
    }

    async fn ask(&self, seat: &Seat, messages: &[Value], watch: &mut Watch) -> Result<Ending, DriveError> {
        let request = body(&json!({"id": seat.0, "messages": messages, "trigger": "submit-message"}));
        let answer = accepted("a message", self.peer.post("/api/chat", request).await?).await?;
        let mut ending = Ending::default();
        each_event(answer, watch, |event, watch| ending.take(event.data, watch)).await?;
        Ok(ending)
    }
}

impl Ending {
    fn take(&mut self, data: &str, watch: &mut Watch) -> Result<(), DriveError> {
        // Nearly every event is a piece of text: it is not parsed.
        if data.starts_with("{\"type\":\"text-delta\"") {
            watch.live += 1;
            return Ok(());
        }
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        match event.get("type").and_then(Value::as_str) {
            Some("tool-input-available") => self.open = Some(text_at("a call", &event, "/toolCallId")?),
            Some("tool-output-available") => self.open = None,
            Some("finish") => self.finish = Some(text_at("the end", &event, "/finishReason")?),
            Some("error") => return Err(DriveError::Failed(data.to_owned())),
            _ => {}
        }
        Ok(())
    }
}
