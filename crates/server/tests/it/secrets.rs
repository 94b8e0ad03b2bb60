//! X7: what a public key never sees. X8: what a log never holds. X18: what no
//! far side is told.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::far_side::FarSide;
use crate::gateway::{Folder, Gateway, JWT_SECRET, PUBLIC, SECRET, ask, b64, fine, token};
use crate::yard::{Yard, eventually, join, new_space, read_all};

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

/// Things of others, each with a secret in it. Answers the secrets, and an id
/// for each name that a path uses.
async fn planted(yard: &Yard) -> (Vec<String>, Vec<(&'static str, String)>) {
    let gateway = &yard.gateway;
    let (ann, agent, space) = (&yard.ann, &yard.agent_entity, &yard.space);
    let mut secrets: Vec<String> =
        [SECRET, JWT_SECRET, "canary-env-key", "agentVersion", "toolset"].map(str::to_owned).into();
    let mut secret = |name: &str| {
        secrets.push(format!("canary-{name}"));
        format!("canary-{name}")
    };
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
    secret("system-prompt");
    let metadata = json!({"metadata": {"email": secret("entity-metadata")}});
    fine(gateway.secret(Method::PATCH, &format!("/api/entities/{ann}")).json(&metadata)).await;
    let goal = json!({"entityId": ann, "description": secret("goal")});
    let goal = gateway.post("/api/goals", goal).await;
    let memory = json!({"agentEntityId": agent, "entityId": ann, "topic": secret("topic"), "content": secret("memory")});
    let memory = gateway.post("/api/memories", memory).await;
    let alone = new_space(gateway).await;
    fine(
        gateway
            .secret(Method::PATCH, &format!("/api/smart-spaces/{alone}"))
            .json(&json!({"name": secret("space-name")})),
    )
    .await;
    join(gateway, &alone, ann).await;
    join(gateway, &alone, agent).await;
    let said = json!({"content": secret("elsewhere"), "entityId": ann, "triggerAgents": false});
    gateway.post(&format!("/api/smart-spaces/{alone}/messages"), said).await;
    let plan = json!({"agentEntityId": agent, "entityId": ann, "smartSpaceId": alone,
        "instruction": secret("plan"), "cron": "0 0 1 1 *"});
    let plan = gateway.post("/api/plans", plan).await;
    let document = json!({"content": secret("document"), "smartSpaceId": alone});
    let document = gateway.post("/api/knowledge", document).await;
    let notice = json!({"entityId": ann, "title": "t", "message": secret("notice")});
    let notice = gateway.post("/api/inbox", notice).await;
    let file = gateway.user("ann", Method::POST, "/api/files").header("content-type", "text/plain");
    let file = fine(file.body(secret("file"))).await;
    let stored = json!({"value": secret("stored")});
    fine(gateway.secret(Method::PUT, "/api/secrets/OURS").json(&stored)).await;
    let address = format!("https://hooks.example/{}", secret("hook-address"));
    let hook = gateway.post("/api/webhooks", json!({"url": address, "events": ["run.failed"]})).await;
    let key = gateway.post("/api/keys", json!({"kind": "secret"})).await;
    let hidden = json!({"content": "hello", "entityId": ann, "triggerAgents": false,
        "metadata": {"note": secret("message-metadata")}});
    gateway.post(&format!("/api/smart-spaces/{space}/messages"), hidden).await;
    let curator = gateway.secret(Method::PUT, "/api/curators/ours").json(&json!({"plugins": ["*"]}));
    fine(curator).await;
    let plugin = json!({"id": "ours", "name": "Ours", "version": "1.0.0", "tools": [{"name": "ours", "description": "x",
        "parameters": {"type": "object", "properties": {}}, "executorCode": format!("return {:?}", secret("plugin-code"))}]});
    gateway.post("/api/plugins/install", plugin).await;
    secrets.push(text(&hook["secret"]));
    secrets.push(text(&key["key"]));
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let wait = yard.wait_of(&run).await;
    let names = vec![
        ("{goal}", text(&goal["goal"]["id"])),
        ("{memory}", text(&memory["memory"]["id"])),
        ("{plan}", text(&plan["plan"]["id"])),
        ("{document}", text(&document["document"]["id"])),
        ("{notice}", text(&notice["notification"]["id"])),
        ("{file}", text(&file["file"]["id"])),
        ("{path}", format!("assistant/tasks/{run}")),
        ("{call}", text(&wait["toolCallId"])),
        ("{run}", run),
        // All that he may follow, in one stream.
        ("{entity}", yard.bob.clone()),
        ("{space}", space.clone()),
        ("{chat}", space.clone()),
        ("{agent}", "assistant".to_owned()),
        ("{model}", "assistant".to_owned()),
        ("{plugin}", "ours".to_owned()),
        ("{curator}", "ours".to_owned()),
        ("{server}", "files".to_owned()),
    ];
    (secrets, names)
}

/// What a stream or an answer says until it is silent.
async fn heard(request: reqwest::RequestBuilder) -> (u16, String) {
    let mut response = request.send().await.unwrap();
    let (status, mut text) = (response.status().as_u16(), format!("{:?}", response.headers()));
    while let Ok(Ok(Some(bytes))) = tokio::time::timeout(Duration::from_millis(500), response.chunk()).await {
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    (status, text)
}

/// Bob sits in the space beside ann. Whatever he may ask for by GET, with every
/// id that there is, holds nothing of hers and nothing of the operator's.
#[tokio::test]
async fn x7_no_route_tells_another_member_one_of_twenty_secrets() {
    let folder = Folder::new();
    let settings = "[providers.other]\nkind = \"openai\"\napi_key_env = \"OTHER_API_KEY\"\n[mcp_servers.files]\nurl = \"http://127.0.0.1:1/mcp\"\nheaders = { x-key = \"canary-env-key\" }\n";
    std::fs::write(folder.path().join("toolyard.toml"), settings).unwrap();
    let yard = Yard::on(Gateway::start_with(folder, &[("OTHER_API_KEY", "canary-env-key")]).await).await;
    let (secrets, names) = planted(&yard).await;
    assert!(secrets.len() >= 20, "{}", secrets.len());
    let document = yard.gateway.get("/api/openapi.json").await;
    let (mut walked, mut answered) = (0, 0);
    for (route, methods) in document["paths"].as_object().unwrap() {
        let access = methods["get"]["x-access"].as_str();
        // Numbers are the operator's, and the document itself is no answer.
        let other = access.is_none_or(|access| access == "secret" || access == "local");
        if other || route == "/api/openapi.json" {
            continue;
        }
        let path = names.iter().fold(route.clone(), |path, (name, id)| path.replace(name, id));
        assert!(!path.contains('{'), "{path} has a name that this test does not know");
        let (status, text) = heard(yard.gateway.user("bob", Method::GET, &path)).await;
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "GET {route} ({status}) tells {secret}: {text}");
        }
        walked += 1;
        answered += u32::from(status == 200);
    }
    assert!(walked >= 35 && answered >= 20, "{walked} routes, {answered} of them answered");
}

