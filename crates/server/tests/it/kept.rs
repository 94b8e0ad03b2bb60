//! What agents keep, over HTTP: goals, memories, documents, notifications.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, ask, fine, message};
use crate::yard::{Yard, data, eventually, join, new_space, new_user, read_all};

/// A gateway whose agents keep everything.
async fn keeper() -> Yard {
    let yard = Yard::new().await;
    let config = json!({
        "agent": {"name": "assistant"}, "model": {"provider": "demo", "name": "demo"}, "prebuilt": "all",
        "tools": [{"executionType": "prebuilt", "execution": {"action": "sendNotification", "channels": ["inbox"]}}]
    });
    yard.gateway.post("/api/agents", json!({"config": config})).await;
    yard
}

/// What a call answers to the model.
async fn output(yard: &Yard, text: &str) -> Value {
    let run = yard.say(text).await;
    let events = yard.finish(&run).await;
    let done = events.iter().find(|e| e.event.as_deref() == Some("tool-output-available"));
    data(done.unwrap_or_else(|| panic!("{events:?}")))["output"].clone()
}

#[tokio::test]
async fn g30_g46_the_goal_aware_sample_works_end_to_end() {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents").canonicalize().unwrap();
    let env = [("TOOLYARD_AGENTS_DIR", agents.to_str().unwrap())];
    let gateway = Gateway::start_with(Folder::new(), &env).await;
    let made = gateway.post("/api/entities/agent", json!({"agentId": "goal-aware"})).await;
    let bot = made["entity"]["id"].as_str().unwrap().to_owned();
    let ann = new_user(&gateway, "ann").await;
    let say = async |text: &str| {
        let space = new_space(&gateway).await;
        join(&gateway, &space, &bot).await;
        join(&gateway, &space, &ann).await;
        let path = format!("/api/smart-spaces/{space}/messages");
        let posted = fine(gateway.user("ann", Method::POST, &path).json(&json!({"content": text}))).await;
        posted["runs"][0]["runId"].as_str().unwrap().to_owned()
    };
    let run = say("call setGoals {\"goals\":[{\"description\":\"canary goal\",\"priority\":2}]}").await;
    let stream = format!("/api/runs/{run}/stream");
    // G32: the browser learns that goals are set, and nothing of them.
    let seen = read_all(gateway.user("ann", Method::GET, &stream).send().await.unwrap()).await;
    let tools: Vec<_> =
        seen.iter().filter(|e| e.event.as_deref().unwrap_or_default().starts_with("tool-")).collect();
    // The demo model says aloud what a tool answered; what the gateway tells of the call is bare.
    assert!(tools.iter().all(|e| !e.data.contains("canary")), "{tools:?}");
    assert!(tools.iter().all(|e| e.event.as_deref() != Some("tool-input-delta")), "{tools:?}");
    let done = seen.iter().find(|e| e.event.as_deref() == Some("tool-output-available")).unwrap();
    assert_eq!(data(done)["toolName"], "setGoals");
    assert!(seen.iter().any(|e| e.event.as_deref() == Some("run.completed")));
    // G33: the backend sees all of it.
    let all = read_all(gateway.secret(Method::GET, &stream).send().await.unwrap()).await;
    let done = all.iter().find(|e| e.event.as_deref() == Some("tool-output-available")).unwrap();
    let answer = &data(done)["output"];
    let id = answer["goalsModified"][0]["id"].clone();
    assert_eq!(
        answer,
        &json!({
            "success": true,
            "goalsModified": [{"action": "created", "id": id, "description": "canary goal"}],
            "currentGoals": [{"id": id, "description": "canary goal", "priority": 2, "isLongTerm": false, "isCompleted": false}],
            "totalGoals": 1
        })
    );
    // G22: the next conversation finds it, and completes it by its id.
    let run = say(&format!(
        "call setGoals {{\"goals\":[{{\"id\":{id},\"description\":\"canary goal\",\"isCompleted\":true}}]}}"
    ))
    .await;
    read_all(gateway.secret(Method::GET, &format!("/api/runs/{run}/stream")).send().await.unwrap()).await;
    let goals = gateway.get(&format!("/api/goals?entityId={bot}")).await;
    assert_eq!(goals["goals"].as_array().unwrap().len(), 1);
    let goal = &goals["goals"][0];
    assert_eq!((&goal["id"], &goal["isCompleted"], &goal["priority"]), (&id, &json!(true), &json!(2)));
    // G46: the same agent asks a client.
    let run = say("call getUserApproval {\"question\":\"ok?\"}").await;
    eventually("the run waits", async || {
        gateway.get(&format!("/api/runs/{run}")).await["run"]["status"] == "waiting_tool"
    })
    .await;
    let gone = gateway.secret(Method::DELETE, &format!("/api/entities/{bot}")).send().await.unwrap();
    assert_eq!(gone.status(), 204);
    assert_eq!(gateway.get("/api/goals").await["goals"], json!([]));
}

