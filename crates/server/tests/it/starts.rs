//! `POST /api/runs` with all that the documents name, and agents whose calls or
//! tools do not exist.

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{ask, message};
use crate::yard::{Yard, agent, data, join};

async fn refused(yard: &Yard, more: Value) -> (u16, String) {
    let mut body = json!({"smartSpaceId": yard.space});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, answer) = ask(yard.gateway.secret(Method::POST, "/api/runs").json(&body)).await;
    assert!(answer["error"]["code"].is_string(), "{answer}");
    (status.as_u16(), message(&answer).to_owned())
}

#[tokio::test]
async fn a_run_starts_for_the_agent_that_is_named_in_the_space() {
    let yard = Yard::new().await;
    let id = yard.gateway.get("/api/agents/assistant").await["agent"]["id"].clone();
    for named in [
        json!({"agentId": id}),
        json!({"agentId": "assistant", "start": true}),
        json!({"agentEntityId": yard.agent_entity, "agentId": id, "parentRunId": null}),
        json!({"agentEntityId": yard.agent_entity}),
    ] {
        let mut body = named.clone();
        body["smartSpaceId"] = json!(yard.space);
        let made = yard.gateway.post("/api/runs", body).await;
        let run = made["runId"].as_str().unwrap();
        yard.finish(run).await;
        let shown = yard.gateway.get(&format!("/api/runs/{run}")).await;
        assert_eq!(shown["run"]["agentEntityId"], json!(yard.agent_entity), "{named}");
    }
}

#[tokio::test]
async fn a_run_that_cannot_start_as_it_is_asked_for_is_refused_and_nothing_changes() {
    let yard = Yard::new().await;
    yard.gateway.post("/api/agents", json!({"config": agent("other")})).await;
    let entity = &yard.agent_entity;
    for (more, status, text) in [
        (json!({}), 400, "Missing required field: agentEntityId"),
        (json!({"agentId": "nobody"}), 404, "Agent not found"),
        (json!({"agentEntityId": entity, "agentId": "nobody"}), 404, "Agent not found"),
        (json!({"agentId": "other"}), 403, "Agent is not a member of this SmartSpace"),
        (
            json!({"agentEntityId": entity, "agentId": "other"}),
            400,
            "agentId: the entity of agentEntityId plays another agent",
        ),
        (
            json!({"agentEntityId": entity, "start": false}),
            400,
            "start: a run starts when it is created. Create it when it shall start",
        ),
        (
            json!({"agentEntityId": entity, "parentRunId": "run_x"}),
            400,
            "parentRunId: only a call of an agent starts a run with a parent. Use metadata to relate runs",
        ),
    ] {
        assert_eq!(refused(&yard, more.clone()).await, (status, text.to_owned()), "{more}");
    }
    assert!(refused(&yard, json!({"agentEntityId": entity, "start": "no"})).await.1.starts_with("start: "));
    // Two of one agent in a space: the request must say which.
    let twin = yard.gateway.post("/api/entities/agent", json!({"agentId": "assistant"})).await;
    join(&yard.gateway, &yard.space, twin["entity"]["id"].as_str().unwrap()).await;
    let (status, text) = refused(&yard, json!({"agentId": "assistant"})).await;
    assert_eq!((status, text.contains("several entities play this agent here")), (400, true), "{text}");
    assert_eq!(yard.gateway.get("/api/runs").await["runs"], json!([]));
}

#[tokio::test]
async fn row14_a_call_of_an_unknown_tool_has_a_code_for_programs() {
    let yard = Yard::new().await;
    let run = yard.say("call nobodys_tool {}\ncall look {\"q\":1}").await;
    let events = yard.finish(&run).await;
    let errors: Vec<Value> =
        events.iter().filter(|e| e.event.as_deref() == Some("tool-error")).map(data).collect();
    let [unknown, refused] = errors.as_slice() else { panic!("{errors:?}") };
    assert_eq!(
        (&unknown["toolName"], &unknown["code"], &unknown["error"]),
        (&json!("nobodys_tool"), &json!("tool_not_found"), &json!("Tool: nobodys_tool not found"))
    );
    assert!(refused.get("code").is_none(), "bad arguments have no code: {refused}");
    // The same for users, on the stream and in the list, without the text.
    let path = format!("/api/runs/{run}/events");
    let listed = crate::gateway::fine(yard.gateway.user("ann", Method::GET, &path)).await;
    let ended = listed["events"].as_array().unwrap().iter().find(|e| e["type"] == "tool-error").unwrap();
    assert_eq!((&ended["code"], ended.get("error")), (&json!("tool_not_found"), None));
    let shown = yard.gateway.get(&format!("/api/runs/{run}")).await;
    assert_eq!(shown["run"]["status"], "completed", "the model is told and goes on");
}

#[tokio::test]
async fn the_tool_of_crash_tests_is_no_tool_of_a_gateway() {
    let yard = Yard::new().await;
    let mut config = agent("recorded");
    let tools = config["tools"].as_array_mut().unwrap();
    tools.push(json!({"name": "record", "executionType": "recorder", "execution": {"file": "x"}}));
    let request = yard.gateway.secret(Method::POST, "/api/agents").json(&json!({"config": config}));
    let (status, body) = ask(request).await;
    assert_eq!((status.as_u16(), &body["error"]["code"]), (400, &json!("invalid_config")), "{body}");
    let text = "execution type recorder exists only in builds for crash tests";
    assert!(message(&body).contains(text), "{body}");
    for published in ["agent-config.schema.json", "openapi.json"] {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../api/").to_owned() + published;
        assert!(!std::fs::read_to_string(file).unwrap().contains("\"recorder\""), "{published}");
    }
}

