//! D16: a run that cannot be replayed is isolated; the others go on.

use std::time::Instant;

use crate::gateway::{Folder, Gateway, PATIENCE, toolyard};
use crate::yard::Yard;

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
    assert_eq!(gateway.get("/api/waits").await["waits"], serde_json::json!([]));
    // Others are not affected.
    let (status, _, folder) = gateway.terminate();
    assert!(status.success());
    let doctor = toolyard(folder.path()).arg("doctor").output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(!doctor.status.success() && said.contains(&run), "{said}");
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
}
