//! X6: every route of the table × every kind of caller. The list comes from
//! the OpenAPI document, which is made from the table: a new route is in here
//! by itself.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, PUBLIC, ask, token, token_of};
use crate::yard::Yard;

struct Route {
    method: Method,
    path: String,
    access: String,
}

async fn table(gateway: &Gateway) -> Vec<Route> {
    let document = gateway.get("/api/openapi.json").await;
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            routes.push(Route {
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                access: operation["x-access"].as_str().unwrap().to_owned(),
            });
        }
    }
    assert!(routes.len() > 40, "{}", routes.len());
    routes
}

/// A world with an MCP server of the operator's.
async fn world() -> Yard {
    let folder = Folder::new();
    let server = "[mcp_servers.files]\nurl = \"http://127.0.0.1:1/mcp\"\nstartup_timeout_sec = 1\n";
    std::fs::write(folder.path().join("toolyard.toml"), server).unwrap();
    Yard::on(Gateway::start_with(folder, &[]).await).await
}

/// Real ids of the tenant `default`, one for each name that a path uses.
async fn ids(yard: &Yard) -> Vec<(&'static str, String)> {
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let wait = yard.wait_of(&run).await;
    let gateway = &yard.gateway;
    let agent = gateway.get("/api/agents/assistant").await["agent"]["id"].as_str().unwrap().to_owned();
    let grant = gateway.post("/api/grants", json!({"tool": "look", "effect": "deny"})).await;
    let key = gateway.post("/api/keys", json!({"kind": "public"})).await;
    let file = gateway.secret(Method::POST, "/api/files").header("content-type", "text/plain").body("hello");
    let file = crate::gateway::fine(file).await;
    let secret = gateway.secret(Method::PUT, "/api/secrets/OURS").json(&json!({"value": "x"}));
    let secret = crate::gateway::fine(secret).await;
    let hook = json!({"url": "https://hooks.example/x", "events": ["run.failed"]});
    let hook = gateway.post("/api/webhooks", hook).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (agent_entity, ann, space) = (&yard.agent_entity, &yard.ann, &yard.space);
    let goal = gateway.post("/api/goals", json!({"entityId": ann, "description": "x"})).await;
    let memory = json!({"agentEntityId": agent_entity, "entityId": ann, "topic": "t", "content": "c"});
    let memory = gateway.post("/api/memories", memory).await;
    let plan = json!({"agentEntityId": agent_entity, "entityId": ann, "smartSpaceId": space,
        "instruction": "x", "cron": "0 0 1 1 *"});
    let plan = gateway.post("/api/plans", plan).await;
    let document = gateway.post("/api/knowledge", json!({"content": "words", "smartSpaceId": space})).await;
    let notice = json!({"entityId": ann, "title": "t", "message": "m"});
    let notice = gateway.post("/api/inbox", notice).await;
    let curator = gateway.secret(Method::PUT, "/api/curators/ours").json(&json!({"plugins": ["*"]}));
    crate::gateway::fine(curator).await;
    let plugin = json!({"id": "ours", "name": "Ours", "version": "1.0.0", "tools": [{"name": "ours",
        "description": "x", "parameters": {"type": "object", "properties": {}}, "executorCode": "return 1"}]});
    gateway.post("/api/plugins", plugin.clone()).await;
    gateway.post("/api/plugins/install", plugin).await;
    // A conversation by a name of ann's own, which waits for her.
    let said = json!({"threadId": "anns-thread", "runId": "r", "messages":
        [{"id": "u", "role": "user", "content": "call getUserApproval {\"q\":\"y\"}"}]});
    let told = gateway.user("ann", Method::POST, "/ag-ui/assistant").json(&said).send().await.unwrap();
    assert!(told.status().is_success() && told.text().await.unwrap().contains("getUserApproval"));
    vec![
        ("{plugin}", "ours".to_owned()),
        ("{version}", "1.0.0".to_owned()),
        ("{curator}", "ours".to_owned()),
        ("{goal}", text(&goal["goal"]["id"])),
        ("{memory}", text(&memory["memory"]["id"])),
        ("{plan}", text(&plan["plan"]["id"])),
        ("{document}", text(&document["document"]["id"])),
        ("{notice}", text(&notice["notification"]["id"])),
        ("{space}", yard.space.clone()),
        // A space is also the name of a conversation.
        ("{chat}", yard.space.clone()),
        ("{entity}", yard.ann.clone()),
        ("{agent}", agent),
        ("{path}", format!("assistant/tasks/{run}")),
        ("{run}", run),
        ("{wait}", text(&wait["id"])),
        ("{call}", text(&wait["toolCallId"])),
        ("{tenant}", "default".to_owned()),
        ("{grant}", text(&grant["grant"]["id"])),
        ("{key}", text(&key["id"])),
        ("{secret}", text(&secret["name"])),
        ("{webhook}", text(&hook["webhook"]["id"])),
        ("{file}", text(&file["file"]["id"])),
        ("{server}", "files".to_owned()),
        ("{thread}", "anns-thread".to_owned()),
        ("{model}", "assistant".to_owned()),
    ]
}

