//! The real clients of other people's protocols, unchanged, against the binary:
//! AG-UI of both generations, CopilotKit's core, OpenAI's packages.
//!
//! `scripts/setup-clients` installs them. Without them these tests fail, unless
//! `TOOLYARD_CLIENTS` is `none`; what a request is refused for is tested in any case.

use std::path::{Path, PathBuf};
use std::process::Command;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::far_side::FarSide;
use crate::gateway::{Folder, Gateway, SECRET, fine};

fn agent() -> Value {
    let object = json!({ "type": "object", "properties": {} });
    json!({
        "version": "1",
        "agent": { "name": "story", "description": "Tells stories", "system": "Be kind" },
        "model": { "provider": "demo", "name": "demo" },
        "tools": [
            { "name": "lucky", "description": "A number", "inputSchema": object,
              "execution": { "mode": "static", "output": { "number": 42 } } },
            { "name": "delete_thing", "description": "Removes a thing", "inputSchema": object,
              "approval": "ask", "visibility": "public",
              "execution": { "mode": "static", "output": { "thing": "gone" } } },
        ],
    })
}

async fn gateway() -> Gateway {
    let gateway = Gateway::start().await;
    gateway.post("/api/agents", json!({ "config": agent() })).await;
    gateway
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether the clients of others are installed. A test that needs them and does
/// not find them is no proof: only who says `TOOLYARD_CLIENTS=none` goes without.
pub(crate) fn is_there(sign: &Path, script: &str) -> bool {
    if std::env::var("TOOLYARD_CLIENTS").is_ok_and(|word| word == "none") {
        eprintln!("TOOLYARD_CLIENTS is none; nothing was tested");
        return false;
    }
    assert!(sign.exists(), "the clients of others are not installed: run {script}");
    true
}

/// Runs a program of `tests/<folder>` beside its packages.
fn tell(gateway: &Gateway, folder: &str, script: &str, args: &[&str]) {
    let place = root().join("target/clients").join(folder);
    if !is_there(&place.join("done"), "scripts/setup-clients") {
        return;
    }
    // Node looks for packages beside the script.
    let copy = place.join(format!("{}-{script}", uuid::Uuid::now_v7().simple()));
    std::fs::copy(root().join("tests").join(folder).join(script), &copy).unwrap();
    let mut command = Command::new(place.join("node_modules/.bin/node"));
    command.arg(&copy).args(args).current_dir(&place);
    let told = judge(command, gateway);
    std::fs::remove_file(&copy).unwrap();
    told.unwrap();
}

fn judge(mut command: Command, gateway: &Gateway) -> Result<(), String> {
    let output = command.env("GATEWAY", &gateway.url).env("SECRET", SECRET).output();
    let output = output.map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    let (said, errors) = (said.into_owned(), String::from_utf8_lossy(&output.stderr));
    let fine = output.status.success() && said.contains("ok ") && !said.contains("FAILED");
    if fine { Ok(()) } else { Err(format!("{said}\n{errors}")) }
}

#[tokio::test]
async fn the_ag_ui_client_1_0_tells_its_stories() {
    tell(&gateway().await, "ag-ui", "stories.mjs", &["ag-ui-client-1", "1.0"]);
}

#[tokio::test]
async fn the_ag_ui_client_0_0_59_tells_its_stories() {
    tell(&gateway().await, "ag-ui", "stories.mjs", &["ag-ui-client-0", "0.x"]);
}

#[tokio::test]
async fn the_binary_form_is_read_by_the_reference_decoder() {
    tell(&gateway().await, "ag-ui", "binary.mjs", &[]);
}

#[tokio::test]
async fn copilotkits_core_works_without_its_runtime() {
    tell(&gateway().await, "ag-ui", "copilotkit.mjs", &[]);
}

#[tokio::test]
async fn openais_package_for_node_tells_its_stories() {
    tell(&gateway().await, "openai", "stories.mjs", &[]);
}

/// The Python that has the packages of others. A test that needs them and does
/// not find them is no proof: only who says `TOOLYARD_REFEREES=none` goes without.
pub(crate) fn python() -> Option<PathBuf> {
    let named = std::env::var("TOOLYARD_REFEREES").ok().filter(|python| !python.is_empty());
    if named.as_deref() == Some("none") {
        eprintln!("TOOLYARD_REFEREES is none; nothing was tested");
        return None;
    }
    let usual = || root().join("target/referees-venv/bin/python");
    let python = named.map_or_else(usual, PathBuf::from);
    assert!(python.exists(), "the packages of others are not installed: run scripts/setup-referees");
    Some(python)
}

#[tokio::test]
async fn openais_package_for_python_tells_its_stories() {
    let Some(python) = python() else { return };
    let gateway = gateway().await;
    let mut command = Command::new(python);
    command.arg(root().join("tests/openai/stories.py"));
    judge(command, &gateway).unwrap();
}

fn events(body: &str) -> Vec<Value> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|json| serde_json::from_str(json).ok()).collect()
}

