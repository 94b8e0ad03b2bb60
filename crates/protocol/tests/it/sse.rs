//! The splitter gives the same events however the bytes are cut.

use proptest::prelude::*;
use toolyard_protocol::sse::{SseEvent, SseSplitter, TooLarge};

fn event(id: Option<&str>, name: Option<&str>, data: &str) -> SseEvent {
    SseEvent { id: id.map(str::to_owned), event: name.map(str::to_owned), data: data.to_owned() }
}

fn split(pieces: &[&[u8]]) -> Vec<SseEvent> {
    let mut splitter = SseSplitter::new(1 << 20);
    let mut out = Vec::new();
    for piece in pieces {
        splitter.push(piece, &mut out).unwrap();
    }
    out
}

/// Everything the format knows in one text.
fn story(newline: &str) -> String {
    [
        "\u{feff}: hello",
        "",
        "id: 1",
        "event: text-delta",
        "data: {\"a\":\"é😀\"}",
        "",
        "data:no space",
        "data:  two spaces",
        "data",
        "",
        "id: 3",
        "event: without-data",
        "",
        ": keep-alive",
        "retry: 100",
        "unknown: field",
        "data: a: b",
        "",
        "data: unfinished",
    ]
    .join(newline)
}

fn told() -> Vec<SseEvent> {
    vec![
        event(Some("1"), Some("text-delta"), "{\"a\":\"é😀\"}"),
        event(None, None, "no space\n two spaces\n"),
        event(None, None, "a: b"),
    ]
}

#[test]
fn lf_crlf_and_cr_mean_the_same() {
    for newline in ["\n", "\r\n", "\r"] {
        assert_eq!(split(&[story(newline).as_bytes()]), told(), "{newline:?}");
    }
}

#[test]
fn one_cut_at_any_place_changes_nothing() {
    for newline in ["\n", "\r\n", "\r"] {
        let text = story(newline);
        for at in 0..=text.len() {
            let (a, b) = text.as_bytes().split_at(at);
            assert_eq!(split(&[a, b]), told(), "{newline:?} cut at {at}");
        }
    }
}

#[test]
fn bytes_one_by_one_change_nothing() {
    for newline in ["\n", "\r\n", "\r"] {
        let text = story(newline);
        assert_eq!(split(&text.as_bytes().chunks(1).collect::<Vec<_>>()), told(), "{newline:?}");
    }
}

#[test]
fn an_event_is_given_as_soon_as_its_blank_line_is_there() {
    let mut splitter = SseSplitter::new(100);
    let mut out = Vec::new();
    splitter.push(b"data: 1\n", &mut out).unwrap();
    assert_eq!(out, vec![]);
    splitter.push(b"\n", &mut out).unwrap();
    assert_eq!(out, vec![event(None, None, "1")]);
    // With CR alone the line ends at once; a late LF belongs to it.
    splitter.push(b"data: 2\r\r", &mut out).unwrap();
    assert_eq!(out.len(), 2);
    splitter.push(b"\ndata: 3\r\n\r\n", &mut out).unwrap();
    assert_eq!(out[2..], [event(None, None, "3")]);
}

#[test]
fn a_byte_order_mark_counts_only_at_the_start() {
    assert_eq!(split(&["\u{feff}data: 1\n\n".as_bytes()]), vec![event(None, None, "1")]);
    assert_eq!(split(&["data: 1\n\n\u{feff}data: 2\n\n".as_bytes()]), vec![event(None, None, "1")]);
}

#[test]
fn an_event_beyond_the_limit_is_refused_with_the_number() {
    let mut splitter = SseSplitter::new(16);
    let refused = splitter.push(b"data: 0123456789abcdef", &mut Vec::new());
    assert_eq!(refused, Err(TooLarge { limit: 16 }));
    assert_eq!(refused.unwrap_err().to_string(), "an event of the stream is larger than 16 bytes");
}

#[test]
fn many_small_lines_of_one_event_count_together() {
    let mut splitter = SseSplitter::new(64);
    let lines = b"data: 0123456789\n".repeat(10);
    assert_eq!(splitter.push(&lines, &mut Vec::new()), Err(TooLarge { limit: 64 }));
}

#[test]
fn many_small_events_do_not_count_together() {
    let mut splitter = SseSplitter::new(64);
    let mut out = Vec::new();
    splitter.push(&b"data: 0123456789\n\n".repeat(100), &mut out).unwrap();
    assert_eq!(out.len(), 100);
}

#[test]
fn bytes_that_are_no_text_do_not_stop_the_stream() {
    assert_eq!(split(&[b"data: \xff\xfe\n\ndata: 2\n\n"])[1], event(None, None, "2"));
}

fn newline() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("\n"), Just("\r\n"), Just("\r")]
}

proptest! {
    /// Any events, any line ends, any cuts: what was written comes out.
    #[test]
    fn what_was_written_comes_out(
        events in prop::collection::vec((prop::option::of("[a-z0-9]{1,8}"), "[ -~é😀]{0,40}"), 0..8),
        newline in newline(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut text = String::new();
        let mut expected = Vec::new();
        for (id, data) in &events {
            if let Some(id) = id {
                text.push_str(&format!("id: {id}{newline}"));
            }
            text.push_str(&format!("data: {data}{newline}{newline}"));
            expected.push(event(id.as_deref(), None, data));
        }
        let bytes = text.as_bytes();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(split(&pieces), expected);
    }

    /// No bytes at all make it panic or grow without limit.
    #[test]
    fn noise_is_survived(noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut splitter = SseSplitter::new(64);
        let mut out = Vec::new();
        let _ = splitter.push(&noise, &mut out);
        prop_assert!(out.iter().all(|event| event.data.len() <= 64 * 3));
    }
}
