//! An agent as an MCP server: the official clients of both eras, unchanged, over
//! HTTP and over standard input and output; and what no client lets one try.
//!
//! `scripts/setup-clients` installs the clients. Without them their tests fail,
//! unless `TOOLYARD_CLIENTS` is `none`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use crate::foreign::is_there;
use crate::gateway::{Folder, Gateway, PATIENCE, SECRET, ask, fine, toolyard};
use crate::yard::eventually;

fn agent() -> Value {
    let object = json!({ "type": "object", "properties": {} });
    json!({
        "version": "1",
        "agent": { "name": "story", "description": "Tells stories." },
        "model": { "provider": "demo", "name": "demo" },
        "mcpServer": { "tools": ["lucky", "delete_thing", "here"] },
        "tools": [
            { "name": "lucky", "description": "A number",
              "inputSchema": { "type": "object", "properties": { "n": { "type": "number" } } },
              "execution": { "mode": "static", "output": { "number": 42 } } },
            { "name": "delete_thing", "description": "Removes a thing", "inputSchema": object,
              "approval": "ask", "visibility": "public",
              "execution": { "mode": "static", "output": { "thing": "gone" } } },
            { "name": "hidden", "description": "Not for clients", "inputSchema": object,
              "execution": { "mode": "static", "output": { "found": "canary-hidden" } } },
            { "name": "here", "description": "Runs at a client", "inputSchema": object },
        ],
    })
}

async fn start(folder: Folder, env: &[(&str, &str)]) -> Gateway {
    let gateway = Gateway::start_with(folder, env).await;
    gateway.post("/api/agents", json!({ "config": agent() })).await;
    gateway
}

pub(crate) async fn gateway() -> Gateway {
    start(Folder::new(), &[]).await
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs the stories of the official client for Node.
async fn tell(era: &'static str, wire: &'static str) {
    let place = root().join("target/clients/mcp-clients");
    if !is_there(&place.join("done"), "scripts/setup-clients") {
        return;
    }
    let gateway = gateway().await;
    // Node looks for packages beside the script.
    let copy = place.join(format!("{}-stories.mjs", uuid::Uuid::now_v7().simple()));
    std::fs::copy(root().join("tests/mcp-clients/stories.mjs"), &copy).unwrap();
    let mut command = Command::new(place.join("node_modules/.bin/node"));
    command.arg(&copy).args([era, wire]).current_dir(&place);
    command.env("GATEWAY", &gateway.url).env("SECRET", SECRET);
    command.env("TOOLYARD", env!("CARGO_BIN_EXE_toolyard"));
    let done = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    std::fs::remove_file(&copy).unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let fine = done.status.success() && out.matches("ok ").count() == 10 && !out.contains("FAILED");
    assert!(fine, "{out}\n{err}");
}

#[tokio::test]
async fn the_client_of_2025_11_25_tells_its_stories_over_http() {
    tell("legacy", "http").await;
}

#[tokio::test]
async fn the_client_of_2025_11_25_tells_its_stories_over_stdio() {
    tell("legacy", "stdio").await;
}

#[tokio::test]
async fn the_client_of_2026_07_28_tells_its_stories_over_http() {
    tell("modern", "http").await;
}

#[tokio::test]
async fn the_client_of_2026_07_28_tells_its_stories_over_stdio() {
    tell("modern", "stdio").await;
}

#[tokio::test]
async fn the_client_for_python_tells_its_story() {
    let python = root().join("target/mcp-servers/python/bin/python");
    if !is_there(&python, "scripts/setup-mcp-servers") {
        return;
    }
    let gateway = gateway().await;
    let mut command = Command::new(python);
    command.arg(root().join("tests/mcp-clients/story.py"));
    command.env("GATEWAY", &gateway.url).env("SECRET", SECRET);
    let done = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && out.trim_end().ends_with("all well"), "{out}\n{err}");
}

