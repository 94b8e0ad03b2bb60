//! D14: what the disk has when the power fails. The system's own record of the
//! real gateway (`strace`) says what was written, what was synced and what was
//! told to clients, in this order. From it the disk is made again as a power cut
//! at some moment could leave it: what was synced is there; of what was not,
//! any sector may be old, new or torn. Then everything that a client had been
//! told by that moment must be in it.

mod disk;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, PATIENCE, SECRET, signal, toolyard};
use crate::yard::agent;
use disk::{Dice, Disk};
use trace::{Deed, Trace};

/// A gateway whose every write is recorded.
struct Recorded {
    strace: Child,
    pid: u32,
    url: String,
    folder: Folder,
    client: reqwest::Client,
}

impl Recorded {
    async fn start() -> Self {
        let folder = Folder::new();
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-y", "-xx", "-s", "2000000", "-e", "signal=none"]);
        command.args(["-e", &format!("trace={}", trace::CALLS.join(","))]);
        command.arg("-o").arg(folder.path().join("trace"));
        let plain = toolyard(folder.path());
        command.arg(plain.get_program()).args(["serve", "--listen", "127.0.0.1:0"]);
        command.current_dir(folder.path());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let strace = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let strace = strace.expect("strace is installed by scripts/setup-tests");
        let started = Instant::now();
        let here = loop {
            let text = std::fs::read_to_string(folder.path().join("data/gateway.json")).unwrap_or_default();
            if let Ok(here) = serde_json::from_str::<Value>(&text) {
                break here;
            }
            let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            assert!(started.elapsed() < PATIENCE, "the recorded gateway does not start: {log}");
            tokio::task::yield_now().await;
        };
        // A recorded gateway is slow: a connection that was kept may be closed meanwhile.
        let client = reqwest::Client::builder().no_proxy().timeout(4 * PATIENCE).pool_max_idle_per_host(0);
        let client = client.build().unwrap();
        let pid = u32::try_from(here["pid"].as_u64().unwrap()).unwrap();
        Self { strace, pid, url: here["url"].as_str().unwrap().to_owned(), folder, client }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        request = request.header("x-secret-key", SECRET);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }
    async fn post(&self, path: &str, body: Value) -> Value {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// Ends it gently, which also carries the log's pages home.
    fn end(mut self) -> Folder {
        signal(self.pid, "TERM");
        self.strace.wait().unwrap();
        std::mem::replace(&mut self.folder, Folder::new())
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // The record of a dead process ends by itself.
        let alive = Path::new(&format!("/proc/{}", self.pid)).exists();
        if alive && matches!(self.strace.try_wait(), Ok(None)) {
            signal(self.pid, "KILL");
        }
        let _ = self.strace.wait();
    }
}

/// What clients know of their own requests: ids of messages, and answered calls.
#[derive(Default)]
struct Told {
    messages: BTreeSet<String>,
    calls: BTreeSet<String>,
}

/// One client: it says something, reads the run to its end, and answers its call.
async fn client(gateway: &Recorded, n: usize, ann: &str, bot: &str, rounds: usize, size: usize) -> Told {
    let mut told = Told::default();
    let made = gateway.post("/api/smart-spaces", json!({"name": format!("space {n}")})).await;
    let space = made["smartSpace"]["id"].as_str().unwrap().to_owned();
    for entity in [ann, bot] {
        gateway.post(&format!("/api/smart-spaces/{space}/members"), json!({"entityId": entity})).await;
    }
    for round in 0..rounds {
        let path = format!("/api/smart-spaces/{space}/messages");
        let filler = json!({"content": "x".repeat(size), "entityId": ann, "triggerAgents": false});
        let posted = gateway.post(&path, filler).await;
        told.messages
            .insert(posted["message"]["id"].as_str().unwrap_or_else(|| panic!("{posted}")).to_owned());
        let asks = round % 2 == 0;
        let text = if asks { "call getUserApproval {\"q\":\"x\"}" } else { "say all is well" };
        let posted = gateway.post(&path, json!({"content": text, "entityId": ann})).await;
        told.messages.insert(posted["message"]["id"].as_str().unwrap().to_owned());
        let run = posted["runs"][0]["runId"].as_str().unwrap().to_owned();
        let stream = format!("/api/runs/{run}/stream");
        let read = gateway.ask(Method::GET, &stream, None);
        let answer = async {
            if !asks {
                return None;
            }
            loop {
                let waits = gateway.ask(Method::GET, &format!("/api/waits?runId={run}"), None).await;
                if let Some(call) = waits["waits"][0]["toolCallId"].as_str() {
                    let body = json!({"callId": call, "result": {"round": round}});
                    gateway.post(&format!("/api/runs/{run}/tool-results"), body).await;
                    return Some(call.to_owned());
                }
            }
        };
        let (_, call) = tokio::join!(read, answer);
        told.calls.extend(call);
    }
    told
}

/// Plays on a recorded gateway; answers its record and what clients were told.
async fn play(clients: usize, rounds: usize, size: usize) -> (Trace, Told) {
    let gateway = Recorded::start().await;
    gateway.post("/api/agents", json!({"config": agent("assistant")})).await;
    let id = |made: Value| made["entity"]["id"].as_str().unwrap().to_owned();
    let bot = id(gateway.post("/api/entities/agent", json!({"agentId": "assistant"})).await);
    let ann = id(gateway.post("/api/entities", json!({"type": "human", "externalId": "ann"})).await);
    let all = (0..clients).map(|n| client(&gateway, n, &ann, &bot, rounds, size));
    let mut told = Told::default();
    for mut one in futures::future::join_all(all).await {
        told.messages.append(&mut one.messages);
        told.calls.append(&mut one.calls);
    }
    let data = gateway.folder.path().join("data").canonicalize().unwrap();
    let folder = gateway.end();
    let text = std::fs::read(folder.path().join("trace")).unwrap();
    (Trace::read(&text, &data), told)
}

/// A thing that a client was told, and that must be there from then on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    Message(String),
    Result(String),
    Event { run: String, seq: i64 },
}

