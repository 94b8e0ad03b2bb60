//! A small world inside a gateway: an agent, a space, users.

use std::time::{Duration, Instant};

use reqwest::{Method, Response};
use serde_json::{Value, json};
use toolyard_protocol::sse::{SseEvent, SseSplitter};

use crate::gateway::{Gateway, PATIENCE, ask, fine};

/// A tool that a client runs, and tools that the gateway runs.
pub(crate) fn agent(name: &str) -> Value {
    json!({
        "agent": {"name": name, "system": "canary-system-prompt"},
        "model": {"provider": "demo", "name": "demo"},
        "tools": [
            {"name": "getUserApproval", "description": "Asks the user.",
             "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}}},
            {"name": "look", "description": "A private gateway tool.",
             "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
             "execution": {"mode": "static", "output": {"found": "canary-static-output"}}},
            {"name": "echo", "description": "An open gateway tool.", "visibility": "public",
             "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
             "execution": {"mode": "pass-through"}},
            {"name": "guarded", "description": "Asks first.", "approval": "ask",
             "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}}},
        ]
    })
}

pub(crate) struct Yard {
    pub(crate) gateway: Gateway,
    pub(crate) space: String,
    pub(crate) agent_entity: String,
    /// The entity of user `ann`, a member.
    pub(crate) ann: String,
    /// The entity of user `bob`, a member.
    pub(crate) bob: String,
}

impl Yard {
    pub(crate) async fn new() -> Self {
        Self::on(Gateway::start().await).await
    }

    pub(crate) async fn on(gateway: Gateway) -> Self {
        gateway.post("/api/agents", json!({"config": agent("assistant")})).await;
        let made = gateway.post("/api/entities/agent", json!({"agentId": "assistant"})).await;
        let agent_entity = made["entity"]["id"].as_str().unwrap().to_owned();
        let space = new_space(&gateway).await;
        join(&gateway, &space, &agent_entity).await;
        let ann = new_user(&gateway, "ann").await;
        let bob = new_user(&gateway, "bob").await;
        new_user(&gateway, "eve").await;
        join(&gateway, &space, &ann).await;
        join(&gateway, &space, &bob).await;
        Self { gateway, space, agent_entity, ann, bob }
    }

    /// Ann says something; answers the run that it started.
    pub(crate) async fn say(&self, text: &str) -> String {
        let path = format!("/api/smart-spaces/{}/messages", self.space);
        let posted =
            fine(self.gateway.user("ann", Method::POST, &path).json(&json!({"content": text}))).await;
        posted["runs"][0]["runId"].as_str().unwrap_or_else(|| panic!("{posted}")).to_owned()
    }

    /// Ann says something to the agent in a new space, where Bob is too.
    pub(crate) async fn say_in_new_space(&self, text: &str) -> String {
        let space = new_space(&self.gateway).await;
        for entity in [&self.agent_entity, &self.ann, &self.bob] {
            join(&self.gateway, &space, entity).await;
        }
        let path = format!("/api/smart-spaces/{space}/messages");
        let posted =
            fine(self.gateway.user("ann", Method::POST, &path).json(&json!({"content": text}))).await;
        posted["runs"][0]["runId"].as_str().unwrap_or_else(|| panic!("{posted}")).to_owned()
    }

    /// The first open wait of a run, once there is one.
    pub(crate) async fn wait_of(&self, run: &str) -> Value {
        let started = Instant::now();
        loop {
            let list = self.gateway.get(&format!("/api/waits?runId={run}")).await;
            if let Some(wait) = list["waits"].as_array().and_then(|w| w.first()) {
                return wait.clone();
            }
            assert!(started.elapsed() < PATIENCE, "no wait opened");
            tokio::task::yield_now().await;
        }
    }

    /// Follows a run to its end.
    pub(crate) async fn finish(&self, run: &str) -> Vec<SseEvent> {
        let stream = self.gateway.secret(Method::GET, &format!("/api/runs/{run}/stream"));
        read_all(stream.send().await.unwrap()).await
    }

    pub(crate) async fn submit(&self, user: Option<&str>, run: &str, body: Value) -> (u16, Value) {
        let path = format!("/api/runs/{run}/tool-results");
        let request = match user {
            Some(user) => self.gateway.user(user, Method::POST, &path),
            None => self.gateway.secret(Method::POST, &path),
        };
        let (status, body) = ask(request.json(&body)).await;
        (status.as_u16(), body)
    }
}

pub(crate) async fn new_space(gateway: &Gateway) -> String {
    let made = gateway.post("/api/smart-spaces", json!({"name": "yard"})).await;
    made["smartSpace"]["id"].as_str().unwrap().to_owned()
}

pub(crate) async fn new_user(gateway: &Gateway, user: &str) -> String {
    let made = gateway.post("/api/entities", json!({"type": "human", "externalId": user})).await;
    made["entity"]["id"].as_str().unwrap().to_owned()
}

pub(crate) async fn join(gateway: &Gateway, space: &str, entity: &str) {
    gateway.post(&format!("/api/smart-spaces/{space}/members"), json!({"entityId": entity})).await;
}

/// A stream, one event at a time.
pub(crate) struct Stream {
    response: Response,
    splitter: SseSplitter,
    ready: std::collections::VecDeque<SseEvent>,
}

impl Stream {
    pub(crate) fn new(response: Response) -> Self {
        assert!(response.status().is_success(), "{}", response.status());
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, splitter: SseSplitter::new(8 << 20), ready: Default::default() }
    }

    /// The next event; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await.expect("a silent stream");
            let bytes = chunk.ok()??;
            let mut events = Vec::new();
            self.splitter.push(&bytes, &mut events).unwrap();
            self.ready.extend(events);
        }
    }

    /// The next event of this name.
    pub(crate) async fn until(&mut self, name: &str) -> SseEvent {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("the stream ended before {name}"));
            if event.event.as_deref() == Some(name) {
                return event;
            }
        }
    }
}

pub(crate) async fn read_all(response: Response) -> Vec<SseEvent> {
    let mut stream = Stream::new(response);
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    events
}

/// The durable events: those with an id.
pub(crate) fn durable(events: &[SseEvent]) -> Vec<SseEvent> {
    events.iter().filter(|e| e.id.is_some()).cloned().collect()
}

pub(crate) fn data(event: &SseEvent) -> Value {
    serde_json::from_str(&event.data).unwrap()
}

/// Asks again until the answer is right.
pub(crate) async fn eventually<F, R>(what: &str, mut ask: F)
where
    F: FnMut() -> R,
    R: Future<Output = bool>,
{
    let started = Instant::now();
    while !ask().await {
        assert!(started.elapsed() < PATIENCE, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
