//! Pydantic AI by AG-UI: each POST brings the conversation and the client's
//! tools. A call of a client's tool ends the run; its result is a message of the
//! next one.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::header::{ACCEPT, HeaderMap, HeaderValue};
use serde_json::{Value, json};

use super::kept::Kept;
use super::{Seat, accepted, body, each_event, text_at};
use crate::drive::DriveError;
use crate::drive::errand::{Errand, Watch};
use crate::http::Peer;

#[derive(Debug)]
pub struct PydanticAi {
    peer: Arc<Peer>,
    kept: Kept,
}

/// How a run ended.
#[derive(Debug, Default)]
struct Ending {
    finished: bool,
    open: Option<String>,
}

impl PydanticAi {
    pub fn new(server: SocketAddr) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        Self { peer: Peer::new(server, headers), kept: Kept::default() }
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
        let say = |(n, text): (usize, String)| json!({"id": n.to_string(), "role": "user", "content": text});
        let mut messages: Vec<Value> = said.into_iter().enumerate().map(say).collect();
        let mut ending = self.ask(seat, &messages, &mut watch).await?;
        if let Some(call) = ending.open.take() {
            watch.pause();
            if errand.abandon {
                return watch.end(errand);
            }
            messages.push(json!({"id": "call", "role": "assistant", "toolCalls": [
                {"id": call, "type": "function", "function": {"name": "read_screen", "arguments": "{}"}},
            ]}));
            messages.push(json!({"id": "result", "role": "tool", "toolCallId": call, "content": "{\"screen\":\"a page\"}"}));
            ending = self.ask(seat, &messages, &mut watch).await?;
        }
        if !ending.finished || ending.open.is_some() {
            return Err(DriveError::Failed(format!("it did not finish: {ending:?}")));
        }
        watch.end(errand)
    }

    async fn ask(&self, seat: &Seat, messages: &[Value], watch: &mut Watch) -> Result<Ending, DriveError> {
        let request = body(&json!({
            "threadId": seat.0,
            "runId": self.kept.name(),
            "state": {},
            "context": [],
            "forwardedProps": {},
            "tools": [{"name": "read_screen", "description": "What the user sees.", "parameters": {"type": "object", "properties": {}}}],
            "messages": messages,
        }));
        let answer = accepted("a run", self.peer.post("/", request).await?).await?;
        let mut ending = Ending::default();
        each_event(answer, watch, |event, watch| ending.take(event.data, watch)).await?;
        Ok(ending)
    }
}

impl Ending {
    fn take(&mut self, data: &str, watch: &mut Watch) -> Result<(), DriveError> {
        // Nearly every event is a piece of text: it is not parsed.
        if data.starts_with("{\"type\":\"TEXT_MESSAGE_CONTENT\"") {
            watch.live += 1;
            return Ok(());
        }
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        match event.get("type").and_then(Value::as_str) {
            Some("TOOL_CALL_END") => self.open = Some(text_at("a call", &event, "/toolCallId")?),
            Some("TOOL_CALL_RESULT") => self.open = None,
            Some("RUN_FINISHED") => self.finished = true,
            Some("RUN_ERROR") => return Err(DriveError::Failed(data.to_owned())),
            _ => {}
        }
        Ok(())
    }
}
