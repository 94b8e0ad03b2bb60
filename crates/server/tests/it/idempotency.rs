//! D9: the same key makes one thing.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Gateway, ask, fine};
use crate::yard::Yard;

fn create(gateway: &Gateway, path: &str, key: &str, body: &Value) -> reqwest::RequestBuilder {
    gateway.secret(Method::POST, path).header("idempotency-key", key).json(body)
}

#[tokio::test]
async fn d9_the_same_key_fifty_times_at_once_makes_one_run() {
    let yard = Yard::new().await;
    let body =
        json!({"smartSpaceId": yard.space, "agentEntityId": yard.agent_entity, "triggeredById": yard.ann});
    let asked = (0..50).map(|_| ask(create(&yard.gateway, "/api/runs", "same", &body)));
    let answers = join_all(asked).await;
    for (status, answer) in &answers {
        assert_eq!((status.as_u16(), answer), (201, &answers[0].1));
    }
    let runs = yard.gateway.get("/api/runs").await;
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn d9_another_body_is_refused_and_another_caller_has_its_own_keys() {
    let gateway = Gateway::start().await;
    let body = json!({"name": "one"});
    let first = fine(create(&gateway, "/api/smart-spaces", "k", &body)).await;
    assert_eq!(fine(create(&gateway, "/api/smart-spaces", "k", &body)).await, first);
    let (status, refused) = ask(create(&gateway, "/api/smart-spaces", "k", &json!({"name": "two"}))).await;
    assert_eq!((status.as_u16(), &refused["error"]["code"]), (422, &json!("idempotency_mismatch")));
    // Another route, another key.
    fine(create(&gateway, "/api/entities", "k", &json!({"type": "human"}))).await;
    let acme = gateway.post("/api/keys", json!({"tenant": "acme", "kind": "secret"})).await;
    let other = gateway
        .bare(Method::POST, "/api/smart-spaces")
        .header("x-secret-key", acme["key"].as_str().unwrap())
        .header("idempotency-key", "k")
        .json(&body);
    assert_ne!(fine(other).await, first);
    let (status, _) = ask(create(&gateway, "/api/smart-spaces", &"k".repeat(256), &body)).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn d9_the_answer_survives_a_kill() {
    let yard = Yard::new().await;
    let path = format!("/api/smart-spaces/{}/messages", yard.space);
    let body = json!({"entityId": yard.ann, "content": "call getUserApproval {\"q\":\"x\"}"});
    let first = fine(create(&yard.gateway, &path, "once", &body)).await;
    yard.wait_of(first["runs"][0]["runId"].as_str().unwrap()).await;
    let Yard { gateway, space, .. } = yard;
    let again = Gateway::start_with(gateway.kill(), &[]).await;
    assert_eq!(fine(create(&again, &path, "once", &body)).await, first);
    let messages = again.get(&format!("/api/smart-spaces/{space}/messages")).await;
    let said: Vec<_> =
        messages["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "user").collect();
    assert_eq!(said.len(), 1);
}

#[tokio::test]
async fn a_refused_request_does_not_use_up_its_key() {
    let gateway = Gateway::start().await;
    let body = json!({"agentId": "later"});
    assert_eq!(ask(create(&gateway, "/api/entities/agent", "k", &body)).await.0, 404);
    gateway.post("/api/agents", json!({"config": crate::yard::agent("later")})).await;
    fine(create(&gateway, "/api/entities/agent", "k", &body)).await;
}
