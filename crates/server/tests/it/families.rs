//! Agents that call agents, over HTTP (row G12): cancel, expiry, crash, and who
//! is told of what they wait for.

use reqwest::Method;
use serde_json::{Value, json};

use crate::far_side::FarSide;
use crate::gateway::{Folder, Gateway, ask};
use crate::yard::{Yard, data, eventually};

fn helper(more: Value) -> Value {
    let mut execution = json!({"agentConfig": {
        "agent": {"name": "helper"}, "model": {"provider": "demo", "name": "demo"},
        "tools": [{"name": "look_up", "description": "A client's tool.", "inputSchema": {"type": "object", "properties": {}}}],
    }});
    for (key, value) in more.as_object().unwrap() {
        execution[key] = value.clone();
    }
    json!({"name": "helper", "description": "Another agent.", "executionType": "ai-agent", "execution": execution})
}

async fn yard_with(gateway: Gateway, more: Value) -> Yard {
    let yard = Yard::on(gateway).await;
    let config = json!({"agent": {"name": "assistant"}, "model": {"provider": "demo", "name": "demo"}, "tools": [helper(more)]});
    yard.gateway.post("/api/agents", json!({ "config": config })).await;
    yard
}

/// What a child waits for, once it does: the root's own wait for it is not meant.
async fn asked(yard: &Yard, run: &str) -> Value {
    let path = format!("/api/waits?runId={run}&kind=client");
    eventually("the child's question", || async { !yard.gateway.get(&path).await["waits"][0].is_null() })
        .await;
    yard.gateway.get(&path).await["waits"][0].clone()
}

const ASK: &str = "call helper {\"prompt\": \"call look_up {}\"}";

async fn children(gateway: &Gateway, root: &str) -> Vec<Value> {
    let runs = gateway.get("/api/runs?limit=200").await;
    let ours = |run: &&Value| run["rootRunId"] == root && run["id"] != root;
    runs["runs"].as_array().unwrap().iter().filter(ours).cloned().collect()
}

async fn ended(gateway: &Gateway, root: &str, status: &str) {
    eventually(status, || async {
        let family = children(gateway, root).await;
        !family.is_empty() && family.iter().all(|run| run["status"] == status)
    })
    .await;
}

#[tokio::test]
async fn g12_a_cancel_over_http_stops_the_family_and_closes_its_waits() {
    let yard = yard_with(Gateway::start().await, json!({})).await;
    let run = yard.say(ASK).await;
    asked(&yard, &run).await;
    yard.gateway.post(&format!("/api/runs/{run}/cancel"), json!({})).await;
    let events = yard.finish(&run).await;
    assert!(events.iter().any(|e| e.event.as_deref() == Some("run.canceled")));
    ended(&yard.gateway, &run, "canceled").await;
    assert_eq!(yard.gateway.get("/api/waits").await["waits"], json!([]));
}

/// The parent goes on without the child, and knows what it used.
#[tokio::test]
async fn g12_a_child_that_expires_over_http_is_stopped_and_paid_for() {
    let yard = yard_with(Gateway::start().await, json!({"timeout": 1000})).await;
    let run = yard.say(ASK).await;
    let events = yard.finish(&run).await;
    let error = events.iter().find(|e| e.event.as_deref() == Some("tool-error")).map(data).unwrap();
    assert_eq!(error["outcome"], "expired", "{error}");
    ended(&yard.gateway, &run, "canceled").await;
    let child = children(&yard.gateway, &run).await.remove(0);
    let used = async |id: &str| {
        yard.gateway.get(&format!("/api/runs/{id}")).await["usage"]["outputTokens"].as_u64().unwrap()
    };
    let its = used(child["id"].as_str().unwrap()).await;
    assert!(its > 0);
}

