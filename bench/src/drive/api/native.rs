//! The gateway's native protocol with a secret key: POST a message, read the
//! run's stream that it answers with, POST the result of the client's tool while
//! it stays open.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use super::{Seat, accepted, body, read_json, text_at};
use crate::drive::DriveError;
use crate::drive::errand::{Errand, Tool, Watch};
use crate::frames::Frames;
use crate::http::{Answer, Peer};

/// The key of the gateways that this rig starts.
pub const SECRET_KEY: &str = "sk_bench_0123456789abcdef0123456789abcdef";

#[derive(Debug)]
pub struct Native {
    peer: Arc<Peer>,
    human: String,
    agent: String,
}

impl Native {
    /// Stores the agent and the two entities that all conversations share.
    pub async fn prepare(server: SocketAddr) -> Result<Self, DriveError> {
        let mut headers = HeaderMap::new();
        headers.insert("x-secret-key", HeaderValue::from_static(SECRET_KEY));
        let peer = Peer::new(server, headers);
        let config = json!({
            "agent": {"name": "bench", "system": "You are a helpful assistant."},
            "model": {"provider": "mock", "name": "mock"},
            "tools": [
                {
                    "name": "get_time",
                    "description": "The current time.",
                    "inputSchema": {"type": "object", "properties": {}},
                    "executionType": "basic",
                    "execution": {"mode": "static", "output": {"time": "12:00"}},
                },
                {
                    "name": "read_screen",
                    "description": "What the user sees.",
                    "inputSchema": {"type": "object", "properties": {}},
                },
            ],
        });
        let answer = peer.post("/api/agents", body(&json!({"config": config}))).await?;
        read_json("the agent", answer).await?;
        let human = json!({"type": "human", "displayName": "Ada"});
        let human = read_json("the user", peer.post("/api/entities", body(&human)).await?).await?;
        let agent = json!({"agentId": "bench", "displayName": "Bench"});
        let agent = read_json("the agent", peer.post("/api/entities/agent", body(&agent)).await?).await?;
        Ok(Self {
            peer,
            human: text_at("the user", &human, "/entity/id")?,
            agent: text_at("the agent", &agent, "/entity/id")?,
        })
    }

    pub async fn seat(&self) -> Result<Seat, DriveError> {
        let space = self.peer.post("/api/smart-spaces", body(&json!({}))).await?;
        let space = read_json("a space", space).await?;
        let space = text_at("a space", &space, "/smartSpace/id")?;
        let path = format!("/api/smart-spaces/{space}/members");
        for entity in [&self.human, &self.agent] {
            let member = self.peer.post(&path, body(&json!({"entityId": entity}))).await?;
            read_json("a member", member).await?;
        }
        Ok(Seat(space))
    }

    pub async fn add_history(&self, seat: &Seat, texts: &[String]) -> Result<(), DriveError> {
        let path = Self::messages(seat);
        for text in texts {
            let message = json!({"content": text, "entityId": self.human, "triggerAgents": false});
            read_json("a message", self.peer.post(&path, body(&message)).await?).await?;
        }
        Ok(())
    }

    pub async fn run(&self, seat: &Seat, errand: &Errand) -> Result<Watch, DriveError> {
        let watch = Watch::start();
        let answer = self.peer.post_and_follow(&Self::messages(seat), self.message(&errand.prompt())).await?;
        let answer = accepted("a message", answer).await?;
        let run = answer.headers.get("x-toolyard-run").and_then(|run| run.to_str().ok());
        let run = run.ok_or_else(|| DriveError::Failed("no run answers".to_owned()))?.to_owned();
        self.read(answer, &run, errand, watch).await
    }

    fn messages(seat: &Seat) -> String {
        format!("/api/smart-spaces/{}/messages", seat.0)
    }

    fn message(&self, prompt: &str) -> Bytes {
        body(&json!({"content": prompt, "entityId": self.human}))
    }

    /// Posts a message and gives the run that answers it.
    pub async fn start(&self, seat: &Seat, prompt: &str) -> Result<String, DriveError> {
        let posted = self.peer.post(&Self::messages(seat), self.message(prompt)).await?;
        let posted = read_json("a message", posted).await?;
        text_at("the run", &posted, "/runs/0/runId")
    }

    /// Follows a run to its end and runs its client's tools.
    pub async fn follow(&self, run: &str, errand: &Errand, watch: Watch) -> Result<Watch, DriveError> {
        self.read(self.open(&Self::run_stream(run)).await?, run, errand, watch).await
    }

    async fn read(
        &self,
        mut stream: Answer,
        run: &str,
        errand: &Errand,
        mut watch: Watch,
    ) -> Result<Watch, DriveError> {
        let (mut frames, mut completed) = (Frames::default(), false);
        while let Some(bytes) = stream.next().await? {
            watch.read(&bytes);
            frames.push(&bytes);
            let mut calls = Vec::new();
            while let Some(event) = frames.next_event() {
                match event.name {
                    "text-delta" => watch.live += 1,
                    "tool-input-available" => calls.extend(client_call(event.data)?),
                    "run.waiting_tool" if errand.abandon => {
                        watch.pause();
                        return watch.end(errand);
                    }
                    "run.completed" => completed = true,
                    "run.failed" | "run.canceled" => {
                        return Err(DriveError::Failed(event.data.to_owned()));
                    }
                    _ => {}
                }
            }
            if completed {
                watch.finish();
            }
            // A run that was answered before it was followed tells its calls again.
            if errand.abandon || errand.tool != Tool::Client {
                continue;
            }
            for call in calls {
                watch.pause();
                self.send_result(run, &call).await?;
            }
        }
        if !completed {
            return Err(DriveError::Failed("the stream ended before the run".to_owned()));
        }
        watch.end(errand)
    }

    pub fn address(&self) -> SocketAddr {
        self.peer.address()
    }

    pub fn run_stream(run: &str) -> String {
        format!("/api/runs/{run}/stream")
    }

    pub fn space_stream(space: &Seat) -> String {
        format!("/api/smart-spaces/{}/stream", space.0)
    }

    /// A stream that has begun.
    pub async fn open(&self, path: &str) -> Result<Answer, DriveError> {
        accepted("the stream", self.peer.get(path).await?).await
    }

    /// A page of messages before a position.
    pub async fn page(&self, space: &Seat, before: usize) -> Result<(), DriveError> {
        let path = format!("/api/smart-spaces/{}/messages?limit=50&beforeSeq={before}", space.0);
        read_json("a page", self.peer.get(&path).await?).await?;
        Ok(())
    }

    pub async fn send_result(&self, run: &str, call: &str) -> Result<(), DriveError> {
        let path = format!("/api/runs/{run}/tool-results");
        let result = json!({"callId": call, "result": {"screen": "a page"}});
        read_json("a result", self.peer.post(&path, body(&result)).await?).await?;
        Ok(())
    }
}

/// The call, if it is this client's to run.
fn client_call(data: &str) -> Result<Option<String>, DriveError> {
    let call: Value = serde_json::from_str(data).unwrap_or_default();
    if call.pointer("/executionTarget").and_then(Value::as_str) != Some("client") {
        return Ok(None);
    }
    text_at("a call", &call, "/toolCallId").map(Some)
}
