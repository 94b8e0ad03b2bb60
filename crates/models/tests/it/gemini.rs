//! Gemini: what its events become.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolyard_models::gemini::Decoder;
use toolyard_models::wire::{Decode, Refusal};
use toolyard_models::{Chunk, ModelError};
use toolyard_protocol::run::FinishReason;

use crate::fixtures::Fixture;
use crate::storm::{self, recorded};

pub(crate) const ALL: [Fixture; 4] = recorded!("gemini": "text", "calls", "search", "quirks");

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

#[test]
fn grounding_in_bytes_becomes_spans_in_characters() {
    let outcome = storm::decode::<Decoder>([ALL[2].bytes]);
    let text: Vec<char> = outcome.text().chars().collect();
    let cited = outcome.chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Source { url, start: Some(start), end: Some(end), .. } => {
            let words: String = text[*start as usize..*end as usize].iter().collect();
            Some((url.rsplit('/').next().unwrap().to_owned(), words))
        }
        _ => None,
    });
    let expected = [
        ("a", "Größe zählt."),
        ("a", "Rust 1.95 ist da 🎉."),
        ("b", "Rust 1.95 ist da 🎉."),
        // Its offsets were wrong; its quotation was not.
        ("b", "Ende."),
    ];
    let expected = expected.map(|(url, words)| (url.to_owned(), words.to_owned()));
    assert_eq!(cited.collect::<Vec<_>>(), expected);
    // A page that nothing points at, a quotation that is nowhere, an offset
    // inside a character: sources without a span.
    let bare = |chunk: &&Chunk| matches!(chunk, Chunk::Source { start: None, end: None, .. });
    assert_eq!(outcome.chunks.iter().filter(bare).count(), 3);
}

#[test]
fn a_reply_that_is_not_streamed_is_accepted() {
    for fixture in &ALL[..3] {
        let streamed = storm::decode::<Decoder>([fixture.bytes]);
        let text = std::str::from_utf8(fixture.bytes).unwrap();
        let events: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        let mut decoder = Decoder::default();
        let mut chunks = Vec::new();
        decoder.push_whole(format!("[{}]", events.join(",\n")).as_bytes(), &mut chunks).unwrap();
        decoder.end(&mut chunks).unwrap();
        assert_eq!(chunks, streamed.chunks, "{}", fixture.name);
    }
}

#[test]
fn every_finish_reason_has_its_meaning() {
    let finish = |reason: &str| {
        let candidate = json!({ "content": { "parts": [{ "text": "a" }] }, "finishReason": reason });
        storm::event::<Decoder>(&json!({ "candidates": [candidate] }).to_string()).chunks.pop()
    };
    let reason = |reason| Some(Chunk::Finish { reason });
    assert_eq!(finish("STOP"), reason(FinishReason::Stop));
    assert_eq!(finish("MAX_TOKENS"), reason(FinishReason::Length));
    for filtered in ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"] {
        assert_eq!(finish(filtered), reason(FinishReason::ContentFilter), "{filtered}");
    }
    for other in ["OTHER", "LANGUAGE", "MALFORMED_FUNCTION_CALL", "TOO_MANY_TOOL_CALLS", "A_NEW_ONE"] {
        assert_eq!(finish(other), reason(FinishReason::Other), "{other}");
    }
}

#[test]
fn a_malformed_call_before_the_first_word_may_be_tried_again() {
    let candidate = json!({ "finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "print(" });
    let outcome = storm::event::<Decoder>(&json!({ "candidates": [candidate] }).to_string());
    let error = outcome.error.unwrap();
    assert!(error.retryable() && error.detail().unwrap().contains("print("), "{error:?}");
}

#[test]
fn a_blocked_prompt_is_filtered() {
    let feedback = json!({ "blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "the prompt" });
    let error = storm::event::<Decoder>(&json!({ "promptFeedback": feedback }).to_string()).error.unwrap();
    assert!(matches!(error, ModelError::Filtered { .. }), "{error:?}");
    assert!(!error.to_string().contains("prompt"), "the vendor's words stay with the operator");
}

fn refused(status: u16, error: Value) -> ModelError {
    Decoder::refused(&Refusal { status, body: json!({ "error": error }).to_string(), ..Refusal::default() })
}

#[test]
fn a_refusal_says_what_the_caller_can_do() {
    let told = |status: &str| json!({ "status": status, "message": "x" });
    assert!(matches!(refused(503, told("UNAVAILABLE")), ModelError::Overloaded { status: 503, .. }));
    assert!(matches!(refused(500, told("INTERNAL")), ModelError::Overloaded { .. }));
    assert!(matches!(refused(401, told("UNAUTHENTICATED")), ModelError::KeyRefused { .. }));
    assert!(matches!(refused(403, told("PERMISSION_DENIED")), ModelError::KeyRefused { .. }));
    assert!(matches!(refused(404, told("NOT_FOUND")), ModelError::UnknownModel { .. }));
    assert!(matches!(refused(400, told("INVALID_ARGUMENT")), ModelError::RequestRefused { status: 400, .. }));
    assert!(matches!(refused(400, told("FAILED_PRECONDITION")), ModelError::RequestRefused { .. }));
    let long = json!({ "status": "INVALID_ARGUMENT",
        "message": "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)." });
    assert!(matches!(refused(400, long), ModelError::ContextTooLong { .. }));
    let key = json!({ "status": "INVALID_ARGUMENT", "message": "API key not valid.",
        "details": [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID" }] });
    assert!(matches!(refused(400, key), ModelError::KeyRefused { .. }));
}

#[test]
fn s7_patience_is_asked_for_in_a_detail() {
    let error = json!({ "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x", "details": [
        { "@type": "type.googleapis.com/google.rpc.QuotaFailure" },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "27.5s" }] });
    assert_eq!(refused(429, error.clone()).retry_after(), Some(Duration::from_millis(27_500)));
    let list = Refusal { status: 429, body: json!([{ "error": error }]).to_string(), ..Refusal::default() };
    assert_eq!(Decoder::refused(&list).retry_after(), Some(Duration::from_millis(27_500)));
    let inside = storm::event::<Decoder>(&json!({ "error": error }).to_string()).error.unwrap();
    assert_eq!(inside.retry_after(), Some(Duration::from_millis(27_500)));
}
