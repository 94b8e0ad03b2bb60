//! D15: what an older release left behind, with runs in flight, is taken over.
//! `scripts/golden-database` made the files by the gateways of their time.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, ask};
use crate::yard::{eventually, read_all};

/// The version of each schema that had a release, and a database of it.
const GOLDEN: [(i64, &[u8]); 2] =
    [(10, include_bytes!("golden/schema-10.db.gz")), (12, include_bytes!("golden/schema-12.db.gz"))];

fn unpacked(bytes: &'static [u8]) -> Folder {
    let folder = Folder::new();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let file = std::fs::File::create(data.join("toolyard.db")).unwrap();
    let mut gzip = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(file).spawn().unwrap();
    gzip.stdin.take().unwrap().write_all(bytes).unwrap();
    assert!(gzip.wait().unwrap().success());
    // What waits for somebody waits a day. The file is older.
    let db = rusqlite::Connection::open(data.join("toolyard.db")).unwrap();
    db.execute("UPDATE waits SET expires_at = expires_at * 2 WHERE kind <> 'timer'", []).unwrap();
    folder
}

/// Every event as its bytes, by run and number.
fn log(folder: &Folder) -> (i64, BTreeMap<(String, i64), String>) {
    let db = rusqlite::Connection::open(folder.path().join("data/toolyard.db")).unwrap();
    let version = db.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    let mut events = db.prepare("SELECT run, seq, body FROM events").unwrap();
    let events = events.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?))).unwrap();
    (version, events.map(Result::unwrap).collect())
}

/// The place of every row of the log in its space, by run and number. Earlier
/// releases kept the places in a table of their own.
fn places(folder: &Folder) -> BTreeMap<(String, i64), (String, i64)> {
    let db = rusqlite::Connection::open(folder.path().join("data/toolyard.db")).unwrap();
    let apart = db.table_exists(None, "space_log").unwrap();
    let sql = if apart {
        "SELECT e.run, e.seq, l.space, l.last_pos - l.last_seq + e.seq FROM events e JOIN space_log l \
         ON l.tenant = e.tenant AND l.run = e.run AND e.seq > l.last_seq - l.events AND e.seq <= l.last_seq"
    } else {
        "SELECT e.run, e.seq, s.id, e.pos FROM events e JOIN spaces s ON s.nr = e.space"
    };
    let mut rows = db.prepare(sql).unwrap();
    let rows =
        rows.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, row.get(3)?)))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[tokio::test]
async fn d15_runs_in_flight_of_older_releases_go_on_to_their_end() {
    for (version, bytes) in GOLDEN {
        let folder = unpacked(bytes);
        let (found, before) = log(&folder);
        let placed = places(&folder);
        assert_eq!((found, placed.len()), (version, before.len()));
        let gateway = Gateway::start_with(folder, &[]).await;
        let spaces = gateway.get("/api/smart-spaces?limit=100").await;
        let mut runs = BTreeMap::new();
        for space in spaces["smartSpaces"].as_array().unwrap_or_else(|| panic!("{spaces}")) {
            let id = space["id"].as_str().unwrap();
            let list = gateway.get(&format!("/api/smart-spaces/{id}/runs")).await;
            let run = list["runs"][0]["id"].as_str().unwrap().to_owned();
            runs.insert(space["name"].as_str().unwrap().to_owned(), run);
        }
        let names: Vec<&str> = runs.keys().map(String::as_str).collect();
        assert_eq!(names, ["approval", "client", "ended", "speaking", "timer"]);
        answer(&gateway, &runs).await;
        for (name, run) in &runs {
            let stream = gateway.secret(Method::GET, &format!("/api/runs/{run}/stream"));
            let events = read_all(stream.send().await.unwrap()).await;
            assert_eq!(events.last().unwrap().event.as_deref(), Some("run.completed"), "{name}");
            let list = gateway.get(&format!("/api/runs/{run}/events?limit=200")).await;
            let seqs: Vec<u64> = list["events"]
                .as_array()
                .unwrap()
                .iter()
                .map(|event| event["seq"].as_u64().unwrap())
                .collect();
            assert_eq!(seqs, (1..=u64::try_from(seqs.len()).unwrap()).collect::<Vec<_>>(), "{name}");
        }
        // What was written stays as it was written.
        let (_, _, folder) = gateway.terminate();
        let (now, after) = log(&folder);
        assert!(now > version && after.len() > before.len());
        let placed_after = places(&folder);
        for (place, body) in &before {
            assert_eq!(after.get(place), Some(body), "{place:?}");
            assert_eq!(placed_after.get(place), placed.get(place), "{place:?}");
        }
    }
}

/// The client's result and the person's yes.
async fn answer(gateway: &Gateway, runs: &BTreeMap<String, String>) {
    let wait_of = async |run: &str| gateway.get(&format!("/api/waits?runId={run}")).await["waits"][0].clone();
    let wait = wait_of(&runs["client"]).await;
    let body = json!({"callId": wait["toolCallId"], "result": {"seen": true}});
    gateway.post(&format!("/api/runs/{}/tool-results", runs["client"]), body).await;
    // First a yes; then it is a client's call like any other.
    let run = &runs["approval"];
    let wait = wait_of(run).await;
    assert_eq!(wait["kind"], "approval", "{wait}");
    let path = format!("/api/waits/{}/answer", wait["id"].as_str().unwrap());
    gateway.post(&path, json!({"decision": "allow"})).await;
    eventually("the call of the approved tool", async || wait_of(run).await["kind"] == "client").await;
    let wait: Value = wait_of(run).await;
    let body = json!({"callId": wait["toolCallId"], "result": {"done": true}});
    let (status, said) =
        ask(gateway.secret(Method::POST, &format!("/api/runs/{run}/tool-results")).json(&body)).await;
    assert_eq!(status, 200, "{said}");
}
