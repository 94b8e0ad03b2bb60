//! Row S6: what a vendor adds tomorrow is no error, and it is kept.

use serde_json::{Value, json};
use toolyard_models::wire::Decode;
use toolyard_models::{Chunk, UNKNOWN, UNKNOWN_FIELDS, anthropic, gemini, openai, responses};

use crate::storm::decode;

/// The unknown events that the facts of a reply tell.
fn kept<D: Decode>(stream: &str) -> Value {
    told::<D>([stream.as_bytes()], UNKNOWN)
}

/// The unknown fields of known events, however the bytes come.
fn fields<D: Decode>(list: &[Value]) -> Value {
    let stream = events(list);
    let whole = told::<D>([stream.as_bytes()], UNKNOWN_FIELDS);
    assert_eq!(told::<D>(stream.as_bytes().chunks(1), UNKNOWN_FIELDS), whole);
    whole
}

fn told<'a, D: Decode>(pieces: impl IntoIterator<Item = &'a [u8]>, name: &str) -> Value {
    let outcome = decode::<D>(pieces);
    assert_eq!(outcome.error, None, "{outcome:?}");
    assert_eq!(outcome.text(), "ok");
    let facts = outcome.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Metadata { value } => value.get(name).cloned(),
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

#[test]
fn s6_chat_completions_keep_fields_that_nobody_knows() {
    let said = |text: &str, mood: &str| {
        json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "provider": "Hosted",
            "choices": [{ "index": 0, "logprobs": null, "native_finish_reason": null,
                "delta": { "role": "assistant", "content": text, "mood": mood } }] })
    };
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop", "filter": { "hate": 0 } }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "cost": 0.5 } });
    let stream = [said("o", "calm"), said("k", "calm"), said("", "glad"), end];
    assert_eq!(
        fields::<openai::Decoder>(&stream),
        json!({
            "provider": ["Hosted"],
            "choices.delta.mood": ["calm", "glad"],
            "choices.filter": [{ "hate": 0 }],
            "usage.cost": [0.5],
        })
    );
}

#[test]
fn s6_anthropic_keeps_fields_that_nobody_knows() {
    let stream = [
        json!({ "type": "message_start", "message": { "id": "m", "type": "message", "role": "assistant",
            "content": [], "container": { "id": "c" }, "usage": { "input_tokens": 1, "geo": "eu" } } }),
        json!({ "type": "content_block_start", "index": 0,
            "content_block": { "type": "text", "text": "", "tone": "calm" } }),
        json!({ "type": "content_block_delta", "index": 0, "trace": "t",
            "delta": { "type": "text_delta", "text": "ok", "sure": 0.9 } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "mood": "glad" },
            "usage": { "output_tokens": 2, "geo": "eu" } }),
        json!({ "type": "message_stop" }),
    ];
    assert_eq!(
        fields::<anthropic::Decoder>(&stream),
        json!({
            "message.container": [{ "id": "c" }],
            "usage.geo": ["eu"],
            "content_block.tone": ["calm"],
            "trace": ["t"],
            "delta.sure": [0.9],
            "delta.mood": ["glad"],
        })
    );
}

#[test]
fn s6_gemini_keeps_fields_that_nobody_knows() {
    let stream = [
        json!({ "candidates": [{ "index": 0, "safetyRatings": [], "urlContextMetadata": { "urls": [] },
            "content": { "role": "model", "parts": [{ "text": "ok", "partMetadata": { "n": 1 } }] } }],
            "modelVersion": "g", "modelStatus": "fine" }),
        json!({ "candidates": [{ "finishReason": "STOP" }],
            "usageMetadata": { "promptTokenCount": 1, "totalTokenCount": 2, "trafficType": "ON_DEMAND" } }),
    ];
    assert_eq!(
        fields::<gemini::Decoder>(&stream),
        json!({
            "modelStatus": ["fine"],
            "candidates.urlContextMetadata": [{ "urls": [] }],
            "candidates.content.parts.partMetadata": [{ "n": 1 }],
            "usageMetadata.trafficType": ["ON_DEMAND"],
        })
    );
}

#[test]
fn s6_responses_keep_fields_and_events_of_their_own_that_nobody_knows() {
    let news = json!({ "type": "response.hologram.delta", "delta": "x" });
    let content = json!([{ "type": "output_text", "text": "ok", "annotations": [], "tone": "calm" }]);
    let stream = [
        json!({ "type": "response.output_text.delta", "sequence_number": 1, "item_id": "m", "output_index": 0,
            "content_index": 0, "delta": "ok", "logprobs": [], "obfuscation": "abc", "sure": 1 }),
        news.clone(),
        json!({ "type": "response.content_part.done", "part": { "type": "output_text" }, "sequence_number": 2 }),
        json!({ "type": "response.output_text.annotation.added", "output_index": 0, "content_index": 0,
            "annotation": { "type": "file_citation", "file_id": "f", "index": 2 } }),
        json!({ "type": "response.output_item.done", "output_index": 0,
            "item": { "type": "message", "id": "m", "status": "completed", "role": "assistant",
                "content": content, "mood": "glad" } }),
        json!({ "type": "response.completed", "response": { "status": "completed", "object": "response",
            "tools": [], "weather": "fine", "usage": { "input_tokens": 1, "joules": 3 } } }),
    ];
    assert_eq!(
        fields::<responses::Decoder>(&stream),
        json!({
            "sure": [1],
            "annotation.file_id": ["f"],
            "annotation.index": [2],
            "item.mood": ["glad"],
            "item.content.tone": ["calm"],
            "response.weather": ["fine"],
            "response.usage.joules": [3],
        })
    );
    let known = json!([{ "event": "response.hologram.delta", "data": news }]);
    assert_eq!(kept::<responses::Decoder>(&events(&stream)), known);
}
