//! OpenAI Responses: what its events become.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolyard_models::responses::Decoder;
use toolyard_models::wire::{Decode, Refusal};
use toolyard_models::{Chunk, ModelError};
use toolyard_protocol::run::FinishReason;

use crate::fixtures::Fixture;
use crate::storm::{self, recorded};

pub(crate) const ALL: [Fixture; 4] = recorded!("responses": "text", "calls", "search", "quirks");

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

/// Row U17: a span counts characters of the whole reply, also behind another
/// message and signs that are more than one byte or code unit.
#[test]
fn u17_citations_point_at_their_words() {
    let outcome = storm::decode::<Decoder>([ALL[2].bytes]);
    let text: Vec<char> = outcome.text().chars().collect();
    let cited: Vec<(String, String)> = outcome
        .chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::Source { url, start: Some(start), end: Some(end), .. } => {
                Some((url.clone(), text[*start as usize..*end as usize].iter().collect()))
            }
            _ => None,
        })
        .collect();
    let expected = [("https://example.com/a?b=1", "Rust 1.95"), ("https://example.com/c", "ist 🎉.")];
    assert_eq!(cited, expected.map(|(url, words)| (url.to_owned(), words.to_owned())));
}

#[test]
fn a_reply_that_is_not_streamed_says_the_same() {
    for fixture in &ALL[..3] {
        let streamed = storm::decode::<Decoder>([fixture.bytes]);
        let text = std::str::from_utf8(fixture.bytes).unwrap();
        let last = text.lines().rfind(|line| line.starts_with("data: ")).unwrap();
        let last: Value = serde_json::from_str(&last["data: ".len()..]).unwrap();
        let mut decoder = Decoder::default();
        let mut chunks = Vec::new();
        decoder.push_whole(last["response"].to_string().as_bytes(), &mut chunks).unwrap();
        decoder.end(&mut chunks).unwrap();
        // Pieces of text and arguments may be cut differently.
        let solid = |chunks: &[Chunk]| -> Vec<Chunk> {
            let whole = chunks.iter().filter(|chunk| {
                !matches!(
                    chunk,
                    Chunk::TextDelta { .. } | Chunk::ReasoningDelta { .. } | Chunk::ToolInputDelta { .. }
                )
            });
            whole.cloned().collect()
        };
        assert_eq!(solid(&chunks), solid(&streamed.chunks), "{}", fixture.name);
        let whole = crate::fixtures::Outcome { chunks, error: None };
        assert_eq!(whole.text(), streamed.text(), "{}", fixture.name);
    }
}

#[test]
fn an_end_says_why() {
    let finish = |response: Value| {
        let event = json!({ "type": "response.incomplete", "response": response });
        storm::event::<Decoder>(&event.to_string()).chunks.pop()
    };
    let filtered = json!({ "incomplete_details": { "reason": "content_filter" } });
    let unknown = json!({ "incomplete_details": { "reason": "steered" } });
    // Nothing was said, so this is no reply.
    let event = json!({ "type": "response.incomplete", "response": filtered });
    let error = storm::event::<Decoder>(&event.to_string()).error;
    assert!(matches!(error, Some(ModelError::Filtered { .. })), "{error:?}");
    assert_eq!(finish(unknown), Some(Chunk::Finish { reason: FinishReason::Other }));
    assert_eq!(finish(json!({})), Some(Chunk::Finish { reason: FinishReason::Other }));
}

#[test]
fn errors_keep_their_meaning_in_every_shape() {
    let flat = |code: &str| {
        storm::event::<Decoder>(&json!({ "type": "error", "code": code, "message": "x" }).to_string())
    };
    let failed = |code: &str| {
        let error = json!({ "code": code, "message": "x" });
        let event = json!({ "type": "response.failed", "response": { "status": "failed", "error": error } });
        storm::event::<Decoder>(&event.to_string())
    };
    let nested = |code: &str| {
        let event = json!({ "type": "error", "error": { "type": "x", "code": code, "message": "x" } });
        storm::event::<Decoder>(&event.to_string())
    };
    for shape in [&flat as &dyn Fn(&str) -> crate::fixtures::Outcome, &failed, &nested] {
        let error = |code: &str| shape(code).error.unwrap();
        assert!(matches!(error("server_error"), ModelError::Overloaded { status: 500, .. }));
        assert!(matches!(error("rate_limit_exceeded"), ModelError::RateLimited { .. }));
        assert!(matches!(error("context_length_exceeded"), ModelError::ContextTooLong { .. }));
        assert!(matches!(error("invalid_prompt"), ModelError::RequestRefused { .. }));
        assert!(matches!(error("image_too_large"), ModelError::RequestRefused { .. }));
        assert!(matches!(error("bio_policy"), ModelError::Filtered { .. }));
        assert!(!error("insufficient_quota").retryable());
    }
    let bare = storm::event::<Decoder>(r#"{"type":"response.failed"}"#).error.unwrap();
    assert!(bare.retryable(), "{bare:?}");
    let canceled = storm::event::<Decoder>(r#"{"type":"response.cancelled"}"#).error.unwrap();
    assert!(matches!(canceled, ModelError::Cut { .. }));
}

#[test]
fn a_refusal_keeps_its_meaning() {
    let refused = |status, body: Value| {
        Decoder::refused(&Refusal { status, body: body.to_string(), ..Refusal::default() })
    };
    let error =
        |code: &str| json!({ "error": { "message": "x", "type": "invalid_request_error", "code": code } });
    assert!(matches!(refused(400, error("context_length_exceeded")), ModelError::ContextTooLong { .. }));
    assert!(matches!(refused(401, error("invalid_api_key")), ModelError::KeyRefused { .. }));
    assert!(matches!(refused(400, error("model_not_found")), ModelError::UnknownModel { .. }));
    assert!(matches!(refused(429, error("rate_limit_exceeded")), ModelError::RateLimited { .. }));
}

#[test]
fn a_call_without_a_name_is_one_typed_error() {
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call"}}"#;
    let end = r#"{"type":"response.completed","response":{"status":"completed"}}"#;
    let bytes = format!("data: {added}\n\ndata: {end}\n\n");
    let outcome = storm::decode::<Decoder>([bytes.as_bytes()]);
    assert!(matches!(outcome.error, Some(ModelError::Unreadable { .. })), "{outcome:?}");
}