/// X18: what a caller shows to the gateway is for the gateway. No tool, MCP
/// server, remote agent or vendor is told of it, nor of the operator's keys.
#[tokio::test]
async fn x18_a_callers_token_reaches_no_far_side() {
    let far = FarSide::start().await;
    let folder = Folder::new();
    let settings = format!(
        "allow_private_network = [\"{0}\"]\n[providers.far]\nkind = \"openai\"\nbase_url = \"http://{0}/model\"\napi_key_env = \"FAR_API_KEY\"\n[mcp_servers.far]\nurl = \"http://{0}/mcp\"\nstartup_timeout_sec = 2\n[telemetry]\notlp_traces = \"http://{0}/v1/traces\"\nall_agents = true\n",
        far.address
    );
    std::fs::write(folder.path().join("toolyard.toml"), settings).unwrap();
    let yard = Yard::on(Gateway::start_with(folder, &[("FAR_API_KEY", "sk-far")]).await).await;
    let demo = json!({"provider": "demo", "name": "demo"});
    let tools = json!([
        {"name": "send", "description": "d", "executionType": "request",
         "execution": {"url": format!("{}/send", far.url())}},
        {"name": "remote", "description": "d", "executionType": "remote-agent", "execution": {"card": far.url()}},
    ]);
    let servers = json!({"servers": [{"name": "far"}]});
    let agents = [
        (json!({"agent": {"name": "tooled"}, "model": demo, "tools": tools}), "call send {}"),
        (
            json!({"agent": {"name": "tooled"}, "model": demo, "tools": tools}),
            "call remote {\"prompt\":\"hi\"}",
        ),
        (json!({"agent": {"name": "served"}, "model": demo, "mcp": servers}), "hello"),
        (json!({"agent": {"name": "elsewhere"}, "model": {"provider": "far", "name": "any"}}), "hello"),
    ];
    for (config, text) in agents {
        yard.gateway.post("/api/agents", json!({ "config": config })).await;
        let body = json!({"model": config["agent"]["name"], "messages": [{"role": "user", "content": text}]});
        heard(yard.gateway.user("ann", Method::POST, "/v1/chat/completions").json(&body)).await;
    }
    let places = ["/send", "/.well-known/agent-card.json", "/mcp", "/model/", "/v1/traces"];
    eventually("every far side is asked", async || {
        let asked = far.asked();
        places.iter().all(|place| asked.iter().any(|one| one.line.contains(place)))
    })
    .await;
    // How every token of the tests begins, whatever its time is.
    let token = b64(json!({"alg": "HS256", "typ": "JWT"}).to_string().as_bytes());
    for asked in far.asked() {
        for secret in [token.as_str(), PUBLIC, SECRET] {
            let told = [&asked.line, &asked.head, &asked.body].iter().any(|part| part.contains(secret));
            assert!(!told, "{secret} in {asked:?}");
        }
    }
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
