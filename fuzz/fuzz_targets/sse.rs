//! Any bytes as an event stream, in any two pieces: the same events as in one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_protocol::sse::{SseEvent, SseSplitter};

const LIMIT: usize = 4096;

/// The events, and whether a line was too large.
fn split(pieces: &[&[u8]]) -> (Vec<SseEvent>, bool) {
    let mut splitter = SseSplitter::new(LIMIT);
    let mut events = Vec::new();
    for piece in pieces {
        if splitter.push(piece, &mut events).is_err() {
            return (events, true);
        }
    }
    (events, false)
}

fuzz_target!(|data: (u16, &[u8])| {
    let (at, bytes) = data;
    let at = usize::from(at) % (bytes.len() + 1);
    let whole = split(&[bytes]);
    assert_eq!(split(&[&bytes[..at], &bytes[at..]]), whole);
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(split(&single), whole);
});
