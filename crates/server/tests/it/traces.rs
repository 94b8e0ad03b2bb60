//! Row U26 and the W3C trace context: a caller's trace goes on in the gateway,
//! whichever dialect it speaks, and from there to models, HTTP tools and agents
//! below.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::far_side::FarSide;
use crate::gateway::{Folder, Gateway, fine};
use crate::mcp_agent::Modern;
use crate::yard::{eventually, join, new_space};

/// A trace of a caller's own, by number.
fn parent(n: usize) -> String {
    format!("00-4bf92f3577b34da6a3ce929d0e0e47{n:02}-00f067aa0ba902{n:02}-01")
}

struct World {
    gateway: Gateway,
    /// The collector, and whatever tools and models there are.
    far: FarSide,
}

impl World {
    async fn new() -> Self {
        let far = FarSide::start().await;
        let address = format!("{}/v1/traces", far.url());
        let folder = Folder::new();
        let vendor = format!(
            "[providers.far]\nkind = \"openai\"\nbase_url = \"{}/model\"\napi_key_env = \"FAR_API_KEY\"\n",
            far.url()
        );
        std::fs::write(folder.path().join("toolyard.toml"), vendor).unwrap();
        let env = [
            ("TOOLYARD_TELEMETRY_OTLP_TRACES", address.as_str()),
            ("TOOLYARD_TELEMETRY_ALL_AGENTS", "true"),
            ("TOOLYARD_ALLOW_PRIVATE_NETWORK", far.address.as_str()),
            ("FAR_API_KEY", "sk-far"),
        ];
        Self { gateway: Gateway::start_with(folder, &env).await, far }
    }

    async fn agent(&self, config: Value) {
        self.gateway.post("/api/agents", json!({ "config": config })).await;
    }

    async fn entity(&self, agent: &str) -> String {
        let made = self.gateway.post("/api/entities/agent", json!({ "agentId": agent })).await;
        made["entity"]["id"].as_str().unwrap().to_owned()
    }

    fn send(&self, path: &str, body: &Value, n: usize) -> RequestBuilder {
        self.gateway.secret(Method::POST, path).header("traceparent", parent(n)).json(body)
    }

    /// Sends a request and reads its answer to the end.
    async fn say(&self, request: RequestBuilder) {
        let response = request.send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{status} {text}");
    }

    /// All spans that the collector has.
    fn spans(&self) -> Vec<Value> {
        let asked = self.far.asked();
        let told = asked.iter().filter(|asked| asked.line.starts_with("POST /v1/traces"));
        let lists = told.map(|asked| asked.json()["resourceSpans"][0]["scopeSpans"][0]["spans"].clone());
        lists.flat_map(|list| list.as_array().cloned().unwrap()).collect()
    }

    /// A span of a trace, when it is there.
    async fn span(&self, n: usize, name: &str) -> Value {
        let trace = parent(n)[3..35].to_owned();
        let find = || self.spans().into_iter().find(|span| span["traceId"] == *trace && span["name"] == name);
        eventually(&format!("{name} of {n}"), async || find().is_some()).await;
        find().unwrap()
    }

    /// The trace header of the first request to a place at the far side.
    fn heard(&self, line: &str) -> Option<String> {
        let asked = self.far.asked();
        let found = asked.iter().find(|asked| asked.line.starts_with(line));
        found.unwrap_or_else(|| panic!("nobody asked {line}")).header("traceparent").map(str::to_owned)
    }
}

fn header(span: &Value) -> Option<String> {
    Some(format!("00-{}-{}-01", span["traceId"].as_str()?, span["spanId"].as_str()?))
}

