//! What reading a model's stream costs: bytes to canonical chunks, beside
//! `serde_json` that parses the same events into typed structs with all their
//! fields, and no more. Bedrock's frames are read by the vendor's own library on
//! both sides.
//! Processor time of this thread, the best of many rounds, as a ratio. A goal
//! that is missed is an exit code of its own.

use std::process::ExitCode;

use aws_smithy_eventstream::frame::{DecodedFrame, MessageFrameDecoder, write_message_to};
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use toolyard_models::wire::Decode;
use toolyard_models::{anthropic, bedrock, gemini, openai, responses};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EVENTS: usize = 3_000;
const ROUNDS: usize = 40;
/// Our time as a multiple of theirs.
const GOAL: f64 = 2.0;
/// As much as one read of a socket brings.
const READ: usize = 16 << 10;

/// Events as a vendor's own library types them: every field, owned.
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsing is what is measured")]
struct Chat {
    id: String,
    object: String,
    created: u64,
    model: String,
    choices: Vec<Choice>,
}
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsing is what is measured")]
struct Choice {
    index: u32,
    delta: Content,
    finish_reason: Option<String>,
}
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsing is what is measured")]
struct Content {
    content: Option<String>,
    role: Option<String>,
}
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsing is what is measured")]
struct BlockDelta {
    r#type: String,
    index: u32,
    delta: Option<Piece>,
}
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsing is what is measured")]
struct Piece {
    r#type: String,
    text: String,
}
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsing is what is measured")]
struct TextDelta {
    r#type: String,
    sequence_number: u32,
    item_id: String,
    output_index: u32,
    content_index: u32,
    delta: String,
    logprobs: Vec<f64>,
}
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "parsing is what is measured")]
struct Candidates {
    candidates: Vec<Candidate>,
    model_version: String,
    response_id: String,
}
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsing is what is measured")]
struct Candidate {
    content: Parts,
    index: u32,
}
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsing is what is measured")]
struct Parts {
    parts: Vec<Text>,
    role: String,
}
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsing is what is measured")]
struct Text {
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "parsing is what is measured")]
struct ConverseDelta {
    content_block_index: u32,
    delta: Text,
    p: String,
}

/// Processor nanoseconds of this thread.
fn spent() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

fn best(mut work: impl FnMut()) -> u64 {
    let round = |work: &mut dyn FnMut()| {
        let start = spent();
        work();
        spent() - start
    };
    (0..ROUNDS).map(|_| round(&mut work)).min().unwrap_or(0)
}

fn stream(events: &[serde_json::Value], named: bool) -> (Vec<u8>, Vec<String>) {
    let mut bytes = Vec::new();
    let mut data = Vec::with_capacity(events.len());
    for event in events {
        if named && let Some(name) = event["type"].as_str() {
            bytes.extend_from_slice(format!("event: {name}\n").as_bytes());
        }
        bytes.extend_from_slice(format!("data: {event}\n\n").as_bytes());
        data.push(event.to_string());
    }
    (bytes, data)
}

/// The same in the binary frames of Amazon: three headers and two checksums each.
fn frames(events: &[serde_json::Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for event in events {
        let header = |name: &'static str, value: &'static str| {
            Header::new(name, HeaderValue::String(value.to_owned().into()))
        };
        let message = Message::new(event.to_string().into_bytes())
            .add_header(header(":event-type", "contentBlockDelta"))
            .add_header(header(":content-type", "application/json"))
            .add_header(header(":message-type", "event"));
        // A frame of a few bytes cannot fail; the count of chunks would show it.
        let _ = write_message_to(&message, &mut bytes);
    }
    bytes
}

/// Whether the goal was reached.
#[must_use]
fn measure<D: Decode>(vendor: &str, bytes: &[u8], theirs: impl FnMut()) -> bool {
    let mut chunks = 0;
    let ours = best(|| {
        let (mut decoder, mut out) = (D::default(), Vec::new());
        chunks = 0;
        for read in bytes.chunks(READ) {
            // The made streams have no fault: the count of chunks shows it.
            let _ = decoder.push(read, &mut out);
            // As a session does: what was read goes on at once.
            chunks += out.drain(..).count();
        }
    });
    let theirs = best(theirs);
    #[expect(clippy::cast_precision_loss, reason = "a few milliseconds")]
    let ratio = ours as f64 / theirs.max(1) as f64;
    let reached = ratio <= GOAL && chunks >= EVENTS - 1;
    let goal = if reached { "ok" } else { "MISSED" };
    println!(
        "| {vendor} | {chunks} | {:.2} | {:.2} | {ratio:.2} | <= {GOAL:.2} | {goal} |",
        ms(ours),
        ms(theirs)
    );
    reached
}

#[expect(clippy::cast_precision_loss, reason = "a few milliseconds")]
fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn typed<T: DeserializeOwned>(data: &[String]) -> impl FnMut() {
    move || data.iter().for_each(|text| drop(std::hint::black_box(serde_json::from_str::<T>(text).ok())))
}

/// The vendor's own library reads the frames.
fn framed<T: DeserializeOwned>(bytes: &[u8]) -> impl FnMut() {
    let bytes = bytes::Bytes::copy_from_slice(bytes);
    move || {
        let mut rest = bytes.clone();
        while let Ok(DecodedFrame::Complete(message)) = MessageFrameDecoder::new().decode_frame(&mut rest) {
            std::hint::black_box(serde_json::from_slice::<T>(message.payload()).ok());
        }
    }
}

fn main() -> ExitCode {
    println!("| wire | chunks | ours ms | serde_json ms | ratio | goal | |\n|---|---|---|---|---|---|---|");
    let words = |n: usize| format!(" word{n}");
    let chat: Vec<_> = (0..EVENTS)
        .map(|n| {
            json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
                "choices": [{"index": 0, "delta": {"content": words(n)}, "finish_reason": null}]})
        })
        .collect();
    let (bytes, data) = stream(&chat, false);
    let mut reached = measure::<openai::Decoder>("openai chat", &bytes, typed::<Chat>(&data));
    let block =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let messages: Vec<_> = std::iter::once(block)
        .chain((1..EVENTS).map(|n| {
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words(n)}})
        }))
        .collect();
    let (bytes, data) = stream(&messages, true);
    reached &= measure::<anthropic::Decoder>("anthropic", &bytes, typed::<BlockDelta>(&data));
    let parts: Vec<_> = (0..EVENTS)
        .map(|n| {
            json!({"type": "response.output_text.delta", "sequence_number": n, "item_id": "msg_1",
                "output_index": 0, "content_index": 0, "delta": words(n), "logprobs": []})
        })
        .collect();
    let (bytes, data) = stream(&parts, true);
    reached &= measure::<responses::Decoder>("openai responses", &bytes, typed::<TextDelta>(&data));
    let candidates: Vec<_> = (0..EVENTS)
        .map(|n| {
            json!({"candidates": [{"content": {"parts": [{"text": words(n)}], "role": "model"}, "index": 0}],
                "modelVersion": "gemini-2.5-flash", "responseId": "r"})
        })
        .collect();
    let (bytes, data) = stream(&candidates, false);
    reached &= measure::<gemini::Decoder>("gemini", &bytes, typed::<Candidates>(&data));
    let blocks: Vec<_> = (0..EVENTS)
        .map(|n| json!({"contentBlockIndex": 0, "delta": {"text": words(n)}, "p": "abcdefghijklmnopqrstuv"}))
        .collect();
    let bytes = frames(&blocks);
    reached &= measure::<bedrock::Decoder>("bedrock", &bytes, framed::<ConverseDelta>(&bytes));
    if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