#[tokio::test]
async fn goals_of_people_are_their_own() {
    let yard = Yard::new().await;
    let gateway = &yard.gateway;
    let new = |body: Value| gateway.user("ann", Method::POST, "/api/goals").json(&body);
    let made = fine(new(json!({"description": "Run", "metadata": {"km": 5}}))).await;
    assert_eq!((&made["goal"]["entityId"], &made["goal"]["priority"]), (&json!(yard.ann), &json!(0)));
    // What steers an agent is not a user's to write.
    let (status, _) = ask(new(json!({"entityId": yard.agent_entity, "description": "Obey Ann"}))).await;
    assert_eq!(status, 403);
    assert_eq!(ask(new(json!({}))).await.0, 400);
    let path = format!("/api/goals/{}", made["goal"]["id"].as_str().unwrap());
    let changed = fine(gateway.user("ann", Method::PATCH, &path).json(&json!({"isCompleted": true}))).await;
    let goal = &changed["goal"];
    assert_eq!(
        (&goal["isCompleted"], &goal["description"], &goal["metadata"]),
        (&json!(true), &json!("Run"), &json!({"km": 5}))
    );
    let (status, said) =
        ask(gateway.user("ann", Method::GET, &format!("/api/goals?entityId={}", yard.bob))).await;
    assert_eq!((status.as_u16(), message(&said)), (403, "A user sees only their own"));
    for n in 0..4 {
        gateway.post("/api/goals", json!({"entityId": yard.bob, "description": format!("goal {n}")})).await;
    }
    let first = gateway.get(&format!("/api/goals?entityId={}&limit=3", yard.bob)).await;
    let next = first["next"].as_str().unwrap();
    let rest = gateway.get(&format!("/api/goals?entityId={}&limit=3&before={next}", yard.bob)).await;
    assert_eq!((first["goals"].as_array().unwrap().len(), rest["goals"].as_array().unwrap().len()), (3, 1));
}

#[tokio::test]
async fn people_see_correct_and_remove_what_is_remembered_for_them() {
    let yard = keeper().await;
    let gateway = &yard.gateway;
    output(&yard, "call setMemory {\"topic\":\"Tea\",\"content\":\"green\"}").await;
    let list = fine(gateway.user("ann", Method::GET, "/api/memories")).await;
    let memory = &list["memories"][0];
    assert_eq!(
        (&memory["topic"], &memory["scope"], &memory["entityId"]),
        (&json!("Tea"), &json!("user"), &json!(yard.ann))
    );
    assert_eq!(fine(gateway.user("bob", Method::GET, "/api/memories")).await["memories"], json!([]));
    let path = format!("/api/memories/{}", memory["id"].as_str().unwrap());
    fine(gateway.user("ann", Method::PATCH, &path).json(&json!({"content": "black"}))).await;
    let read = output(&yard, "call getMemory {\"topic\":\"tea\"}").await;
    assert_eq!(read["memories"][0]["content"], "black");
    let new = json!({"agentEntityId": yard.agent_entity, "topic": "Name", "content": "Ann"});
    fine(gateway.user("ann", Method::POST, "/api/memories").json(&new)).await;
    assert_eq!(ask(gateway.user("ann", Method::POST, "/api/memories").json(&new)).await.0, 409);
    let forged =
        json!({"agentEntityId": yard.agent_entity, "entityId": yard.bob, "topic": "x", "content": "y"});
    assert_eq!(ask(gateway.user("ann", Method::POST, "/api/memories").json(&forged)).await.0, 403);
    let gone = gateway.user("ann", Method::DELETE, &path).send().await.unwrap();
    assert_eq!(gone.status(), 204);
    assert_eq!(output(&yard, "call getMemory {}").await["total"], 1);
}

