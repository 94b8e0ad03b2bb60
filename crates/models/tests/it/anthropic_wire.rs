//! Anthropic over real HTTP: rows S6, S7 and X8.

use std::time::Duration;

use serde_json::json;
use toolyard_egress::{Door, Target};
use toolyard_models::anthropic::{Anthropic, Decoder};
use toolyard_models::scripted::{Reply, Upstream};
use toolyard_models::{Chunk, ModelError, OfferedTool, Request, Retry};
use toolyard_protocol::error::ErrorCode;

use crate::anthropic::ALL;
use crate::fixtures::{Fixture, Outcome, asking, collect, hasty};
use crate::storm;

const KEY: &str = "sk-ant-canary-0123456789";

fn model_at(base: &str) -> Anthropic {
    Anthropic::new("claude", Door::operator().unwrap(), &Target::parse(base).unwrap(), Some(KEY.into()))
        .with_timeouts(hasty())
        .with_retry(Retry { max: 2, pause: Duration::from_millis(1) })
}

fn whole(fixture: &Fixture) -> Reply {
    Reply::stream().raw(fixture.bytes)
}

fn refusal(status: u16, kind: &str, message: &str) -> Reply {
    let body = json!({ "type": "error", "error": { "type": kind, "message": message } });
    Reply::refusing(status, &body)
}

/// The outcome and how many requests it took.
async fn run(script: Vec<Reply>) -> (Outcome, usize) {
    let upstream = Upstream::serve(script).await.unwrap();
    let outcome = collect(&model_at(&upstream.base_url()), asking("hi")).await;
    assert!(outcome.ends_once(), "{outcome:?}");
    (outcome, upstream.requests().len())
}

#[tokio::test]
async fn s6_fixtures_over_http_equal_fixtures_decoded() {
    for fixture in &ALL {
        let script = [whole(fixture), whole(fixture).one_byte_writes(), whole(fixture).until_close()];
        let upstream = Upstream::serve(script).await.unwrap();
        let model = model_at(&upstream.base_url());
        for _ in 0..3 {
            let outcome = collect(&model, asking("hi")).await;
            assert_eq!((outcome.lines().as_str(), outcome.error), (fixture.lines, None), "{}", fixture.name);
        }
    }
}

#[tokio::test]
async fn s6_cuts_over_http_equal_cuts_decoded() {
    let bytes = ALL[1].bytes;
    for at in (0..bytes.len()).step_by(61) {
        let expected = storm::decode::<Decoder>([&bytes[..at]]);
        if expected.chunks.is_empty() {
            continue;
        }
        for reply in [Reply::stream().raw(bytes).until_close(), Reply::stream().raw(bytes)] {
            let (outcome, requests) = run(vec![reply.cut_after(at), whole(&ALL[0])]).await;
            assert_eq!(outcome.chunks, expected.chunks, "cut at {at}");
            assert_eq!(
                outcome.error.map(|e| e.code()),
                expected.error.as_ref().map(ModelError::code),
                "{at}"
            );
            assert_eq!(requests, 1, "no second request after the first chunk");
        }
    }
}

#[tokio::test]
async fn the_request_carries_key_version_and_betas() {
    let upstream = Upstream::serve([whole(&ALL[0])]).await.unwrap();
    let options = json!({ "anthropic": { "betas": ["one", "two"] } });
    let request = Request { provider_options: options.as_object().cloned(), ..asking("hi") };
    collect(&model_at(&upstream.base_url()), request).await;
    let [seen] = upstream.requests().try_into().unwrap();
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!(seen.header("x-api-key"), Some(KEY));
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(seen.header("anthropic-beta"), Some("one,two"));
    assert_eq!(seen.header("authorization"), None);
    assert_eq!(seen.body["stream"], true);
}

