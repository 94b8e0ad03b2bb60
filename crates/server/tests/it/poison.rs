//! D16: a run that cannot be replayed is isolated; the others go on.

use std::time::Instant;

use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, PATIENCE, toolyard};
use crate::yard::{Yard, agent, eventually, join, new_space};

/// Changes the database of a stopped gateway behind its back.
fn tamper(folder: &Folder, statement: &str) {
    let db = rusqlite::Connection::open(folder.path().join("data/toolyard.db")).unwrap();
    assert!(db.execute(statement, []).unwrap() > 0);
}

/// A run that waits on disk, and the folder of its stopped gateway.
async fn stopped_with_a_waiting_run() -> (String, Folder) {
    let yard = Yard::new().await;
    let run = yard.say("call getUserApproval {}").await;
    yard.wait_of(&run).await;
    let (status, _, folder) = yard.gateway.terminate();
    assert!(status.success());
    (run, folder)
}

#[tokio::test]
async fn d16_a_run_whose_log_is_broken_is_isolated_after_five_tries_and_doctor_names_it() {
    let (run, folder) = stopped_with_a_waiting_run().await;
    tamper(
        &folder,
        "UPDATE events SET body = replace(body, '\"step\"', '\"stop\"') WHERE body LIKE '%ModelReplied%'",
    );
    tamper(&folder, "UPDATE runs SET owner = 'node_dead#1', status = 'running'");
    let gateway = Gateway::start_with(folder, &[]).await;
    let started = Instant::now();
    let ended = loop {
        let row = gateway.get(&format!("/api/runs/{run}")).await["run"].clone();
        if row["status"] == "failed" {
            break row;
        }
        assert!(started.elapsed() < PATIENCE, "{row}");
        tokio::task::yield_now().await;
    };
    assert_eq!(ended["errorCode"], "poisoned");
    assert_eq!(gateway.get("/api/waits").await["waits"], json!([]));
    let tries = gateway.log().matches("a run cannot be advanced; it will be tried again").count();
    assert_eq!(tries, 5, "{}", gateway.log());
    // Others are not affected.
    gateway.post("/api/agents", json!({"config": agent("other")})).await;
    let bot = gateway.post("/api/entities/agent", json!({"agentId": "other"})).await;
    let space = new_space(&gateway).await;
    join(&gateway, &space, bot["entity"]["id"].as_str().unwrap()).await;
    let made = json!({"smartSpaceId": space, "agentId": "other"});
    let well = gateway.post("/api/runs", made).await["runId"].as_str().unwrap().to_owned();
    eventually("the other run ends", async || {
        gateway.get(&format!("/api/runs/{well}")).await["run"]["status"] == "completed"
    })
    .await;
    // The doctor names it, while the gateway runs and when it does not.
    let found = doctor(&gateway.folder, &run);
    let (status, _, folder) = gateway.terminate();
    assert!(status.success());
    assert_eq!(doctor(&folder, &run)["isolated runs"], found["isolated runs"]);
    assert_eq!((found["gateway"].is_string(), &found["unreadable runs"]), (true, &json!("none")));
}

/// What the doctor says of each thing that it looks at, if one of it is a run.
fn doctor(folder: &Folder, run: &str) -> Value {
    let output = toolyard(folder.path()).args(["doctor", "--json"]).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &said["ok"]), (Some(1), &json!(false)), "{said}");
    assert!(said.to_string().contains(run), "{said}");
    let checks = said["checks"].as_array().unwrap().iter();
    checks.map(|check| (check["check"].as_str().unwrap().to_owned(), check["says"].clone())).collect()
}

#[tokio::test]
async fn d15_a_log_of_a_newer_release_is_left_alone() {
    let (run, folder) = stopped_with_a_waiting_run().await;
    tamper(
        &folder,
        "UPDATE events SET body = replace(body, 'ModelReplied', 'FromTheFuture') WHERE body LIKE '%ModelReplied%'",
    );
    tamper(&folder, "UPDATE runs SET owner = 'node_dead#1', status = 'running'");
    let gateway = Gateway::start_with(folder, &[]).await;
    let started = Instant::now();
    while !gateway.log().contains("a newer release wrote this run's log") {
        assert!(started.elapsed() < PATIENCE, "{}", gateway.log());
        tokio::task::yield_now().await;
    }
    let row = gateway.get(&format!("/api/runs/{run}")).await["run"].clone();
    assert_eq!((&row["status"], &row["lastSeq"]), (&"running".into(), &5.into()));
    // The doctor names it, and tells it from one that is broken.
    for found in [doctor(&gateway.folder, &run), doctor(&gateway.terminate().2, &run)] {
        assert_eq!(found["isolated runs"], "none");
        assert!(found["unreadable runs"].as_str().unwrap().starts_with(&run), "{found}");
    }
}
