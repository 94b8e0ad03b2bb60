//! Row U26 and the W3C trace context: a caller's trace goes on in the gateway,
//! whichever dialect it speaks, and from there to models, HTTP tools and agents
//! below.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::far_side::FarSide;
use crate::gateway::{Folder, Gateway, fine};
use crate::mcp_agent::Modern;
use crate::yard::{Stream, eventually, join, new_space, new_user};

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

    /// All spans of a trace, once its turn is told: each stands below another of
    /// them, or below the caller's.
    async fn whole(&self, n: usize, turn: &str) -> Vec<Value> {
        let root = self.span(n, turn).await;
        let spans: Vec<Value> =
            self.spans().into_iter().filter(|span| span["traceId"] == root["traceId"]).collect();
        for span in &spans {
            let above = &span["parentSpanId"];
            let known = *above == parent(n)[36..52] || spans.iter().any(|other| other["spanId"] == *above);
            assert!(known, "nobody told of the span above {span}");
        }
        spans
    }

    /// The trace header of the first request to a place at the far side.
    fn heard(&self, line: &str) -> Option<String> {
        let asked = self.far.asked();
        let found = asked.iter().find(|asked| asked.line.starts_with(line));
        found.unwrap_or_else(|| panic!("nobody asked {line}")).header("traceparent").map(str::to_owned)
    }
}

/// What a span says of itself.
fn attribute(span: &Value, name: &str) -> Value {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|one| one["key"] == name).map(|one| one["value"].clone());
    match found {
        Some(Value::Object(value)) => value.into_iter().next().unwrap().1,
        _ => Value::Null,
    }
}

fn names(spans: &[Value]) -> Vec<&str> {
    let mut names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names
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
        let turn = world.span(n, "invoke_agent story").await;
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
    let last = world.spans().into_iter().rfind(|span| span["name"] == "invoke_agent story").unwrap();
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
    assert_eq!(call["parentSpanId"], world.span(20, "invoke_agent above").await["spanId"]);

    world.say(world.send("/v1/chat/completions", &ask("above", "call helper {\"prompt\":\"hi\"}"), 21)).await;
    let call = world.span(21, "execute_tool helper").await;
    let trace = parent(21)[3..35].to_owned();
    let below = || {
        let spans = world.spans();
        spans.into_iter().find(|s| s["traceId"] == *trace && s["parentSpanId"] == call["spanId"])
    };
    eventually("the agent below is told", async || below().is_some()).await;
    assert_eq!(below().unwrap()["name"], "invoke_agent below");

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

fn asked(agent: &str, text: &str) -> Value {
    json!({ "model": agent, "messages": [{ "role": "user", "content": text }] })
}

/// Row U26: a turn that went well, in the words of the conventions.
#[tokio::test]
async fn u26_a_completed_turn_is_told_by_the_conventions() {
    let world = World::new().await;
    let echo = json!({ "name": "echo", "description": "Says it again",
        "inputSchema": { "type": "object", "properties": {} }, "execution": { "mode": "pass-through" } });
    let demo = json!({ "provider": "demo", "name": "demo" });
    world.agent(json!({ "agent": { "name": "story" }, "model": demo, "tools": [echo] })).await;
    world.say(world.send("/v1/chat/completions", &asked("story", "call echo {}"), 30)).await;
    let spans = world.whole(30, "invoke_agent story").await;
    assert_eq!(names(&spans), ["chat demo", "chat demo", "execute_tool echo", "invoke_agent story"]);
    let find = |name: &str| spans.iter().find(|span| span["name"] == *name).unwrap();
    let (chat, call, turn) = (find("chat demo"), find("execute_tool echo"), find("invoke_agent story"));
    // Work at a vendor is a client's; the rest is the gateway's own.
    assert_eq!([&chat["kind"], &call["kind"], &turn["kind"]], [3, 1, 1]);
    for (span, name, value) in [
        (chat, "gen_ai.operation.name", json!("chat")),
        (chat, "gen_ai.provider.name", json!("demo")),
        (chat, "gen_ai.request.model", json!("demo")),
        (chat, "gen_ai.response.model", json!("demo")),
        (chat, "gen_ai.response.finish_reasons", json!({ "values": [{ "stringValue": "tool_calls" }] })),
        (call, "gen_ai.operation.name", json!("execute_tool")),
        (call, "gen_ai.tool.name", json!("echo")),
        (call, "gen_ai.tool.type", json!("function")),
        (turn, "gen_ai.operation.name", json!("invoke_agent")),
        (turn, "gen_ai.agent.name", json!("story")),
        (turn, "error.type", Value::Null),
    ] {
        assert_eq!(attribute(span, name), value, "{name}: {span}");
    }
    assert!(attribute(call, "gen_ai.tool.call.id").is_string(), "{call}");
    for name in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
        let sum = |spans: &[&Value]| -> u64 {
            spans.iter().map(|span| attribute(span, name).as_str().unwrap().parse::<u64>().unwrap()).sum()
        };
        let chats: Vec<&Value> = spans.iter().filter(|span| span["name"] == "chat demo").collect();
        assert_eq!(sum(&chats), sum(&[turn]), "{name}");
    }
    assert_eq!(turn["status"], json!({}));
}

