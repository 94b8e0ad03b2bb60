//! Servers behind an address: sessions that are forgotten, statuses, redirects,
//! and what never leaves the gateway.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_egress::{Door, Letter, Patience, Target, Verb};
use toolyard_mcp::{Era, Host, Outcome, ServerSettings};

use crate::fault_http::FaultServer;
use crate::yard::{call, done, eventually, host, owner, server, text};

/// The HTTP fault server, and what it heard.
pub(crate) struct Far {
    process: FaultServer,
    mode: String,
}

impl Far {
    pub(crate) fn start(mode: &str) -> Self {
        Self::start_at(mode, 0)
    }
    fn start_at(mode: &str, port: u16) -> Self {
        Self { process: FaultServer::start(mode, port), mode: mode.to_owned() }
    }
    pub(crate) fn port(&self) -> u16 {
        self.process.port
    }
    /// Kills it and starts it at the same address. Meanwhile the host's own
    /// tasks go on: they see that the connection is closed.
    async fn restart(self) -> Self {
        let again = tokio::task::spawn_blocking(move || {
            let (mode, port) = (self.mode.clone(), self.port());
            drop(self);
            Self::start_at(&mode, port)
        });
        again.await.unwrap()
    }
    pub(crate) fn url(&self, path: &str) -> String {
        self.process.url(path)
    }
    async fn ask(&self, verb: Verb, path: &str, body: Option<Value>) -> Value {
        let target = Target::parse(&self.url(path)).unwrap();
        let patience =
            Patience { head: Duration::from_secs(20), idle: Duration::from_secs(20), bytes: 1 << 24 };
        let body = body.map(|body| body.to_string().into_bytes().into());
        let letter = Letter { verb, target: &target, headers: &[], accept: "*/*", body, patience };
        let mut answer = Door::operator().unwrap().send(letter).await.unwrap();
        serde_json::from_slice(&answer.body.read_all().await.unwrap()).unwrap()
    }
    pub(crate) async fn control(&self, change: Value) {
        self.ask(Verb::Post, "/control", Some(change)).await;
    }
    pub(crate) async fn log(&self) -> Vec<Value> {
        self.ask(Verb::Get, "/log", None).await.as_array().unwrap().clone()
    }
    pub(crate) async fn calls(&self) -> Vec<Value> {
        self.log().await.into_iter().filter(|line| line[1] == "tools/call").collect()
    }
}

fn remote(far: &Far, path: &str) -> ServerSettings {
    server(
        "far",
        json!({ "url": far.url(path), "tool_timeout_sec": 10, "headers": { "X-Canary": "canary-1" } }),
    )
}

async fn echo(host: &Host, settings: &ServerSettings, message: &str) -> Outcome {
    host.call(&owner("a"), settings, call("echo", json!({ "message": message }))).await
}

#[tokio::test]
async fn g4_both_eras_are_spoken_over_http() {
    for (mode, era) in [("legacy", Era::Legacy), ("modern", Era::Modern)] {
        let (far, host) = (Far::start(mode), host());
        let settings = remote(&far, "/mcp");
        assert_eq!(text(echo(&host, &settings, "hello").await), "hello");
        assert_eq!(host.status()[0].era, Some(era));
        let hologram = host.call(&owner("a"), &settings, call("unknown_block", json!({}))).await;
        assert_eq!(done(hologram).raw["content"], json!([{ "type": "hologram" }]));
        assert_eq!(
            text(host.call(&owner("a"), &settings, call("sse", json!({ "message": "m" }))).await),
            "m"
        );
        host.stop().await;
        // A session of the older era is ended, not left behind.
        let log = far.log().await;
        assert_eq!(log.iter().any(|line| line[0] == "delete"), era == Era::Legacy);
        assert!(log.iter().all(|line| line[0] != "mcp" || line[3]["x-canary"] == "canary-1"));
    }
}

/// A server that restarted has forgotten the session. Whether it says 404 as
/// it should or 400 as many do, the same call works, and is made once.
#[tokio::test]
async fn a_forgotten_session_is_made_anew_without_a_second_call() {
    for status in [400, 404] {
        let (far, host) = (Far::start("legacy"), host());
        let settings = remote(&far, "/mcp");
        assert_eq!(text(echo(&host, &settings, "one").await), "one");
        far.control(json!({ "forget": status })).await;
        assert_eq!(text(echo(&host, &settings, "two").await), "two");
        let sessions = far.log().await.iter().filter(|line| line[1] == "initialize").count();
        assert_eq!(sessions, 2);
        host.stop().await;
    }
}

#[tokio::test]
async fn a_restarted_server_works_again_in_both_eras() {
    for mode in ["legacy", "modern"] {
        let (far, host) = (Far::start(mode), host());
        let settings = remote(&far, "/mcp");
        assert_eq!(text(echo(&host, &settings, "one").await), "one");
        let far = far.restart().await;
        assert_eq!(text(echo(&host, &settings, "two").await), "two");
        // The legacy one refused the first try, for its session.
        assert_eq!(far.calls().await.len(), if mode == "legacy" { 2 } else { 1 });
        host.stop().await;
    }
}