/// Row U26: the turn stands below the caller's span, in every dialect.
#[tokio::test]
async fn u26_a_callers_trace_goes_on_in_every_dialect() {
    let world = World::new().await;
    world
        .agent(json!({ "agent": { "name": "story" }, "model": { "provider": "demo", "name": "demo" } }))
        .await;
    let space = new_space(&world.gateway).await;
    join(&world.gateway, &space, &world.entity("story").await).await;
    let message = json!({ "content": "hello", "role": "system" });
    world.say(world.send(&format!("/api/smart-spaces/{space}/messages"), &message, 10)).await;

    let parts = json!([{ "id": "u", "role": "user", "parts": [{ "type": "text", "text": "hello" }] }]);
    world.say(world.send("/api/chat", &json!({ "id": "c", "agent": "story", "messages": parts }), 11)).await;

    let said = json!([{ "id": "u", "role": "user", "content": "hello" }]);
    let body = json!({ "threadId": "t", "runId": "r", "state": {}, "messages": said, "tools": [],
        "context": [], "forwardedProps": {} });
    world.say(world.send("/ag-ui/story", &body, 12)).await;

    let params =
        json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params });
    world.say(world.send("/a2a/story", &body, 13).header("a2a-version", "1.0")).await;

    let body = json!({ "model": "story", "messages": [{ "role": "user", "content": "hello" }] });
    world.say(world.send("/v1/chat/completions", &body, 14)).await;
    world.say(world.send("/v1/responses", &json!({ "model": "story", "input": "hello" }), 15)).await;

    let modern = Modern::new(&world.gateway, json!({}));
    let call = json!({ "name": "ask_story", "arguments": { "message": "hello" } });
    world.say(modern.request("tools/call", call.clone()).header("traceparent", parent(16))).await;
    // The protocol's own place goes before the wire's.
    let mut told = call;
    told["_meta"] = json!({ "traceparent": parent(17) });
    world.say(modern.request("tools/call", told).header("traceparent", parent(99))).await;

    for n in 10..=17 {
        let turn = world.span(n, "invoke_agent").await;
        assert_eq!(turn["parentSpanId"], parent(n)[36..52], "{n}: {turn}");
        assert_eq!(world.span(n, "chat demo").await["parentSpanId"], turn["spanId"], "{n}");
    }

    // What is no trace starts one of the gateway's own, and breaks nothing.
    let known = world.spans().len();
    let body = json!({ "model": "story", "messages": [{ "role": "user", "content": "hello" }] });
    world.say(world.send("/v1/chat/completions", &body, 18).header("traceparent", "nonsense")).await;
    let bad = world.gateway.secret(Method::POST, "/v1/chat/completions").header("traceparent", "00-0-0-0");
    world.say(bad.json(&body)).await;
    eventually("two more turns", async || world.spans().len() >= known + 4).await;
    let last = world.spans().into_iter().rfind(|span| span["name"] == "invoke_agent").unwrap();
    assert_eq!(last["parentSpanId"], Value::Null, "{last}");
}

/// Row U26: whoever works for the turn hears of its span.
#[tokio::test]
async fn u26_models_tools_and_agents_below_hear_of_the_span() {
    let world = World::new().await;
    let demo = json!({ "provider": "demo", "name": "demo" });
    let look = json!({ "name": "look", "description": "Asks an API", "executionType": "request",
        "inputSchema": { "type": "object", "properties": {} },
        "execution": { "url": format!("{}/orders", world.far.url()) } });
    let other = json!({ "name": "helper", "description": "Another agent", "executionType": "ai-agent",
        "execution": { "agentConfig": { "agent": { "name": "below" }, "model": demo } } });
    world.agent(json!({ "agent": { "name": "above" }, "model": demo, "tools": [look, other] })).await;
    let far = json!({ "provider": "far", "name": "gpt" });
    world.agent(json!({ "agent": { "name": "far" }, "model": far })).await;

    let ask = |agent: &str, text: &str| json!({ "model": agent, "messages": [{ "role": "user", "content": text }] });
    world.say(world.send("/v1/chat/completions", &ask("above", "call look {}"), 20)).await;
    let call = world.span(20, "execute_tool look").await;
    assert_eq!(world.heard("GET /orders"), header(&call));
    assert_eq!(call["parentSpanId"], world.span(20, "invoke_agent").await["spanId"]);

    world.say(world.send("/v1/chat/completions", &ask("above", "call helper {\"prompt\":\"hi\"}"), 21)).await;
    let call = world.span(21, "execute_tool helper").await;
    let trace = parent(21)[3..35].to_owned();
    let below = || {
        let spans = world.spans();
        spans.into_iter().find(|s| s["traceId"] == *trace && s["parentSpanId"] == call["spanId"])
    };
    eventually("the agent below is told", async || below().is_some()).await;
    assert_eq!(below().unwrap()["name"], "invoke_agent");

    // This far side is no model: what it heard counts.
    let _ = world.send("/v1/chat/completions", &ask("far", "hello"), 22).send().await.unwrap();
    let heard = world.heard("POST /model/chat/completions").unwrap();
    assert!(heard.starts_with(&parent(22)[..35]) && heard != parent(22), "{heard}");

    // Without traces nobody hears of any.
    let gateway =
        Gateway::start_with(Folder::new(), &[("TOOLYARD_ALLOW_PRIVATE_NETWORK", world.far.address.as_str())])
            .await;
    let look = json!({ "name": "look", "description": "Asks an API", "executionType": "request",
        "inputSchema": { "type": "object", "properties": {} },
        "execution": { "url": format!("{}/quiet", world.far.url()) } });
    let config = json!({ "agent": { "name": "quiet" }, "model": demo, "tools": [look] });
    gateway.post("/api/agents", json!({ "config": config })).await;
    let quiet = gateway.secret(Method::POST, "/v1/chat/completions").header("traceparent", parent(23));
    fine(quiet.json(&ask("quiet", "call look {}"))).await;
    assert_eq!(world.heard("GET /quiet"), None);
}
