//! Three gateways on one PostgreSQL and one Redis: any of them serves anybody.

use std::collections::BTreeMap;

use reqwest::{Method, StatusCode};
use serde_json::json;
use toolyard_protocol::sse::SseEvent;

use crate::database::Database;
use crate::gateway::{Folder, Gateway, PATIENCE, fine, now, signal};
use crate::redis_server::RedisServer;
use crate::socket::Program;
use crate::yard::{Stream, Yard, data, eventually};

/// Short, so that what runs is handed over and not waited for.
const DRAIN: (&str, &str) = ("TOOLYARD_DRAIN_SECONDS", "1");

pub(crate) struct Cluster {
    pub(crate) redis: RedisServer,
    database: Database,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self { redis: RedisServer::start(), database: Database::postgres() }
    }
    pub(crate) fn env(&self) -> Vec<(String, String)> {
        let url = self.database.url.clone().unwrap();
        vec![
            ("TOOLYARD_DATABASE_URL".to_owned(), url),
            ("TOOLYARD_REDIS_URL".to_owned(), self.redis.url()),
            (DRAIN.0.to_owned(), DRAIN.1.to_owned()),
        ]
    }
    /// A node that hears Redis, if it is there.
    pub(crate) async fn node(&self, folder: Folder) -> Gateway {
        let env = self.env();
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (&**name, &**value)).collect();
        Gateway::start_with(folder, &env).await
    }
    pub(crate) async fn three(&self) -> (Yard, Gateway, Gateway) {
        let yard = Yard::on(self.node(Folder::new()).await).await;
        let (b, c) = (self.node(Folder::new()).await, self.node(Folder::new()).await);
        for node in [&yard.gateway, &b, &c] {
            hears(node, "up").await;
        }
        (yard, b, c)
    }
}

/// Waits until a node says this of Redis.
pub(crate) async fn hears(node: &Gateway, state: &str) {
    eventually(&format!("Redis is {state}"), async || {
        fine(node.bare(Method::GET, "/ready")).await["redis"] == state
    })
    .await;
}

/// What a reader of one run has, over as many connections as it takes.
#[derive(Default)]
pub(crate) struct Follower {
    /// The durable events: id and name.
    pub(crate) durable: Vec<(u64, String)>,
    /// The text of the step at hand, as it was streamed.
    streamed: String,
    /// The longest of them.
    pub(crate) most: usize,
    pub(crate) replies: Vec<String>,
    so_fars: usize,
}

impl Follower {
    pub(crate) fn take(&mut self, event: &SseEvent) {
        let name = event.event.clone().unwrap_or_default();
        match name.as_str() {
            "text-delta" => self.streamed.push_str(data(event)["delta"].as_str().unwrap()),
            "step-so-far" => {
                self.so_fars += 1;
                let parts = data(event)["parts"].as_array().cloned().unwrap_or_default();
                self.streamed = parts.iter().map(|part| part["text"].as_str().unwrap_or_default()).collect();
            }
            "step.restarted" => self.streamed.clear(),
            "message.assistant" => {
                let parts = data(event)["parts"].as_array().cloned().unwrap_or_default();
                let text: String =
                    parts.iter().map(|part| part["text"].as_str().unwrap_or_default()).collect();
                assert!(text.starts_with(&self.streamed), "{:?} is no start of {text:?}", self.streamed);
                self.replies.push(text);
                self.streamed.clear();
            }
            _ => {}
        }
        self.most = self.most.max(self.streamed.len());
        if let Some(id) = &event.id {
            self.durable.push((id.parse().unwrap(), name));
        }
    }

    fn last(&self) -> u64 {
        self.durable.last().map_or(0, |(id, _)| *id)
    }
    pub(crate) fn count(&self, name: &str) -> usize {
        self.durable.iter().filter(|(_, known)| known == name).count()
    }
    fn is_over(&self) -> bool {
        self.durable.iter().any(|(_, name)| matches!(name.as_str(), "run.completed" | "run.failed"))
    }
    pub(crate) fn ids(&self) -> Vec<u64> {
        self.durable.iter().map(|(id, _)| *id).collect()
    }
    /// Every event came once and in its place: a backend sees every number.
    pub(crate) fn check(&self) {
        let ids = self.ids();
        let dense: Vec<u64> = (1..=u64::try_from(ids.len()).unwrap()).collect();
        assert_eq!(ids, dense, "{:?}", self.durable);
        assert_eq!(self.count("run.completed"), 1, "{:?}", self.durable);
        assert_eq!(self.count("run.failed"), 0, "{:?}", self.durable);
    }