/// A server that is gone costs a clear error; nothing was sent, and it is
/// found again when it is back.
#[tokio::test]
async fn a_server_that_is_gone_is_said_to_be_gone_and_found_again() {
    let (far, host) = (Far::start("modern"), host());
    let mut settings = remote(&far, "/mcp");
    settings.start = Duration::from_secs(3);
    assert_eq!(text(echo(&host, &settings, "one").await), "one");
    let port = far.port();
    tokio::task::spawn_blocking(|| drop(far)).await.unwrap();
    let mut gone = echo(&host, &settings, "two").await;
    // A connection that was kept may end while the request is on its way: then nobody
    // knows. The next one finds nobody there.
    if matches!(&gone, Outcome::Unknown(_)) {
        gone = echo(&host, &settings, "two").await;
    }
    assert!(matches!(&gone, Outcome::NotSent { needs_login: false, .. }), "{gone:?}");
    let far = Far::start_at("modern", port);
    host.refresh(&owner("a"), &settings);
    eventually("its return", || (host.status()[0].state == "ready").then_some(())).await;
    assert_eq!(text(echo(&host, &settings, "three").await), "three");
    assert_eq!(far.calls().await.len(), 1);
    host.stop().await;
}

#[tokio::test]
async fn each_refusal_has_its_own_meaning() {
    let (far, host) = (Far::start("modern"), host());
    let settings = remote(&far, "/mcp");
    assert_eq!(text(echo(&host, &settings, "one").await), "one");
    far.control(json!({ "once": 500 })).await;
    let broken = echo(&host, &settings, "x").await;
    assert!(matches!(&broken, Outcome::Unknown(why) if why.contains("HTTP 500")), "{broken:?}");
    far.control(json!({ "once": 422 })).await;
    let refused = echo(&host, &settings, "x").await;
    assert!(matches!(&refused, Outcome::NotSent { why, .. } if why.contains("HTTP 422")), "{refused:?}");
    far.control(json!({ "once": 429 })).await;
    let busy = echo(&host, &settings, "x").await;
    assert!(matches!(&busy, Outcome::NotSent { why, .. } if why.contains("HTTP 429")), "{busy:?}");
    let status = eventually("the pause", || host.status().pop().filter(|s| s.state == "backing_off")).await;
    assert!(status.retry_in_ms.unwrap() > 15_000, "{status:?}");
    // Each was sent once.
    assert_eq!(far.calls().await.len(), 4);
    host.stop().await;
}

#[tokio::test]
async fn a_login_is_asked_for_and_not_retried() {
    let (far, host) = (Far::start("oauth"), host());
    let settings = remote(&far, "/mcp");
    let seen = host.catalogue(&owner("a"), std::slice::from_ref(&settings), Duration::from_secs(20)).await;
    assert!(seen.missing[0].needs_login, "{:?}", seen.missing);
    assert_eq!(host.status()[0].state, "needs_auth");
    let refused = echo(&host, &settings, "x").await;
    assert!(matches!(refused, Outcome::NotSent { needs_login: true, .. }), "{refused:?}");
    let asked = far.log().await.iter().filter(|line| line[0] == "mcp").count();
    assert_eq!(asked, 1, "it was asked again without a login");
    host.stop().await;
}

/// Only a redirect that keeps method and body, within one origin, is followed.
/// The metadata address is not visited, nor does another origin see a header.
#[tokio::test]
async fn x10_redirects_stay_at_their_origin() {
    let (far, host) = (Far::start("modern"), host());
    assert_eq!(text(echo(&host, &remote(&far, "/redirect"), "through").await), "through");
    for (path, word) in [("/elsewhere", "HTTP 307"), ("/see-other", "HTTP 302"), ("/loop", "too often")] {
        let mut settings = remote(&far, path);
        settings.start = Duration::from_secs(5);
        let seen = host.catalogue(&owner("a"), &[settings], Duration::from_secs(20)).await;
        assert!(seen.missing[0].why.contains(word), "{:?}", seen.missing);
    }
    host.stop().await;
}

#[tokio::test]
async fn large_cut_and_foreign_answers_end_their_calls_at_once() {
    let (far, host) = (Far::start("modern"), host());
    let settings = remote(&far, "/mcp");
    for tool in ["big", "big_json"] {
        let big = host.call(&owner("a"), &settings, call(tool, json!({}))).await;
        assert!(matches!(&big, Outcome::Failed(why) if why.contains("larger than 4194304 bytes")), "{big:?}");
    }
    let cut = host.call(&owner("a"), &settings, call("cut", json!({}))).await;
    assert!(matches!(&cut, Outcome::Unknown(why) if why.contains("cut off")), "{cut:?}");
    let html = host.call(&owner("a"), &settings, call("html", json!({}))).await;
    assert!(matches!(html, Outcome::Unknown(_) | Outcome::NotSent { .. }), "{html:?}");
    assert_eq!(text(echo(&host, &settings, "fine").await), "fine");
    host.stop().await;
}

/// Tools may name arguments that travel as headers; one that does it wrongly
/// is left out, one that is only odd is kept.
#[tokio::test]
async fn headers_that_a_tool_asks_for_are_sent() {
    let (far, host) = (Far::start("modern"), host());
    let settings = remote(&far, "/mcp");
    let seen = host.catalogue(&owner("a"), std::slice::from_ref(&settings), Duration::from_secs(20)).await;
    let names: Vec<&str> = seen.tools.iter().map(|tool| tool.tool.raw.as_str()).collect();
    assert!(
        names.contains(&"header") && names.contains(&"odd") && !names.contains(&"bad_header"),
        "{names:?}"
    );
    assert_eq!(host.status()[0].left_out[0].name, "bad_header");
    done(host.call(&owner("a"), &settings, call("header", json!({ "region": "eu-1" }))).await);
    let calls = far.calls().await;
    let heard = &calls[0][3];
    assert_eq!(
        (&heard["mcp-param-region"], &heard["mcp-name"], &heard["mcp-method"]),
        (&json!("eu-1"), &json!("header"), &json!("tools/call"))
    );
    host.stop().await;
}