fn filled(path: &str, ids: &[(&str, String)]) -> String {
    let path = ids.iter().fold(path.to_owned(), |path, (name, id)| path.replace(name, id));
    assert!(!path.contains('{'), "{path} has a name that this test does not know");
    path
}

/// A body that is good enough to get past parsing on every route.
fn with_body(route: &Route, ids: &[(&str, String)], request: RequestBuilder) -> RequestBuilder {
    let id = |name: &str| ids.iter().find(|(n, _)| *n == name).unwrap().1.clone();
    if route.method == Method::GET || route.method == Method::DELETE {
        return request;
    }
    match route.path.as_str() {
        "/api/files" => return request.header("content-type", "text/plain").body("x"),
        "/api/secrets/{secret}" => return request.json(&json!({"value": "theirs"})),
        "/api/curators/{curator}" => return request.json(&json!({"plugins": ["theirs"]})),
        _ => {}
    }
    request.json(&json!({
        "config": crate::yard::agent("other"), "kind": "public", "type": "human", "agentId": id("{agent}"),
        "entityId": id("{entity}"), "content": "hi", "decision": "allow", "clientId": "cli_1",
        "smartSpaceId": id("{space}"), "agentEntityId": id("{entity}"), "tool": "look", "effect": "deny",
        "runId": id("{run}"), "callId": "call_x", "result": 1, "threadId": "t",
        "messages": [{"id": "u", "role": "user", "content": "hi"}], "enabled": false
    }))
}

#[tokio::test]
async fn x6_without_a_key_only_open_routes_answer() {
    let yard = world().await;
    let ids = ids(&yard).await;
    for route in table(&yard.gateway).await {
        let path = filled(&route.path, &ids);
        let request = with_body(&route, &ids, yard.gateway.bare(route.method.clone(), &path));
        let (status, body) = ask(request).await;
        // The gateway of this test is bound to loopback.
        let wanted = match route.access.as_str() {
            // A login that does not say which one it is.
            "open" if route.path == "/api/mcp/callback" => 400,
            // A page of this gateway says where it comes from.
            "open" if route.path == "/api/session" => 401,
            "open" | "local" => 200,
            // No WebSocket; the key comes with each of its frames.
            _ if route.path == "/api/chat/connect" => 400,
            // What an agent says of itself, and the keys that it signs with.
            "card" if route.path.starts_with("/.well-known/") => 200,
            _ => 401,
        };
        assert_eq!(status.as_u16(), wanted, "{} {}: {body}", route.method, route.path);
    }
}