    pub(crate) async fn connect(&self, node: &Gateway, run: &str) -> Option<Stream> {
        let mut request = node.secret(Method::GET, &format!("/api/runs/{run}/stream"));
        if self.last() > 0 {
            request = request.header("last-event-id", self.last().to_string());
        }
        let response = request.send().await.ok().filter(|response| response.status() == StatusCode::OK)?;
        Some(Stream::new(response))
    }

    /// Follows on one node to the end.
    pub(crate) async fn follow(mut self, node: &Gateway, run: &str) -> Self {
        let mut stream = self.connect(node, run).await.unwrap();
        while let Some(event) = stream.next().await {
            self.take(&event);
        }
        self.check();
        self
    }
}

#[tokio::test]
async fn s1_any_node_serves_any_reader_as_the_words_come() {
    let cluster = Cluster::new();
    let (yard, b, c) = cluster.three().await;
    // Readers of the space are there before the run.
    let path = format!("/api/smart-spaces/{}/stream", yard.space);
    let mut of_space = Stream::new(c.user("bob", Method::GET, &path).send().await.unwrap());
    let run = yard.say("slow 80").await;
    let heard = of_space.until("text-delta").await;
    assert_eq!(data(&heard)["runId"], json!(run));
    // This one joins in the middle of the step, on a node that has no reader of it yet.
    let on_b = Follower::default().follow(&b, &run).await;
    assert!(on_b.most > 0, "pieces come before their commit: {:?}", on_b.durable);
    assert!(on_b.so_fars > 0, "what it missed of the step came first");
    let on_a = Follower::default().follow(&yard.gateway, &run).await;
    assert_eq!((&on_b.durable, &on_b.replies), (&on_a.durable, &on_a.replies));
    of_space.until("message.assistant").await;

    // A client on one node gets the call of a run on another; the third one streams it.
    let mut robot = Program::backend(&c, "cli_robot", &["getUserApproval"]).await;
    let run = yard.say("call getUserApproval {\"q\":\"go?\"}").await;
    let (followed, ()) = tokio::join!(Follower::default().follow(&b, &run), async {
        let call = robot.call().await;
        assert_eq!((&call["runId"], &call["input"]), (&json!(run), &json!({"q": "go?"})));
        assert_eq!(robot.answer(&call, json!("yes")).await["type"], "tool.result.accepted");
    });
    assert_eq!(followed.count("tool-output-available"), 1, "{:?}", followed.durable);
    let known = yard.gateway.get("/api/clients").await["clients"][0].clone();
    assert_eq!((&known["clientId"], &known["connected"]), (&json!("cli_robot"), &json!(true)));
}

#[tokio::test]
async fn due_plans_and_due_waits_happen_once_over_three_nodes() {
    let cluster = Cluster::new();
    let (yard, b, c) = cluster.three().await;
    let mut agent = crate::yard::agent("hasty");
    agent["tools"][0]["expiresMs"] = json!(1500);
    yard.gateway.post("/api/agents", json!({"config": agent})).await;
    let made = yard.gateway.post("/api/entities/agent", json!({"agentId": "hasty"})).await;
    let hasty = made["entity"]["id"].as_str().unwrap();
    let nodes = [&yard.gateway, &b, &c];
    let at = toolyard_protocol::Timestamp::from_millis(i64::try_from((now() + 3) * 1000).unwrap());
    let mut plans = Vec::new();
    for n in 0..9 {
        let plan = json!({"agentEntityId": hasty, "entityId": yard.ann, "scheduledAt": at,
            "instruction": "call getUserApproval {\"q\":\"x\"}"});
        let made = nodes[n % 3].post("/api/plans", plan).await;
        plans.push(made["plan"]["id"].as_str().unwrap().to_owned());
    }
    for (n, plan) in plans.iter().enumerate() {
        let read = async || b.get(&format!("/api/plans/{plan}")).await["plan"].clone();
        eventually("a run of the plan", async || read().await["lastRunId"].is_string()).await;
        let done = read().await;
        assert_eq!((&done["runs"], &done["status"]), (&json!(1), &json!("completed")), "{done}");
        // Its call expires, once, and the run ends.
        let run = done["lastRunId"].as_str().unwrap();
        let followed = Follower::default().follow(nodes[n % 3], run).await;
        assert_eq!(followed.count("tool-error"), 1, "{:?}", followed.durable);
    }
    let runs = c.get("/api/runs?limit=200").await;
    assert_eq!(runs["runs"].as_array().unwrap().len(), plans.len());
}

