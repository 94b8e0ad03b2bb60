//! What a vendor says when it refuses, and what it cannot take, on its way to
//! the readers of every dialect.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::gateway::{Folder, Gateway, fine};
use crate::yard::{data, join, new_space, new_user, read_all};

/// What no reader may see.
const CANARY: &str = "canary-of-the-vendor";

/// A vendor whose model's name says what it does.
async fn serve(mut socket: TcpStream) -> Option<()> {
    let mut bytes = Vec::new();
    let body: Value = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length: usize =
                head.lines().find_map(|l| l.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                break serde_json::from_slice(&bytes[end + 4..]).ok()?;
            }
        }
        if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return None;
        }
    };
    let error = json!({ "error": { "message": CANARY, "type": "invalid_request_error", "code": CANARY } });
    let delta = |delta: Value, end: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": end });
        format!("data: {}\n\n", json!({ "id": "c", "model": "m", "choices": [choice] }))
    };
    let said = delta(json!({ "content": "Well, " }), Value::Null);
    let (status, kind, text) = match body["model"].as_str()? {
        "refuses" => ("400 Bad Request", "application/json", error.to_string()),
        "breaks" => ("200 OK", "text/event-stream", format!("{said}data: {error}\n\n")),
        _ => {
            let whole =
                format!("{said}{}data: [DONE]\n\n", delta(json!({ "content": "yes." }), json!("stop")));
            ("200 OK", "text/event-stream", whole)
        }
    };
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    socket.write_all(format!("{head}{text}").as_bytes()).await.ok()
}

struct House {
    gateway: Gateway,
    ann: String,
    _vendor: tokio::task::JoinSet<()>,
}

impl House {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut vendor = tokio::task::JoinSet::new();
        vendor.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket));
            }
        });
        let folder = Folder::new();
        let config = format!("[providers.far]\nkind = \"openai\"\nbase_url = \"http://{address}/v1\"\n");
        std::fs::write(folder.path().join("toolyard.toml"), config).unwrap();
        let gateway = Gateway::start_with(folder, &[]).await;
        let ann = new_user(&gateway, "ann").await;
        Self { gateway, ann, _vendor: vendor }
    }

    async fn agent(&self, name: &str, model: &str, tools: Value) {
        let config = json!({ "agent": { "name": name, "description": "Tells." },
            "model": { "provider": "far", "name": model }, "tools": tools });
        self.gateway.post("/api/agents", json!({ "config": config })).await;
    }

    fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.gateway.user("ann", Method::POST, path).json(body)
    }

    /// A run that ended, by the native door.
    async fn native(&self, agent: &str) -> String {
        let made = self.gateway.post("/api/entities/agent", json!({ "agentId": agent })).await;
        let space = new_space(&self.gateway).await;
        join(&self.gateway, &space, made["entity"]["id"].as_str().unwrap()).await;
        join(&self.gateway, &space, &self.ann).await;
        let path = format!("/api/smart-spaces/{space}/messages");
        let posted = fine(self.post(&path, &json!({ "content": "hello" }))).await;
        let run = posted["runs"][0]["runId"].as_str().unwrap().to_owned();
        read_all(self.gateway.secret(Method::GET, &format!("/api/runs/{run}/stream")).send().await.unwrap())
            .await;
        run
    }

    /// The same question at every other door: its name and the request.
    fn doors(&self, agent: &str) -> Vec<(&'static str, RequestBuilder)> {
        let parts = json!([{ "type": "text", "text": "hello" }]);
        let chat = |id: &str| {
            json!({ "id": format!("{id}-{agent}"), "agent": agent,
                "messages": [{ "id": "u1", "role": "user", "parts": parts }] })
        };
        let ag_ui = json!({ "threadId": format!("t-{agent}"), "runId": "r", "protocolVersion": "1.0",
            "messages": [{ "id": "u1", "role": "user", "content": "hello" }] });
        let a2a = |method: &str, id: &str| {
            let message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": "hello" }] });
            let body =
                json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "message": message } });
            self.post(&format!("/a2a/{agent}"), &body).header("a2a-version", "1.0")
        };
        let messages = json!([{ "role": "user", "content": "hello" }]);
        let completion = |stream: bool| json!({ "model": agent, "messages": messages, "stream": stream });
        let response = |stream: bool| json!({ "model": agent, "input": "hello", "stream": stream });
        vec![
            ("AI SDK", self.post("/api/chat", &chat("ui"))),
            ("data stream", self.post("/api/chat", &chat("v1")).header("x-mcp-mode", "true")),
            ("AG-UI", self.post(&format!("/ag-ui/{agent}"), &ag_ui)),
            ("A2A", a2a("SendMessage", "m-1")),
            ("A2A stream", a2a("SendStreamingMessage", "m-2")),
            ("completion", self.post("/v1/chat/completions", &completion(false))),
            ("completion stream", self.post("/v1/chat/completions", &completion(true))),
            ("response", self.post("/v1/responses", &response(false))),
            ("response stream", self.post("/v1/responses", &response(true))),
        ]
    }

    /// The answer of an MCP client's call of the agent.
    async fn mcp(&self, agent: &str) -> String {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {} });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": format!("ask_{agent}"), "arguments": { "message": "hello" }, "_meta": meta } });
        let request = self.post(&format!("/mcp/{agent}"), &body);
        let request = request
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", format!("ask_{agent}"));
        request.send().await.unwrap().text().await.unwrap()
    }
}

