//! Anthropic: what its events become, and what its refusals mean.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolyard_models::anthropic::Decoder;
use toolyard_models::wire::{Decode, Refusal};
use toolyard_models::{Chunk, ModelError};
use toolyard_protocol::error::ErrorCode;
use toolyard_protocol::run::{FinishReason, Usage};

use crate::fixtures::{Fixture, Outcome};
use crate::storm::{self, recorded};

pub(crate) const ALL: [Fixture; 4] = recorded!("anthropic": "text", "calls", "search", "quirks");

#[test]
fn s6_recorded_replies_survive_every_split_cut_and_damage() {
    ALL.iter().for_each(storm::survives::<Decoder>);
    storm::is_sober::<Decoder>();
}

proptest! {
    #[test]
    fn s6_random_damage_never_panics_and_ends_once(
        which in 0..ALL.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        step in 1..64usize,
    ) {
        let mut bytes = ALL[which].bytes.to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let outcome = storm::decode::<Decoder>([bytes.as_slice()]);
        prop_assert!(outcome.ends_once());
        prop_assert_eq!(storm::decode::<Decoder>(bytes.chunks(step)), outcome);
    }
}

/// A reply of these blocks, not streamed.
fn whole(body: &Value) -> Outcome {
    let mut decoder = Decoder::default();
    let mut chunks = Vec::new();
    let read = decoder.push_whole(body.to_string().as_bytes(), &mut chunks);
    let error = read.and_then(|()| decoder.end(&mut chunks)).err();
    Outcome { chunks, error }
}

#[test]
fn u19_citations_become_sources_without_places_in_the_text() {
    let outcome = storm::decode::<Decoder>([ALL[2].bytes]);
    let sources: Vec<&Chunk> = outcome.chunks.iter().filter(|c| matches!(c, Chunk::Source { .. })).collect();
    let source = |url: &str, title: Option<&str>| Chunk::Source {
        url: url.into(),
        title: title.map(str::to_owned),
        start: None,
        end: None,
    };
    assert_eq!(
        sources,
        [&source("https://a.example/rust", Some("Rust")), &source("https://b.example/r", None)]
    );
    assert_eq!(outcome.text(), "I search.It is known that Größe zählt 🎉. And documents have no address.");
}

#[test]
fn a_reply_that_is_not_streamed_is_the_same_reply() {
    let content = json!([
        { "type": "thinking", "thinking": "hm", "signature": "s" },
        { "type": "text", "text": "Both.", "citations": null },
        { "type": "tool_use", "id": "t1", "name": "f", "input": { "a": 1 } },
        { "type": "tool_use", "id": "t2", "name": "g", "input": {} },
    ]);
    let body = json!({ "type": "message", "id": "m", "model": "c", "role": "assistant", "content": content,
        "stop_reason": "tool_use", "usage": { "input_tokens": 3, "output_tokens": 4 } });
    let call = |index, name: &str, args: &str, id: &str| Chunk::ToolCall {
        index,
        name: name.into(),
        args_text: args.into(),
        vendor_id: Some(id.into()),
        metadata: Value::Null,
    };
    let expected = vec![
        Chunk::ReasoningDelta { text: "hm".into() },
        Chunk::ReasoningMetadata { value: json!({ "anthropic": { "type": "thinking", "signature": "s" } }) },
        Chunk::text("Both."),
        Chunk::ToolInputStart { index: 0, name: "f".into() },
        Chunk::ToolInputDelta { index: 0, text: "{\"a\":1}".into() },
        call(0, "f", "{\"a\":1}", "t1"),
        Chunk::ToolInputStart { index: 1, name: "g".into() },
        call(1, "g", "{}", "t2"),
        Chunk::Metadata { value: json!({ "id": "m", "model": "c", "stop_reason": "tool_use" }) },
        Chunk::Usage { usage: Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() } },
        Chunk::Finish { reason: FinishReason::ToolCalls },
    ];
    assert_eq!(whole(&body), Outcome { chunks: expected, error: None });
    let broken = whole(&json!({ "type": "error", "error": { "type": "overloaded_error", "message": "x" } }));
    assert!(matches!(broken.error, Some(ModelError::Overloaded { status: 529, .. })), "{broken:?}");
}

