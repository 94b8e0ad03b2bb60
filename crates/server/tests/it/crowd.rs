//! Many at once: stops, slow readers, vanished peers and large bodies (rows D17,
//! S2, S3, X5).
//!
//! `make test` plays with a few; `TOOLYARD_CROWD=full` with the numbers of the
//! rows, which takes minutes and prints what it measured.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use toolyard_protocol::sse::{SseEvent, SseSplitter};

use crate::cluster::{Follower, follow_anywhere};
use crate::gateway::{Folder, Gateway, PATIENCE, SECRET, ask, fine};
use crate::yard::{Stream, Yard, eventually, join, new_space};

pub(crate) fn is_full() -> bool {
    std::env::var("TOOLYARD_CROWD").is_ok_and(|size| size == "full")
}

pub(crate) fn crowd(few: usize, many: usize) -> usize {
    if is_full() { many } else { few }
}

/// Memory of a process, in kilobytes: now, and the most it ever had.
fn memory(pid: u32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    (line("VmRSS:"), line("VmHWM:"))
}

fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

pub(crate) async fn metric(gateway: &Gateway, name: &str) -> f64 {
    let (_, text) = ask(gateway.bare(Method::GET, "/metrics")).await;
    let text = text.as_str().unwrap().to_owned();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
    line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// A raw reader of a stream: what it read so far, and its socket.
struct Raw(Socket);

impl Raw {
    /// `window` is how much the system may keep for a reader that does not read.
    fn open(gateway: &Gateway, path: &str, window: Option<usize>) -> Self {
        Self::with_key(gateway, path, window, SECRET)
    }

    fn with_key(gateway: &Gateway, path: &str, window: Option<usize>, key: &str) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        if let Some(window) = window {
            socket.set_recv_buffer_size(window).unwrap();
        }
        let address: std::net::SocketAddr = gateway.address().parse().unwrap();
        socket.connect(&address.into()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nx-secret-key: {key}\r\n\r\n");
        (&socket).write_all(head.as_bytes()).unwrap();
        Self(socket)
    }

    /// Reads until the answer's head is there.
    fn wait_for_head(&self) {
        let (mut seen, mut byte) = (Vec::new(), [0]);
        while !seen.ends_with(b"\r\n\r\n") {
            assert_eq!((&self.0).read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&seen));
            seen.push(byte[0]);
        }
        assert!(seen.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&seen));
    }

    /// From now on whatever comes is thrown away before the system sees it: no
    /// answer, no acknowledgement, no goodbye.
    fn vanish(&self) {
        let return_nothing = socket2::SockFilter::new(0x06, 0, 0, 0);
        self.0.attach_filter(&[return_nothing]).unwrap();
    }
}

