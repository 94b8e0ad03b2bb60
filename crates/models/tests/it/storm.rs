//! Row S6 for every wire of events: the same reply in all weathers. Never a
//! panic, the same chunks at every split, every failure one typed error.

use toolyard_models::wire::{Decode, EVENT_BYTES};
use toolyard_models::{Chunk, ModelError};
use toolyard_protocol::error::ErrorCode;

use crate::fixtures::{Fixture, Outcome};

/// The fixtures of a wire by name.
macro_rules! recorded {
    ($wire:literal: $($name:literal),+) => {
        [$(crate::fixtures::Fixture {
            name: concat!($wire, "/", $name),
            bytes: include_bytes!(concat!("../fixtures/", $wire, "/", $name, ".sse")),
            lines: include_str!(concat!("../fixtures/", $wire, "/", $name, ".lines")),
        }),+]
    };
}
pub(crate) use recorded;

/// Feeds these pieces to a decoder.
pub(crate) fn decode<'a, D: Decode>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut decoder = D::default();
    let mut chunks = Vec::new();
    for piece in pieces {
        if let Err(error) = decoder.push(piece, &mut chunks) {
            return Outcome { chunks, error: Some(error) };
        }
    }
    let error = decoder.end(&mut chunks).err();
    Outcome { chunks, error }
}

/// One event in, the outcome out.
pub(crate) fn event<D: Decode>(data: &str) -> Outcome {
    decode::<D>([format!("data: {data}\n\n").as_bytes()])
}

/// Everything that may happen to a recorded reply.
pub(crate) fn survives<D: Decode>(fixture: &Fixture) {
    let name = fixture.name;
    let expected = decode::<D>([fixture.bytes]);
    assert_eq!(expected.error, None, "{name}");
    fixture.is_told_as(&expected.lines());
    every_split::<D>(name, fixture.bytes, &expected);
    for end in ["\r\n", "\r"] {
        let text = std::str::from_utf8(fixture.bytes).unwrap();
        let bytes = format!("\u{feff}{}", text.replace('\n', end)).into_bytes();
        // Splits around the ends of lines are the ones that could matter.
        for at in (1..bytes.len()).filter(|at| bytes[at - 1..=*at].iter().any(|b| b"\r\n".contains(b))) {
            let (left, right) = bytes.split_at(at);
            assert_eq!(decode::<D>([left, right]), expected, "{name} {end:?} split at {at}");
        }
        assert_eq!(decode::<D>(bytes.chunks(1)), expected, "{name} {end:?} by bytes");
    }
    every_cut::<D>(fixture, &expected);
    for at in 0..fixture.bytes.len() {
        let mut bytes = fixture.bytes.to_vec();
        bytes[at] = 0xff;
        let outcome = decode::<D>([bytes.as_slice()]);
        assert!(outcome.ends_once(), "{name} damaged at {at}");
        if at % 7 == 0 {
            assert_eq!(decode::<D>(bytes.chunks(7)), outcome, "{name} damaged at {at}");
        }
    }
}

fn every_split<D: Decode>(name: &str, bytes: &[u8], expected: &Outcome) {
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        assert_eq!(&decode::<D>([left, right]), expected, "{name} split at {at}");
    }
    assert_eq!(&decode::<D>(bytes.chunks(1)), expected, "{name} by bytes");
}

fn every_cut<D: Decode>(fixture: &Fixture, full: &Outcome) {
    let name = fixture.name;
    let mut cuts = 0;
    for at in 0..fixture.bytes.len() {
        let outcome = decode::<D>([&fixture.bytes[..at]]);
        assert!(outcome.ends_once(), "{name} cut at {at}");
        match &outcome.error {
            // Only what follows the last word of the reply may be missing.
            None => assert_eq!(&outcome, full, "{name} cut at {at}"),
            Some(error) => {
                cuts += 1;
                assert_eq!(error.code(), ErrorCode::ModelStreamCut, "{name} cut at {at}: {error:?}");
                assert!(full.chunks.starts_with(&outcome.chunks), "{name} cut at {at}: {outcome:?}");
            }
        }
    }
    assert!(cuts > fixture.bytes.len() / 2, "{name}: most cuts are noticed");
}

/// What is too large, empty or no event at all.
pub(crate) fn is_sober<D: Decode>() {
    let mut bytes = b"data: ".to_vec();
    bytes.resize(10 << 20, b'a');
    for size in [bytes.len(), 64 << 10] {
        let outcome = decode::<D>(bytes.chunks(size));
        assert_eq!(outcome.error, Some(ModelError::TooLarge { limit: EVENT_BYTES as u64 }));
        assert_eq!(outcome.chunks, []);
    }
    for nothing in ["", ": hello\n\n", "data: {}\n\n", "event: ping\ndata: x\n\n", "data: [DONE]\n\n"] {
        let error = decode::<D>([nothing.as_bytes()]).error.unwrap();
        assert_eq!(error.code(), ErrorCode::ModelStreamCut, "{nothing:?}");
    }
    for bad in ["data: <html>\n\n", "data: 5\n\n", "data: \"text\"\n\n"] {
        let error = decode::<D>([bad.as_bytes()]).error.unwrap();
        assert!(matches!(error, ModelError::Unreadable { .. }), "{bad:?}: {error:?}");
    }
    for body in ["", "{}", "[]", "\"hi\"", "{\"hello\":1}"] {
        let mut decoder = D::default();
        let mut chunks: Vec<Chunk> = Vec::new();
        let read = decoder.push_whole(body.as_bytes(), &mut chunks);
        assert!(read.and_then(|()| decoder.end(&mut chunks)).is_err(), "{body:?}");
        assert_eq!(chunks, []);
    }
}
