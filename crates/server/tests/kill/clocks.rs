//! D4: no trust in a node's clock. On PostgreSQL the database's time decides.
//! On SQLite the machine's clock is the database's, so it may be wrong, but it
//! never goes back.
//!
//! A build with failpoints reads its skew from a file. PostgreSQL's time does not
//! come that way, so its nodes get a wrong machine clock instead: a small library
//! in front of libc, of which every part of the process hears.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::database::Database;
use crate::gateway::{Gateway, forget_binary};
use crate::world::World;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// Far less than any of the clocks is wrong.
const SOON: Duration = Duration::from_secs(20);

/// Sets the clock of the gateways of a folder: wrong by so much.
fn set_clock(database: &Database, ms: i64) {
    let file = database.folder.path().join("skew");
    let draft = file.with_extension("draft");
    std::fs::write(&draft, ms.to_string()).unwrap();
    std::fs::rename(draft, file).unwrap();
}

fn node(database: &Database, active_runs: usize) -> Gateway<'_> {
    let skew = database.folder.path().join("skew").to_str().unwrap().to_owned();
    let env = [("TOOLYARD_CLOCK_SKEW", skew), ("TOOLYARD_LIMITS_ACTIVE_RUNS", active_runs.to_string())];
    Gateway::start_with(database, env.map(|(name, value)| (name.to_owned(), value)).into())
}

/// What is put in front of libc: the wall clock is wrong by the milliseconds in
/// the file, and time that only passes is left alone.
const WRONG_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(id, at);
    const char *file = getenv("TEST_MACHINE_SKEW");
    if (done != 0 || id != CLOCK_REALTIME || !file) return done;
    FILE *in = fopen(file, "r");
    if (!in) return done;
    long ms = 0;
    if (fscanf(in, "%ld", &ms) == 1) at->tv_sec += ms / 1000;
    fclose(in);
    return done;
}
"#;

/// A node whose machine has a wrong clock, as `set_clock` says.
fn wrong_machine(database: &Database) -> Gateway<'_> {
    let folder = database.folder.path();
    let (code, library) = (folder.join("clock.c"), folder.join("clock.so"));
    std::fs::write(&code, WRONG_CLOCK).unwrap();
    let mut cc = std::process::Command::new("cc");
    let built = cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&code).arg("-ldl").status();
    assert!(built.unwrap().success(), "cc builds a library of ten lines");
    let path = |file: std::path::PathBuf| file.to_str().unwrap().to_owned();
    let env = [("LD_PRELOAD", path(library)), ("TEST_MACHINE_SKEW", path(folder.join("skew")))];
    Gateway::start_with(database, env.map(|(name, value)| (name.to_owned(), value)).into())
}

/// A user's token that runs out in five minutes, by the right time.
fn token() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({"sub": "ann", "exp": now + 300});
    let key = jsonwebtoken::EncodingKey::from_secret(crate::gateway::JWT_SECRET.as_bytes());
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap()
}

async fn say(gateway: &mut Gateway<'_>, world: &World, space: usize, text: &str) -> String {
    let path = format!("/api/smart-spaces/{}/messages", world.spaces[space]);
    let posted = gateway.post(&path, json!({"entityId": world.ada, "content": text})).await;
    posted["runs"][0]["runId"].as_str().unwrap().to_owned()
}

async fn status(gateway: &mut Gateway<'_>, run: &str) -> Value {
    gateway.get(&format!("/api/runs/{run}")).await["run"]["status"].clone()
}

