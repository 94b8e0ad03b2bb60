//! The demo's grammar is fixed text: README, web app and tests rely on it.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_models::demo::{Demo, HELP};
use toolyard_models::{ChatTurn, Chunk, ModelError, OfferedTool, PastCall, PastResult, Request};
use toolyard_protocol::agent::ToolChoice;
use toolyard_protocol::error::ErrorCode;
use toolyard_protocol::ids::CallId;
use toolyard_protocol::run::{FinishReason, Usage};

use crate::fixtures::{Outcome, asking, collect};

fn with_tools(text: &str) -> Request {
    let tool = OfferedTool { name: "read_screen".into(), description: String::new(), schema: json!({}) };
    Request { tools: vec![tool], ..asking(text) }
}

async fn reply(request: Request) -> Outcome {
    let outcome = collect(&Demo::new("demo"), request).await;
    assert!(outcome.ends_once(), "{outcome:?}");
    outcome
}

fn calls(outcome: &Outcome) -> Vec<(usize, &str, &str)> {
    let call = |chunk| match chunk {
        &Chunk::ToolCall { index, ref name, ref args_text, .. } => {
            Some((index, name.as_str(), args_text.as_str()))
        }
        _ => None,
    };
    outcome.chunks.iter().filter_map(call).collect()
}

fn finish(outcome: &Outcome) -> FinishReason {
    match outcome.chunks.last() {
        Some(Chunk::Finish { reason }) => *reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_line_streams_its_input_and_then_calls() {
    let outcome = reply(with_tools("call read_screen {\"q\": \"é\"}")).await;
    let delta = |text: &str| Chunk::ToolInputDelta { index: 0, text: text.into() };
    let expected = vec![
        Chunk::ToolInputStart { index: 0, name: "read_screen".into() },
        delta("{\"q\":"),
        delta(" \"é\"}"),
        Chunk::ToolCall {
            index: 0,
            name: "read_screen".into(),
            args_text: "{\"q\": \"é\"}".into(),
            vendor_id: None,
            metadata: Value::Null,
        },
        Chunk::Usage { usage: Usage { input_tokens: 4, output_tokens: 3, ..Usage::default() } },
        Chunk::Finish { reason: FinishReason::ToolCalls },
    ];
    assert_eq!(outcome.chunks, expected);
}

#[tokio::test]
async fn several_call_lines_are_several_calls_of_one_reply() {
    let text = "Please:\ncall a {\"n\":1}\ncall b\ncall a {\"n\":1}\r\nthanks";
    let outcome = reply(with_tools(text)).await;
    assert_eq!(calls(&outcome), [(0, "a", "{\"n\":1}"), (1, "b", "{}"), (2, "a", "{\"n\":1}")]);
    assert_eq!(finish(&outcome), FinishReason::ToolCalls);
    assert_eq!(outcome.text(), "");
}

#[tokio::test]
async fn bad_arguments_are_told_in_text() {
    for args in ["{\"q\":", "5", "[1]", "please"] {
        let outcome = reply(with_tools(&format!("call read_screen {args}"))).await;
        assert_eq!(calls(&outcome), []);
        let text = outcome.text();
        assert!(text.starts_with("The arguments of read_screen are not a JSON object"), "{text}");
        assert_eq!(finish(&outcome), FinishReason::Stop);
    }
}

#[tokio::test]
async fn without_tools_a_call_line_is_answered_in_text() {
    let off = Request { tool_choice: ToolChoice::None, ..with_tools("call read_screen") };
    for request in [asking("call read_screen"), off] {
        let outcome = reply(request).await;
        assert_eq!(outcome.text(), "Tools are off, so read_screen cannot be called.");
        assert_eq!(finish(&outcome), FinishReason::Stop);
    }
}

#[tokio::test]
async fn results_are_repeated_and_the_loop_ends() {
    let (one, two) = (CallId::mint(), CallId::mint());
    let past = |id: &CallId, name: &str| PastCall {
        id: id.clone(),
        name: name.into(),
        args: json!({}),
        metadata: Value::Null,
    };
    let result = |call: &CallId, name: &str, content: &str, is_error| PastResult {
        call: call.clone(),
        name: name.into(),
        content: content.into(),
        is_error,
    };
    let mut request = with_tools("call read_screen\ncall move {\"x\":1}");
    let calls_made = vec![past(&one, "read_screen"), past(&two, "move")];
    request.turns.push(ChatTurn::Assistant { parts: vec![], calls: calls_made });
    request.turns.push(ChatTurn::ToolResults(vec![
        result(&one, "read_screen", "a login page", false),
        result(&two, "move", "no arm", true),
    ]));
    let outcome = reply(request.clone()).await;
    assert_eq!(outcome.text(), "Tool read_screen answered: a login page\nTool move failed: no arm");
    assert_eq!(calls(&outcome), []);
    assert_eq!(finish(&outcome), FinishReason::Stop);

    // A new user message decides again.
    request.turns.push(ChatTurn::user("say ok"));
    assert_eq!(reply(request).await.text(), "ok");
}

#[tokio::test(start_paused = true)]
async fn slow_streams_its_words_at_twenty_per_second() {
    let before = tokio::time::Instant::now();
    let outcome = reply(asking("slow 40")).await;
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    let text = outcome.text();
    assert!(text.starts_with("word1 word2 ") && text.ends_with(" word40"), "{text}");
    let deltas = outcome.chunks.iter().filter(|c| matches!(c, Chunk::TextDelta { .. })).count();
    assert_eq!(deltas, 40);
}

#[tokio::test(start_paused = true)]
async fn slow_takes_one_to_two_thousand_words() {
    assert!(reply(asking("slow 2000")).await.text().ends_with(" word2000"));
    for bad in ["slow 0", "slow 2001", "slow down"] {
        assert_eq!(reply(asking(bad)).await.text(), "slow needs a number from 1 to 2000.");
    }
}

#[tokio::test]
async fn cite_answers_with_a_source_whose_span_is_the_address() {
    let outcome = reply(asking("say ☂ first\ncite https://example.com/ü")).await;
    let text = outcome.text();
    assert_eq!(text, "☂ first\nThis answer cites https://example.com/ü");
    let span = outcome.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Source { url, start: Some(start), end: Some(end), .. } => {
            Some((url.clone(), *start as usize, *end as usize))
        }
        _ => None,
    });
    let (url, start, end) = span.unwrap();
    let cited: String = text.chars().skip(start).take(end - start).collect();
    assert_eq!((url.as_str(), cited.as_str()), ("https://example.com/ü", "https://example.com/ü"));
}