#[tokio::test]
async fn g12_a_family_goes_on_over_http_after_a_kill() {
    let yard = yard_with(Gateway::start().await, json!({})).await;
    let run = yard.say(ASK).await;
    let wait = asked(&yard, &run).await;
    let Yard { gateway, space, agent_entity, ann, bob } = yard;
    let gateway = Gateway::start_with(gateway.kill(), &[]).await;
    let yard = Yard { gateway, space, agent_entity, ann, bob };
    // A result is handed in under the root.
    let result = json!({"callId": wait["toolCallId"], "result": "found it"});
    assert_eq!(yard.submit(Some("ann"), &run, result.clone()).await.0, 200);
    let events = yard.finish(&run).await;
    let output =
        events.iter().find(|e| e.event.as_deref() == Some("tool-output-available")).map(data).unwrap();
    assert!(output.to_string().contains("found it"), "{output}");
    assert_eq!(children(&yard.gateway, &run).await.len(), 1);
    assert_eq!(yard.submit(Some("ann"), &run, result).await.0, 200, "a repeat is fine");
    // What both used shows on the root.
    let used = async |id: &str| {
        yard.gateway.get(&format!("/api/runs/{id}")).await["usage"]["outputTokens"].as_u64().unwrap()
    };
    let child = children(&yard.gateway, &run).await.remove(0);
    assert!(used(&run).await > used(child["id"].as_str().unwrap()).await);
}

/// A backend that is told of waiting runs hears once of a question that a
/// child asks, under the run that people know.
#[tokio::test]
async fn g12_a_childs_question_is_announced_once_at_the_root() {
    let far = FarSide::start().await;
    let env = [("TOOLYARD_ALLOW_PRIVATE_NETWORK", far.address.as_str())];
    let yard = yard_with(Gateway::start_with(Folder::new(), &env).await, json!({})).await;
    let hook = json!({"url": format!("{}/hook", far.url()), "events": ["run.waiting", "run.completed"]});
    yard.gateway.post("/api/webhooks", hook).await;
    let run = yard.say(ASK).await;
    let wait = asked(&yard, &run).await;
    eventually("the word", || async { !far.asked().is_empty() }).await;
    let answered = yard.submit(Some("ann"), &run, json!({"callId": wait["toolCallId"], "result": 1})).await;
    assert_eq!(answered.0, 200, "{}", answered.1);
    eventually("the end", || async { far.asked().iter().any(|a| a.json()["type"] == "run.completed") }).await;
    let told: Vec<(Value, Value)> =
        far.asked().iter().map(|a| (a.json()["type"].clone(), a.json()["runId"].clone())).collect();
    assert_eq!(told, [(json!("run.waiting"), json!(run)), (json!("run.completed"), json!(run))]);
}

/// D16: a child whose very first event cannot be read is isolated, and its
/// parent hears of it.
#[tokio::test]
async fn d16_a_child_without_a_readable_beginning_ends_for_its_parent() {
    let yard = yard_with(Gateway::start().await, json!({})).await;
    let run = yard.say(ASK).await;
    asked(&yard, &run).await;
    let child = children(&yard.gateway, &run).await.remove(0)["id"].as_str().unwrap().to_owned();
    let (status, _, folder) = yard.gateway.terminate();
    assert!(status.success());
    let db = rusqlite::Connection::open(folder.path().join("data/toolyard.db")).unwrap();
    db.execute(
        "UPDATE events SET body = replace(body, '\"agent\"', '\"agnt\"') WHERE body LIKE '%RunCreated%' AND run = ?1",
        [&child],
    )
    .unwrap();
    db.execute("UPDATE runs SET owner = 'node_dead#1', status = 'running' WHERE id = ?1", [&child]).unwrap();
    drop(db);
    let gateway = Gateway::start_with(folder, &[]).await;
    eventually("the parent's end", || async {
        gateway.get(&format!("/api/runs/{run}")).await["run"]["status"] == "completed"
    })
    .await;
    let events = gateway.get(&format!("/api/runs/{run}/events")).await;
    assert!(events.to_string().contains("could not be recovered"), "{events}");
    let late = gateway.secret(Method::GET, &format!("/api/runs/{child}"));
    assert_eq!(ask(late).await.1["run"]["errorCode"], "poisoned");
}
