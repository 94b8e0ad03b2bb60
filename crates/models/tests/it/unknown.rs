//! Row S6: what a vendor adds tomorrow is no error, and it is kept.

use serde_json::{Value, json};
use toolyard_models::wire::Decode;
use toolyard_models::{Chunk, UNKNOWN, anthropic, gemini, openai, responses};

use crate::storm::decode;

/// The unknown events that the facts of a reply tell.
fn kept<D: Decode>(stream: &str) -> Value {
    let outcome = decode::<D>([stream.as_bytes()]);
    assert_eq!(outcome.error, None, "{outcome:?}");
    assert_eq!(outcome.text(), "ok");
    let facts = outcome.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Metadata { value } => value.get(UNKNOWN).cloned(),
        _ => None,
    });
    facts.unwrap_or_default()
}

fn events(list: &[Value]) -> String {
    list.iter().map(|event| format!("data: {event}\n\n")).collect()
}

#[test]
fn s6_chat_completions_keep_events_that_nobody_knows() {
    let filter = json!({ "choices": [], "prompt_filter_results": [{ "hate": "safe" }] });
    let said = json!({ "choices": [{ "index": 0, "delta": { "content": "ok" }, "finish_reason": "stop" }] });
    let stream = format!(
        "{}event: router.note\ndata: {{\"queue\":3}}\n\nevent: news\ndata: no json\n\n: comment\n\n{}data: [DONE]\n\n",
        events(std::slice::from_ref(&filter)),
        events(std::slice::from_ref(&said)),
    );
    assert_eq!(
        kept::<openai::Decoder>(&stream),
        json!([
            { "data": filter },
            { "event": "router.note", "data": { "queue": 3 } },
            { "event": "news", "data": "no json" },
        ])
    );
    assert_eq!(kept::<openai::Decoder>(&events(&[said])), Value::Null, "nothing is said of nothing");
}

#[test]
fn s6_anthropic_keeps_events_and_deltas_that_nobody_knows() {
    let news = json!({ "type": "budget_update", "left": 3 });
    let delta =
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "hologram_delta", "x": 1 } });
    let stream = events(&[
        json!({ "type": "message_start", "message": { "content": [] } }),
        news.clone(),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        delta.clone(),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "ok" } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "ping" }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
        json!({ "type": "message_stop" }),
    ]);
    assert_eq!(kept::<anthropic::Decoder>(&stream), json!([{ "data": news }, { "data": delta }]));
}

#[test]
fn s6_gemini_and_responses_keep_events_of_others() {
    let said =
        json!({ "candidates": [{ "content": { "parts": [{ "text": "ok" }] }, "finishReason": "STOP" }] });
    let stream = format!("event: note\ndata: no json\n\n{}", events(&[said]));
    assert_eq!(kept::<gemini::Decoder>(&stream), json!([{ "event": "note", "data": "no json" }]));

    let limits = json!({ "type": "codex.rate_limits", "left": 5 });
    let stream = events(&[
        limits.clone(),
        json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "ok" }),
        json!({ "type": "response.completed", "response": { "status": "completed" } }),
    ]);
    assert_eq!(
        kept::<responses::Decoder>(&stream),
        json!([{ "event": "codex.rate_limits", "data": limits }])
    );
}
