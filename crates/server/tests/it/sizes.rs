//! Rows whose number is large: many results for many calls (D5), many runs that
//! change hands again and again (D3), and a run that a stop hands over (D17).
//!
//! `make test` plays with a few, `xtask faults --scenario d3` with the numbers of
//! the rows (`TOOLYARD_CROWD=full`).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::crowd::{crowd, is_full, metric};
use crate::database::{Database, psql};
use crate::gateway::{Folder, Gateway, PATIENCE, SECRET, signal};
use crate::yard::{Yard, eventually, join, new_space};

/// Calls of one run.
const CALLS: usize = 10;
const POSTS: usize = 100;
const SOCKETS: usize = 10;

async fn node(database: &Database, env: &[(&str, &str)]) -> Gateway {
    let mut all = env.to_vec();
    all.extend(database.url.as_deref().map(|url| ("TOOLYARD_DATABASE_URL", url)));
    Gateway::start_with(Folder::new(), &all).await
}

async fn events(gateway: &Gateway, run: &str) -> Vec<Value> {
    let list = gateway.get(&format!("/api/runs/{run}/events?limit=200")).await;
    let events = list["events"].as_array().unwrap().clone();
    let seqs: Vec<_> = events.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=u64::try_from(seqs.len()).unwrap()).collect::<Vec<_>>(), "{run}");
    events
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

/// Posts of one socket, one after the other: status and body of each.
async fn posts(url: String, bodies: Vec<Value>) -> Vec<(u16, Value)> {
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(1).timeout(PATIENCE);
    let client = client.build().unwrap();
    let mut answers = Vec::new();
    for body in bodies {
        let answer = client.post(&url).header("x-secret-key", SECRET).json(&body).send().await.unwrap();
        answers.push((answer.status().as_u16(), answer.json().await.unwrap()));
    }
    answers
}

/// Of a hundred results for a call, which come over ten sockets, one is taken;
/// its equals are told the same, the others are refused.
async fn one_of_a_hundred(yard: &Yard, run: &str, call: &Value) {
    let url = format!("{}/api/runs/{run}/tool-results", yard.gateway.url);
    let each = POSTS / SOCKETS;
    let body =
        |n: usize| json!({"callId": call, "result": if n.is_multiple_of(10) { "other" } else { "same" }});
    let sockets = (0..SOCKETS).map(|socket| {
        let bodies = (0..each).map(|n| body(n * SOCKETS + socket + n)).collect();
        posts(url.clone(), bodies)
    });
    let answers: Vec<(u16, Value)> = join_all(sockets).await.concat();
    let with = |status: u16| answers.iter().filter(move |(code, _)| *code == status);
    let told = |word: &str| with(200).filter(|(_, body)| body["results"][0]["status"] == word).count();
    assert_eq!((told("accepted"), told("accepted") + told("repeated")), (1, with(200).count()));
    assert_eq!(with(200).count() + with(409).count(), POSTS, "{answers:?}");
    let mut bodies: Vec<String> = with(200).map(|(_, body)| body.to_string()).collect();
    bodies.sort();
    bodies.dedup();
    assert!(bodies.len() <= 2, "accepted once, and then always the same: {bodies:?}");
}

async fn each_of_many_calls(gateway: Gateway, calls: usize) {
    let yard = Yard::on(gateway).await;
    let (mut left, began) = (calls, Instant::now());
    while left > 0 {
        let lines = vec!["call getUserApproval {\"q\":\"x\"}"; left.min(CALLS)];
        left -= lines.len();
        let run = yard.say(&lines.join("\n")).await;
        yard.wait_of(&run).await;
        let waits = yard.gateway.get(&format!("/api/waits?runId={run}")).await;
        let waits = waits["waits"].as_array().unwrap().clone();
        assert_eq!(waits.len(), lines.len());
        for wait in &waits {
            one_of_a_hundred(&yard, &run, &wait["toolCallId"]).await;
        }
        yard.finish(&run).await;
        let events = events(&yard.gateway, &run).await;
        let mut ended: BTreeMap<&str, usize> = BTreeMap::new();
        for event in events.iter().filter(|event| event["type"] == "tool-output-available") {
            *ended.entry(event["toolCallId"].as_str().unwrap()).or_default() += 1;
        }
        assert_eq!(ended.len(), waits.len(), "{ended:?}");
        assert!(ended.values().all(|times| *times == 1), "{ended:?}");
    }
    println!("{calls} calls, {POSTS} results for each over {SOCKETS} sockets: {:.1?}", began.elapsed());
}

#[tokio::test]
async fn d5_each_of_many_calls_takes_one_of_a_hundred_results_on_sqlite() {
    each_of_many_calls(Gateway::start().await, crowd(10, 1_000)).await;
}

#[tokio::test]
async fn d5_each_of_many_calls_takes_one_of_a_hundred_results_on_postgres() {
    let database = Database::postgres();
    each_of_many_calls(node(&database, &[]).await, crowd(5, 1_000)).await;
}