/// Row U26: a turn that fails is told too, from its first word on.
#[tokio::test]
async fn u26_a_failed_turn_tells_its_root_and_what_went_wrong() {
    let world = World::new().await;
    let far = json!({ "provider": "far", "name": "gpt" });
    world.agent(json!({ "agent": { "name": "far" }, "model": far })).await;
    // This far side is no model.
    let _ = world.send("/v1/chat/completions", &asked("far", "hello"), 31).send().await.unwrap();
    let spans = world.whole(31, "invoke_agent far").await;
    assert_eq!(names(&spans), ["chat gpt", "invoke_agent far"]);
    for span in &spans {
        assert_eq!(span["status"]["code"], 2, "{span}");
        let code = attribute(span, "error.type");
        assert!(code.as_str().is_some_and(|code| code.starts_with("model_")), "{span}");
        assert_eq!(attribute(span, "toolyard.run.status"), "failed");
    }
    // The vendor heard of the very span that is told.
    let chat = spans.iter().find(|span| span["name"] == "chat gpt").unwrap();
    assert_eq!(world.heard("POST /model/chat/completions"), header(chat));
    assert_eq!(attribute(chat, "gen_ai.provider.name"), "openai");
}

/// Row U26: a run that is stopped leaves no span below one that is not there,
/// whether the model spoke or a client was waited for.
#[tokio::test]
async fn u26_a_canceled_run_leaves_no_orphans() {
    let world = World::new().await;
    let here = json!({ "name": "here", "description": "Runs at a client",
        "inputSchema": { "type": "object", "properties": {} } });
    let demo = json!({ "provider": "demo", "name": "demo" });
    world.agent(json!({ "agent": { "name": "story" }, "model": demo, "tools": [here] })).await;
    let space = new_space(&world.gateway).await;
    join(&world.gateway, &space, &world.entity("story").await).await;
    let ann = new_user(&world.gateway, "ann").await;
    join(&world.gateway, &space, &ann).await;
    let path = format!("/api/smart-spaces/{space}/messages");
    let cases = [
        (
            32,
            "call here {}",
            "run.waiting_tool",
            vec!["chat demo", "execute_tool here", "invoke_agent story"],
        ),
        (33, "slow 200", "text-delta", vec!["chat demo", "invoke_agent story"]),
    ];
    for (n, text, until, wanted) in cases {
        let said = fine(world.send(&path, &json!({ "content": text, "entityId": ann }), n)).await;
        let run = format!("/api/runs/{}", said["runs"][0]["runId"].as_str().unwrap());
        let stream = world.gateway.secret(Method::GET, &format!("{run}/stream")).send().await.unwrap();
        Stream::new(stream).until(until).await;
        world.gateway.post(&format!("{run}/cancel"), json!({})).await;
        let spans = world.whole(n, "invoke_agent story").await;
        assert_eq!(names(&spans), wanted, "{text}");
        let turn = spans.iter().find(|span| span["name"] == "invoke_agent story").unwrap();
        assert_eq!(attribute(turn, "toolyard.run.status"), "canceled", "{turn}");
        // Somebody wanted it so: that is no error.
        assert_eq!((&turn["status"], attribute(turn, "error.type")), (&json!({}), Value::Null), "{turn}");
    }
}