#[tokio::test]
async fn s3_peers_that_vanish_without_a_word_are_let_go() {
    let count = crowd(20, 1_000);
    // All of it by the gateway's own keep-alive, or quicker by news.
    let env: &[(&str, &str)] = if is_full() { &[] } else { &[("TOOLYARD_LIMITS_PEER_SECONDS", "2")] };
    let yard = Yard::on(Gateway::start_with(Folder::new(), env).await).await;
    let path = format!("/api/smart-spaces/{}/stream", yard.space);
    let before = open_files(yard.gateway.pid());
    let patient = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut alive = Vec::new();
    for _ in 0..3 {
        let request = patient.get(format!("{}{path}", yard.gateway.url)).header("x-secret-key", SECRET);
        alive.push(Stream::new(request.send().await.unwrap()));
    }
    let gone: Vec<Raw> = (0..count).map(|_| Raw::open(&yard.gateway, &path, None)).collect();
    gone.iter().for_each(Raw::wait_for_head);
    let all = f64::from(u32::try_from(count + alive.len()).unwrap());
    assert!((metric(&yard.gateway, "toolyard_sse_readers").await - all).abs() < 0.1);
    assert!(open_files(yard.gateway.pid()) >= before + count);

    gone.iter().for_each(Raw::vanish);
    let vanished = Instant::now();
    if !is_full() {
        yard.say("hello").await;
    }
    let limit = if is_full() { Duration::from_secs(60) } else { PATIENCE };
    while metric(&yard.gateway, "toolyard_sse_readers").await > 3.5 {
        assert!(
            vanished.elapsed() < limit,
            "{} are kept",
            metric(&yard.gateway, "toolyard_sse_readers").await
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("{count} vanished peers: all let go after {:.1?}", vanished.elapsed());
    eventually("the files are closed", async || open_files(yard.gateway.pid()) <= before + 3 + 4).await;
    // Those who are only silent were not harmed.
    yard.say("still here").await;
    for stream in &mut alive {
        stream.until("run.completed").await;
    }
    drop(gone);
}

#[tokio::test(flavor = "multi_thread")]
async fn x5_a_thousand_posts_of_a_gigabyte_at_once_cost_no_memory() {
    const POSTS: usize = 1_000;
    /// What a client pushes that does not look at the answer.
    const PUSHED: usize = 128 << 10;
    let gateway = Gateway::start().await;
    fine(gateway.secret(Method::GET, "/api/agents")).await;
    let (before, _) = memory(gateway.pid());
    let mut sockets = Vec::new();
    for _ in 0..POSTS {
        let mut socket = tokio::net::TcpStream::connect(gateway.address()).await.unwrap();
        let head = format!(
            "POST /api/smart-spaces HTTP/1.1\r\nhost: localhost\r\nx-secret-key: {SECRET}\r\ncontent-type: application/json\r\ncontent-length: 1000000000\r\n"
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        sockets.push(socket);
    }
    // All of them are open. Now every head ends, and every other one starts to push.
    let mut posts = JoinSet::new();
    for (n, mut socket) in sockets.into_iter().enumerate() {
        posts.spawn(async move {
            socket.write_all(b"\r\n").await.unwrap();
            if n % 2 == 1 {
                let _ = socket.write_all(&vec![b' '; PUSHED]).await;
            }
            let mut answer = vec![0; 4096];
            let read = tokio::time::timeout(PATIENCE, socket.read(&mut answer)).await.expect("an answer");
            // Who pushes may be hung up on instead of being told.
            let told = read.as_ref().is_ok_and(|size| answer[..*size].starts_with(b"HTTP/1.1 413"));
            (n % 2 == 1, told)
        });
    }
    let mut told = 0;
    while let Some(done) = posts.join_next().await {
        let (pushed, is_told) = done.unwrap();
        assert!(pushed || is_told, "who waited for the answer got none");
        told += usize::from(is_told);
    }
    // Others are served, and nothing of it was kept.
    fine(gateway.secret(Method::GET, "/api/agents")).await;
    let (after, most) = memory(gateway.pid());
    println!(
        "{told} of {POSTS} were told 413; memory {before} kB before, {most} kB at most, {after} kB after"
    );
    assert!(most < before + (100 << 10), "{before} kB before, {most} kB at most");
}

/// The whole events of what was read, without the chunks' frames.
fn events(bytes: &[u8]) -> Vec<SseEvent> {
    let start = bytes.windows(4).position(|w| w == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let (mut rest, mut text) = (&bytes[start..], Vec::new());
    while let Some(line) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line]).ok().and_then(|n| usize::from_str_radix(n, 16).ok());
        let Some(size) = size.filter(|size| *size > 0 && rest.len() > line + 2) else { break };
        let end = (line + 2 + size).min(rest.len());
        text.extend_from_slice(&rest[line + 2..end]);
        rest = rest.get(end + 2..).unwrap_or_default();
    }
    let mut events = Vec::new();
    SseSplitter::new(8 << 20).push(&text, &mut events).unwrap();
    events
}

/// Reads a kilobyte each second until it is cut; then all that is left.
fn read_slowly(raw: &Raw, is_cut: &std::sync::atomic::AtomicBool) -> Vec<u8> {
    let (mut got, mut piece) = (Vec::new(), vec![0; 1 << 10]);
    while !is_cut.load(std::sync::atomic::Ordering::SeqCst) {
        match (&raw.0).read(&mut piece) {
            Ok(0) | Err(_) => return got,
            Ok(size) => got.extend_from_slice(&piece[..size]),
        }
        std::thread::park_timeout(Duration::from_secs(1));
    }
    let _ = (&raw.0).read_to_end(&mut got);
    got
}

#[tokio::test(flavor = "multi_thread")]
async fn s2_a_crowd_of_slow_readers_is_cut_and_each_comes_back_to_what_it_missed() {
    const MESSAGES: u64 = 60;
    let count = crowd(4, 500);
    let env: &[(&str, &str)] = if is_full() { &[] } else { &[("TOOLYARD_LIMITS_READER_SECONDS", "1")] };
    let yard = Yard::on(Gateway::start_with(Folder::new(), env).await).await;
    let (before, _) = memory(yard.gateway.pid());
    let path = format!("/api/smart-spaces/{}/stream", yard.space);
    let is_cut = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let slow: Vec<_> = (0..count)
        .map(|_| {
            let (raw, is_cut) = (Raw::open(&yard.gateway, &path, Some(8 << 10)), is_cut.clone());
            std::thread::Builder::new()
                .stack_size(256 << 10)
                .spawn(move || read_slowly(&raw, &is_cut))
                .unwrap()
        })
        .collect();
    let mut quick = Stream::new(yard.gateway.secret(Method::GET, &path).send().await.unwrap());
    let messages = format!("/api/smart-spaces/{}/messages", yard.space);
    let began = Instant::now();
    for n in 0..MESSAGES {
        let body = json!({"content": "x".repeat(50_000), "entityId": yard.ann, "triggerAgents": false});
        fine(yard.gateway.secret(Method::POST, &messages).json(&body)).await;
        assert_eq!(quick.next().await.unwrap().id, Some((n + 1).to_string()));
    }
    let served = began.elapsed();
    let limit = if is_full() { 10 * PATIENCE } else { PATIENCE };
    let all = f64::from(u32::try_from(count).unwrap());
    while metric(&yard.gateway, "toolyard_sse_readers_cut_total").await < all - 0.1 {
        assert!(began.elapsed() < limit, "not all are cut");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (_, most) = memory(yard.gateway.pid());
    println!(
        "{count} slow readers: {MESSAGES} messages went out in {served:.1?}, all were cut after {:.1?}; memory {before} kB before, {most} kB at most",
        began.elapsed()
    );
    is_cut.store(true, std::sync::atomic::Ordering::SeqCst);
    for (n, reader) in slow.into_iter().enumerate() {
        reader.thread().unpark();
        let got = reader.join().unwrap();
        // Not only the gateway keeps little for it, the system does too.
        assert!(got.len() < 1 << 20, "{} bytes were on their way", got.len());
        let mut ids: Vec<u64> = events(&got).iter().filter_map(|e| e.id.as_ref()?.parse().ok()).collect();
        assert!((ids.len() as u64) < MESSAGES, "it was not slow");
        // Of a large crowd every twentieth comes back.
        if n % if is_full() { 20 } else { 1 } == 0 {
            let mut request = yard.gateway.secret(Method::GET, &path);
            if let Some(last) = ids.last() {
                request = request.header("last-event-id", last.to_string());
            }
            let mut again = Stream::new(request.send().await.unwrap());
            while ids.last() != Some(&MESSAGES) {
                ids.push(again.next().await.unwrap().id.unwrap().parse().unwrap());
            }
            assert_eq!(ids, (1..=MESSAGES).collect::<Vec<_>>());
        }
    }
    assert!(most < before + (100 << 10), "{before} kB before, {most} kB at most");
}

/// Patience is for who reads nothing, not for who has a slow line and a long
/// message before it.
#[tokio::test(flavor = "multi_thread")]
async fn s2_a_steady_reader_of_a_long_message_is_not_cut() {
    let env = [("TOOLYARD_LIMITS_READER_SECONDS", "1")];
    let yard = Yard::on(Gateway::start_with(Folder::new(), &env).await).await;
    let path = format!("/api/smart-spaces/{}", yard.space);
    for text in ["x".repeat(1 << 20), "the end".to_owned()] {
        let said = json!({"content": text, "entityId": yard.ann, "triggerAgents": false});
        fine(yard.gateway.secret(Method::POST, &format!("{path}/messages")).json(&said)).await;
    }
    let raw = Raw::open(&yard.gateway, &format!("{path}/stream"), Some(8 << 10));
    let began = Instant::now();
    let got = tokio::task::spawn_blocking(move || {
        let (mut got, mut piece) = (Vec::new(), vec![0; 16 << 10]);
        loop {
            let size = (&raw.0).read(&mut piece).unwrap();
            assert!(size > 0, "cut after {} bytes", got.len());
            got.extend_from_slice(&piece[..size]);
            // To read all of it again each time would make it slow in earnest.
            let last = &got[got.len().saturating_sub(size + 400)..];
            if last.windows(7).any(|seen| seen == b"the end") && events(&got).len() == 2 {
                return got;
            }
            std::thread::park_timeout(Duration::from_millis(40));
        }
    });
    let ids: Vec<_> = events(&got.await.unwrap()).into_iter().filter_map(|event| event.id).collect();
    assert_eq!(ids, ["1", "2"]);
    assert!(began.elapsed() > Duration::from_secs(2), "it was not slow: {:?}", began.elapsed());
    assert!(metric(&yard.gateway, "toolyard_sse_readers_cut_total").await < 0.5);
}

/// A reader in the middle of a long message looks up now and then: whoever may
/// not read any more gets no more of it, and a stop waits for nobody.
#[tokio::test(flavor = "multi_thread")]
async fn s2_a_long_message_ends_when_its_key_is_revoked_or_the_gateway_stops() {
    const LONG: usize = 8 << 20;
    let yard = Yard::new().await;
    let path = format!("/api/smart-spaces/{}", yard.space);
    let said = json!({"content": "x".repeat(LONG), "entityId": yard.ann, "triggerAgents": false});
    fine(yard.gateway.secret(Method::POST, &format!("{path}/messages")).json(&said)).await;
    let key = yard.gateway.post("/api/keys", json!({"kind": "secret"})).await;
    let shown = key["key"].as_str().unwrap();
    let stream = format!("{path}/stream");
    let [revoked, stopped] =
        [shown, SECRET].map(|key| Raw::with_key(&yard.gateway, &stream, Some(8 << 10), key));
    revoked.wait_for_head();
    stopped.wait_for_head();
    let gone = yard.gateway.secret(Method::DELETE, &format!("/api/keys/{}", key["id"].as_str().unwrap()));
    fine(gone).await;
    let read = tokio::task::spawn_blocking(move || {
        let (mut read, mut piece) = (0, vec![0; 16 << 10]);
        let began = Instant::now();
        while let Ok(size @ 1..) = (&revoked.0).read(&mut piece) {
            read += size;
            assert!(began.elapsed() < 2 * PATIENCE, "{read} bytes were read, and more comes");
            std::thread::park_timeout(Duration::from_millis(100));
        }
        read
    });
    let read = read.await.unwrap();
    assert!(read < LONG, "{read} bytes of {LONG} were told");
    let gateway = yard.gateway;
    let (status, took, _folder) = tokio::task::spawn_blocking(|| gateway.terminate()).await.unwrap();
    assert!(status.success() && took < Duration::from_secs(10), "{status} {took:?}");
    drop(stopped);
}

#[tokio::test(flavor = "multi_thread")]
async fn s2_readers_that_are_far_behind_keep_little_of_it_in_memory() {
    const MESSAGES: usize = 210;
    /// Each would keep 12 MB if it kept a page.
    const READERS: usize = 40;
    let yard = Yard::new().await;
    let path = format!("/api/smart-spaces/{}", yard.space);
    let said = json!({"content": "x".repeat(60_000), "entityId": yard.ann, "triggerAgents": false});
    for _ in 0..MESSAGES {
        fine(yard.gateway.secret(Method::POST, &format!("{path}/messages")).json(&said)).await;
    }
    let (before, _) = memory(yard.gateway.pid());
    let stream = format!("{path}/stream");
    let slow: Vec<Raw> = (0..READERS).map(|_| Raw::open(&yard.gateway, &stream, Some(8 << 10))).collect();
    slow.iter().for_each(Raw::wait_for_head);
    // A reader that reads gets all of it meanwhile.
    let mut quick = Stream::new(yard.gateway.secret(Method::GET, &stream).send().await.unwrap());
    for n in 1..=MESSAGES {
        assert_eq!(quick.next().await.unwrap().id, Some(n.to_string()));
    }
    let (now, _) = memory(yard.gateway.pid());
    println!("{READERS} readers {MESSAGES} messages behind: {before} kB before, {now} kB now");
    assert!(now < before + (128 << 10), "{before} kB before, {now} kB now");
    drop(slow);
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_a_stop_in_the_middle_of_many_runs_and_streams_loses_nothing() {
    let (runs, streams) = (crowd(16, 500), crowd(32, 1_000));
    let env: &[(&str, &str)] = if is_full() { &[] } else { &[("TOOLYARD_DRAIN_SECONDS", "1")] };
    let yard = Yard::on(Gateway::start_with(Folder::new(), env).await).await;
    let mut spaces = Vec::new();
    for _ in 0..runs {
        let space = new_space(&yard.gateway).await;
        join(&yard.gateway, &space, &yard.agent_entity).await;
        join(&yard.gateway, &space, &yard.ann).await;
        spaces.push(space);
    }
    // Longer than the gateway waits for what runs.
    let words = if is_full() { "slow 200" } else { "slow 80" };
    let said = json!({"content": words, "entityId": yard.ann});
    let mut names = Vec::new();
    for space in &spaces {
        let posted = yard.gateway.post(&format!("/api/smart-spaces/{space}/messages"), said.clone()).await;
        names.push(posted["runs"][0]["runId"].as_str().unwrap().to_owned());
    }
    let mut followers = JoinSet::new();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for n in 0..streams {
        let (url, run, client) = (yard.gateway.url.clone(), names[n % runs].clone(), client.clone());
        followers.spawn(async move { (run.clone(), follow_anywhere(&client, vec![url], run).await) });
    }
    let all = f64::from(u32::try_from(streams).unwrap());
    let (mut readers, began) = (0.0, Instant::now());
    while readers < all - 0.1 {
        assert!(began.elapsed() < 2 * PATIENCE, "only {readers} readers");
        readers = metric(&yard.gateway, "toolyard_sse_readers").await;
    }
    let running =
        yard.gateway.get("/api/runs?status=running&limit=200").await["runs"].as_array().unwrap().len();
    assert!(running >= runs.min(200) / 2, "only {running} runs are at work");
    let (address, gateway) = (yard.gateway.address(), yard.gateway);
    let (status, took, folder) = tokio::task::spawn_blocking(|| gateway.terminate()).await.unwrap();
    println!("{runs} runs and {streams} streams: the process ended after {took:.1?}");
    assert!(status.success() && took < Duration::from_secs(10), "{status} {took:?}");

    let gateway = Gateway::start_on(&address, folder, &[]).await;
    let mut logs: std::collections::HashMap<String, Vec<u64>> = Default::default();
    while let Some(followed) = followers.join_next().await {
        let (run, follower): (String, Follower) = followed.unwrap();
        follower.check();
        if !logs.contains_key(&run) {
            logs.insert(run.clone(), Follower::default().follow(&gateway, &run).await.ids());
        }
        assert_eq!(follower.ids(), logs[&run], "as a reader of {run} who was never cut");
    }
    assert_eq!(logs.len(), runs);
    let open: Value = gateway.get("/api/runs?status=running").await;
    assert_eq!(open["runs"], json!([]));
}
