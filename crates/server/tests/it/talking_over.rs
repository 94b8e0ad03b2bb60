//! Row 11 over HTTP: messages that reach a run in the middle, and what is left
//! of a run that is stopped.

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::fine;
use crate::yard::{Stream, Yard, agent, data, eventually};

/// A user says something; what it did to the agent's run.
async fn post(yard: &Yard, user: &str, text: &str) -> Value {
    let path = format!("/api/smart-spaces/{}/messages", yard.space);
    let posted = fine(yard.gateway.user(user, Method::POST, &path).json(&json!({"content": text}))).await;
    posted["runs"][0].clone()
}

async fn follow(yard: &Yard, run: &str) -> Stream {
    let stream = yard.gateway.user("ann", Method::GET, &format!("/api/runs/{run}/stream"));
    Stream::new(stream.send().await.unwrap())
}

/// What the agent said in the space, in order.
async fn answers(yard: &Yard) -> Vec<String> {
    let list = yard.gateway.get(&format!("/api/smart-spaces/{}/messages", yard.space)).await;
    let own = list["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "assistant");
    let text = |m: &Value| {
        let parts = m["parts"].as_array().unwrap();
        parts.iter().filter_map(|p| p["text"].as_str()).collect::<String>()
    };
    own.map(text).collect()
}

#[tokio::test]
async fn row11_a_new_message_of_the_same_person_supersedes_the_open_call() {
    let yard = Yard::new().await;
    let run = yard.say("call getUserApproval {\"q\":\"ok?\"}").await;
    let mut stream = follow(&yard, &run).await;
    stream.until("run.waiting_tool").await;
    let reached = post(&yard, "ann", "say never mind").await;
    assert_eq!((&reached["runId"], &reached["disposition"]), (&json!(run), &json!("superseded")));
    let ended = data(&stream.until("tool-error").await);
    assert_eq!(
        (&ended["outcome"], &ended["error"]),
        (&json!("canceled"), &json!("Cancelled: user provided new input"))
    );
    stream.until("run.completed").await;
    assert_eq!(answers(&yard).await.last().unwrap(), "never mind");
    assert_eq!(yard.gateway.get("/api/waits").await["waits"], json!([]));
}

#[tokio::test]
async fn row11_a_message_of_somebody_else_is_added_and_waits_for_the_end() {
    let yard = Yard::new().await;
    let run = yard.say("call getUserApproval {\"q\":\"ok?\"}").await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    let reached = post(&yard, "bob", "say hello Bob").await;
    assert_eq!((&reached["runId"], &reached["disposition"]), (&json!(run), &json!("added")));
    let shown = yard.gateway.get(&format!("/api/runs/{run}")).await;
    assert_eq!(shown["run"]["status"], "waiting_tool", "Ann's call still waits");
    let (status, _) = yard.submit(Some("ann"), &run, json!({"callId": call, "result": "yes"})).await;
    assert_eq!(status, 200);
    yard.finish(&run).await;
    assert_eq!(answers(&yard).await.last().unwrap(), "hello Bob");
}

#[tokio::test]
async fn row11_an_interrupting_message_stops_the_model_and_keeps_what_was_shown() {
    let yard = Yard::new().await;
    let mut config = agent("assistant");
    config["loop"] = json!({"onMessage": "interrupt"});
    yard.gateway.post("/api/agents", json!({"config": config})).await;
    let run = yard.say("slow 1000").await;
    let mut stream = follow(&yard, &run).await;
    stream.until("text-delta").await;
    let reached = post(&yard, "ann", "say stop that").await;
    assert_eq!((&reached["runId"], &reached["disposition"]), (&json!(run), &json!("interrupted")));
    let cut = data(&stream.until("message.assistant").await);
    assert_eq!(cut["partial"], true, "{cut}");
    assert!(!cut["parts"][0]["text"].as_str().unwrap().is_empty());
    stream.until("run.completed").await;
    assert_eq!(answers(&yard).await.last().unwrap(), "stop that");
}

#[tokio::test]
async fn a_canceled_run_keeps_the_words_that_were_shown() {
    let yard = Yard::new().await;
    let run = yard.say("slow 1000").await;
    let mut stream = follow(&yard, &run).await;
    let shown = data(&stream.until("text-delta").await)["delta"].as_str().unwrap().to_owned();
    yard.gateway.post(&format!("/api/runs/{run}/cancel"), json!({"reason": "enough"})).await;
    let cut = data(&stream.until("message.assistant").await);
    assert_eq!((&cut["partial"], &cut["finishReason"]), (&json!(true), &json!("stopped")), "{cut}");
    stream.until("run.canceled").await;
    assert_eq!(stream.next().await, None);
    eventually("the message", async || answers(&yard).await.last().is_some_and(|a| a.starts_with(&shown)))
        .await;
    let kept = answers(&yard).await;
    assert_eq!(kept.last().map(String::as_str), cut["parts"][0]["text"].as_str());
}