/// When each fact left the gateway for the first time.
fn facts(trace: &Trace, told: &Told) -> BTreeMap<Fact, usize> {
    let mut facts = BTreeMap::new();
    for (at, deed) in trace.deeds.iter().enumerate() {
        let Deed::Sent(bytes) = deed else { continue };
        let text = String::from_utf8_lossy(bytes);
        let is_answer = text.starts_with("HTTP/1.1 2");
        let mut note = |fact: Fact| {
            facts.entry(fact).or_insert(at);
        };
        if is_answer {
            let named = |id: &&String| text.contains(id.as_str());
            told.messages.iter().filter(named).for_each(|id| note(Fact::Message(id.clone())));
            if text.contains("\"results\"") {
                told.calls.iter().filter(named).for_each(|id| note(Fact::Result(id.clone())));
            }
        }
        // The durable events that a reader got: they have a number.
        for frame in text.split("\n\n").filter(|frame| frame.contains("id: ")) {
            let data = frame.lines().find_map(|line| line.strip_prefix("data: "));
            let Some(data) = data.and_then(|data| serde_json::from_str::<Value>(data).ok()) else { continue };
            if let (Some(run), Some(seq)) = (data["runId"].as_str(), data["seq"].as_i64()) {
                note(Fact::Event { run: run.to_owned(), seq });
            }
        }
    }
    facts
}

/// What a database that was found after a cut lacks, or where it is broken.
fn complaints(folder: &Path, told: &[&Fact]) -> Vec<String> {
    let db = match rusqlite::Connection::open(folder.join("toolyard.db")) {
        Ok(db) => db,
        Err(e) => return vec![format!("it cannot be opened: {e}")],
    };
    let texts = |sql: &str| -> Result<Vec<String>, rusqlite::Error> {
        let mut statement = db.prepare(sql)?;
        statement.query_map([], |row| row.get::<_, String>(0))?.collect()
    };
    let read = || -> Result<Vec<String>, rusqlite::Error> {
        let mut found = Vec::new();
        let whole = texts("PRAGMA integrity_check")?;
        if whole != ["ok"] {
            found.push(format!("integrity_check: {whole:?}"));
        }
        // A row holds events up to its number, a line each.
        let torn = "SELECT r.id FROM runs r LEFT JOIN events e ON e.tenant = r.tenant AND e.run = r.id
            GROUP BY r.tenant, r.id HAVING max(e.seq) IS NOT max(r.last_seq)
            OR sum(1 + length(e.body) - length(replace(e.body, char(10), ''))) IS NOT max(r.last_seq)";
        found.extend(texts(torn)?.into_iter().map(|run| format!("the log of {run} is not whole")));
        let messages: BTreeSet<String> = texts("SELECT id FROM messages")?.into_iter().collect();
        let ended = texts("SELECT body FROM events WHERE body LIKE '%\"round\"%'")?.concat();
        let last = texts("SELECT run || ' ' || max(seq) FROM events GROUP BY run")?;
        let last: BTreeMap<&str, i64> = last
            .iter()
            .filter_map(|line| line.split_once(' '))
            .map(|(run, n)| (run, n.parse().unwrap()))
            .collect();
        for fact in told {
            let is_there = match fact {
                Fact::Message(id) => messages.contains(id),
                Fact::Result(call) => ended.contains(call.as_str()),
                Fact::Event { run, seq } => last.get(run.as_str()).is_some_and(|last| last >= seq),
            };
            if !is_there {
                found.push(format!("{fact:?} was told and is lost"));
            }
        }
        Ok(found)
    };
    read().unwrap_or_else(|e| vec![format!("it cannot be read: {e}")])
}