/// Waits until a run has a status, and not for long.
async fn until(gateway: &mut Gateway<'_>, run: &str, wanted: &str) {
    let started = Instant::now();
    loop {
        let status = status(gateway, run).await;
        if status == wanted {
            return;
        }
        assert!(started.elapsed() < SOON, "{run} is {status}, not {wanted}\n{}", gateway.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a run has an open wait; answers it.
async fn wait_of(gateway: &mut Gateway<'_>, run: &str) -> Value {
    let started = Instant::now();
    loop {
        let waits = gateway.get(&format!("/api/waits?runId={run}")).await;
        if let Some(wait) = waits["waits"].get(0) {
            return wait.clone();
        }
        assert!(started.elapsed() < SOON, "{run} waits for nothing\n{}", gateway.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn count(gateway: &mut Gateway<'_>, run: &str, kind: &str) -> usize {
    let events = gateway.get(&format!("/api/runs/{run}/events?limit=200")).await;
    events["events"].as_array().unwrap().iter().filter(|e| e["type"] == kind).count()
}

#[tokio::test]
async fn d4_on_sqlite_a_clock_set_back_delays_no_run_and_no_wait() {
    let world = World::with_spaces(Database::sqlite(), 4).await;
    let mut gateway = node(&world.database, 1);
    let resting = say(&mut gateway, &world, 0, "call rest {\"seconds\":2}").await;
    wait_of(&mut gateway, &resting).await;
    let slow = say(&mut gateway, &world, 1, "slow 30").await;
    let before = say(&mut gateway, &world, 2, "say before").await;
    set_clock(&world.database, -HOUR_MS);
    let after = say(&mut gateway, &world, 3, "say after").await;
    assert_eq!(status(&mut gateway, &after).await, "queued", "one slot, and it is taken");
    for run in [&slow, &before, &after, &resting] {
        until(&mut gateway, run, "completed").await;
    }
    forget_binary();
}

#[tokio::test]
async fn d4_on_sqlite_a_clock_set_back_over_a_restart_delays_no_run_and_no_wait() {
    let world = World::with_spaces(Database::sqlite(), 4).await;
    set_clock(&world.database, HOUR_MS);
    let mut gateway = node(&world.database, 1);
    let resting = say(&mut gateway, &world, 0, "call rest {\"seconds\":5}").await;
    wait_of(&mut gateway, &resting).await;
    let claimed = say(&mut gateway, &world, 1, "call read_screen {}").await;
    let wait = wait_of(&mut gateway, &claimed).await["id"].as_str().unwrap().to_owned();
    let slow = say(&mut gateway, &world, 2, "slow 30").await;
    let queued = say(&mut gateway, &world, 3, "say queued").await;
    assert_eq!(status(&mut gateway, &queued).await, "queued", "one slot, and it is taken");
    // Dies; and its machine's clock is mended.
    drop(gateway);
    set_clock(&world.database, 0);
    let mut gateway = node(&world.database, 1);
    for run in [&slow, &queued, &resting] {
        until(&mut gateway, run, "completed").await;
    }
    assert_eq!(count(&mut gateway, &slow, "step.restarted").await, 1);
    assert!(gateway.log().contains("the machine's clock is behind"), "{}", gateway.log());
    // Claims are made by the same time.
    let claim = |client: &str| (format!("/api/waits/{wait}/claim"), json!({"clientId": client}));
    for (client, taken) in [("tab", 200), ("robot", 409)] {
        let (path, body) = claim(client);
        assert_eq!(gateway.call("POST", &path, Some(&body), None).await.0, taken);
    }
    forget_binary();
}

/// A clock that is set ahead cannot be told from a machine that slept.
#[tokio::test]
async fn d4_on_sqlite_a_clock_set_ahead_ends_only_what_that_makes_due() {
    let world = World::with_spaces(Database::sqlite(), 2).await;
    let mut gateway = node(&world.database, 4);
    let short = say(&mut gateway, &world, 0, "call rest {\"seconds\":1800}").await;
    let long = say(&mut gateway, &world, 1, "call rest {\"seconds\":7200}").await;
    wait_of(&mut gateway, &short).await;
    wait_of(&mut gateway, &long).await;
    set_clock(&world.database, HOUR_MS);
    until(&mut gateway, &short, "completed").await;
    wait_of(&mut gateway, &long).await;
    assert_eq!(count(&mut gateway, &long, "tool-output-available").await, 0);
    forget_binary();
}

#[tokio::test]
async fn d4_on_postgres_two_nodes_with_clocks_ten_minutes_wrong_agree() {
    let world = World::with_spaces(Database::postgres(), 4).await;
    let (slow_clock, fast_clock) = (world.database.copy(), world.database.copy());
    set_clock(&slow_clock, -10 * MINUTE_MS);
    set_clock(&fast_clock, 10 * MINUTE_MS);
    let (mut late, mut early) = (wrong_machine(&slow_clock), wrong_machine(&fast_clock));
    // The clocks are wrong indeed: a token is checked by the node's own.
    let token = token();
    assert_eq!(late.status_as_user("/api/smart-spaces", &token).await, 200);
    assert_eq!(early.status_as_user("/api/smart-spaces", &token).await, 401);
    // Leases: while both live nobody takes a run from the other.
    let by_late = say(&mut late, &world, 0, "slow 120").await;
    let by_early = say(&mut early, &world, 1, "slow 120").await;
    // Expiry: a wait ends in its moment, on whichever node.
    let resting = say(&mut late, &world, 2, "call rest {\"seconds\":3}").await;
    wait_of(&mut early, &resting).await;
    // Claims: one client's is the other's refusal, on either node.
    let waiting = say(&mut early, &world, 3, "call read_screen {}").await;
    let wait = wait_of(&mut late, &waiting).await;
    let claim = format!("/api/waits/{}/claim", wait["id"].as_str().unwrap());
    let tab = json!({"clientId": "tab"});
    let robot = json!({"clientId": "robot"});
    assert_eq!(late.call("POST", &claim, Some(&tab), None).await.0, 200);
    assert_eq!(early.call("POST", &claim, Some(&robot), None).await.0, 409);
    // In the middle of their leases both clocks step, one of them back.
    set_clock(&slow_clock, 10 * MINUTE_MS);
    set_clock(&fast_clock, -10 * MINUTE_MS);
    until(&mut early, &resting, "completed").await;
    for run in [&by_late, &by_early] {
        until(&mut late, run, "completed").await;
        let restarted = count(&mut early, run, "step.restarted").await;
        assert_eq!(restarted, 0, "{run}\n{}\n{}", late.log(), early.log());
    }
    let events = early.get(&format!("/api/runs/{resting}/events?limit=200")).await;
    let at = |kind: &str| {
        let events = events["events"].as_array().unwrap();
        events.iter().find(|e| e["type"] == kind).unwrap()["ts"].clone()
    };
    let rested = millis(&at("tool-output-available")) - millis(&at("tool-input-available"));
    assert!((2_900..13_000).contains(&rested), "rested {rested} ms");
    // A dead node's runs are taken over, by the database's time as well.
    let orphan = say(&mut late, &world, 0, "slow 120").await;
    drop(late);
    until(&mut early, &orphan, "completed").await;
    assert_eq!(count(&mut early, &orphan, "step.restarted").await, 1);
    forget_binary();
}

fn millis(ts: &Value) -> i64 {
    serde_json::from_value::<toolyard_protocol::Timestamp>(ts.clone()).unwrap().millis()
}
