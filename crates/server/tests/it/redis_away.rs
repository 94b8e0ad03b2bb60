//! D13: Redis is optional. It dies, it is flushed, one node cannot reach it: no
//! event is lost, none is late, and no request fails.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Follower, hears};
use crate::crowd::is_full;
use crate::gateway::{Folder, Gateway, fine, toolyard};
use crate::redis_server::RedisServer;
use crate::socket::Program;
use crate::yard::Yard;

#[tokio::test]
async fn d13_redis_is_killed_in_the_middle_of_a_stream_and_nothing_is_lost() {
    let mut cluster = Cluster::new();
    let (yard, b, _c) = cluster.three().await;
    let run = yard.say("slow 80").await;
    let mut follower = Follower::default();
    let mut stream = follower.connect(&b, &run).await.unwrap();
    while follower.most == 0 {
        follower.take(&stream.next().await.unwrap());
    }
    cluster.redis.kill();
    for node in [&yard.gateway, &b] {
        hears(node, "down").await;
    }
    assert!(fine(b.bare(Method::GET, "/metrics")).await.as_str().unwrap().contains("toolyard_redis_up 0"));
    assert!(!doctor(&cluster, &b).0);
    while let Some(event) = stream.next().await {
        follower.take(&event);
    }
    follower.check();
    // Without it a call still finds its client, and the result its run.
    let mut robot = Program::backend(&b, "cli_robot", &["getUserApproval"]).await;
    let run = yard.say("call getUserApproval {\"q\":\"go?\"}").await;
    let call = robot.call().await;
    let (done, _) =
        tokio::join!(Follower::default().follow(&b, &run), robot.answer(&call, json!({"ok": true})));
    assert_eq!(done.count("tool-output-available"), 1);

    cluster.redis.restart();
    for node in [&yard.gateway, &b] {
        hears(node, "up").await;
        assert!(node.log().contains("Redis does not answer"), "{}", node.log());
    }
    let (fine, says) = doctor(&cluster, &b);
    assert!(fine && says.contains("Redis"), "{says}");
    let run = yard.say("slow 60").await;
    let done = Follower::default().follow(&b, &run).await;
    assert!(done.most > 0, "pieces come again before their commit");
}

/// How late a reader on one node hears what another one has committed.
async fn lag(yard: &Yard, there: &Gateway, n: usize) -> Duration {
    let run = yard.say("call getUserApproval {\"q\":\"go?\"}").await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    let mut follower = Follower::default();
    let mut stream = follower.connect(there, &run).await.unwrap();
    while follower.count("run.waiting_tool") == 0 {
        follower.take(&stream.next().await.unwrap());
    }
    let path = format!("/api/runs/{run}/tool-results");
    yard.gateway.post(&path, json!({"callId": call, "result": n})).await;
    let committed = Instant::now();
    while follower.count("tool-output-available") == 0 {
        follower.take(&stream.next().await.unwrap());
    }
    let late = committed.elapsed();
    while let Some(event) = stream.next().await {
        follower.take(&event);
    }
    follower.check();
    late
}

fn flush(redis: &RedisServer) {
    let mut line = TcpStream::connect(redis.url().trim_start_matches("redis://")).unwrap();
    line.write_all(b"FLUSHALL\r\nQUIT\r\n").unwrap();
    let mut said = String::new();
    line.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("+OK"), "{said}");
}

#[tokio::test]
async fn d13_without_redis_an_event_is_a_second_late_at_most_and_a_flush_changes_nothing() {
    let mut cluster = Cluster::new();
    let (yard, b, _c) = cluster.three().await;
    // A flush takes what nobody needs: words go on, in the middle of a step.
    let run = yard.say("slow 40").await;
    let mut follower = Follower::default();
    let mut stream = follower.connect(&b, &run).await.unwrap();
    while follower.most == 0 {
        follower.take(&stream.next().await.unwrap());
    }
    flush(&cluster.redis);
    let before = follower.most;
    while let Some(event) = stream.next().await {
        follower.take(&event);
    }
    follower.check();
    assert!(follower.most > before, "words come on");
    for node in [&yard.gateway, &b] {
        assert_eq!(fine(node.bare(Method::GET, "/ready")).await["redis"], "up");
    }
    // From the moment of its death on; nobody has to notice it first.
    cluster.redis.kill();
    let mut lags = Vec::new();
    for n in 0..5 {
        lags.push(lag(&yard, &b, n).await);
    }
    println!("without Redis an event came after {lags:.0?}");
    // Among other tests the processor is late too.
    let late = if is_full() { Duration::from_secs(1) } else { Duration::from_secs(3) };
    assert!(lags.iter().all(|lag| *lag <= late), "{lags:?}");
}