#[tokio::test]
async fn x6_a_public_key_never_passes_a_route_for_backends() {
    let yard = world().await;
    let ids = ids(&yard).await;
    for route in table(&yard.gateway).await.into_iter().filter(|route| route.access == "secret") {
        let path = filled(&route.path, &ids);
        let request = with_body(&route, &ids, yard.gateway.user("ann", route.method.clone(), &path));
        let (status, body) = ask(request).await;
        assert_eq!(status, 401, "{} {}: {body}", route.method, route.path);
    }
}

/// What somebody gets who has no seat where an id leads to. A route with an id
/// that is not in here fails the test.
#[derive(Debug, PartialEq)]
enum Told {
    /// 403: it is somebody else's.
    Forbidden,
    /// It is as if it were not there.
    Nothing,
    /// The same as everybody of the tenant: it is nobody's own.
    Common,
    /// Something of one's own by the same name.
    Own,
}

fn other_entity(route: &Route) -> Told {
    match (route.method.as_str(), route.path.as_str()) {
        _ if route.access == "member" => Told::Forbidden,
        (_, "/api/waits/{wait}/answer" | "/api/waits/{wait}/claim") => Told::Forbidden,
        (_, "/api/files/{file}" | "/api/goals/{goal}" | "/api/memories/{memory}" | "/api/plans/{plan}") => {
            Told::Forbidden
        }
        (_, "/api/knowledge/{document}" | "/api/inbox/{notice}") => Told::Forbidden,
        ("GET", "/api/entities/{entity}/stream") => Told::Forbidden,
        ("DELETE", "/api/grants/{grant}") => Told::Nothing,
        (_, "/api/chat/{chat}/stop" | "/api/chat/{chat}/stream") => Told::Nothing,
        (_, "/copilotkit/agent/{agent}/stop/{thread}") => Told::Nothing,
        ("GET", "/api/curators/{curator}" | "/api/plugins/{plugin}" | "/v1/models/{model}") => Told::Common,
        // A conversation, a session or a login of one's own.
        (_, "/ag-ui/{agent}" | "/copilotkit/agent/{agent}/connect" | "/copilotkit/agent/{agent}/run") => {
            Told::Own
        }
        (_, "/mcp/{agent}" | "/api/mcp/servers/{server}/login") => Told::Own,
        // A2A has words of its own for it (see `a2a`).
        (_, "/a2a/{path}") => Told::Nothing,
        (method, path) => panic!("{method} {path} has no entry"),
    }
}

#[tokio::test]
async fn x6_an_entity_without_a_seat_is_refused_within_its_tenant() {
    let yard = world().await;
    let ids = ids(&yard).await;
    let mut told = Vec::new();
    let named = |route: &&Route| route.path.contains('{') && route.access != "secret";
    for route in table(&yard.gateway).await.iter().filter(named) {
        let path = filled(&route.path, &ids);
        let request = with_body(route, &ids, yard.gateway.user("eve", route.method.clone(), &path));
        let (status, body) = ask(request).await;
        let wanted = other_entity(route);
        let text = body.to_string();
        let fits = match wanted {
            Told::Forbidden => status == 403 && body["error"]["code"] == "forbidden",
            Told::Nothing => {
                status == 404 || status == 204 || body["stopped"] == false || body.get("error").is_some()
            }
            Told::Common => status == 200,
            Told::Own => status != 403,
        };
        assert!(fits, "{} {}: {wanted:?}, but {status} {body}", route.method, route.path);
        // Nothing that ann said or was asked.
        for canary in ["getUserApproval {", "canary"] {
            assert!(!text.contains(canary), "{} {}: {body}", route.method, route.path);
        }
        told.push(wanted);
    }
    for kind in [Told::Forbidden, Told::Nothing, Told::Common, Told::Own] {
        assert!(told.contains(&kind), "{kind:?} is of no route");
    }
    // Nothing was stopped, answered or removed.
    let waiting = yard.gateway.get("/api/runs?status=waiting_tool").await;
    assert_eq!(waiting["runs"].as_array().unwrap().len(), 2, "{waiting}");
    assert_eq!(yard.gateway.get("/api/grants").await["grants"].as_array().unwrap().len(), 1);
    // Lists show nothing of spaces that one is not in.
    let lists = [
        ("/api/smart-spaces", "smartSpaces"),
        ("/api/waits", "waits"),
        ("/api/goals", "goals"),
        ("/api/memories", "memories"),
        ("/api/plans", "plans"),
        ("/api/knowledge", "documents"),
        ("/api/inbox", "notifications"),
    ];
    for (path, list) in lists {
        let (_, body) = ask(yard.gateway.user("eve", Method::GET, path)).await;
        assert_eq!(body[list], json!([]), "{path}");
    }
}

