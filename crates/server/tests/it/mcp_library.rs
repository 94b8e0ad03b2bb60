//! Prompts and documents of an agent, for MCP clients of both eras.

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Gateway, ask, fine};
use crate::mcp_agent::{Modern, Program, initialize};
use crate::yard::{join, new_space, new_user};

fn config(serving: Value) -> Value {
    json!({ "config": {
        "agent": { "name": "story" }, "model": { "provider": "demo", "name": "demo" }, "mcpServer": serving,
    } })
}

fn prompts() -> Value {
    json!([
        { "name": "hello", "text": "Say hello." },
        { "name": "sum_up", "title": "Sum up", "description": "Makes it short",
          "arguments": [{ "name": "what", "description": "A text", "required": true }, { "name": "tone" }],
          "text": "Sum up {{what}}. Tone: {{tone}}." },
    ])
}

async fn document(gateway: &Gateway, body: Value) -> String {
    let made = fine(gateway.secret(Method::POST, "/api/knowledge").json(&body)).await;
    format!("toolyard://knowledge/{}", made["document"]["id"].as_str().unwrap())
}

#[tokio::test]
async fn an_agents_prompts_are_listed_and_filled() {
    let gateway = Gateway::start().await;
    gateway.post("/api/agents", config(json!({ "prompts": prompts() }))).await;
    let client = Modern::new(&gateway, json!({}));
    let card = client.result("server/discover", json!({})).await;
    assert_eq!(card["capabilities"]["prompts"], json!({ "listChanged": true }), "{card}");
    assert_eq!(card["capabilities"].get("resources"), None, "{card}");
    let listed = client.result("prompts/list", json!({})).await;
    assert_eq!(listed["prompts"][0], json!({ "name": "hello" }));
    assert_eq!(listed["prompts"][1]["title"], "Sum up");
    assert_eq!(listed["prompts"][1]["arguments"][0]["required"], true);
    let got = client
        .result("prompts/get", json!({ "name": "sum_up", "arguments": { "what": "{{tone}} & <b>" } }))
        .await;
    assert_eq!(got["description"], "Makes it short");
    let said =
        json!([{ "role": "user", "content": { "type": "text", "text": "Sum up {{tone}} & <b>. Tone: ." } }]);
    assert_eq!(got["messages"], said);
    for (params, why) in [
        (json!({ "name": "none" }), "Unknown prompt: none"),
        (json!({ "name": "sum_up" }), "arguments.what: is required"),
        (json!({ "name": "hello", "arguments": { "x": "y" } }), "arguments.x: the prompt hello has no such"),
    ] {
        let refused = client.answer("prompts/get", params).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().starts_with(why), "{refused}");
    }
    // A prompt that cannot work is refused where it is written.
    let bad = config(json!({ "prompts": [{ "name": "x", "text": "{{y}}" }] }));
    let (status, body) = ask(gateway.secret(Method::POST, "/api/agents").json(&bad)).await;
    assert_eq!(status, 400);
    assert!(body.to_string().contains("mcpServer.prompts[0].text"), "{body}");
}

#[tokio::test]
async fn an_older_client_hears_of_new_prompts() {
    let gateway = Gateway::start().await;
    gateway.post("/api/agents", config(json!({ "prompts": [{ "name": "a", "text": "a" }] }))).await;
    let mut program = Program::start(&gateway);
    program.say(&initialize().to_string()).await;
    assert_eq!(program.answer(0).await["result"]["capabilities"]["prompts"]["listChanged"], true);
    program.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await;
    let listed = program.ask(1, "prompts/list").await;
    assert_eq!(listed["result"]["prompts"], json!([{ "name": "a" }]), "{listed}");
    // The first look may come after a change: then the next one is heard.
    let change = async {
        for n in 0.. {
            let serving = json!({ "prompts": [{ "name": format!("b{n}"), "text": "b" }] });
            gateway.post("/api/agents", config(serving)).await;
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
    };
    let news = tokio::select! {
        news = program.news() => news,
        () = change => unreachable!(),
    };
    assert_eq!(news["method"], "notifications/prompts/list_changed");
}

/// X7: a document is a resource for whoever may read it, and for nobody else.
#[tokio::test]
async fn x7_documents_are_resources_for_whoever_may_read_them() {
    let gateway = Gateway::start().await;
    gateway.post("/api/agents", config(json!({ "knowledge": true }))).await;
    let space = new_space(&gateway).await;
    join(&gateway, &space, &new_user(&gateway, "ann").await).await;
    new_user(&gateway, "bob").await;
    let open = document(&gateway, json!({ "title": "Terms", "content": "Refunds take a day." })).await;
    let own =
        json!({ "title": "Plan", "content": "# Ours", "mediaType": "text/markdown", "smartSpaceId": space });
    let own = document(&gateway, own).await;

    let (backend, ann, bob) = (
        Modern::new(&gateway, json!({})),
        Modern::new(&gateway, json!({})).of("ann"),
        Modern::new(&gateway, json!({})).of("bob"),
    );
    let card = backend.result("server/discover", json!({})).await;
    assert_eq!(card["capabilities"]["resources"], json!({}), "{card}");
    let uris = async |client: &Modern<'_>| -> Vec<String> {
        let listed = client.result("resources/list", json!({})).await;
        let uri = |one: &Value| one["uri"].as_str().unwrap().to_owned();
        listed["resources"].as_array().unwrap().iter().map(uri).collect()
    };
    assert_eq!(uris(&backend).await, [own.clone(), open.clone()]);
    assert_eq!(uris(&ann).await, std::slice::from_ref(&own));
    assert_eq!(uris(&bob).await, Vec::<String>::new());

    let read = backend.result("resources/read", json!({ "uri": open })).await;
    let text = json!([{ "uri": open, "mimeType": "text/plain", "text": "Refunds take a day." }]);
    assert_eq!((&read["contents"], &read["cacheScope"]), (&text, &json!("private")));
    let read = ann.result("resources/read", json!({ "uri": own })).await;
    assert_eq!(read["contents"][0], json!({ "uri": own, "mimeType": "text/markdown", "text": "# Ours" }));
    for (client, uri) in [(&bob, &own), (&ann, &open), (&backend, &"file:///etc/passwd".to_owned())] {
        let refused = client.answer("resources/read", json!({ "uri": uri })).await;
        assert_eq!(
            (&refused["error"]["code"], &refused["error"]["data"]["uri"]),
            (&json!(-32602), &json!(uri))
        );
    }

    // Without a word of the configuration there is nothing.
    gateway.post("/api/agents", config(json!({}))).await;
    assert_eq!(uris(&backend).await, Vec::<String>::new());
    let refused = backend.answer("resources/read", json!({ "uri": open })).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}
