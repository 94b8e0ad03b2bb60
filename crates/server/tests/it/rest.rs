//! Agents, entities, spaces, members, grants, clients and the audit.

use reqwest::Method;
use serde_json::json;

use crate::gateway::{Gateway, ask, fine, message};
use crate::yard::{Yard, agent, join, new_space, new_user};

#[tokio::test]
async fn an_agent_is_stored_by_name_and_the_same_hash_changes_nothing() {
    let gateway = Gateway::start().await;
    let first = gateway.post("/api/agents", json!({"config": agent("helper")})).await;
    assert_eq!(first["created"], true);
    let same = gateway.post("/api/agents", json!({"config": agent("helper")})).await;
    assert_eq!((&same["agentId"], &same["created"]), (&first["agentId"], &json!(false)));
    assert_eq!(same["configHash"], first["configHash"]);
    let mut changed = agent("helper");
    changed["agent"]["system"] = json!("other");
    let changed = gateway.post("/api/agents", json!({"config": changed})).await;
    assert_eq!(changed["agentId"], first["agentId"]);
    assert_ne!(changed["configHash"], first["configHash"]);
    // A name beside the configuration wins.
    gateway.post("/api/agents", json!({"name": "second", "config": agent("helper")})).await;
    let list = gateway.get("/api/agents?limit=1").await;
    assert_eq!((&list["agents"][0]["name"], &list["next"]), (&json!("helper"), &json!("helper")));
    let rest = gateway.get("/api/agents?after=helper").await;
    assert_eq!(rest["agents"][0]["name"], "second");
    let id = first["agentId"].as_str().unwrap();
    assert_eq!(
        gateway.get(&format!("/api/agents/{id}")).await["agent"]["config"]["agent"]["system"],
        "other"
    );
    let gone = gateway.secret(Method::DELETE, "/api/agents/second").send().await.unwrap();
    assert_eq!(gone.status(), 204);
    assert_eq!(ask(gateway.secret(Method::GET, "/api/agents/second")).await.0, 404);
}

#[tokio::test]
async fn a_bad_agent_is_refused_with_the_path_to_the_fault() {
    let gateway = Gateway::start().await;
    let refused = async |config: serde_json::Value| {
        let request = gateway.secret(Method::POST, "/api/agents").json(&json!({"config": config}));
        let (status, body) = ask(request).await;
        assert_eq!(status, 400, "{body}");
        assert_eq!(body["error"]["code"], "invalid_config");
        message(&body).to_owned()
    };
    let mut typo = agent("a");
    typo["tools"][0]["aproval"] = json!("ask");
    assert!(refused(typo).await.contains("tools[0]"));
    let mut hot = agent("a");
    hot["model"]["temperature"] = json!(3);
    assert!(refused(hot).await.contains("model.temperature"));
    let mut remote = agent("a");
    remote["tools"][0]["inputSchema"] = json!({"type": "object", "$ref": "http://127.0.0.1/x"});
    assert!(refused(remote).await.contains("tools[0].inputSchema"));
    assert!(refused(agent("v1")).await.contains("reserved"));
}

#[tokio::test]
async fn entities_are_made_changed_found_and_removed() {
    let gateway = Gateway::start().await;
    let made = gateway
        .post(
            "/api/entities",
            json!({"type": "human", "externalId": "ann", "displayName": "Ann", "metadata": {"a": 1}}),
        )
        .await;
    let path = format!("/api/entities/{}", made["entity"]["id"].as_str().unwrap());
    let patch = json!({"displayName": null, "metadata": {"b": 2}});
    let changed = fine(gateway.secret(Method::PATCH, &path).json(&patch)).await;
    assert_eq!(changed["entity"]["displayName"], json!(null));
    assert_eq!(changed["entity"]["externalId"], "ann");
    assert_eq!(changed["entity"]["metadata"], json!({"b": 2}));
    assert_eq!(gateway.get(&path).await, changed);
    let twice =
        gateway.secret(Method::POST, "/api/entities").json(&json!({"type": "human", "externalId": "ann"}));
    assert_eq!(ask(twice).await.0, 409);
    let no_agent = gateway.secret(Method::POST, "/api/entities").json(&json!({"type": "agent"}));
    assert_eq!(message(&ask(no_agent).await.1), "Missing required field: agentId");
    let unknown = gateway.secret(Method::POST, "/api/entities/agent").json(&json!({"agentId": "nobody"}));
    assert_eq!(ask(unknown).await.0, 404);
    assert_eq!(gateway.secret(Method::DELETE, &path).send().await.unwrap().status(), 204);
    assert_eq!(ask(gateway.secret(Method::GET, &path)).await.0, 404);
}