#[tokio::test]
async fn x6_another_tenant_finds_nothing() {
    let yard = world().await;
    let ids = ids(&yard).await;
    let gateway = &yard.gateway;
    let secret = gateway.post("/api/keys", json!({"tenant": "acme", "kind": "secret"})).await;
    let public = gateway.post("/api/keys", json!({"tenant": "acme", "kind": "public"})).await;
    let (secret, public) = (secret["key"].as_str().unwrap(), public["key"].as_str().unwrap());
    let user = token_of(&json!({"sub": "ann", "exp": crate::gateway::now() + 600, "tenant": "acme"}));
    // A PUT makes something of one's own, whatever others call theirs.
    let owns = ["/api/secrets/{secret}", "/api/curators/{curator}"];
    let ours = async || {
        let (secrets, curators) =
            (gateway.get("/api/secrets").await, gateway.get("/api/curators/ours").await);
        (secrets, curators)
    };
    let before = ours().await;
    // A2A says so in words of its own (see `a2a`).
    let named = |route: &&Route| route.path.contains('{') && !route.path.starts_with("/a2a/");
    let mut routes = table(gateway).await;
    // What they make of their own is not there before.
    routes.sort_by_key(|route| route.method == Method::PUT);
    for route in routes.iter().filter(named) {
        let path = filled(&route.path, &ids);
        let bare = || with_body(route, &ids, gateway.bare(route.method.clone(), &path));
        let mut callers = vec![bare().header("x-secret-key", secret)];
        if route.access != "secret" {
            callers.push(bare().header("x-public-key", public).bearer_auth(&user));
            // A stolen token does not carry its user into another tenant.
            let stolen = bare().header("x-public-key", public).bearer_auth(token("ann"));
            assert_eq!(ask(stolen).await.0, 401, "{} {}", route.method, route.path);
        }
        for caller in callers {
            let (status, body) = ask(caller).await;
            if route.method == Method::PUT && owns.contains(&route.path.as_str()) {
                assert!(status.is_success(), "{} {}: {status} {body}", route.method, route.path);
                continue;
            }
            // To a chat client a conversation that is not there has nothing to say.
            if route.path.starts_with("/api/chat/") {
                let nothing = status == 204 || body == json!({"stopped": false});
                assert!(nothing, "{} {}: {status} {body}", route.method, route.path);
                continue;
            }
            assert_eq!(status, 404, "{} {}: {body}", route.method, route.path);
            assert_eq!(body["error"]["code"], "not_found");
        }
    }
    assert_eq!(ours().await, before, "what has the same name in another tenant stays as it is");
    // Names of the body are looked for in the caller's tenant too.
    let (status, _) = ask(gateway
        .bare(Method::POST, "/api/runs")
        .header("x-secret-key", secret)
        .json(&json!({"smartSpaceId": yard.space, "agentEntityId": yard.agent_entity})))
    .await;
    assert_eq!(status, 404);
    // All of it is still there for its own tenant.
    for (name, id) in &ids {
        let path = match *name {
            "{space}" => format!("/api/smart-spaces/{id}"),
            "{run}" => format!("/api/runs/{id}"),
            "{agent}" => format!("/api/agents/{id}"),
            "{entity}" => format!("/api/entities/{id}"),
            _ => continue,
        };
        gateway.get(&path).await;
    }
    assert_ne!(PUBLIC, public);
}
