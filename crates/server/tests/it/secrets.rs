//! X7: what a public key never sees. X8: what a log never holds.

use reqwest::Method;
use serde_json::json;

use crate::gateway::{Folder, Gateway, JWT_SECRET, PUBLIC, SECRET, ask, token};
use crate::yard::{Yard, read_all};

#[tokio::test]
async fn x7_no_answer_to_a_public_key_holds_a_secret() {
    let yard = Yard::new().await;
    let run = yard.say("call look {\"q\":\"canary-private-input\"}").await;
    yard.finish(&run).await;
    let waiting = yard.say("call guarded {\"q\":\"canary-of-ann\"}").await;
    yard.wait_of(&waiting).await;
    let space = &yard.space;
    let mut paths: Vec<String> =
        vec!["/api/smart-spaces".into(), "/api/waits".into(), "/api/approvals".into()];
    paths.extend(["", "/members", "/messages", "/runs"].map(|end| format!("/api/smart-spaces/{space}{end}")));
    for run in [&run, &waiting] {
        paths.extend(["", "/events"].map(|end| format!("/api/runs/{run}{end}")));
    }
    let mut seen = String::new();
    for path in &paths {
        let response = yard.gateway.user("bob", Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        seen.push_str(&response.text().await.unwrap());
    }
    let stream = yard.gateway.user("bob", Method::GET, &format!("/api/runs/{run}/stream"));
    for event in read_all(stream.send().await.unwrap()).await {
        seen.push_str(&event.data);
    }
    let reset = yard
        .gateway
        .user("bob", Method::GET, &format!("/api/runs/{run}/stream"))
        .header("last-event-id", "999");
    for event in read_all(reset.send().await.unwrap()).await {
        seen.push_str(&event.data);
    }
    // The demo model repeats a result in its own words, which are public; as
    // an output, unescaped, it is nowhere.
    let output = "\"found\":\"canary-static-output\"";
    for canary in ["canary-system-prompt", output, "agentVersion", "toolset", SECRET] {
        assert!(!seen.contains(canary), "{canary} in {seen}");
    }
    // What Ann typed is in the conversation; as arguments it is hers to answer.
    let typed = "call look {\\\"q\\\":\\\"canary-private-input\\\"}";
    assert_eq!(seen.matches("canary-private-input").count(), seen.matches(typed).count());
}

#[tokio::test]
async fn x8_the_log_at_trace_holds_no_secret() {
    let env = [("TOOLYARD_LOG_LEVEL", "trace"), ("TOOLYARD_LOG_FORMAT", "json")];
    let yard = Yard::on(Gateway::start_with(Folder::new(), &env).await).await;
    let made = yard.gateway.post("/api/keys", json!({"tenant": "acme", "kind": "secret"})).await;
    let key = made["key"].as_str().unwrap().to_owned();
    ask(yard.gateway.bare(Method::GET, "/api/agents").header("x-secret-key", &key)).await;
    ask(yard.gateway.bare(Method::GET, "/api/agents").header("x-secret-key", "canary-wrong-key")).await;
    ask(yard.gateway.bare(Method::GET, "/api/agents").bearer_auth("canary-wrong-bearer")).await;
    let odd = yard.gateway.secret(Method::POST, "/api/entities").header("content-type", "application/json");
    ask(odd.body("{\"type\":\"canary-odd-body\"}")).await;
    let run = yard.say("call getUserApproval {\"q\":\"canary-argument\"}").await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    yard.submit(Some("ann"), &run, json!({"callId": call, "result": "canary-result"})).await;
    yard.finish(&run).await;
    let log = yard.gateway.log();
    assert!(log.contains("\"level\":\"TRACE\"") || log.contains("\"level\":\"DEBUG\""), "nothing was logged");
    let signature = token("ann").rsplit('.').next().unwrap().to_owned();
    for canary in [
        SECRET,
        PUBLIC,
        JWT_SECRET,
        &key,
        &signature,
        "canary-wrong-key",
        "canary-wrong-bearer",
        "canary-odd-body",
        "canary-argument",
        "canary-result",
        "canary-system-prompt",
        "canary-static-output",
    ] {
        let line = log.lines().find(|line| line.contains(canary));
        assert_eq!(line, None, "{canary}");
    }
}