#[tokio::test]
async fn g26_an_uploaded_document_is_indexed_and_cited() {
    let yard = keeper().await;
    let gateway = &yard.gateway;
    let page = "<html><body><h1>Terms</h1><p>Refunds are paid within <b>ten days</b>.</p></body></html>";
    let upload = |user: Option<&str>, media: &str, query: &str, body: &str| {
        let path = format!("/api/knowledge?{query}");
        let request = match user {
            Some(user) => gateway.user(user, Method::POST, &path),
            None => gateway.secret(Method::POST, &path),
        };
        request.header("content-type", media).body(body.to_owned())
    };
    let made = fine(upload(None, "text/html; charset=utf-8", "title=Terms", page)).await;
    let document = made["document"]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/knowledge/{document}");
    eventually("the document is ready", async || gateway.get(&path).await["document"]["status"] == "ready")
        .await;
    let done = gateway.get(&path).await["document"].clone();
    assert_eq!((&done["progress"], &done["chunks"], &done["error"]), (&json!(1.0), &json!(1), &json!(null)));
    let answer = output(&yard, "call searchKnowledge {\"query\":\"when are refunds paid\"}").await;
    let best = &answer["results"][0];
    assert_eq!(
        (&best["documentId"], &best["title"], &best["position"]),
        (&json!(document), &json!("Terms"), &json!(0))
    );
    assert!(best["text"].as_str().unwrap().contains("ten days"), "{best}");

    // A user's document needs a space of theirs.
    assert_eq!(ask(upload(Some("ann"), "text/plain", "title=x", "words")).await.0, 400);
    let other = new_space(gateway).await;
    assert_eq!(
        ask(upload(Some("ann"), "text/plain", &format!("smartSpaceId={other}"), "words")).await.0,
        403
    );
    let own = format!("smartSpaceId={}", yard.space);
    fine(upload(Some("ann"), "text/markdown", &own, "# The canary\nsings at dawn")).await;
    let list = fine(gateway.user("bob", Method::GET, "/api/knowledge")).await;
    assert_eq!(list["documents"].as_array().unwrap().len(), 1, "{list}");
    let theirs = format!("/api/knowledge/{}", list["documents"][0]["id"].as_str().unwrap());
    assert_eq!(ask(gateway.user("bob", Method::DELETE, &theirs)).await.0, 403);
    assert_eq!(ask(gateway.user("bob", Method::GET, &path)).await.0, 403);

    for (media, body, status) in [
        ("image/png", "x", 415),
        ("application/pdf", "%PDF-1.4 rubbish", 415),
        ("text/plain", "  ", 415),
        ("application/json", "{}", 400),
    ] {
        let (got, said) = ask(upload(None, media, "", body)).await;
        assert_eq!(got.as_u16(), status, "{media}: {said}");
    }
    let gone = gateway.secret(Method::DELETE, &path).send().await.unwrap();
    assert_eq!(gone.status(), 204);
    let answer = output(&yard, "call searchKnowledge {\"query\":\"refunds\"}").await;
    assert_eq!(answer["total"], 0);
}

#[tokio::test]
async fn g26_with_an_embedding_provider_documents_get_vectors() {
    let env = [("TOOLYARD_KNOWLEDGE_EMBEDDING", "demo/words")];
    let gateway = Gateway::start_with(Folder::new(), &env).await;
    let made = gateway
        .post("/api/knowledge", json!({"title": "Notes", "content": "The canary sings at dawn."}))
        .await;
    let path = format!("/api/knowledge/{}", made["document"]["id"].as_str().unwrap());
    eventually("the document is ready", async || gateway.get(&path).await["document"]["status"] == "ready")
        .await;
    assert_eq!(gateway.get(&path).await["document"]["embeddedChunks"], 1);
}

#[tokio::test]
async fn g27_a_notification_waits_in_the_inbox_until_it_is_read() {
    let yard = keeper().await;
    let gateway = &yard.gateway;
    let sent =
        output(&yard, "call sendNotification {\"title\":\"Done\",\"message\":\"The report is there\"}").await;
    assert_eq!((&sent["entityId"], &sent["channels"]), (&json!(yard.ann), &json!(["inbox"])));
    let list = fine(gateway.user("ann", Method::GET, "/api/inbox?unread=true")).await;
    let notice = &list["notifications"][0];
    assert_eq!(
        (&notice["title"], &notice["agent"], &notice["readAt"]),
        (&json!("Done"), &json!("assistant"), &json!(null))
    );
    assert_eq!(fine(gateway.user("bob", Method::GET, "/api/inbox")).await["notifications"], json!([]));
    let path = format!("/api/inbox/{}", notice["id"].as_str().unwrap());
    assert_eq!(ask(gateway.user("bob", Method::PATCH, &path).json(&json!({"read": true}))).await.0, 403);
    let read = fine(gateway.user("ann", Method::PATCH, &path).json(&json!({"read": true}))).await;
    assert!(read["notification"]["readAt"].is_string());
    assert_eq!(
        fine(gateway.user("ann", Method::GET, "/api/inbox?unread=true")).await["notifications"],
        json!([])
    );
    let gone = gateway.user("ann", Method::DELETE, &path).send().await.unwrap();
    assert_eq!(gone.status(), 204);
}

#[tokio::test]
async fn g28_g29_the_space_is_read_and_described_by_its_agent() {
    let yard = keeper().await;
    let context = output(&yard, "call getSpaceContext {}").await;
    assert_eq!(
        (&context["smartSpace"]["name"], context["members"].as_array().unwrap().len()),
        (&json!("yard"), 3)
    );
    output(&yard, "call updateSpaceMetadata {\"metadata\":{\"topic\":\"tea\"}}").await;
    let space = yard.gateway.get(&format!("/api/smart-spaces/{}", yard.space)).await;
    assert_eq!(space["smartSpace"]["metadata"], json!({"topic": "tea"}));
}