fn input(thread: &str, messages: Value) -> Value {
    json!({ "threadId": thread, "runId": "r", "protocolVersion": "1.0", "messages": messages })
}

/// SPEC part 2, row 19, on this path: what a browser's key sees of the tools
/// of the gateway, live and replayed.
#[tokio::test]
async fn x7_a_public_key_sees_the_name_of_a_private_tool_and_no_more() {
    let gateway = gateway().await;
    let body = input("t", json!([{ "id": "u", "role": "user", "content": "call lucky {\"a\":\"canary\"}" }]));
    let live = gateway.user("ann", Method::POST, "/ag-ui/story").json(&body).send().await.unwrap();
    let live = live.text().await.unwrap();
    let path = "/copilotkit/agent/story/connect";
    let replay = gateway.user("ann", Method::POST, path).json(&input("t", json!([]))).send().await.unwrap();
    let replay = replay.text().await.unwrap();
    for (name, told) in [("live", &live), ("replay", &replay)] {
        for event in events(told) {
            match event["type"].as_str().unwrap() {
                "TOOL_CALL_ARGS" => assert_eq!(event["delta"], "{}", "{name}"),
                "TOOL_CALL_RESULT" => assert_eq!(event["content"], "", "{name}"),
                // The user's own words are theirs; the demo model repeats results in words.
                _ => {}
            }
        }
        assert!(told.contains("lucky"), "{name}");
    }
    let snapshot = events(&replay).into_iter().find(|e| e["type"] == "MESSAGES_SNAPSHOT").unwrap();
    let calls: Vec<&Value> =
        snapshot["messages"].as_array().unwrap().iter().filter(|m| m.get("toolCalls").is_some()).collect();
    assert_eq!(calls[0]["toolCalls"][0]["function"], json!({ "name": "lucky", "arguments": "{}" }));
    let results: Vec<&Value> =
        snapshot["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool").collect();
    assert_eq!(results[0]["content"], "");

    // Another user's thread of the same name is another thread.
    let other = gateway.user("bob", Method::POST, path).json(&input("t", json!([]))).send().await.unwrap();
    let other = other.text().await.unwrap();
    assert!(!other.contains("MESSAGES_SNAPSHOT") && other.contains("RUN_FINISHED"), "{other}");
}

#[tokio::test]
async fn bad_input_is_refused_in_each_dialects_form_and_changes_nothing() {
    let gateway = gateway().await;
    let refused = async |path: &str, body: Value| {
        let response = gateway.secret(Method::POST, path).json(&body).send().await.unwrap();
        let status = response.status();
        (status, response.json::<Value>().await.unwrap()["error"].clone())
    };
    let (status, error) = refused("/ag-ui/story", json!({ "threadId": "t" })).await;
    assert_eq!((status, &error["code"]), (StatusCode::BAD_REQUEST, &json!("missing_field")));
    let (status, _) =
        refused("/ag-ui/nobody", input("t", json!([{ "id": "u", "role": "user", "content": "x" }]))).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let mut body = input("t", json!([{ "id": "u", "role": "user", "content": "x" }]));
    body["resume"] = json!([{ "interruptId": "wait_approval_nothing", "status": "resolved", "payload": {} }]);
    assert_eq!(refused("/ag-ui/story", body).await.0, StatusCode::NOT_FOUND);
    let mut body = input("t", json!([{ "id": "u", "role": "user", "content": "x" }]));
    body["tools"] = json!([{ "name": "lucky", "description": "Shadows", "parameters": { "type": "object", "properties": {} } }]);
    let (status, error) = refused("/ag-ui/story", body).await;
    assert_eq!((status, &error["code"]), (StatusCode::CONFLICT, &json!("tool_name_conflict")));
    let (status, error) = refused("/v1/chat/completions", json!({ "model": "story", "messages": [] })).await;
    assert_eq!((status, &error["type"]), (StatusCode::BAD_REQUEST, &json!("invalid_request_error")));
    let (status, error) = refused("/v1/responses", json!({ "model": "story" })).await;
    assert_eq!((status, &error["code"]), (StatusCode::BAD_REQUEST, &json!("missing_field")));
    // What the edge refuses has the form too.
    let stranger =
        gateway.bare(Method::POST, "/v1/chat/completions").bearer_auth("sk_wrong").json(&json!({}));
    let response = stranger.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let error = response.json::<Value>().await.unwrap()["error"].clone();
    assert_eq!((&error["code"], &error["param"]), (&json!("unauthorized"), &Value::Null));
    assert!(error["type"].is_string(), "{error}");
    assert_eq!(gateway.get("/api/runs").await["runs"], json!([]));
}