#[tokio::test]
async fn a_member_sees_the_space_until_it_is_removed() {
    let yard = Yard::new().await;
    let gateway = &yard.gateway;
    let space = format!("/api/smart-spaces/{}", yard.space);
    let members = fine(gateway.user("ann", Method::GET, &format!("{space}/members"))).await;
    assert_eq!(members["members"].as_array().unwrap().len(), 3);
    // Who is there already has been there since then; only the role is another one.
    let ann =
        members["members"].as_array().unwrap().iter().find(|m| m["entityId"] == json!(yard.ann)).unwrap();
    let again = json!({"entityId": yard.ann, "role": "admin"});
    let again = gateway.post(&format!("{space}/members"), again).await["membership"].clone();
    assert_eq!((&again["createdAt"], &again["role"]), (&ann["createdAt"], &json!("admin")));
    let patched = fine(gateway.secret(Method::PATCH, &space).json(&json!({"name": "new name"}))).await;
    assert_eq!(patched["smartSpace"]["name"], "new name");
    let list = fine(gateway.user("ann", Method::GET, "/api/smart-spaces")).await;
    assert_eq!(list["smartSpaces"][0]["id"], json!(yard.space));
    let remove = gateway.secret(Method::DELETE, &format!("{space}/members/{}", yard.ann));
    assert_eq!(remove.send().await.unwrap().status(), 204);
    assert_eq!(ask(gateway.user("ann", Method::GET, &space)).await.0, 403);
    assert_eq!(gateway.secret(Method::DELETE, &space).send().await.unwrap().status(), 204);
    assert_eq!(ask(gateway.user("bob", Method::GET, &space)).await.0, 404);
}

#[tokio::test]
async fn a_grant_binds_the_tool_as_it_is_and_a_deny_needs_no_agent() {
    let yard = Yard::new().await;
    let gateway = &yard.gateway;
    let no_agent =
        gateway.secret(Method::POST, "/api/grants").json(&json!({"tool": "guarded", "effect": "allow"}));
    assert_eq!(message(&ask(no_agent).await.1), "Missing required field: agent");
    let body = json!({"tool": "guarded", "effect": "allow", "agent": "assistant", "entityId": yard.ann});
    gateway.post("/api/grants", body).await;
    // Allowed ahead of time: the call goes to its client without a question.
    let run = yard.say("call guarded {\"q\":\"x\"}").await;
    assert_eq!(yard.wait_of(&run).await["kind"], "client");
    let list = gateway.get("/api/grants").await;
    let id = list["grants"][0]["id"].as_str().unwrap().to_owned();
    let remove = gateway.secret(Method::DELETE, &format!("/api/grants/{id}"));
    assert_eq!(remove.send().await.unwrap().status(), 204);
    gateway.post("/api/grants", json!({"tool": "getUserApproval", "effect": "deny"})).await;
    let audit = gateway.get("/api/audit").await;
    let actions: Vec<_> =
        audit["entries"].as_array().unwrap().iter().map(|e| e["action"].as_str().unwrap()).collect();
    assert_eq!(&actions[..3], ["grant.create", "grant.delete", "grant.create"]);
}

#[tokio::test]
async fn a_client_id_belongs_to_the_entity_that_took_it() {
    let gateway = Gateway::start().await;
    new_user(&gateway, "ann").await;
    let body = json!({"clientId": "cli_tab1", "clientType": "browser", "capabilities": {"tools": ["a"]}});
    let register = |user: &str| gateway.user(user, Method::POST, "/api/clients/register").json(&body);
    assert_eq!(fine(register("ann")).await["clientId"], "cli_tab1");
    fine(register("ann")).await;
    assert_eq!(ask(register("bob")).await.0, 409);
    let list = gateway.get("/api/clients").await;
    assert_eq!(list["clients"][0]["clientType"], "browser");
}

