//! Row S6: malformed streams. Never a panic, the same chunks at every split,
//! every failure one typed error.

use proptest::prelude::*;
use toolyard_models::wire::EVENT_BYTES;
use toolyard_models::{Chunk, ModelError};
use toolyard_protocol::error::ErrorCode;
use toolyard_protocol::run::FinishReason;

use crate::fixtures::{ALL, Fixture, Outcome, decode};

fn whole(fixture: &Fixture) -> Outcome {
    decode([fixture.bytes])
}

fn with_line_ends(bytes: &[u8], end: &str) -> Vec<u8> {
    String::from_utf8(bytes.to_vec()).unwrap().replace('\n', end).into_bytes()
}

#[test]
fn s6_a_recorded_reply_becomes_exactly_its_lines() {
    for fixture in ALL {
        let outcome = whole(&fixture);
        assert_eq!(outcome.error, None, "{}", fixture.name);
        fixture.is_told_as(&outcome.lines());
    }
}

#[test]
fn s6_every_split_gives_the_same_chunks() {
    for fixture in ALL {
        let expected = whole(&fixture);
        for at in 0..=fixture.bytes.len() {
            let (left, right) = fixture.bytes.split_at(at);
            assert_eq!(decode([left, right]), expected, "{} split at {at}", fixture.name);
        }
        assert_eq!(decode(fixture.bytes.chunks(1)), expected, "{} by bytes", fixture.name);
    }
}

#[test]
fn s6_line_ends_and_a_byte_order_mark_do_not_matter_at_any_split() {
    for fixture in ALL {
        let expected = whole(&fixture);
        for end in ["\r\n", "\r"] {
            let mut bytes = "\u{feff}".as_bytes().to_vec();
            bytes.extend(with_line_ends(fixture.bytes, end));
            for at in 0..=bytes.len() {
                let (left, right) = bytes.split_at(at);
                assert_eq!(decode([left, right]), expected, "{} {end:?} at {at}", fixture.name);
            }
            assert_eq!(decode(bytes.chunks(1)), expected, "{} {end:?}", fixture.name);
        }
    }
}

#[test]
fn s6_a_cut_at_any_byte_is_the_whole_reply_or_one_cut() {
    for fixture in ALL {
        let full = whole(&fixture);
        // A reply whose finish was read is whole; only its usage may be lost.
        let without_usage: Vec<Chunk> = {
            let kept = full.chunks.iter().filter(|c| !matches!(c, Chunk::Usage { .. }));
            kept.cloned().collect()
        };
        let mut cuts = 0;
        for at in 0..fixture.bytes.len() {
            let outcome = decode([&fixture.bytes[..at]]);
            assert!(outcome.ends_once());
            match &outcome.error {
                None => assert!(
                    outcome == full || outcome.chunks == without_usage,
                    "{} cut at {at}: {outcome:?}",
                    fixture.name
                ),
                Some(error) => {
                    cuts += 1;
                    assert_eq!(error.code(), ErrorCode::ModelStreamCut);
                    assert!(full.chunks.starts_with(&outcome.chunks), "{} at {at}", fixture.name);
                }
            }
        }
        assert!(cuts > fixture.bytes.len() / 2);
    }
}

#[test]
fn s6_an_invalid_byte_anywhere_is_read_or_one_typed_error() {
    for fixture in ALL {
        for at in 0..fixture.bytes.len() {
            let mut bytes = fixture.bytes.to_vec();
            bytes[at] = 0xff;
            let outcome = decode([bytes.as_slice()]);
            assert!(outcome.ends_once(), "{} at {at}", fixture.name);
            assert_eq!(decode(bytes.chunks(1)), outcome, "{} at {at}", fixture.name);
        }
    }
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
        let outcome = decode([bytes.as_slice()]);
        prop_assert!(outcome.ends_once());
        prop_assert_eq!(decode(bytes.chunks(step)), outcome);
    }

    #[test]
    fn s6_random_bytes_never_panic_and_end_once(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(decode([bytes.as_slice()]).ends_once());
    }
}