/// A way to Redis that can be cut for those who go by it.
struct Bridge {
    address: String,
    is_open: tokio::sync::watch::Sender<bool>,
    _task: tokio::task::JoinSet<()>,
}

impl Bridge {
    async fn to(redis: &RedisServer) -> Self {
        let far = redis.url().trim_start_matches("redis://").to_owned();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (is_open, seen) = tokio::sync::watch::channel(true);
        let mut task = tokio::task::JoinSet::new();
        task.spawn(async move {
            let mut lines = tokio::task::JoinSet::new();
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                let (far, mut seen) = (far.clone(), seen.clone());
                lines.spawn(async move {
                    if !*seen.borrow() {
                        return;
                    }
                    let Ok(mut far) = tokio::net::TcpStream::connect(far).await else { return };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = seen.wait_for(|open| !open) => {}
                    }
                });
            }
        });
        Self { address, is_open, _task: task }
    }
}

#[tokio::test]
async fn d13_one_node_is_cut_off_from_redis_and_nobody_misses_anything() {
    let cluster = Cluster::new();
    let bridge = Bridge::to(&cluster.redis).await;
    let yard = Yard::on(cluster.node(Folder::new()).await).await;
    let b = cluster.node(Folder::new()).await;
    let mut env = cluster.env();
    env.retain(|(name, _)| name != "TOOLYARD_REDIS_URL");
    env.push(("TOOLYARD_REDIS_URL".to_owned(), format!("redis://{}", bridge.address)));
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (&**name, &**value)).collect();
    let c = Gateway::start_with(Folder::new(), &env).await;
    for node in [&yard.gateway, &b, &c] {
        hears(node, "up").await;
    }
    // It is cut off in the middle of a step that it hears word by word.
    let run = yard.say("slow 60").await;
    let mut on_c = Follower::default();
    let mut stream = on_c.connect(&c, &run).await.unwrap();
    while on_c.most == 0 {
        on_c.take(&stream.next().await.unwrap());
    }
    bridge.is_open.send(false).unwrap();
    hears(&c, "down").await;
    while let Some(event) = stream.next().await {
        on_c.take(&event);
    }
    on_c.check();
    let on_b = Follower::default().follow(&b, &run).await;
    assert_eq!((&on_c.durable, &on_c.replies), (&on_b.durable, &on_b.replies));
    for node in [&yard.gateway, &b] {
        assert_eq!(fine(node.bare(Method::GET, "/ready")).await["redis"], "up", "only one is cut off");
    }
    // Between the others words still come as they are said.
    let run = yard.say("slow 20").await;
    let (on_b, on_c) =
        tokio::join!(Follower::default().follow(&b, &run), Follower::default().follow(&c, &run));
    assert!(on_b.most > 0, "{:?}", on_b.durable);
    assert_eq!((&on_c.durable, &on_c.replies), (&on_b.durable, &on_b.replies));
    // A run on the lonely node is heard by the others, and a client there gets its calls.
    let mut robot = Program::backend(&c, "cli_robot", &["getUserApproval"]).await;
    let said = json!({"content": "call getUserApproval {\"q\":\"go?\"}", "entityId": yard.ann});
    let posted = c.post(&format!("/api/smart-spaces/{}/messages", yard.space), said).await;
    let run = posted["runs"][0]["runId"].as_str().unwrap();
    let (on_b, on_c, ()) =
        tokio::join!(Follower::default().follow(&b, run), Follower::default().follow(&c, run), async {
            let call = robot.call().await;
            assert_eq!(call["runId"], json!(run));
            robot.answer(&call, json!("yes")).await;
        });
    assert_eq!(on_b.count("tool-output-available"), 1, "{:?}", on_b.durable);
    assert_eq!(on_c.durable, on_b.durable);
    // The way is open again: words come there too.
    bridge.is_open.send(true).unwrap();
    hears(&c, "up").await;
    let run = yard.say("slow 40").await;
    let on_c = Follower::default().follow(&c, &run).await;
    assert!(on_c.most > 0, "pieces come again before their commit");
}

/// Whether `doctor` finds Redis, and what it says of it.
fn doctor(cluster: &Cluster, node: &Gateway) -> (bool, String) {
    let mut command = toolyard(node.folder.path());
    let done = command.args(["--json", "doctor"]).envs(cluster.env()).output().unwrap();
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    let checks = said["checks"].as_array().unwrap();
    let redis = checks.iter().find(|check| check["check"] == "redis").unwrap();
    (redis["ok"].as_bool().unwrap(), redis["says"].as_str().unwrap().to_owned())
}