#[tokio::test]
async fn s7_a_busy_vendor_is_asked_at_most_three_times() {
    let busy = || refusal(429, "rate_limit_error", "slow down").header("retry-after", "0");
    let overloaded = || refusal(529, "overloaded_error", "Overloaded");
    let (outcome, requests) = run(vec![busy(), overloaded(), whole(&ALL[0])]).await;
    assert_eq!((outcome.lines().as_str(), requests), (ALL[0].lines, 3));
    let (outcome, requests) = run(vec![busy(), busy(), busy(), whole(&ALL[0])]).await;
    assert!(matches!(outcome.error, Some(ModelError::RateLimited { .. })), "{outcome:?}");
    assert_eq!(requests, 3);
    let hour = refusal(429, "rate_limit_error", "x").header("retry-after", "3600");
    let (outcome, requests) = run(vec![hour, whole(&ALL[0])]).await;
    assert!(outcome.error.unwrap().to_string().contains("try again in 3600 s"));
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn s7_what_will_not_change_is_asked_once() {
    for (status, kind) in
        [(400, "invalid_request_error"), (401, "authentication_error"), (413, "request_too_large")]
    {
        let (outcome, requests) = run(vec![refusal(status, kind, "no"), whole(&ALL[0])]).await;
        assert!(outcome.error.is_some());
        assert_eq!(requests, 1, "{status}");
    }
}

#[tokio::test]
async fn s7_an_error_event_counts_as_a_cut_only_after_the_first_chunk() {
    let fault = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "x" } });
    let (outcome, requests) = run(vec![Reply::stream().event(&fault), whole(&ALL[0])]).await;
    assert_eq!((outcome.lines().as_str(), requests), (ALL[0].lines, 2));

    let bytes = ALL[0].bytes;
    let shown =
        "Grüße ".len() + bytes.windows("Grüße ".len()).position(|w| w == "Grüße ".as_bytes()).unwrap();
    let event_end = shown + bytes[shown..].windows(2).position(|w| w == b"\n\n").unwrap() + 2;
    let start = || Reply::stream().raw(&bytes[..event_end]);
    let endings = [
        start().event(&fault),
        start().raw("data: x\n\n"),
        start().until_close(),
        start().cut_after(usize::MAX),
    ];
    for ending in endings {
        let (outcome, requests) = run(vec![ending, whole(&ALL[0])]).await;
        assert_eq!(outcome.chunks, [Chunk::text("Grüße ")]);
        assert_eq!(outcome.error.unwrap().code(), ErrorCode::ModelStreamCut);
        assert_eq!(requests, 1);
    }
}

#[tokio::test]
async fn s6_pings_alone_are_no_progress() {
    let short = Duration::from_millis(60);
    let ping = json!({ "type": "ping" });
    let pings = (0..2000).fold(Reply::stream(), |reply, _| reply.event(&ping));
    let upstream = Upstream::serve([pings.pace(Duration::from_millis(5))]).await.unwrap();
    let timeouts = toolyard_models::wire::Timeouts { stall: short, ..hasty() };
    let outcome = collect(&model_at(&upstream.base_url()).with_timeouts(timeouts), asking("hi")).await;
    assert_eq!(outcome.error, Some(ModelError::Silent { after: short }));
}

#[tokio::test]
async fn x8_a_vendor_that_repeats_the_key_does_not_leak_it() {
    let said = format!("invalid x-api-key: {KEY}");
    let fault = json!({ "type": "error", "error": { "type": "authentication_error", "message": said } });
    let replies =
        [refusal(401, "authentication_error", &said), Reply::html(&said), Reply::stream().event(&fault)];
    for reply in replies {
        let upstream = Upstream::serve([reply]).await.unwrap();
        let model = model_at(&upstream.base_url());
        let error = collect(&model, asking("hi")).await.error.unwrap();
        let told = format!("{error} {error:?} {:?} {model:?}", error.detail());
        assert!(!told.contains("canary"), "{told}");
    }
}

#[tokio::test]
async fn a_tool_gets_its_own_name_back() {
    let upstream = Upstream::answer(|seen| {
        let alias = &seen.body["tools"][0]["name"];
        let block = json!({ "type": "tool_use", "id": "t", "name": alias, "input": {} });
        Reply::json(&json!({ "type": "message", "content": [block], "stop_reason": "tool_use" }))
    })
    .await
    .unwrap();
    let tool = OfferedTool { name: "files.read".into(), description: String::new(), schema: json!({}) };
    let outcome =
        collect(&model_at(&upstream.base_url()), Request { tools: vec![tool], ..asking("hi") }).await;
    let names: Vec<&str> = outcome
        .chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::ToolInputStart { name, .. } | Chunk::ToolCall { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["files.read", "files.read"]);
}