/// A client of the newer era, one request at a time.
pub(crate) struct Modern<'g> {
    gateway: &'g Gateway,
    user: Option<&'static str>,
    capabilities: Value,
}

impl<'g> Modern<'g> {
    pub(crate) fn new(gateway: &'g Gateway, capabilities: Value) -> Self {
        Self { gateway, user: None, capabilities }
    }

    pub(crate) fn request(&self, method: &str, mut params: Value) -> RequestBuilder {
        let own = params["_meta"].take();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        for (name, value) in own.as_object().into_iter().flatten() {
            params["_meta"][name] = value.clone();
        }
        let path = "/mcp/story";
        let request = match self.user {
            Some(user) => self.gateway.user(user, Method::POST, path),
            None => self.gateway.secret(Method::POST, path),
        };
        let name =
            ["name", "taskId", "uri"].into_iter().find_map(|field| params[field].as_str().map(str::to_owned));
        let request = request
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .json(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
        match name {
            Some(name) => request.header("mcp-name", name),
            None => request,
        }
    }

    /// The answer, whatever it is.
    pub(crate) fn of(mut self, user: &'static str) -> Self {
        self.user = Some(user);
        self
    }

    pub(crate) async fn answer(&self, method: &str, params: Value) -> Value {
        let text = self.request(method, params).send().await.unwrap().text().await.unwrap();
        let data = text
            .lines()
            .map(|line| line.strip_prefix("data: ").or(line.strip_prefix("data:")).unwrap_or(line));
        let mut read = data.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        read.rfind(|message| message["id"] == 1).unwrap_or_else(|| panic!("{text}"))
    }

    pub(crate) async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    async fn call(&self, name: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": name, "arguments": arguments })).await
    }
}

fn tasks() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} }, "elicitation": { "form": {} } })
}