#[tokio::test]
async fn x6_ids_of_another_tenant_in_bodies_and_queries_are_not_found() {
    let yard = Yard::new().await;
    let run = yard.say("call getUserApproval {}").await;
    let wait = yard.wait_of(&run).await;
    let gateway = &yard.gateway;
    let key = gateway.post("/api/keys", json!({"tenant": "acme", "kind": "secret"})).await;
    let key = key["key"].as_str().unwrap();
    let acme = |method: Method, path: &str| gateway.bare(method, path).header("x-secret-key", key);
    let own = async |path: &str, body: Value| {
        let (status, made) = ask(acme(Method::POST, path).json(&body)).await;
        assert!(status.is_success(), "{path}: {made}");
        made
    };
    own("/api/agents", json!({"config": agent("helper")})).await;
    let bot = own("/api/entities/agent", json!({"agentId": "helper"})).await["entity"]["id"].clone();
    let human = own("/api/entities", json!({"type": "human"})).await["entity"]["id"].clone();
    let space = own("/api/smart-spaces", json!({})).await["smartSpace"]["id"].clone();
    let place = format!("/api/smart-spaces/{}", space.as_str().unwrap());
    for entity in [&bot, &human] {
        own(&format!("{place}/members"), json!({"entityId": entity})).await;
    }
    let (ann, theirs, their_bot) = (&yard.ann, &yard.space, &yard.agent_entity);
    let agent_id = gateway.get("/api/agents/assistant").await["agent"]["id"].clone();
    let plan = |entity: &Value, bot: &Value, space: &Value| {
        json!({"agentEntityId": bot, "entityId": entity, "smartSpaceId": space,
            "instruction": "x", "cron": "0 0 1 1 *"})
    };
    let (ann_id, bot_id, space_id) = (json!(ann), json!(their_bot), json!(theirs));
    for (path, body) in [
        ("/api/runs".to_owned(), json!({"smartSpaceId": theirs, "agentEntityId": bot})),
        ("/api/runs".to_owned(), json!({"smartSpaceId": space, "agentEntityId": their_bot})),
        ("/api/runs".to_owned(), json!({"smartSpaceId": space, "agentId": agent_id})),
        ("/api/entities/agent".to_owned(), json!({"agentId": agent_id})),
        ("/api/entities/agent".to_owned(), json!({"agentId": "assistant"})),
        (format!("{place}/members"), json!({"entityId": ann})),
        (
            format!("{place}/tool-results"),
            json!({"runId": run, "toolCallId": wait["toolCallId"], "result": 1}),
        ),
        ("/api/plans".to_owned(), plan(&ann_id, &bot, &space)),
        ("/api/plans".to_owned(), plan(&human, &bot_id, &space)),
        ("/api/plans".to_owned(), plan(&human, &bot, &space_id)),
        ("/api/goals".to_owned(), json!({"entityId": ann, "description": "x"})),
        (
            "/api/memories".to_owned(),
            json!({"agentEntityId": bot, "entityId": ann, "topic": "t", "content": "c"}),
        ),
        (
            "/api/memories".to_owned(),
            json!({"agentEntityId": their_bot, "entityId": human, "topic": "t", "content": "c"}),
        ),
        ("/api/inbox".to_owned(), json!({"entityId": ann, "title": "t", "message": "m"})),
        ("/api/knowledge".to_owned(), json!({"content": "words", "smartSpaceId": theirs})),
    ] {
        let (status, answer) = ask(acme(Method::POST, &path).json(&body)).await;
        assert_eq!(
            (status.as_u16(), &answer["error"]["code"]),
            (404, &json!("not_found")),
            "{path} {body}: {answer}"
        );
    }
    // A speaker who is not there has no seat.
    let said = json!({"content": "hi", "entityId": ann});
    let (status, answer) = ask(acme(Method::POST, &format!("{place}/messages")).json(&said)).await;
    assert!(matches!(status.as_u16(), 403 | 404), "{status}: {answer}");
    for (path, list) in [
        (format!("/api/runs?smartSpaceId={theirs}"), "runs"),
        (format!("/api/waits?runId={run}"), "waits"),
        (format!("/api/waits?smartSpaceId={theirs}"), "waits"),
        (format!("/api/pending-calls?runId={run}"), "waits"),
        (format!("/api/smart-spaces?entityId={ann}"), "smartSpaces"),
        (format!("/api/goals?entityId={ann}"), "goals"),
        (format!("/api/inbox?entityId={ann}"), "notifications"),
        (format!("/api/memories?entityId={ann}"), "memories"),
        (format!("/api/plans?entityId={ann}"), "plans"),
        (format!("/api/knowledge?smartSpaceId={theirs}"), "documents"),
        ("/api/entities?externalId=ann".to_owned(), "entities"),
    ] {
        let (status, answer) = ask(acme(Method::GET, &path)).await;
        let nothing = status == 404 || (status == 200 && answer[list] == json!([]));
        assert!(nothing, "{path}: {status} {answer}");
    }
    // All of it is as it was.
    let shown = gateway.get(&format!("/api/runs/{run}")).await;
    assert_eq!(shown["run"]["status"], "waiting_tool");
    let members = gateway.get(&format!("/api/smart-spaces/{theirs}/members")).await;
    assert_eq!(members["members"].as_array().unwrap().len(), 3);
}