#[test]
fn s6_a_line_of_ten_megabytes_is_refused_with_its_limit() {
    let mut bytes = b"data: ".to_vec();
    bytes.resize(10 << 20, b'a');
    for size in [bytes.len(), 64 << 10] {
        let outcome = decode(bytes.chunks(size));
        assert_eq!(outcome.error, Some(ModelError::TooLarge { limit: EVENT_BYTES as u64 }));
        assert_eq!(outcome.chunks, []);
    }
}

#[test]
fn s6_what_came_before_a_line_that_is_too_large_is_kept() {
    let mut bytes = b"data: {\"choices\":[{\"delta\":{\"content\":\"first\"}}]}\n\ndata: ".to_vec();
    bytes.resize(5 << 20, b'a');
    let outcome = decode([bytes.as_slice()]);
    assert_eq!(outcome.chunks, [Chunk::text("first")]);
    assert_eq!(outcome.error, Some(ModelError::TooLarge { limit: EVENT_BYTES as u64 }));
}

#[test]
fn s6_an_empty_reply_with_a_finish_is_fine_and_one_without_is_cut() {
    let empty = decode([&b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"[..]]);
    let finish = Chunk::Finish { reason: FinishReason::Stop };
    assert_eq!(empty, Outcome { chunks: vec![finish], error: None });
    for nothing in ["", "data: [DONE]\n\n", ": hello\n\n", "data: {}\n\n"] {
        let error = decode([nothing.as_bytes()]).error.unwrap();
        assert_eq!(error.code(), ErrorCode::ModelStreamCut, "{nothing:?}");
    }
}

#[test]
fn s6_text_that_is_no_json_is_one_typed_error() {
    for bad in ["data: <html>\n\n", "data: {\"choices\":5}\n\n", "data: [1,2]\n\n"] {
        let error = decode([bad.as_bytes()]).error.unwrap();
        assert!(matches!(error, ModelError::Unreadable { .. }), "{bad:?}: {error:?}");
    }
}

#[test]
fn an_error_inside_the_stream_keeps_its_meaning() {
    let error_of = |data: &str| decode([format!("data: {data}\n\n").as_bytes()]).error.unwrap();
    let busy = error_of(r#"{"error":{"message":"x","type":"server_error","code":null}}"#);
    assert!(matches!(busy, ModelError::Overloaded { status: 500, .. }), "{busy:?}");
    let limited = error_of(r#"{"error":{"message":"x","type":"rate_limit_error"}}"#);
    assert!(matches!(limited, ModelError::RateLimited { .. }), "{limited:?}");
    let numbered = error_of(r#"{"error":{"message":"x","code":502}}"#);
    assert!(matches!(numbered, ModelError::Overloaded { status: 502, .. }), "{numbered:?}");
    let wrong = error_of(r#"{"error":{"message":"x","type":"invalid_request_error"}}"#);
    assert!(matches!(wrong, ModelError::RequestRefused { status: 400, .. }), "{wrong:?}");
    let unknown = error_of(r#"{"error":{"message":"x","code":"model_not_found"}}"#);
    assert_eq!(unknown.code(), ErrorCode::ModelNotFound);
    assert!(error_of(r#"{"error":"out of memory"}"#).retryable());
}

#[test]
fn an_event_named_error_is_an_error_in_any_shape() {
    let error = decode([&b"event: error\ndata: it broke\n\n"[..]]).error.unwrap();
    assert!(matches!(error, ModelError::Overloaded { status: 500, .. }), "{error:?}");
    assert!(error.detail().unwrap().contains("it broke"));
}

#[test]
fn nothing_after_the_end_mark_counts() {
    let bytes = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n\
        data: [DONE]\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\ndata: garbage\n\n";
    let expected = [Chunk::text("a"), Chunk::Finish { reason: FinishReason::Stop }];
    assert_eq!(decode([&bytes[..]]), Outcome { chunks: expected.to_vec(), error: None });
}

#[test]
fn a_last_event_without_its_empty_line_counts() {
    let bytes = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"length\"}]}";
    let expected = [Chunk::text("a"), Chunk::Finish { reason: FinishReason::Length }];
    assert_eq!(decode([&bytes[..]]), Outcome { chunks: expected.to_vec(), error: None });
}

#[test]
fn a_call_without_a_name_is_one_typed_error() {
    let bytes = br#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}

"#;
    let outcome = decode([&bytes[..]]);
    assert!(matches!(outcome.error, Some(ModelError::Unreadable { .. })), "{outcome:?}");
    assert_eq!(outcome.chunks, []);
}

#[test]
fn a_name_and_id_repeated_with_every_piece_stay_one_call() {
    let piece = |args: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"v\",\"function\":{{\"name\":\"f\",\"arguments\":{}}}}}]}}}}]}}\n\n",
            serde_json::to_string(args).unwrap()
        )
    };
    let finish = "data: {\"choices\":[{\"finish_reason\":\"tool_calls\"}]}\n\n";
    let bytes = [piece("{\"a\":{}"), piece(""), piece(",\"b\":1}"), finish.to_owned()].concat();
    let outcome = decode([bytes.as_bytes()]);
    let call = Chunk::ToolCall {
        index: 0,
        name: "f".into(),
        args_text: "{\"a\":{},\"b\":1}".into(),
        vendor_id: Some("v".into()),
        metadata: serde_json::Value::Null,
    };
    assert!(outcome.chunks.contains(&call), "{outcome:?}");
    let calls = outcome.chunks.iter().filter(|c| matches!(c, Chunk::ToolCall { .. })).count();
    assert_eq!(calls, 1);
}

/// An event that repeats the one before with another text is not parsed. What
/// is told must be what parsing each event by itself tells.
#[test]
fn s6_events_that_repeat_each_other_are_read_as_if_each_were_the_first() {
    let event = |delta: &serde_json::Value, choice: &str| {
        format!("data: {{\"id\":\"c\",\"choices\":[{{\"delta\":{delta}{choice}}}]}}\n\n")
    };
    let said = |text: &str| event(&serde_json::json!({ "content": text }), "");
    let thought = event(&serde_json::json!({ "content": "", "reasoning": "hm" }), "");
    let both = event(&serde_json::json!({ "content": "b", "reasoning": "so" }), "");
    let kinds = [
        said("a"),
        said(" word"),
        said("line\nbreak"),
        said("\"quoted\\\""),
        said("\u{1}\u{7f}\u{e9}"),
        said("\",\"refusal\":\"no"),
        said(""),
        thought,
        both,
        event(&serde_json::json!({ "content": "end" }), ",\"finish_reason\":\"stop\""),
        event(&serde_json::json!({ "content": "late" }), ",\"finish_reason\":\"length\""),
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":{\"prompt_tokens\":3}}\n\n"
            .to_owned(),
    ];
    let finish = event(&serde_json::json!({}), ",\"finish_reason\":\"stop\"");
    // Between the same words, an event of another shape: nothing learned from it may stick.
    let apart = |kind: &str| decode([format!("{kind}{finish}").as_bytes()]).chunks;
    for first in &kinds {
        for second in &kinds {
            for third in &kinds {
                let bytes = [first.as_str(), second, third, &finish].concat();
                let read = decode([bytes.as_bytes()]);
                assert_eq!(read.error, None, "{bytes}");
                let words = |chunks: &[Chunk]| -> Vec<Chunk> {
                    let word =
                        |c: &&Chunk| matches!(c, Chunk::TextDelta { .. } | Chunk::ReasoningDelta { .. });
                    chunks.iter().filter(word).cloned().collect()
                };
                let expected = [first, second, third].map(|kind| words(&apart(kind))).concat();
                assert_eq!(words(&read.chunks), expected, "{bytes}");
            }
        }
    }
}
