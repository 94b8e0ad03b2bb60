//! The agents of the samples folder, over the whole gateway.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, fine};
use crate::yard::{data, join, new_space, new_user, read_all};

/// The sample agents, with one of them and user ann in a space.
pub(crate) async fn with_sample(agent: &str) -> (Gateway, String) {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents");
    let gateway =
        Gateway::start_with(Folder::new(), &[("TOOLYARD_AGENTS_DIR", agents.to_str().unwrap())]).await;
    let ann = new_user(&gateway, "ann").await;
    let space = space_of(&gateway, agent, &ann).await;
    (gateway, space)
}

async fn space_of(gateway: &Gateway, agent: &str, user: &str) -> String {
    let made = gateway.post("/api/entities/agent", json!({"agentId": agent})).await;
    let space = new_space(gateway).await;
    join(gateway, &space, made["entity"]["id"].as_str().unwrap()).await;
    join(gateway, &space, user).await;
    space
}

/// What became of one call: its output, or its error text.
pub(crate) async fn call(gateway: &Gateway, space: &str, tool: &str, args: Value) -> Result<Value, String> {
    let path = format!("/api/smart-spaces/{space}/messages");
    let content = format!("call {tool} {args}");
    let posted = fine(gateway.user("ann", Method::POST, &path).json(&json!({"content": content}))).await;
    let run = posted["runs"][0]["runId"].as_str().unwrap_or_else(|| panic!("{posted}")).to_owned();
    let stream = gateway.secret(Method::GET, &format!("/api/runs/{run}/stream")).send().await.unwrap();
    let events = read_all(stream).await;
    let named = |name: &str| events.iter().find(|event| event.event.as_deref() == Some(name)).map(data);
    assert!(named("run.completed").is_some(), "{events:?}");
    match (named("tool-output-available"), named("tool-error")) {
        (Some(output), None) => Ok(output["output"].clone()),
        (None, Some(error)) => Err(error["error"].as_str().unwrap().to_owned()),
        _ => panic!("{events:?}"),
    }
}

#[tokio::test]
async fn every_sample_loads_and_answers() {
    let (gateway, _) = with_sample("assistant").await;
    let ann = new_user(&gateway, "another ann").await;
    let listed = gateway.get("/api/agents").await;
    let names: Vec<&str> =
        listed["agents"].as_array().unwrap().iter().map(|a| a["name"].as_str().unwrap()).collect();
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents")).unwrap();
    assert_eq!(names.len(), files.count(), "{names:?}");
    for name in names {
        let space = space_of(&gateway, name, &ann).await;
        let path = format!("/api/smart-spaces/{space}/messages");
        let said = json!({"content": "hello", "entityId": ann});
        let posted = fine(gateway.secret(Method::POST, &path).json(&said)).await;
        let run = posted["runs"][0]["runId"].as_str().unwrap();
        let stream = gateway.secret(Method::GET, &format!("/api/runs/{run}/stream")).send().await.unwrap();
        let events = read_all(stream).await;
        assert!(events.iter().any(|e| e.event.as_deref() == Some("run.completed")), "{name}: {events:?}");
    }
}

#[tokio::test]
async fn g11_a_picture_becomes_a_file_that_its_user_can_fetch() {
    let (gateway, space) = with_sample("painter").await;
    let output = call(&gateway, &space, "paint", json!({"prompt": "a heron at dawn"})).await.unwrap();
    assert_eq!((&output["success"], &output["provider"]), (&json!(true), &json!("demo")));
    let image = &output["images"][0];
    assert_eq!(image["mediaType"], "image/png");
    let url = image["url"].as_str().unwrap();
    let fetched = gateway.user("ann", Method::GET, url).send().await.unwrap();
    assert_eq!(fetched.headers()["content-type"], "image/png");
    assert!(fetched.bytes().await.unwrap().starts_with(b"\x89PNG"));
    // Another user has nothing to look for there.
    new_user(&gateway, "eve").await;
    assert_eq!(gateway.user("eve", Method::GET, url).send().await.unwrap().status(), 403);
    let error = call(&gateway, &space, "paint", json!({"prompt": " "})).await.unwrap_err();
    assert_eq!(error, "Image generator requires a prompt");
}

#[tokio::test]
async fn g12_one_agent_asks_another_and_its_user_may_look_into_an_open_one() {
    let (gateway, space) = with_sample("painter").await;
    let output = call(&gateway, &space, "describe", json!({"prompt": "a heron"})).await.unwrap();
    assert_eq!((&output["success"], &output["agent"]), (&json!(true), &json!("describer")));
    let child = output["runId"].as_str().unwrap();
    let path = format!("/api/runs/{child}");
    let seen = fine(gateway.user("ann", Method::GET, &path)).await;
    assert_eq!(seen["run"]["status"], "completed");
    new_user(&gateway, "eve").await;
    assert_eq!(gateway.user("eve", Method::GET, &path).send().await.unwrap().status(), 403);
    // The space's own stream and messages tell of one run only.
    let messages = gateway.get(&format!("/api/smart-spaces/{space}/messages")).await;
    assert_eq!(messages["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn g12_users_do_not_look_into_the_child_of_a_private_tool() {
    let (gateway, _) = with_sample("painter").await;
    let config = json!({
        "agent": {"name": "boss"}, "model": {"provider": "demo", "name": "demo"},
        "tools": [{"name": "ask", "description": "Asks the describer.", "executionType": "ai-agent",
                   "execution": {"agentConfig": {
                       "agent": {"name": "inner"}, "model": {"provider": "demo", "name": "demo"}}}}],
    });
    gateway.post("/api/agents", json!({ "config": config })).await;
    let users = gateway.get("/api/entities?type=human").await;
    let ann = users["entities"][0]["id"].as_str().unwrap().to_owned();
    let space = space_of(&gateway, "boss", &ann).await;
    let output = call(&gateway, &space, "ask", json!({"prompt": "the secret plan"})).await.unwrap();
    let path = format!("/api/runs/{}", output["runId"].as_str().unwrap());
    for path in [path.clone(), format!("{path}/events"), format!("{path}/stream")] {
        assert_eq!(gateway.user("ann", Method::GET, &path).send().await.unwrap().status(), 403, "{path}");
    }
    assert_eq!(gateway.secret(Method::GET, &path).send().await.unwrap().status(), 200);
}
