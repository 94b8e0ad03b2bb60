//! Row S7: a vendor that is out of order. At most two repeats, none after the
//! first chunk, and an end in every case.

use std::time::Duration;

use tokio::net::TcpListener;
use toolyard_models::scripted::{Reply, Upstream};
use toolyard_models::wire::Timeouts;
use toolyard_models::{Chunk, ModelError};
use toolyard_protocol::error::ErrorCode;

use crate::fixtures::{Outcome, asking, collect, hasty, model_at};

const SHORT: Duration = Duration::from_millis(60);

/// The outcome and how many requests it took.
async fn run(script: Vec<Reply>, timeouts: Timeouts) -> (Outcome, usize) {
    let upstream = Upstream::serve(script).await.unwrap();
    let model = model_at(&upstream.base_url()).with_timeouts(timeouts);
    let outcome = collect(&model, asking("hi")).await;
    assert!(outcome.ends_once(), "{outcome:?}");
    (outcome, upstream.requests().len())
}

#[tokio::test]
async fn s7_a_429_with_retry_after_is_repeated_at_most_twice() {
    let busy = || Reply::refusal(429, "slow down").header("retry-after", "0");
    let (outcome, requests) = run(vec![busy(), busy(), Reply::saying("At last")], hasty()).await;
    assert_eq!((outcome.text().as_str(), requests), ("At last", 3));

    let script = vec![busy(), busy(), busy(), Reply::saying("too late")];
    let (outcome, requests) = run(script, hasty()).await;
    let error = outcome.error.unwrap();
    assert!(matches!(error, ModelError::RateLimited { .. }), "{error:?}");
    assert_eq!(requests, 3);
}