/// How often the leaseholder is stopped: `TOOLYARD_ROUNDS`, or a few.
fn rounds() -> usize {
    let told = std::env::var("TOOLYARD_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    told.unwrap_or(crowd(1, 10))
}

#[tokio::test]
async fn d3_runs_that_change_hands_again_and_again_are_written_by_one() {
    let (runs, rounds) = (crowd(10, 200), rounds());
    let database = Database::postgres();
    let yard = Yard::on(node(&database, &[]).await).await;
    let other = node(&database, &[]).await;
    let mut spaces = Vec::new();
    for _ in 0..runs {
        let space = new_space(&other).await;
        join(&other, &space, &yard.agent_entity).await;
        join(&other, &space, &yard.ann).await;
        spaces.push(space);
    }
    let (mut taken, mut fenced) = (0, 0.0);
    for round in 0..rounds {
        let nodes = [&yard.gateway, &other];
        let (holder, heir) = (nodes[round % 2], nodes[(round + 1) % 2]);
        let before = metric(holder, "toolyard_runs_lost_total").await;
        let said = json!({"content": "slow 100", "entityId": yard.ann});
        let posted = spaces.iter().map(|space| {
            let path = format!("/api/smart-spaces/{space}/messages");
            let said = said.clone();
            async move { holder.post(&path, said).await }
        });
        let posted = join_all(posted).await;
        let names: Vec<&str> = posted.iter().map(|p| p["runs"][0]["runId"].as_str().unwrap()).collect();
        // Stopped for longer than its lease: until the other one has them all.
        signal(holder.pid(), "STOP");
        let list = names.iter().map(|run| format!("'{run}'")).collect::<Vec<_>>().join(",");
        let owners = format!("SELECT count(*) FROM runs WHERE id IN ({list}) AND (epoch > 1 OR live = 0)");
        let url = database.url.as_deref().unwrap();
        let all = runs.to_string();
        let began = Instant::now();
        while psql(url, &owners) != [all.as_str()] {
            assert!(began.elapsed() < 4 * PATIENCE, "round {round}: they stay where they are");
        }
        signal(holder.pid(), "CONT");
        let mut restarted = 0;
        for run in &names {
            eventually("the end of a run", async || {
                heir.get(&format!("/api/runs/{run}")).await["run"]["status"] == "completed"
            })
            .await;
            let events = events(heir, run).await;
            let once = (count(&events, "message.assistant"), count(&events, "run.completed"));
            assert_eq!(once, (1, 1), "round {round}: {events:?}");
            restarted += count(&events, "step.restarted");
        }
        // Whoever woke up too late noticed it at each of them.
        let lost = f64::from(u32::try_from(restarted).unwrap());
        eventually("the late node to let go", async || {
            metric(holder, "toolyard_runs_lost_total").await - before > lost - 0.1
        })
        .await;
        let noticed = metric(holder, "toolyard_runs_lost_total").await - before;
        assert!((noticed - lost).abs() < 0.1, "round {round}: {restarted} taken over, {noticed} given up");
        (taken, fenced) = (taken + restarted, fenced + noticed);
    }
    assert!(taken * 2 > runs * rounds, "only {taken} were taken over");
    println!("{rounds} rounds of {runs} runs: {taken} taken over, {fenced} times the late node was fenced");
}

#[tokio::test]
async fn d17_a_run_of_a_stopped_node_is_the_others_within_a_second() {
    let database = Database::postgres();
    let yard = Yard::on(node(&database, &[("TOOLYARD_DRAIN_SECONDS", "1")]).await).await;
    let other = node(&database, &[]).await;
    let run = yard.say("slow 80").await;
    let url = database.url.clone().unwrap();
    let owner = format!("SELECT epoch FROM runs WHERE id = '{run}' AND owner IS NOT NULL");
    let first = psql(&url, &owner);
    assert_eq!(first.len(), 1, "it runs");
    // A lease runs out after four seconds. A busy machine may take some of them.
    let soon = if is_full() { Duration::from_secs(1) } else { Duration::from_secs(3) };
    let gateway = yard.gateway;
    let (status, took, _folder) = tokio::task::spawn_blocking(|| gateway.terminate()).await.unwrap();
    let stopped = Instant::now();
    assert!(status.success() && took < Duration::from_secs(10), "{status} {took:?}");
    loop {
        let now = psql(&url, &owner);
        if now.len() == 1 && now != first {
            break;
        }
        assert!(stopped.elapsed() < soon, "{now:?}: nobody has it");
    }
    println!("stopped within {took:.1?}; {:.0?} later the other one has the run", stopped.elapsed());
    let stream = other.secret(Method::GET, &format!("/api/runs/{run}/stream")).send().await.unwrap();
    assert!(stream.text().await.unwrap().contains("event: run.completed"));
    let events = events(&other, &run).await;
    assert_eq!((count(&events, "message.assistant"), count(&events, "run.completed")), (1, 1), "{events:?}");
}
