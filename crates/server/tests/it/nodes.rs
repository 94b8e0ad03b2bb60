//! Two gateways on one PostgreSQL: one truth, one owner of each run.

use reqwest::Method;
use serde_json::{Value, json};

use crate::database::Database;
use crate::gateway::{Folder, Gateway, ask, fine, signal};
use crate::yard::{Yard, join, new_space};

async fn node(database: &Database) -> Gateway {
    let url = database.url.as_deref().unwrap();
    Gateway::start_with(Folder::new(), &[("TOOLYARD_DATABASE_URL", url)]).await
}

async fn kinds(gateway: &Gateway, run: &str) -> Vec<String> {
    let list = gateway.get(&format!("/api/runs/{run}/events?limit=200")).await;
    let events = list["events"].as_array().unwrap();
    let seqs: Vec<_> = events.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=u64::try_from(seqs.len()).unwrap()).collect::<Vec<_>>());
    events.iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect()
}

/// Follows a run's stream on one node to its end.
async fn to_the_end(gateway: &Gateway, run: &str) -> String {
    let stream = gateway.secret(Method::GET, &format!("/api/runs/{run}/stream")).send().await.unwrap();
    stream.text().await.unwrap()
}

fn count(kinds: &[String], kind: &str) -> usize {
    kinds.iter().filter(|k| *k == kind).count()
}

#[tokio::test]
async fn a_result_on_one_node_finishes_the_run_that_another_node_streams() {
    let database = Database::postgres();
    let yard = Yard::on(node(&database).await).await;
    let other = node(&database).await;
    let run = yard.say("call getUserApproval {\"q\":\"ok?\"}").await;
    let wait = yard.wait_of(&run).await;
    let body = json!({"callId": wait["toolCallId"], "result": {"approved": true}});
    let path = format!("/api/runs/{run}/tool-results");
    let (stream, taken) = tokio::join!(to_the_end(&yard.gateway, &run), other.post(&path, body.clone()));
    assert_eq!(taken["results"][0]["status"], "accepted");
    assert!(stream.contains("event: run.completed"), "{stream}");
    // The first node knows the result too: a repeat is a repeat.
    let again = yard.gateway.post(&path, body).await;
    assert_eq!(again["results"][0]["status"], "repeated");
    assert_eq!(kinds(&yard.gateway, &run).await, kinds(&other, &run).await);
}

#[tokio::test]
async fn a_node_takes_over_the_run_of_a_killed_one() {
    let database = Database::postgres();
    let yard = Yard::on(node(&database).await).await;
    let other = node(&database).await;
    let run = yard.say("slow 40").await;
    let _folder = yard.gateway.kill();
    let stream = to_the_end(&other, &run).await;
    assert!(stream.contains("event: run.completed"), "{stream}");
    let kinds = kinds(&other, &run).await;
    assert_eq!((count(&kinds, "step.restarted"), count(&kinds, "run.completed")), (1, 1), "{kinds:?}");
}

#[tokio::test]
async fn d3_a_node_that_wakes_up_too_late_is_fenced() {
    let database = Database::postgres();
    let yard = Yard::on(node(&database).await).await;
    let other = node(&database).await;
    let run = yard.say("slow 40").await;
    signal(yard.gateway.pid(), "STOP");
    let stream = to_the_end(&other, &run).await;
    assert!(stream.contains("event: run.completed"), "{stream}");
    let before = kinds(&other, &run).await;
    signal(yard.gateway.pid(), "CONT");
    // The late node goes on with its stale step, is refused, and stays useful.
    let next = yard.say("say awake").await;
    assert!(to_the_end(&yard.gateway, &next).await.contains("event: run.completed"));
    let status: Value = fine(yard.gateway.secret(Method::GET, &format!("/api/runs/{run}"))).await;
    assert_eq!(status["run"]["status"], "completed");
    assert_eq!(kinds(&other, &run).await, before);
    assert_eq!(count(&before, "message.assistant"), 1, "{before:?}");
}

#[tokio::test]
async fn first_requests_of_a_user_on_two_nodes_make_one_entity() {
    let database = Database::postgres();
    let nodes = [node(&database).await, node(&database).await];
    for user in 0..10 {
        let user = format!("user{user}");
        let asked = (0..8).map(|n: usize| fine(nodes[n % 2].user(&user, Method::GET, "/api/smart-spaces")));
        futures::future::join_all(asked).await;
    }
    let humans = nodes[0].get("/api/entities?type=human").await;
    assert_eq!(humans["entities"].as_array().unwrap().len(), 10, "{humans}");
}

#[tokio::test]
async fn a_space_is_deleted_or_gets_the_run_of_a_message_never_both() {
    let database = Database::postgres();
    let yard = Yard::on(node(&database).await).await;
    let other = node(&database).await;
    let mut kept = 0;
    for _ in 0..20 {
        let space = new_space(&other).await;
        join(&other, &space, &yard.agent_entity).await;
        join(&other, &space, &yard.ann).await;
        let path = format!("/api/smart-spaces/{space}");
        let said = json!({"content": "call getUserApproval {\"q\":\"x\"}", "entityId": yard.ann});
        let post = yard.gateway.secret(Method::POST, &format!("{path}/messages")).json(&said);
        let ((posted, said), (deleted, _)) =
            tokio::join!(ask(post), ask(other.secret(Method::DELETE, &path)));
        let (posted, deleted) = (posted.as_u16(), deleted.as_u16());
        assert!(matches!((posted, deleted), (201, 409) | (404, 204)), "{posted} {deleted}: {said}");
        kept += usize::from(posted == 201);
    }
    let runs = other.get("/api/runs").await;
    assert_eq!(runs["runs"].as_array().unwrap().len(), kept, "no run is left without its space");
}