/// Row X7: the words of a refusal are the operator's, on every path and replayed.
#[tokio::test]
async fn x7_no_reader_sees_what_a_vendor_said_when_it_refused() {
    let house = House::open().await;
    for model in ["refuses", "breaks"] {
        house.agent(model, model, json!([])).await;
        let run = house.native(model).await;
        let own = house.gateway.secret(Method::GET, &format!("/api/runs/{run}/events"));
        let own = fine(own).await.to_string();
        assert!(own.contains(CANARY), "the operator is told: {own}");
        for path in ["", "/events", "/stream"].map(|end| format!("/api/runs/{run}{end}")) {
            let seen = house.gateway.user("ann", Method::GET, &path).send().await.unwrap();
            let (status, seen) = (seen.status(), seen.text().await.unwrap());
            assert!(status.is_success() && !seen.is_empty() && !seen.contains(CANARY), "{path}: {seen}");
        }
        for (door, request) in house.doors(model) {
            let seen = request.send().await.unwrap().text().await.unwrap();
            assert!(seen.len() > 20 && !seen.contains(CANARY), "{model} by {door}: {seen}");
        }
        let seen = house.mcp(model).await;
        assert!(seen.len() > 20 && !seen.contains(CANARY), "{model} by MCP: {seen}");
    }
}

fn events(body: &str) -> Vec<Value> {
    body.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
}

/// Row L23: a tool that the vendor cannot take is told in every dialect that
/// has a word for it. OpenAI's have none.
#[tokio::test]
async fn l23_a_tool_that_is_left_out_is_told_in_every_dialect() {
    let house = House::open().await;
    let broken = json!({ "type": "object", "properties": {}, "anyOf": [{ "type": "string" }] });
    let tool = json!({ "name": "odd", "description": "Odd.", "inputSchema": broken, "visibility": "public",
        "execution": { "mode": "static", "output": {} } });
    house.agent("odd", "says", json!([tool])).await;
    let is_told = |value: &Value| {
        let tool = &value["tools"][0];
        tool["name"] == "odd" && tool["reason"].as_str().is_some_and(|reason| reason.contains("no object"))
    };

    let run = house.native("odd").await;
    let stream = house.gateway.user("ann", Method::GET, &format!("/api/runs/{run}/stream"));
    let told = read_all(stream.send().await.unwrap()).await;
    let told = told.iter().find(|e| e.event.as_deref() == Some("plugin.emitted")).map(data).unwrap();
    assert!(told["name"] == "tools.left-out" && is_told(&told["value"]), "{told}");

    for (door, request) in house.doors("odd") {
        let seen = request.send().await.unwrap().text().await.unwrap();
        let told = match door {
            "AI SDK" => events(&seen)
                .into_iter()
                .find(|e| e["type"] == "data-plugin")
                .map(|e| e["data"]["value"].clone()),
            "data stream" => {
                let data = seen
                    .lines()
                    .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("2:")?).ok());
                data.flat_map(|list| list.as_array().cloned().unwrap_or_default())
                    .find(|one| one.to_string().contains("tools.left-out"))
                    .map(|one| {
                        if one["data"].is_object() {
                            one["data"]["value"].clone()
                        } else {
                            one["value"].clone()
                        }
                    })
            }
            "AG-UI" => events(&seen)
                .into_iter()
                .find(|e| e["type"] == "CUSTOM" && e["name"] == "tools.left-out")
                .map(|e| e["value"].clone()),
            "A2A" => {
                let answer: Value = serde_json::from_str(&seen).unwrap();
                answer["result"]["task"]["artifacts"][0]["metadata"].get("toolyard.tools.left-out").cloned()
            }
            // Its stream tells the artifact again, with its metadata.
            "A2A stream" => {
                assert!(seen.contains("toolyard.tools.left-out"), "{seen}");
                continue;
            }
            _ => {
                assert!(seen.contains("yes."), "{door}: {seen}");
                continue;
            }
        };
        assert!(told.as_ref().is_some_and(is_told), "{door}: {told:?} in {seen}");
    }
}