#[tokio::test]
async fn labels_and_metadata_have_limits_with_their_number() {
    let gateway = Gateway::start().await;
    let post = |body: serde_json::Value| ask(gateway.secret(Method::POST, "/api/smart-spaces").json(&body));
    let (status, body) = post(json!({"name": "x".repeat(257)})).await;
    assert_eq!((status.as_u16(), &body["error"]["limit"]), (422, &json!(256)));
    let (status, body) = post(json!({"metadata": {"x": "y".repeat(20_000)}})).await;
    assert_eq!((status.as_u16(), &body["error"]["limit"]), (422, &json!(16384)));
    assert_eq!(post(json!({"metadata": [1]})).await.0, 400);
    assert_eq!(post(json!({"name": "a\u{0}b"})).await.0, 400);
}

#[tokio::test]
async fn values_of_any_shape_have_limits_with_their_number() {
    let yard = Yard::new().await;
    let gateway = &yard.gateway;
    let refused = async |path: &str, body: serde_json::Value, limit: u64| {
        let (status, body) = ask(gateway.secret(Method::POST, path).json(&body)).await;
        assert_eq!(
            (status.as_u16(), &body["error"]["code"], &body["error"]["limit"]),
            (422, &json!("limit_exceeded"), &json!(limit)),
            "{path}: {body}"
        );
    };
    let large = "x".repeat(70_000);
    refused("/api/clients/register", json!({"capabilities": ["y".repeat(20_000)]}), 16384).await;
    gateway.post("/api/clients/register", json!({"capabilities": ["read_screen"]})).await;
    let grant = json!({"tool": "look", "effect": "deny", "args": {"q": large}});
    refused("/api/grants", grant, 65536).await;
    let run = yard.say("call guarded {\"q\":\"x\"}").await;
    let wait = yard.wait_of(&run).await;
    let answer = format!("/api/waits/{}/answer", wait["id"].as_str().unwrap());
    refused(&answer, json!({"decision": "allow", "editedArgs": {"q": large}}), 65536).await;
    refused(&answer, json!({"value": large}), 65536).await;
    // Nothing of it was an answer.
    gateway.post(&answer, json!({"decision": "allow", "editedArgs": {"q": "y"}})).await;
}

#[tokio::test]
async fn metadata_of_a_space_is_for_secret_keys() {
    let yard = Yard::new().await;
    let gateway = &yard.gateway;
    let space = format!("/api/smart-spaces/{}", yard.space);
    let patch = json!({"metadata": {"crm": "canary-metadata"}});
    fine(gateway.secret(Method::PATCH, &space).json(&patch)).await;
    assert_eq!(gateway.get(&space).await["smartSpace"]["metadata"]["crm"], "canary-metadata");
    for path in [space.as_str(), "/api/smart-spaces"] {
        let seen = fine(gateway.user("ann", Method::GET, path)).await.to_string();
        assert!(seen.contains(&yard.space) && !seen.contains("metadata"), "{seen}");
    }
}

#[tokio::test]
async fn a_space_with_a_live_run_stays_and_a_message_to_a_deleted_one_is_not_found() {
    let yard = Yard::new().await;
    let gateway = &yard.gateway;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    yard.wait_of(&run).await;
    let kept = gateway.secret(Method::DELETE, &format!("/api/smart-spaces/{}", yard.space));
    let (status, body) = ask(kept).await;
    assert_eq!((status.as_u16(), &body["error"]["code"]), (409, &json!("run_busy")));
    // Who wins is open; nobody is told of an inner error, and no run is left without its space.
    for _ in 0..10 {
        let space = new_space(gateway).await;
        join(gateway, &space, &yard.agent_entity).await;
        join(gateway, &space, &yard.ann).await;
        let path = format!("/api/smart-spaces/{space}");
        let said = json!({"content": "call getUserApproval {\"q\":\"x\"}", "entityId": yard.ann});
        let post = gateway.secret(Method::POST, &format!("{path}/messages")).json(&said);
        let ((posted, said), (deleted, _)) =
            tokio::join!(ask(post), ask(gateway.secret(Method::DELETE, &path)));
        let (posted, deleted) = (posted.as_u16(), deleted.as_u16());
        assert!(matches!((posted, deleted), (201, 409) | (404, 204)), "{posted} {deleted}: {said}");
    }
}
