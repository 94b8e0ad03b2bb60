//! The programs under `examples`, run against the gateway.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};
use toolyard_client::{EventKind, NewMessage, SpaceId};

use crate::binary;
use crate::gateway::{Yard, command, eventually};

#[tokio::test]
async fn h41_the_robot_answers_two_tools_and_moves_once() {
    let yard = Yard::new(json!([])).await;
    let sample = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/robot.json");
    let config: Value = serde_json::from_str(&std::fs::read_to_string(sample).unwrap()).unwrap();
    yard.gateway.post("/api/agents", &json!({ "config": config })).await;
    let folder = tempfile::tempdir().unwrap();
    let mut robot = command(&binary::example("robot"), folder.path());
    robot.env("TOOLYARD_URL", &yard.gateway.url).stdout(Stdio::piped());
    let mut robot = robot.spawn().unwrap();
    let mut said = BufReader::new(robot.stdout.take().unwrap()).lines();
    let space = said.next().unwrap().unwrap();
    let space = SpaceId::parse(space.strip_prefix("serving ").unwrap()).unwrap();
    let driver = yard.client.entities().by_external_id("example:driver").await.unwrap().unwrap();
    let mut message =
        NewMessage::text("call readSensors {}\ncall executeRobotAction {\"action\": \"move\", \"value\": 2}");
    message.entity_id = Some(driver.id.clone());
    let posted = yard.client.spaces().post(&space, &message).await.unwrap();
    let events = yard.finish(posted.runs[0].run_id.as_ref().unwrap()).await;
    let outputs: Vec<Value> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Returned(returned) => Some(returned.output.clone().unwrap_or_default()),
            _ => None,
        })
        .collect();
    assert!(outputs.iter().any(|output| output["battery"] == 0.8), "{outputs:?}");
    assert!(outputs.iter().any(|output| output["done"] == "move" && output["metres"] == 2.0), "{outputs:?}");
    assert!(
        events.iter().any(|event| matches!(&event.kind, EventKind::Progressed(p) if p.fraction == Some(0.5)))
    );
    // It is told to stop, and says what it did.
    let stopped =
        std::process::Command::new("kill").args(["-INT", &robot.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(said.next().unwrap().unwrap(), "answered 2 calls");
    assert!(robot.wait().unwrap().success());
    eventually("the journal is there", || async {
        folder.path().join("robot.journal").exists().then_some(())
    })
    .await;
}

#[tokio::test]
async fn h45_h47_the_notebook_lends_its_files_and_its_database() {
    let yard = Yard::new(json!([])).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("notes")).unwrap();
    std::fs::write(folder.path().join("notes/today.txt"), "buy milk").unwrap();
    let db = rusqlite::Connection::open(folder.path().join("notes.db")).unwrap();
    db.execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('water the plants');")
        .unwrap();
    let question = "call read_file {\"path\": \"today.txt\"}\ncall sql_query {\"query\": \"SELECT text FROM notes\"}\ncall get_time {}";
    let mut notebook = command(&binary::example("notebook"), folder.path());
    notebook
        .env("TOOLYARD_URL", &yard.gateway.url)
        .env("AGENT", "helper")
        .args(["notes", "notes.db", question]);
    let done = tokio::task::spawn_blocking(move || notebook.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said} {}", String::from_utf8_lossy(&done.stderr));
    for told in ["buy milk", "water the plants", "get_time", "completed"] {
        assert!(said.contains(told), "{told}: {said}");
    }
}