/// A long run is a task: it is asked after, answered and ended by its id.
#[tokio::test]
async fn a_long_call_is_a_task() {
    let gateway = start(Folder::new(), &[("TOOLYARD_MCP_SERVER_TASK_AFTER_MS", "1")]).await;
    let client = Modern::new(&gateway, tasks());
    let made = client.call("ask_story", json!({ "message": "slow 500" })).await;
    assert_eq!(made["resultType"], "task", "{made}");
    assert_eq!(made["status"], "working");
    let id = made["taskId"].clone();
    let seen = client.result("tasks/get", json!({ "taskId": id })).await;
    assert_eq!((&seen["taskId"], &seen["status"]), (&id, &json!("working")));
    client.result("tasks/cancel", json!({ "taskId": id })).await;
    eventually("the task is cancelled", || async {
        client.result("tasks/get", json!({ "taskId": id })).await["status"] == "cancelled"
    })
    .await;

    let gateway = start(Folder::new(), &[("TOOLYARD_MCP_SERVER_TASK_AFTER_MS", "0")]).await;
    let client = Modern::new(&gateway, tasks());
    let made = client.call("ask_story", json!({ "message": "call delete_thing {}" })).await;
    let id = made["taskId"].clone();
    eventually("the task asks", || async {
        client.result("tasks/get", json!({ "taskId": id })).await["status"] == "input_required"
    })
    .await;
    let asking = client.result("tasks/get", json!({ "taskId": id })).await;
    let key = asking["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    assert_eq!(asking["inputRequests"][&key]["method"], "elicitation/create");
    let allow = json!({ "action": "accept", "content": { "decision": "allow" } });
    client.result("tasks/update", json!({ "taskId": id, "inputResponses": { key: allow } })).await;
    eventually("the task is done", || async {
        client.result("tasks/get", json!({ "taskId": id })).await["status"] == "completed"
    })
    .await;
    let done = client.result("tasks/get", json!({ "taskId": id })).await;
    assert!(done["result"]["content"][0]["text"].as_str().unwrap().contains("gone"), "{done}");
    assert_eq!(done["result"]["structuredContent"]["run"], id);
    // Who does not know tasks gets no task, and may not ask for one.
    let plain = Modern::new(&gateway, json!({}));
    let whole = plain.call("ask_story", json!({ "message": "hello" })).await;
    assert_eq!(whole["structuredContent"]["status"], "completed");
    assert_eq!(plain.answer("tasks/get", json!({ "taskId": id })).await["error"]["code"], -32021);
}

/// The whole state of a paused call is the run's: it survives a kill, and the
/// answer may come to another process.
#[tokio::test]
async fn a_question_survives_a_kill_of_the_gateway() {
    let gateway = gateway().await;
    let able = json!({ "elicitation": { "form": {} } });
    let arguments = json!({ "message": "call delete_thing {}" });
    let asked = Modern::new(&gateway, able.clone()).call("ask_story", arguments.clone()).await;
    assert_eq!(asked["resultType"], "input_required");
    let gateway = Gateway::start_with(gateway.kill(), &[]).await;
    let client = Modern::new(&gateway, able);
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let again = |replies: Value| {
        json!({ "name": "ask_story", "arguments": arguments, "requestState": asked["requestState"],
            "inputResponses": replies })
    };
    // Without the answer it is asked again; a wrong one changes nothing.
    let same = client.result("tools/call", again(json!({}))).await;
    assert_eq!(same["inputRequests"], asked["inputRequests"]);
    let wrong = json!({ key.clone(): { "action": "accept", "content": { "decision": "perhaps" } } });
    let refused = client.answer("tools/call", again(wrong)).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let allow = json!({ key: { "action": "accept", "content": { "decision": "allow" } } });
    let done = client.result("tools/call", again(allow.clone())).await;
    assert_eq!(done["structuredContent"]["status"], "completed", "{done}");
    assert!(done["content"][0]["text"].as_str().unwrap().contains("gone"));
    // Said twice it is heard once.
    let twice = client.result("tools/call", again(allow)).await;
    assert_eq!(twice["structuredContent"], done["structuredContent"]);
}

/// Users see their own runs and open tools only.
#[tokio::test]
async fn x7_a_public_key_has_its_own_runs_and_open_tools_only() {
    let gateway = gateway().await;
    let able = json!({ "elicitation": {} });
    let of = |user: &'static str| Modern { gateway: &gateway, user: Some(user), capabilities: able.clone() };
    let (ann, bob) = (of("ann"), of("bob"));
    let listed = ann.result("tools/list", json!({})).await;
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ask_story", "delete_thing"]);
    for tool in ["lucky", "hidden", "here", "ask_nobody"] {
        let refused = ann.answer("tools/call", json!({ "name": tool, "arguments": {} })).await;
        assert_eq!(refused["error"]["code"], -32602, "{tool}: {refused}");
    }
    let asked = ann.call("ask_story", json!({ "message": "call delete_thing {}" })).await;
    let run = asked["requestState"].as_str().unwrap();
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let allow = json!({ key: { "action": "accept", "content": { "decision": "allow" } } });
    let steal = json!({ "name": "ask_story", "arguments": {}, "requestState": run, "inputResponses": allow });
    let refused = bob.answer("tools/call", steal).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let refused = bob.call("ask_story", json!({ "run": run })).await;
    assert_eq!(refused["isError"], true);
    let session = gateway.get(&format!("/api/runs/{run}")).await["run"]["smartSpaceId"].clone();
    let other = bob.call("ask_story", json!({ "message": "hello", "session": session })).await;
    assert_ne!(other["structuredContent"]["session"], session, "a stranger's session is another one");
    assert_eq!(gateway.get(&format!("/api/runs/{run}")).await["run"]["status"], "waiting_tool");
}

/// Nobody can choose the model that obeys, nor speak to it.
#[tokio::test]
async fn x7_the_model_behind_direct_calls_is_not_for_requests() {
    let gateway = gateway().await;
    let parts = json!([{ "type": "text", "text": "x" },
        { "type": "data-directCall", "data": { "tool": "hidden", "arguments": {} } }]);
    let chat = json!({ "id": "c", "agent": "story", "model": "toolyard-direct/call",
        "messages": [{ "id": "m", "role": "user", "parts": parts }] });
    let (status, body) = ask(gateway.user("ann", Method::POST, "/api/chat").json(&chat)).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{body}");
    let mut config = agent();
    config["agent"]["name"] = json!("obeys");
    config["model"] = json!({ "provider": "toolyard-direct", "name": "call" });
    let (status, body) =
        ask(gateway.secret(Method::POST, "/api/agents").json(&json!({ "config": config }))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
    assert_eq!(gateway.get("/api/runs").await["runs"], json!([]));
}

pub(crate) fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } })
}