#[tokio::test]
async fn d3_the_words_of_a_fenced_node_reach_nobody() {
    let cluster = Cluster::new();
    let (yard, b, c) = cluster.three().await;
    let run = yard.say("slow 60").await;
    let mut follower = Follower::default();
    let mut stream = follower.connect(&c, &run).await.unwrap();
    while follower.most == 0 {
        follower.take(&stream.next().await.unwrap());
    }
    signal(yard.gateway.pid(), "STOP");
    while follower.count("step.restarted") == 0 {
        follower.take(&stream.next().await.unwrap());
    }
    // It wakes up in the middle of the other's step, and says its own words on.
    signal(yard.gateway.pid(), "CONT");
    while let Some(event) = stream.next().await {
        follower.take(&event);
    }
    follower.check();
    assert_eq!(follower.replies.len(), 1, "{:?}", follower.replies);
    let again = Follower::default().follow(&b, &run).await;
    assert_eq!(again.replies, follower.replies);
}

/// Follows over the nodes that there are, one connection after the other, and
/// goes on where it was.
pub(crate) async fn follow_anywhere(client: &reqwest::Client, urls: Vec<String>, run: String) -> Follower {
    let mut follower = Follower::default();
    let began = std::time::Instant::now();
    for n in (0..urls.len()).cycle() {
        assert!(began.elapsed() < 4 * PATIENCE, "{:?}", follower.durable);
        let mut request = client
            .get(format!("{}/api/runs/{run}/stream", urls[n]))
            .header("x-secret-key", crate::gateway::SECRET);
        if follower.last() > 0 {
            request = request.header("last-event-id", follower.last().to_string());
        }
        let opened = request.send().await.ok().filter(|response| response.status() == StatusCode::OK);
        let Some(response) = opened else {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            continue;
        };
        // A new connection tells the step so far anew.
        follower.streamed.clear();
        let mut stream = Stream::new(response);
        while let Some(event) = stream.next().await {
            follower.take(&event);
        }
        if follower.is_over() {
            break;
        }
    }
    follower
}

#[tokio::test]
async fn d17_nodes_are_restarted_one_after_the_other_and_nobody_misses_anything() {
    let cluster = Cluster::new();
    let (yard, b, c) = cluster.three().await;
    let urls: Vec<String> = [&yard.gateway, &b, &c].map(|node| node.url.clone()).to_vec();
    // Each node has a run that streams and one that waits, of its own space.
    let mut runs = BTreeMap::new();
    for node in [&yard.gateway, &b, &c] {
        for text in ["slow 60", "call getUserApproval {\"q\":\"x\"}"] {
            let space = crate::yard::new_space(node).await;
            crate::yard::join(node, &space, &yard.agent_entity).await;
            crate::yard::join(node, &space, &yard.ann).await;
            let said = json!({"content": text, "entityId": yard.ann});
            let posted = node.post(&format!("/api/smart-spaces/{space}/messages"), said).await;
            runs.insert(posted["runs"][0]["runId"].as_str().unwrap().to_owned(), text);
        }
    }
    let mut followers = Vec::new();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for (n, run) in runs.keys().enumerate() {
        let (client, run, mut urls) = (client.clone(), run.clone(), urls.clone());
        urls.rotate_left(n % 3);
        followers.push(tokio::spawn(async move { follow_anywhere(&client, urls, run).await }));
    }
    let mut nodes = Vec::new();
    for node in [yard.gateway, b, c] {
        let address = node.address();
        let (status, took, folder) = tokio::task::spawn_blocking(|| node.terminate()).await.unwrap();
        assert!(status.success() && took < std::time::Duration::from_secs(10), "{status} {took:?}");
        let env = cluster.env();
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (&**name, &**value)).collect();
        let node = Gateway::start_on(&address, folder, &env).await;
        hears(&node, "up").await;
        nodes.push(node);
    }
    // What waited still waits, and any node takes the answer.
    for (n, run) in runs.iter().filter(|(_, text)| text.starts_with("call")).map(|(run, _)| run).enumerate() {
        let waits = nodes[n].get(&format!("/api/waits?runId={run}")).await;
        let call = waits["waits"][0]["toolCallId"].clone();
        assert!(call.is_string(), "{waits}");
        let path = format!("/api/runs/{run}/tool-results");
        nodes[(n + 1) % 3].post(&path, json!({"callId": call, "result": n})).await;
    }
    for (follower, run) in followers.into_iter().zip(runs.keys()) {
        let follower = follower.await.unwrap();
        follower.check();
        let list = nodes[0].get(&format!("/api/runs/{run}/events?limit=200")).await;
        let seqs: Vec<u64> =
            list["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        let had = follower.ids();
        // Some events are not for readers; what they get is in the log, and all of it ends alike.
        assert!(had.iter().all(|id| seqs.contains(id)) && had.last() == seqs.last(), "{had:?} {seqs:?}");
        let again = Follower::default().follow(&nodes[1], run).await;
        assert_eq!(again.durable, follower.durable, "as a reader who was never cut");
    }
}
