//! The provider over real HTTP, with a vendor that behaves.

use serde_json::json;
use toolyard_models::scripted::{Reply, Upstream};
use toolyard_models::{Chunk, Model, ModelError, OfferedTool, Request};
use toolyard_protocol::run::{FinishReason, Usage};

use crate::fixtures::{ALL, asking, collect, decode, model_at};

#[tokio::test]
async fn s6_fixtures_over_http_equal_fixtures_decoded() {
    for fixture in ALL {
        let reply = || Reply::stream().raw(fixture.bytes);
        let script = [reply(), reply().one_byte_writes(), reply().until_close()];
        let upstream = Upstream::serve(script).await.unwrap();
        let model = model_at(&upstream.base_url());
        for _ in 0..3 {
            let outcome = collect(&model, asking("hi")).await;
            assert_eq!(outcome.error, None);
            assert_eq!(outcome.lines(), fixture.lines, "{}", fixture.name);
        }
        assert_eq!(upstream.requests().len(), 3);
    }
}

#[tokio::test]
async fn s6_cuts_over_http_equal_cuts_decoded() {
    let bytes = ALL[1].bytes;
    for at in (200..bytes.len()).step_by(97) {
        let expected = decode([&bytes[..at]]);
        // A clean close, then a broken connection.
        let clean = Reply::stream().raw(bytes).until_close().cut_after(at);
        let broken = Reply::stream().raw(bytes).cut_after(at);
        let again = Reply::saying("never asked for");
        for reply in [clean, broken] {
            let upstream = Upstream::serve([reply, again.clone()]).await.unwrap();
            let outcome = collect(&model_at(&upstream.base_url()), asking("hi")).await;
            if expected.chunks.is_empty() {
                // Nothing was shown: a broken connection may be tried again.
                continue;
            }
            assert_eq!(outcome.chunks, expected.chunks, "cut at {at}");
            assert_eq!(
                outcome.error.map(|e| e.code()),
                expected.error.clone().map(|e| e.code()),
                "cut at {at}"
            );
            assert_eq!(upstream.requests().len(), 1, "no second request after the first chunk");
        }
    }
}

#[tokio::test]
async fn the_request_carries_key_and_body() {
    let upstream = Upstream::serve([Reply::saying("Hello there")]).await.unwrap();
    let tool = OfferedTool { name: "t".into(), description: "d".into(), schema: json!({}) };
    let request = Request { tools: vec![tool], ..asking("hi") };
    let outcome = collect(&model_at(&upstream.base_url()), request).await;
    assert_eq!(outcome.text(), "Hello there");
    let usage = Usage { input_tokens: 7, output_tokens: 2, ..Usage::default() };
    assert!(outcome.chunks.contains(&Chunk::Usage { usage }));

    let [seen] = upstream.requests().try_into().unwrap();
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(seen.header("authorization"), Some("Bearer sk-canary-0123456789"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.body["stream"], true);
    assert_eq!(seen.body["tools"][0]["function"]["name"], "t");
    assert_eq!(seen.last_text("user"), Some("hi"));
}

#[tokio::test]
async fn a_reply_that_is_not_streamed_is_accepted() {
    let body = json!({ "id": "x", "model": "m", "choices": [{ "index": 0, "finish_reason": "tool_calls",
        "message": { "role": "assistant", "content": "Both.", "tool_calls": [
            { "id": "same", "type": "function", "function": { "name": "f", "arguments": "{\"a\":1}" } },
            { "id": "same", "type": "function", "function": { "name": "f", "arguments": "{\"a\":2}" } }] } }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 2 } });
    let upstream = Upstream::serve([Reply::json(&body)]).await.unwrap();
    let outcome = collect(&model_at(&upstream.base_url()), asking("hi")).await;
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.text(), "Both.");
    let calls: Vec<_> = outcome
        .chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::ToolCall { index, args_text, .. } => Some((*index, args_text.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(calls, [(0, "{\"a\":1}"), (1, "{\"a\":2}")]);
    assert_eq!(outcome.chunks.last(), Some(&Chunk::Finish { reason: FinishReason::ToolCalls }));
}

#[tokio::test]
async fn s6_a_page_instead_of_a_model_is_one_typed_error_without_the_page() {
    let upstream = Upstream::serve([Reply::html("<h1>Captive portal</h1>")]).await.unwrap();
    let outcome = collect(&model_at(&upstream.base_url()), asking("hi")).await;
    let error = outcome.error.unwrap();
    assert!(matches!(error, ModelError::Unreadable { .. }), "{error:?}");
    assert!(!error.to_string().contains("portal"));
    assert!(error.detail().unwrap().contains("Captive portal"));
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn s6_a_json_answer_that_is_no_reply_is_one_typed_error() {
    for body in [json!({"hello": 1}), json!([]), json!("hi"), json!({"choices": []})] {
        let upstream = Upstream::serve([Reply::json(&body)]).await.unwrap();
        let outcome = collect(&model_at(&upstream.base_url()), asking("hi")).await;
        assert!(outcome.error.is_some() && outcome.ends_once(), "{body}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Upstream::serve([Reply::saying("stolen")]).await.unwrap();
    let moved = Reply::refusal(307, "moved").header("location", &elsewhere.base_url());
    let upstream = Upstream::serve([moved]).await.unwrap();
    let outcome = collect(&model_at(&upstream.base_url()), asking("hi")).await;
    assert!(matches!(outcome.error, Some(ModelError::RequestRefused { status: 307, .. })));
    assert_eq!(elsewhere.requests(), []);
}

#[tokio::test]
async fn the_script_may_choose_by_the_request() {
    let upstream = Upstream::answer(|seen| match seen.last_text("user") {
        Some("weather") => Reply::calling(&[("weather", json!({ "city": "Zürich" }))]),
        other => Reply::saying(&format!("You said {}", other.unwrap_or("nothing"))),
    })
    .await
    .unwrap();
    let model = model_at(&upstream.base_url());
    assert_eq!(collect(&model, asking("hello")).await.text(), "You said hello");
    let outcome = collect(&model, asking("weather")).await;
    let called = outcome.chunks.iter().any(
        |chunk| matches!(chunk, Chunk::ToolCall { args_text, .. } if args_text == "{\"city\":\"Zürich\"}"),
    );
    assert!(called, "{outcome:?}");
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let reply = Reply::stream().text("one").hang();
    let upstream = Upstream::serve([reply]).await.unwrap();
    let model = model_at(&upstream.base_url());
    let mut stream = model.stream(asking("hi"));
    let first = futures::StreamExt::next(&mut stream).await.unwrap().unwrap();
    assert_eq!(first, Chunk::text("one"));
    drop(stream);
    upstream.hangups_reach(1).await;
}

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_polled() {
    let upstream = Upstream::serve([]).await.unwrap();
    drop(model_at(&upstream.base_url()).stream(asking("hi")));
    assert_eq!(upstream.requests(), []);
}