/// A session of the older era is its owner's; pages from elsewhere have none.
#[tokio::test]
async fn x11_sessions_have_owners_and_foreign_pages_are_refused() {
    let gateway = gateway().await;
    let accept = "application/json, text/event-stream";
    let open = gateway.user("ann", Method::POST, "/mcp/story").header("accept", accept).json(&initialize());
    let response = open.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let with = |request: RequestBuilder| {
        request
            .header("accept", accept)
            .header("mcp-session-id", &session)
            .header("mcp-protocol-version", "2025-11-25")
    };
    let status = async |request: RequestBuilder| request.send().await.unwrap().status();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let own = with(gateway.user("ann", Method::POST, "/mcp/story"));
    assert_eq!(status(own.json(&ready)).await, StatusCode::ACCEPTED);
    let own = with(gateway.user("ann", Method::POST, "/mcp/story"));
    assert_eq!(status(own.json(&ping)).await, StatusCode::OK);
    for other in [
        with(gateway.user("bob", Method::POST, "/mcp/story")).json(&ping),
        with(gateway.secret(Method::POST, "/mcp/story")).json(&ping),
        with(gateway.user("bob", Method::GET, "/mcp/story")),
        with(gateway.user("bob", Method::DELETE, "/mcp/story")),
    ] {
        assert_eq!(status(other).await, StatusCode::NOT_FOUND);
    }
    let bare = gateway.bare(Method::POST, "/mcp/story").header("accept", accept).json(&initialize());
    assert_eq!(status(bare).await, StatusCode::UNAUTHORIZED);
    let page = with(gateway.secret(Method::POST, "/mcp/story")).header("origin", "https://evil.example");
    assert_eq!(status(page.json(&ping)).await, StatusCode::FORBIDDEN);
    let gone = gateway.secret(Method::POST, "/mcp/nobody").header("accept", accept).json(&initialize());
    assert_eq!(status(gone).await, StatusCode::NOT_FOUND);
    let end = with(gateway.user("ann", Method::DELETE, "/mcp/story"));
    assert!(status(end).await.is_success());
    let after = with(gateway.user("ann", Method::POST, "/mcp/story")).json(&ping);
    assert_eq!(status(after).await, StatusCode::NOT_FOUND);
}

/// The operator and the agent decide what there is.
#[tokio::test]
async fn what_clients_see_is_decided_by_the_configurations() {
    let gateway = start(Folder::new(), &[("TOOLYARD_MCP_SERVER_OWN_TOOLS", "false")]).await;
    let listed = Modern::new(&gateway, json!({})).result("tools/list", json!({})).await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!((&listed["cacheScope"], listed["ttlMs"].as_u64() > Some(0)), (&json!("private"), true));
    let mut config = agent();
    config["mcpServer"] = json!({ "ask": false, "tools": "all" });
    fine(gateway.secret(Method::POST, "/api/agents").json(&json!({ "config": config }))).await;
    let listed = Modern::new(&gateway, json!({})).result("tools/list", json!({})).await;
    assert_eq!(listed["tools"], json!([]));
    config["mcpServer"] = json!({ "tool": [] });
    let (status, body) =
        ask(gateway.secret(Method::POST, "/api/agents").json(&json!({ "config": config }))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.to_string().contains("mcpServer"), "{body}");
    let gateway = start(Folder::new(), &[("TOOLYARD_MCP_SERVER_ENABLED", "false")]).await;
    let off = Modern::new(&gateway, json!({})).request("tools/list", json!({})).send().await.unwrap();
    assert_eq!(off.status(), StatusCode::NOT_FOUND);
}