#[tokio::test]
async fn s7_a_retry_after_of_an_hour_ends_at_once_and_says_so() {
    let busy = Reply::refusal(429, "slow down").header("retry-after", "3600");
    let (outcome, requests) = run(vec![busy, Reply::saying("x")], hasty()).await;
    let error = outcome.error.unwrap();
    assert!(error.to_string().contains("try again in 3600 s"), "{error}");
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn s7_a_retry_after_date_counts_from_the_answers_own_date() {
    let busy = Reply::refusal(503, "later")
        .header("date", "Sun, 15 Nov 2026 12:00:00 GMT")
        .header("retry-after", "Sun, 15 Nov 2026 12:01:40 GMT");
    let (outcome, _) = run(vec![busy], hasty()).await;
    match outcome.error {
        Some(ModelError::Overloaded { retry_after, .. }) => {
            assert_eq!(retry_after, Some(Duration::from_secs(100)));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn s7_each_passing_status_is_repeated_and_each_lasting_one_is_not() {
    for status in [408, 409, 429, 500, 502, 503, 504, 529] {
        let script = vec![Reply::refusal(status, "x"), Reply::saying("ok")];
        let (outcome, requests) = run(script, hasty()).await;
        assert_eq!((outcome.text().as_str(), requests), ("ok", 2), "{status}");
    }
    for status in [400, 401, 402, 403, 404, 413, 422] {
        let script = vec![Reply::refusal(status, "x"), Reply::saying("no")];
        let (outcome, requests) = run(script, hasty()).await;
        assert!(outcome.error.is_some());
        assert_eq!(requests, 1, "{status}");
    }
}

#[tokio::test]
async fn a_refusal_says_what_the_caller_can_do() {
    let error_of = async |status| {
        let (outcome, _) = run(vec![Reply::refusal(status, "why")], hasty()).await;
        outcome.error.unwrap()
    };
    assert!(matches!(error_of(401).await, ModelError::KeyRefused { .. }));
    assert!(matches!(error_of(403).await, ModelError::KeyRefused { .. }));
    let unknown = error_of(404).await;
    assert_eq!(unknown.code(), ErrorCode::ModelNotFound);
    assert!(unknown.detail().unwrap().contains("why") && !unknown.to_string().contains("why"));
    assert!(matches!(error_of(400).await, ModelError::RequestRefused { status: 400, .. }));
}

#[tokio::test]
async fn s7_nobody_at_the_address_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let outcome = collect(&model_at(&base), asking("hi")).await;
    let error = outcome.error.unwrap();
    assert!(matches!(error, ModelError::Unreachable { .. }), "{error:?}");
    assert!(error.retryable());
}

#[tokio::test]
async fn s7_a_vendor_that_never_answers_is_silent() {
    let timeouts = Timeouts { head: SHORT, ..hasty() };
    let (outcome, requests) = run(vec![Reply::silent(), Reply::saying("x")], timeouts).await;
    assert_eq!(outcome.error, Some(ModelError::Silent { after: SHORT }));
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn s7_a_hang_after_the_head_is_silent() {
    let timeouts = Timeouts { idle: SHORT, ..hasty() };
    let (outcome, requests) = run(vec![Reply::stream().hang(), Reply::saying("x")], timeouts).await;
    assert_eq!(outcome.error, Some(ModelError::Silent { after: SHORT }));
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn s7_a_hang_in_the_middle_of_a_token_is_a_cut_after_what_was_shown() {
    let timeouts = Timeouts { idle: SHORT, ..hasty() };
    let reply = Reply::stream().text("shown").text("half a token");
    let bytes = reply.body().len() - 20;
    let script = vec![reply.hang_after(bytes), Reply::saying("x")];
    let (outcome, requests) = run(script, timeouts).await;
    assert_eq!(outcome.chunks, [Chunk::text("shown")]);
    assert_eq!(outcome.error.unwrap().code(), ErrorCode::ModelStreamCut);
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn s6_keep_alive_comments_alone_are_no_progress() {
    let comments = (0..2000).fold(Reply::stream(), |reply, _| reply.comment());
    let timeouts = Timeouts { stall: SHORT, ..hasty() };
    let script = vec![comments.pace(Duration::from_millis(5)), Reply::saying("x")];
    let (outcome, requests) = run(script, timeouts).await;
    assert_eq!(outcome.error, Some(ModelError::Silent { after: SHORT }));
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn s7_a_connection_that_breaks_before_the_first_chunk_is_tried_again() {
    let broken = Reply::stream().text("lost").cut_after(9);
    let (outcome, requests) = run(vec![broken, Reply::saying("Here")], hasty()).await;
    assert_eq!((outcome.text().as_str(), requests), ("Here", 2));
}

#[tokio::test]
async fn s7_there_is_no_second_request_after_the_first_chunk() {
    let shown = || Reply::stream().text("shown ");
    let fault = serde_json::json!({ "error": { "message": "x", "type": "server_error" } });
    let endings = [
        shown().cut_after(usize::MAX),
        shown().event(&fault),
        // Both events in one write: how bytes are packed must not matter.
        Reply::stream().raw([shown().body(), Reply::stream().event(&fault).body()].concat()),
        shown().raw("data: garbage\n\n"),
        shown().until_close(),
    ];
    for ending in endings {
        let (outcome, requests) = run(vec![ending, Reply::saying("again")], hasty()).await;
        assert_eq!(outcome.chunks, [Chunk::text("shown ")]);
        assert_eq!(outcome.error.unwrap().code(), ErrorCode::ModelStreamCut);
        assert_eq!(requests, 1);
    }
}

#[tokio::test]
async fn an_error_event_before_the_first_chunk_is_tried_again() {
    let fault = serde_json::json!({ "error": { "message": "x", "type": "overloaded" } });
    let script = vec![Reply::stream().event(&fault), Reply::saying("ok")];
    let (outcome, requests) = run(script, hasty()).await;
    assert_eq!((outcome.text().as_str(), requests), ("ok", 2));
}

#[tokio::test]
async fn a_reply_that_is_whole_survives_a_hang_or_break_at_its_tail() {
    let whole = || Reply::stream().text("all").finish("stop");
    let timeouts = Timeouts { tail: SHORT, ..hasty() };
    for reply in [whole().hang(), whole().cut_after(usize::MAX)] {
        let (outcome, requests) = run(vec![reply], timeouts).await;
        assert_eq!(outcome.error, None);
        assert_eq!((outcome.text().as_str(), requests), ("all", 1));
    }
}
