//! The mock plays what the prompt's mark says.

use std::time::{Duration, Instant};

use serde_json::json;
use toolyard_bench::drive::stamps::Stamps;
use toolyard_bench::marker::Marker;

use crate::world::{peer, post, upstream};

fn request(messages: &serde_json::Value) -> String {
    json!({"model": "mock", "stream": true, "messages": messages}).to_string()
}

#[test]
fn a_mark_reads_as_it_was_written() {
    for tool in [None, Some("read_screen".to_owned())] {
        let marker = Marker { chunks: 100, first_ms: 5, delay_ms: 20, tool };
        let text = format!("hello {marker} there");
        assert_eq!(Marker::last(&text), Some((marker, " there")));
    }
}

#[test]
fn the_last_mark_of_a_conversation_counts() {
    let mark = |chunks| Marker { chunks, first_ms: 0, delay_ms: 0, tool: None };
    let text = format!("{} and {}", mark(1), mark(2));
    assert_eq!(Marker::last(&text), Some((mark(2), "")));
    assert_eq!(Marker::last("no mark"), None);
    assert_eq!(Marker::last("[[answer chunks=many]]"), None);
}

#[tokio::test]
async fn the_answer_has_the_ordered_pieces_and_an_end() {
    let server = peer(upstream().await);
    let mark = Marker { chunks: 7, first_ms: 0, delay_ms: 0, tool: None };
    let body = request(&json!([{"role": "user", "content": mark.to_string()}]));
    let (status, text) = post(&server, "/v1/chat/completions", &body).await;
    let mut stamps = Stamps::default();
    stamps.push(text.as_bytes(), |_| ());
    assert_eq!((status, stamps.count()), (200, 7));
    assert!(text.contains("\"finish_reason\":\"stop\"") && text.ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn a_tool_is_called_first_and_the_text_follows_its_result() {
    let server = peer(upstream().await);
    let mark = Marker { chunks: 2, first_ms: 0, delay_ms: 0, tool: Some("read_screen".to_owned()) };
    let asked = json!({"role": "user", "content": mark.to_string()});
    let (_, call) = post(&server, "/v1/chat/completions", &request(&json!([asked]))).await;
    assert!(call.contains("\"name\":\"read_screen\"") && call.contains("\"finish_reason\":\"tool_calls\""));
    assert!(!call.contains('~'), "{call}");
    let result = json!({"role": "tool", "tool_call_id": "call_1", "content": "{}"});
    let (_, text) = post(&server, "/v1/chat/completions", &request(&json!([asked, result]))).await;
    assert_eq!(text.matches('~').count(), 2);
}

#[tokio::test]
async fn paced_pieces_take_their_time() {
    let server = peer(upstream().await);
    let mark = Marker { chunks: 5, first_ms: 20, delay_ms: 10, tool: None };
    let body = request(&json!([{"role": "user", "content": mark.to_string()}]));
    let began = Instant::now();
    post(&server, "/v1/chat/completions", &body).await;
    assert!(began.elapsed() >= Duration::from_millis(60), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_prompt_without_a_mark_is_refused() {
    let server = peer(upstream().await);
    let body = request(&json!([{"role": "user", "content": "hello"}]));
    assert_eq!(post(&server, "/v1/chat/completions", &body).await.0, 400);
}
