//! D12: a disk that is really full. The gateway's folder is a small file system
//! of its own, in a namespace that only the gateway sees.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::gateway::{Folder, PATIENCE, SECRET, toolyard};
use crate::yard::agent;

/// Enough for the empty database and its log.
const SIZE: &str = "size=8m";

/// `unshare`, so that what is mounted vanishes with the process.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--user", "--map-root-user"]);
    command
}

struct Cramped {
    child: Child,
    url: String,
    /// The gateway's folder as seen from here.
    data: PathBuf,
    client: reqwest::Client,
    _folder: Folder,
}

impl Cramped {
    async fn start() -> Self {
        let folder = Folder::new();
        let plain = toolyard(folder.path());
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let mut command = unshare();
        command.args([
            "sh",
            "-c",
            "mount -t tmpfs -o \"$1\" none \"$2\" && exec \"$3\" serve --listen 127.0.0.1:0",
            "sh",
            SIZE,
        ]);
        command.arg(&data).arg(plain.get_program()).current_dir(folder.path());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let data = PathBuf::from(format!("/proc/{}/root{}", child.id(), data.display()));
        let started = Instant::now();
        let url = loop {
            let text = std::fs::read_to_string(data.join("gateway.json")).unwrap_or_default();
            if let Ok(here) = serde_json::from_str::<Value>(&text) {
                break here["url"].as_str().unwrap().to_owned();
            }
            let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            assert!(
                child.try_wait().unwrap().is_none() && started.elapsed() < PATIENCE,
                "it does not start: {log}"
            );
            tokio::task::yield_now().await;
        };
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        Self { child, url, data, client, _folder: folder }
    }

    async fn ask(&self, path: &str, body: Option<&Value>, key: &str) -> (u16, Value) {
        let url = format!("{}{path}", self.url);
        let request = match body {
            Some(body) => self.client.post(url).json(body),
            None => self.client.get(url),
        };
        let request = request.header("x-secret-key", SECRET).header("idempotency-key", key);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or(Value::Null))
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(path, Some(&body), &uuid::Uuid::now_v7().simple().to_string()).await;
        assert!(status < 300, "{path}: {status} {answer}");
        answer
    }

    async fn messages(&self, space: &str) -> usize {
        let (status, list) =
            self.ask(&format!("/api/smart-spaces/{space}/messages?limit=200"), None, "none").await;
        assert_eq!(status, 200, "{list}");
        list["messages"].as_array().unwrap().len()
    }
}

impl Drop for Cramped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn d12_a_disk_that_is_really_full_refuses_writes_whole_until_there_is_room() {
    if !unshare().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("not shown: this system gives no namespaces to its users");
        return;
    }
    let gateway = Cramped::start().await;
    gateway.post("/api/agents", json!({"config": agent("assistant")})).await;
    let id = |made: Value, what: &str| made[what]["id"].as_str().unwrap().to_owned();
    let bot = id(gateway.post("/api/entities/agent", json!({"agentId": "assistant"})).await, "entity");
    let ann = id(gateway.post("/api/entities", json!({"type": "human"})).await, "entity");
    let space = id(gateway.post("/api/smart-spaces", json!({})).await, "smartSpace");
    for entity in [&bot, &ann] {
        gateway.post(&format!("/api/smart-spaces/{space}/members"), json!({"entityId": entity})).await;
    }
    // Something else takes all the room that is left.
    let filler = gateway.data.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    drop(file);

    let path = format!("/api/smart-spaces/{space}/messages");
    let said = json!({"content": "x".repeat(2_000), "entityId": ann, "triggerAgents": false});
    // The last pages of the disk may still be the log's own.
    let mut taken = 0;
    let mut refused = gateway.ask(&path, Some(&said), "key 0").await;
    while refused.0 == 201 && taken < 100 {
        taken += 1;
        refused = gateway.ask(&path, Some(&said), &format!("key {taken}")).await;
    }
    let key = format!("key {taken}");
    assert_eq!((refused.0, &refused.1["error"]["code"]), (503, &json!("store_full")), "{}", refused.1);
    for _ in 0..5 {
        assert_eq!(gateway.ask(&path, Some(&said), &key).await.0, 503);
    }
    // Nothing of it is there, and reads go on.
    assert_eq!(gateway.messages(&space).await, taken);
    for path in ["/health", "/ready"] {
        assert_eq!(gateway.ask(path, None, "none").await.0, 200, "{path}");
    }
    // Room again, without a restart: the same request is taken once.
    std::fs::remove_file(&filler).unwrap();
    let started = Instant::now();
    while gateway.ask(&path, Some(&said), &key).await.0 != 201 {
        assert!(started.elapsed() < PATIENCE, "it does not write again");
        tokio::task::yield_now().await;
    }
    taken += 1;
    assert_eq!(gateway.ask(&path, Some(&said), &key).await.0, 201);
    assert_eq!(gateway.messages(&space).await, taken);
    let posted = gateway.post(&path, json!({"content": "say all is well", "entityId": ann})).await;
    let run = posted["runs"][0]["runId"].as_str().unwrap();
    let started = Instant::now();
    while gateway.ask(&format!("/api/runs/{run}"), None, "none").await.1["run"]["status"] != "completed" {
        assert!(started.elapsed() < PATIENCE, "the run does not end");
        tokio::task::yield_now().await;
    }
}
