//! The models of a gateway: named, listed, chosen, refused.

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, ask, fine, message};
use crate::yard::{Yard, agent, data};

const CONFIG: &str = r#"
[models.quick]
provider = "demo"
model = "demo"
name = "Quick"
description = "For small talk"
max_tokens = 500
context_tokens = 4000
fallback = ["claude"]
files = []
temperature = 0.2
structured_output = false
[models.quick.price]
input = 1.0
output = 2.0
"#;

async fn configured() -> Gateway {
    let folder = Folder::new();
    std::fs::write(folder.path().join("toolyard.toml"), CONFIG).unwrap();
    Gateway::start_with(folder, &[]).await
}

fn of<'a>(list: &'a Value, id: &str) -> &'a Value {
    list["models"].as_array().unwrap().iter().find(|m| m["id"] == id).unwrap()
}

/// Rows C4 and 37: what people may name is configuration, with the samples of
/// the document.
#[tokio::test]
async fn c4_row37_models_are_listed_with_what_they_can_do() {
    let gateway = configured().await;
    let list = gateway.get("/api/models").await;
    let quick = of(&list, "quick");
    assert_eq!(quick["name"], "Quick");
    assert_eq!((&quick["maxTokens"], &quick["contextTokens"]), (&json!(500), &json!(4000)));
    assert_eq!((&quick["available"], &quick["supportsToolCalling"]), (&json!(true), &json!(true)));
    assert_eq!(quick["price"]["output"], 2.0);
    assert_eq!((&quick["files"], &quick["temperature"]), (&json!([]), &json!(0.2)));
    assert_eq!(quick["supportsStructuredOutput"], false);
    assert!(of(&list, "claude").get("supportsStructuredOutput").is_none(), "nobody said");
    // Row C3, and what the samples can do.
    for sample in ["claude", "gemini"] {
        let sample = of(&list, sample);
        assert_eq!(sample["temperature"], 0.7);
        assert!(sample["contextTokens"].as_u64().unwrap() >= 200_000, "{sample}");
        assert!(!sample["description"].as_str().unwrap().is_empty(), "{sample}");
        assert!(sample["files"].as_array().unwrap().contains(&json!("image/*")), "{sample}");
    }
    let claude = of(&list, "claude");
    assert_eq!(claude["model"], "anthropic.claude-3-5-sonnet-20241022-v2:0");
    assert_eq!((&claude["provider"], &claude["available"]), (&json!("bedrock"), &json!(false)));
    assert_eq!(of(&list, "gemini")["model"], "gemini-2.5-flash");
    // What it costs is the operator's business.
    let seen = fine(gateway.user("ann", Method::GET, "/api/models")).await;
    assert!(of(&seen, "quick").get("price").is_none() && of(&seen, "quick").get("fallback").is_none());
}

/// Row C6: a message names its model; the log counts what it cost.
#[tokio::test]
async fn c6_a_message_names_its_model() {
    let yard = Yard::on(configured().await).await;
    let path = format!("/api/smart-spaces/{}/messages", yard.space);
    let body = json!({"content": "hello", "model": "quick"});
    let posted = fine(yard.gateway.user("ann", Method::POST, &path).json(&body)).await;
    let run = posted["runs"][0]["runId"].as_str().unwrap();
    let events = yard.finish(run).await;
    let end = events.iter().find(|e| e.event.as_deref() == Some("run.completed")).unwrap();
    assert!(data(end)["cost"].as_u64().is_some(), "{}", end.data);
    // A user may name what is listed; a backend also a provider's model.
    let hidden = json!({"content": "hello", "model": "demo/other"});
    let (status, refused) = ask(yard.gateway.user("ann", Method::POST, &path).json(&hidden)).await;
    assert_eq!((status.as_u16(), &refused["error"]["code"]), (404, &json!("model_not_found")));
    assert!(message(&refused).contains("demo/other"), "{refused}");
}

#[tokio::test]
async fn an_agent_with_an_unknown_model_is_refused_by_its_name() {
    let gateway = configured().await;
    for (model, said) in
        [(json!({"name": "gpt-none"}), "gpt-none"), (json!({"provider": "nobody", "name": "x"}), "nobody")]
    {
        let mut config = agent("helper");
        config["model"] = model;
        let request = gateway.secret(Method::POST, "/api/agents").json(&json!({"config": config}));
        let (status, body) = ask(request).await;
        assert_eq!((status.as_u16(), &body["error"]["code"]), (400, &json!("invalid_config")), "{body}");
        assert!(message(&body).contains(said), "{body}");
    }
    assert_eq!(ask(gateway.secret(Method::GET, "/api/agents/helper")).await.0, 404);
    let mut named = agent("helper");
    named["model"] = json!({"name": "quick"});
    gateway.post("/api/agents", json!({"config": named})).await;
}

/// Row C5: the vendors' usual variables are all that a provider needs; half of
/// a key is none, and does not keep the gateway from starting.
#[tokio::test]
async fn c5_the_vendors_variables_bring_their_providers() {
    let half = [("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"), ("AWS_REGION", "eu-central-1")];
    let gateway = Gateway::start_with(Folder::new(), &half).await;
    let list = gateway.get("/api/models").await;
    assert_eq!(of(&list, "claude")["available"], false);
    assert_eq!(of(&list, "gemini")["available"], false);
    let whole = [
        ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "example"),
        ("AWS_REGION", "eu-central-1"),
        ("GOOGLE_GENERATIVE_AI_API_KEY", "example"),
    ];
    let gateway = Gateway::start_with(Folder::new(), &whole).await;
    let list = gateway.get("/api/models").await;
    assert_eq!(of(&list, "claude")["available"], true);
    assert_eq!(of(&list, "gemini")["available"], true);
}