/// One run, several doors: a call that an OpenAI client waits for is seen in
/// the ledger and answered there; the next request of the client hears it.
#[tokio::test]
async fn row5_a_call_of_one_dialect_is_answered_over_another() {
    let gateway = gateway().await;
    let tool = json!({ "type": "function", "function": { "name": "here" } });
    let ask = json!({ "model": "story", "tools": [tool], "messages": [{ "role": "user", "content": "call here {}" }] });
    let first = gateway.post("/v1/chat/completions", ask.clone()).await;
    let call = first["choices"][0]["message"]["tool_calls"][0]["id"].as_str().unwrap().to_owned();
    let open = gateway.get("/api/pending-calls").await;
    assert_eq!(open["waits"][0]["toolCallId"], json!(call));
    let run = first["toolyard"]["runId"].as_str().unwrap();
    let result = json!({ "callId": call, "result": "from another door" });
    fine(gateway.secret(Method::POST, &format!("/api/runs/{run}/tool-results")).json(&result)).await;
    // The client brings another result, too late: it hears the stored one.
    let mut messages = ask["messages"].as_array().unwrap().clone();
    messages.push(first["choices"][0]["message"].clone());
    messages.push(json!({ "role": "tool", "tool_call_id": call, "content": "too late" }));
    let next = json!({ "model": "story", "tools": [tool], "messages": messages });
    let next = gateway.post("/v1/chat/completions", next).await;
    let said = next["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(said.contains("from another door"), "{said}");
}

/// An answer that is not streamed may be longer than what a stream holds for
/// its reader.
#[tokio::test]
async fn a_long_answer_in_one_piece_comes_whole() {
    let gateway = gateway().await;
    let text = "word ".repeat(60_000);
    let messages = json!([{ "role": "user", "content": format!("say {text}") }]);
    let ask = json!({ "model": "story", "messages": messages });
    let whole = gateway.post("/v1/chat/completions", ask).await;
    let said = whole["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(said.trim_end().len(), text.trim_end().len());
}

/// `response_format` of a request takes the place of the agent's own output.
#[tokio::test]
async fn the_form_of_the_answer_that_a_request_asks_for_reaches_the_model() {
    let far = FarSide::start().await;
    far.will_answer(&[400, 400, 400]);
    let folder = Folder::new();
    let config = format!("[providers.far]\nkind = \"openai\"\nbase_url = \"{}/v1\"\n", far.url());
    std::fs::write(folder.path().join("toolyard.toml"), config).unwrap();
    let gateway = Gateway::start_with(folder, &[]).await;
    let mut config = agent();
    config["model"] = json!({ "provider": "far", "name": "m" });
    config["output"] = json!({ "schema": { "type": "object", "title": "own" } });
    gateway.post("/api/agents", json!({ "config": config })).await;
    let schema = json!({ "type": "object", "title": "asked", "properties": {} });
    let messages = json!([{ "role": "user", "content": "hi" }]);
    let format = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema } });
    for (ask, title) in [
        (json!({ "model": "story", "messages": messages, "response_format": format }), "asked"),
        (json!({ "model": "story", "messages": messages }), "own"),
    ] {
        // The far side refuses; what it was asked is what counts.
        let response = gateway.secret(Method::POST, "/v1/chat/completions").json(&ask).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
        let asked = far.asked().pop().unwrap().json();
        assert_eq!(asked["response_format"]["json_schema"]["schema"]["title"], title, "{asked}");
    }
}