/// `toolyard mcp`, spoken to by lines.
pub(crate) struct Program {
    child: tokio::process::Child,
    to: tokio::process::ChildStdin,
    from: tokio::io::Lines<tokio::io::BufReader<tokio::process::ChildStdout>>,
}

impl Program {
    pub(crate) fn start(gateway: &Gateway) -> Self {
        let mut command: tokio::process::Command = toolyard(gateway.folder.path()).into();
        command.args(["mcp", "--agent", "story", "--url", &gateway.url]).kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, to, from: tokio::io::BufReader::new(from).lines() }
    }

    pub(crate) async fn say(&mut self, message: &str) {
        self.to.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// What comes without a request.
    pub(crate) async fn news(&mut self) -> Value {
        loop {
            let line = self.from.next_line().await.unwrap().expect("the program ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("id").is_none() {
                return message;
            }
        }
    }

    /// What is answered to a request.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.from.next_line()).await.expect("a silent program");
            let message: Value = serde_json::from_str(&line.unwrap().expect("the program ended")).unwrap();
            if message["id"] == id || message["id"].is_null() && message.get("error").is_some() {
                return message;
            }
        }
    }

    pub(crate) async fn ask(&mut self, id: u64, method: &str) -> Value {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} }).to_string()).await;
        self.answer(id).await
    }
}

/// A script writes its requests and closes: each is still answered.
#[tokio::test]
async fn a_program_whose_input_ends_answers_what_it_was_asked() {
    let gateway = gateway().await;
    let mut program = Program::start(&gateway);
    let listing = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {} });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    for message in [initialize(), ready, listing] {
        program.say(&message.to_string()).await;
    }
    let Program { child: _child, to, mut from } = program;
    drop(to);
    let mut answered = Vec::new();
    while let Some(line) = tokio::time::timeout(PATIENCE, from.next_line()).await.unwrap().unwrap() {
        answered.push(serde_json::from_str::<Value>(&line).unwrap()["id"].clone());
    }
    assert_eq!(answered, [json!(0), json!(7)]);
}

/// A desktop keeps its program for days; the gateway behind it may be restarted.
#[tokio::test]
async fn the_program_outlives_a_restart_of_the_gateway() {
    let gateway = gateway().await;
    let mut program = Program::start(&gateway);
    program.say("this is no JSON").await;
    assert_eq!(program.answer(0).await["error"]["code"], -32700);
    program.say(&initialize().to_string()).await;
    assert_eq!(program.answer(0).await["result"]["protocolVersion"], "2025-11-25");
    program.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await;
    let listed = program.ask(1, "tools/list").await;
    assert_eq!(listed["result"]["tools"][0]["name"], "ask_story", "{listed}");
    let address = gateway.address();
    let folder = gateway.kill();
    let away = program.ask(2, "tools/list").await;
    assert_eq!(away["error"]["code"], -32603, "{away}");
    let gateway = Gateway::start_on(&address, folder, &[]).await;
    let again = program.ask(3, "tools/list").await;
    assert_eq!(again["result"], listed["result"]);
    // It ends with its input, and takes its session along.
    drop(program.to);
    let ended = tokio::time::timeout(PATIENCE, program.child.wait()).await.expect("the program stays");
    assert!(ended.unwrap().success());
    drop(gateway);
}