/// Cuts the power at so many moments. Answers what was broken, and the last disk.
fn cut(trace: &Trace, facts: &BTreeMap<Fact, usize>, cuts: usize, seed: u64) -> (Vec<String>, usize, Folder) {
    let mut dice = Dice(seed);
    let (mut broken, mut asked) = (Vec::new(), 0);
    let mut last = Folder::new();
    // From the first answer on: before it nobody was told anything.
    let first = facts.values().min().copied().unwrap();
    for n in 0..cuts {
        let moment = if n == 0 { trace.deeds.len() } else { dice.between(first, trace.deeds.len()) };
        let told: Vec<&Fact> = facts.iter().filter(|(_, at)| **at < moment).map(|(fact, _)| fact).collect();
        asked += told.len();
        last = Folder::new();
        Disk::at(&trace.deeds[..moment], &mut dice).write(last.path());
        let found = complaints(last.path(), &told);
        broken.extend(found.into_iter().map(|what| format!("cut {n} at {moment}: {what}")));
    }
    (broken, asked, last)
}

fn is_full() -> bool {
    std::env::var("TOOLYARD_CROWD").is_ok_and(|size| size == "full")
}

#[tokio::test(flavor = "multi_thread")]
async fn d14_nothing_that_a_client_was_told_is_lost_when_the_power_fails() {
    // The large play is longer than the log may grow, so pages are carried home in it.
    let (clients, rounds, size, cuts) = if is_full() { (4, 30, 300_000, 1_000) } else { (3, 2, 3_000, 60) };
    let (trace, told) = play(clients, rounds, size).await;
    let facts = facts(&trace, &told);
    let events = facts.keys().filter(|fact| matches!(fact, Fact::Event { .. })).count();
    assert!(told.messages.iter().all(|id| facts.contains_key(&Fact::Message(id.clone()))));
    assert!(told.calls.iter().all(|id| facts.contains_key(&Fact::Result(id.clone()))), "{:?}", told.calls);
    assert!(events >= clients * rounds * 3, "only {events} events were read");
    let (broken, asked, last) = cut(&trace, &facts, cuts, 14);
    println!(
        "{} writes and {} syncs; {cuts} cuts, {asked} times a fact was looked for, {} times in vain",
        trace.count(|deed| matches!(deed, Deed::Wrote { .. })),
        trace.count(|deed| matches!(deed, Deed::Synced(_))),
        broken.len()
    );
    assert!(broken.is_empty(), "{broken:#?}");

    // A disk that was never told to sync loses something: so this test can fail.
    let mut careless = trace;
    careless.deeds.iter_mut().for_each(|deed| {
        if matches!(deed, Deed::Synced(_)) {
            *deed = Deed::Sent(Vec::new());
        }
    });
    let (broken, ..) = cut(&careless, &facts, 20, 15);
    assert!(!broken.is_empty(), "without syncs nothing was lost: nothing is proved");

    // The gateway itself starts on what was left, and works.
    let found = last.path().join("found");
    std::fs::create_dir(&found).unwrap();
    let folder = Folder::new();
    let data: PathBuf = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for file in std::fs::read_dir(last.path()).unwrap().map(Result::unwrap).filter(|f| f.path().is_file()) {
        std::fs::copy(file.path(), data.join(file.file_name())).unwrap();
    }
    let gateway = Gateway::start_with(folder, &[]).await;
    gateway.post("/api/smart-spaces", json!({"name": "after the cut"})).await;
}
