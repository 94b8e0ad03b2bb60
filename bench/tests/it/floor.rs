//! The bare server does the whole errand and keeps its promises.

use serde_json::{Value, json};
use toolyard_bench::drive::DriveError;
use toolyard_bench::drive::api::{Api, Direct, Floor};
use toolyard_bench::drive::errand::{Errand, Tool};

use crate::world::{floor, peer, post, upstream};

const TOOLS: [Tool; 3] = [Tool::None, Tool::Server, Tool::Client];

#[tokio::test]
async fn every_errand_ends_with_every_piece_of_its_text() {
    let model = upstream().await;
    let folder = tempfile::tempdir().unwrap();
    let memory = Api::Floor(Floor::new(floor(model, None).await));
    let disk = Api::Floor(Floor::new(floor(model, Some(folder.path())).await));
    let direct = Api::Direct(Direct::new(model));
    for api in [memory, disk, direct] {
        for tool in TOOLS {
            let watch = api.run(&api.seat().await.unwrap(), &Errand::tool(tool, 20)).await.unwrap();
            assert_eq!(watch.delays.len(), 20, "{api:?} {tool:?}");
            assert!(watch.first_text.unwrap() <= watch.ended.unwrap());
            // Without a server the client does the tool loop, so each tool is its own.
            let pauses = tool == Tool::Client || (tool == Tool::Server && matches!(api, Api::Direct(_)));
            assert_eq!(watch.paused.is_some(), pauses, "{api:?} {tool:?}");
        }
    }
}

#[tokio::test]
async fn the_client_is_told_of_each_piece_by_an_event_of_its_own() {
    let api = Api::Floor(Floor::new(floor(upstream().await, None).await));
    let watch = api.run(&api.seat().await.unwrap(), &Errand::text(100)).await.unwrap();
    assert_eq!(watch.live, 100);
}

#[tokio::test]
async fn a_thread_remembers_its_messages() {
    let api = Api::Floor(Floor::new(floor(upstream().await, None).await));
    let seat = api.seat().await.unwrap();
    api.add_history(&seat, &["before".to_owned()]).await.unwrap();
    // The mock obeys the last order of the history: both turns must be whole.
    for chunks in [3, 5] {
        let watch = api.run(&seat, &Errand::text(chunks)).await.unwrap();
        assert_eq!(watch.delays.len(), chunks as usize);
    }
}

/// The call that an answer of the bare server ends with.
fn call(events: &str) -> String {
    let data = events.split("event: call\ndata: ").nth(1).unwrap().lines().next().unwrap();
    let call: Value = serde_json::from_str(data).unwrap();
    call["callId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_paused_run_survives_the_process() {
    let model = upstream().await;
    let folder = tempfile::tempdir().unwrap();
    let first = peer(floor(model, Some(folder.path())).await);
    let prompt = json!({"text": Errand::tool(Tool::Client, 4).prompt()}).to_string();
    let (status, events) = post(&first, "/threads/t/messages", &prompt).await;
    assert_eq!(status, 200);
    // Another process would find the same file.
    let second = peer(floor(model, Some(folder.path())).await);
    let result = json!({"callId": call(&events), "result": {"screen": "a page"}}).to_string();
    let (status, events) = post(&second, "/runs/t/results", &result).await;
    assert_eq!((status, events.matches("event: delta").count()), (200, 4));
    assert!(events.ends_with("event: done\ndata: {}\n\n"), "{events}");
}

#[tokio::test]
async fn a_second_result_is_refused() {
    let server = peer(floor(upstream().await, None).await);
    let prompt = json!({"text": Errand::tool(Tool::Client, 1).prompt()}).to_string();
    let (_, events) = post(&server, "/threads/t/messages", &prompt).await;
    let result = json!({"callId": call(&events), "result": 1}).to_string();
    assert_eq!(post(&server, "/runs/t/results", &result).await.0, 200);
    assert_eq!(post(&server, "/runs/t/results", &result).await.0, 409);
    assert_eq!(post(&server, "/runs/unknown/results", &result).await.0, 409);
}

#[tokio::test]
async fn a_model_that_is_away_fails_the_run_and_the_measurement() {
    // Nobody listens on the discard port.
    let api = Api::Floor(Floor::new(floor("127.0.0.1:9".parse().unwrap(), None).await));
    let failed = api.run(&api.seat().await.unwrap(), &Errand::text(1)).await;
    assert!(matches!(failed, Err(DriveError::Failed(_))), "{failed:?}");
}