#[tokio::test]
async fn say_answers_exactly_and_think_is_reasoning() {
    let outcome = reply(asking("think hm, so\nsay Hello,  world!\nsay Bye")).await;
    assert_eq!(outcome.text(), "Hello,  world!\nBye");
    let thought: String = outcome
        .chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::ReasoningDelta { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(thought, "hm, so");
}

#[tokio::test]
async fn fail_fails_and_after_some_text_it_is_a_cut() {
    let outcome = reply(asking("fail")).await;
    assert_eq!(outcome.chunks, []);
    let error = outcome.error.unwrap();
    assert!(matches!(error, ModelError::RequestRefused { .. }));
    assert_eq!(error.code(), ErrorCode::ModelRequestRefused);

    let outcome = reply(asking("say some\nfail\nsay more")).await;
    assert_eq!(outcome.text(), "some");
    assert_eq!(outcome.error.unwrap().code(), ErrorCode::ModelStreamCut);
}

#[tokio::test]
async fn anything_else_is_answered_with_the_commands() {
    for text in ["Hello", "", "call", " call x", "please call x", "failing", "fail now", "Call x"] {
        assert_eq!(reply(with_tools(text)).await.text(), HELP, "{text:?}");
    }
    for command in ["demo", "call <tool> <json>", "slow <n>", "cite <url>", "say", "think", "fail"] {
        assert!(HELP.contains(command), "{command}");
    }
}

#[tokio::test]
async fn the_same_request_gives_the_same_reply() {
    let request = with_tools("think a\ncite https://a.example\ncall x {\"b\":1}");
    assert_eq!(reply(request.clone()).await, reply(request).await);
}
