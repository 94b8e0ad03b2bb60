//! S6: any bytes as a vendor's stream, in any two pieces. Never a panic, one end,
//! and nothing that depends on where the bytes are cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_models::wire::Decode;
use toolyard_models::{Chunk, anthropic, bedrock, gemini, openai, responses};

fn decode<D: Decode>(pieces: &[&[u8]]) -> (Vec<Chunk>, Option<String>) {
    let mut decoder = D::default();
    let mut chunks = Vec::new();
    for piece in pieces {
        if let Err(error) = decoder.push(piece, &mut chunks) {
            return (chunks, Some(error.to_string()));
        }
    }
    let error = decoder.end(&mut chunks).err().map(|error| error.to_string());
    (chunks, error)
}

fn check<D: Decode>(at: usize, bytes: &[u8]) {
    let (chunks, error) = decode::<D>(&[bytes]);
    let finishes = chunks.iter().filter(|chunk| matches!(chunk, Chunk::Finish { .. })).count();
    assert_eq!(finishes, usize::from(error.is_none()), "{chunks:?} {error:?}");
    assert_eq!(decode::<D>(&[&bytes[..at], &bytes[at..]]), (chunks, error));
    let mut chunks = Vec::new();
    let _ = D::default().push_whole(bytes, &mut chunks);
}

fuzz_target!(|data: (u8, u16, &[u8])| {
    let (vendor, at, bytes) = data;
    let at = usize::from(at) % (bytes.len() + 1);
    match vendor % 5 {
        0 => check::<openai::Decoder>(at, bytes),
        1 => check::<responses::Decoder>(at, bytes),
        2 => check::<anthropic::Decoder>(at, bytes),
        3 => check::<gemini::Decoder>(at, bytes),
        _ => check::<bedrock::Decoder>(at, bytes),
    }
});