#[test]
fn every_stop_reason_has_its_meaning() {
    let said = json!([{ "type": "text", "text": "I" }]);
    let reason = |vendor: &str| match whole(&json!({ "content": said, "stop_reason": vendor })).chunks.pop() {
        Some(Chunk::Finish { reason }) => reason,
        other => panic!("{other:?}"),
    };
    let expected = [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        // Without a call there is nothing to do.
        ("tool_use", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("refusal", FinishReason::ContentFilter),
        ("pause_turn", FinishReason::Paused),
        ("brand_new", FinishReason::Other),
    ];
    for (vendor, meaning) in expected {
        assert_eq!(reason(vendor), meaning, "{vendor}");
    }
}

#[test]
fn cached_input_counts_as_input() {
    let outcome = storm::decode::<Decoder>([ALL[0].bytes]);
    let usage = Usage {
        input_tokens: 1012,
        output_tokens: 9,
        reasoning_tokens: 0,
        cached_tokens: 900,
        cache_write_tokens: 100,
    };
    assert!(outcome.chunks.contains(&Chunk::Usage { usage }), "{outcome:?}");
}

#[test]
fn an_error_inside_the_stream_keeps_its_meaning() {
    let error_of = |kind: &str, message: &str| {
        let error = json!({ "type": "error", "error": { "type": kind, "message": message } });
        let bare = storm::event::<Decoder>(&error.to_string()).error.unwrap();
        let named = storm::decode::<Decoder>([format!("event: error\ndata: {error}\n\n").as_bytes()]);
        assert_eq!(Some(bare.clone()), named.error);
        bare
    };
    assert!(matches!(error_of("overloaded_error", "x"), ModelError::Overloaded { status: 529, .. }));
    assert!(matches!(error_of("api_error", "x"), ModelError::Overloaded { status: 500, .. }));
    assert!(matches!(error_of("rate_limit_error", "x"), ModelError::RateLimited { .. }));
    assert!(matches!(error_of("authentication_error", "x"), ModelError::KeyRefused { .. }));
    assert!(matches!(error_of("brand_new", "x"), ModelError::Overloaded { status: 500, .. }));
    let filtered = error_of("invalid_request_error", "Output blocked by content filtering policy");
    assert!(matches!(filtered, ModelError::Filtered { .. }));
}

#[test]
fn a_refusal_says_what_the_caller_can_do() {
    let refused = |status: u16, kind: &str, message: &str| {
        let body =
            json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "r" });
        let retry_after = Some(Duration::from_secs(7));
        Decoder::refused(&Refusal { status, retry_after, headers: Vec::new(), body: body.to_string() })
    };
    let later = refused(429, "rate_limit_error", "slow down");
    assert_eq!(later.retry_after(), Some(Duration::from_secs(7)));
    assert!(matches!(later, ModelError::RateLimited { .. }) && later.retryable());
    assert!(refused(529, "overloaded_error", "Overloaded").retryable());
    assert_eq!(refused(404, "not_found_error", "model: x").code(), ErrorCode::ModelNotFound);
    assert!(matches!(refused(401, "authentication_error", "x"), ModelError::KeyRefused { .. }));
    for empty in [
        refused(402, "billing_error", "x"),
        refused(400, "invalid_request_error", "Your credit balance is too low to access the API."),
    ] {
        assert!(matches!(empty, ModelError::OutOfQuota { .. }), "{empty:?}");
        assert!(empty.falls_back() && !empty.retryable());
    }
    for words in [
        "prompt is too long: 213000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000",
    ] {
        let long = refused(400, "invalid_request_error", words);
        assert!(matches!(long, ModelError::ContextTooLong { .. }), "{long:?}");
        assert!(!long.retryable() && !long.to_string().contains("213000"));
        assert!(long.detail().unwrap().contains(words.split(' ').next().unwrap()));
    }
    assert!(matches!(refused(413, "request_too_large", "x"), ModelError::ContextTooLong { .. }));
    let wrong = refused(400, "invalid_request_error", "tools.0: bad");
    assert!(matches!(wrong, ModelError::RequestRefused { status: 400, .. }));
}

#[test]
fn s6_odd_shapes_are_skipped_and_never_a_panic() {
    let odd = [json!("text"), json!(5), json!([]), Value::Null, json!({}), json!({ "type": 7 })];
    for block in odd {
        let start = json!({ "type": "content_block_start", "index": 0, "content_block": block });
        let delta = json!({ "type": "content_block_delta", "index": 0,
            "delta": { "type": "input_json_delta", "partial_json": "{}" } });
        let stop = json!({ "type": "content_block_stop", "index": 0 });
        let end = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } });
        let stray = json!({ "type": "content_block_delta", "index": 9, "delta": { "text": "nowhere" } });
        let events: String =
            [start, delta, stop, stray, end].iter().map(|event| format!("data: {event}\n\n")).collect();
        let outcome = storm::decode::<Decoder>([events.as_bytes()]);
        assert_eq!(
            (outcome.error, outcome.chunks.last()),
            (None, Some(&Chunk::Finish { reason: FinishReason::Stop }))
        );
    }
}
