//! Bedrock over real HTTP and by its decoder alone: framing (row S6), repeats
//! (row S7), signatures and typed errors.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolyard_egress::{Door, Header, Target};
use toolyard_models::bedrock::{Access, Bedrock, Decoder, NoPlace, Place, Signer};
use toolyard_models::scripted::{Reply, Upstream};
use toolyard_models::wire::{Attempt, Decode, Refusal, Sign};
use toolyard_models::{Chunk, Model, ModelError, Request, Retry, UNKNOWN, UNKNOWN_FIELDS};
use toolyard_protocol::run::{FinishReason, Usage};

use crate::fixtures::{Outcome, asking, collect, hasty};
use crate::vendors::{VENDORS, Vendor, folder};

const MODEL: &str = "amazon.nova-lite-v1:0";

fn vendor() -> Vendor {
    VENDORS.into_iter().find(|vendor| vendor.name == "bedrock").unwrap()
}

pub(crate) fn decode(bytes: &[u8]) -> Outcome {
    (vendor().decode)(&[bytes])
}

fn at(base_url: &str, access: Access) -> Bedrock {
    let target = Target::parse(base_url).unwrap();
    Bedrock::new("aws", Door::operator().unwrap(), &target, "eu-central-1", access)
        .with_timeouts(hasty())
        .with_retry(Retry { max: 2, pause: Duration::from_millis(1) })
}

fn keys() -> Access {
    let session = Some("canary-session".into());
    Access::Keys { id: "AKIDEXAMPLE".into(), secret: "canary-secret".into(), session }
}

fn hello() -> Request {
    Request { model: MODEL.into(), ..asking("hi") }
}

fn frames(bytes: Vec<u8>) -> Reply {
    Reply::new(200, "application/vnd.amazon.eventstream").raw(bytes)
}

fn throttled() -> Reply {
    Reply::new(429, "application/json")
        .header("x-amzn-errortype", "ThrottlingException:http://internal.amazon.com/coral/")
        .raw("{\"message\":\"Too many requests\"}")
}

/// One frame, written by hand: lengths, checksums, headers.
fn frame(headers: &[(&str, &str)], payload: &Value) -> Vec<u8> {
    let message = headers.iter().fold(
        aws_smithy_types::event_stream::Message::new(payload.to_string().into_bytes()),
        |message, (name, value)| {
            let value = aws_smithy_types::event_stream::HeaderValue::String((*value).to_owned().into());
            message.add_header(aws_smithy_types::event_stream::Header::new((*name).to_owned(), value))
        },
    );
    let mut bytes = Vec::new();
    aws_smithy_eventstream::frame::write_message_to(&message, &mut bytes).unwrap();
    bytes
}

pub(crate) fn event(kind: &str, payload: &Value) -> Vec<u8> {
    frame(&[(":message-type", "event"), (":event-type", kind)], payload)
}

fn exception(kind: &str, message: &str) -> Vec<u8> {
    frame(&[(":message-type", "exception"), (":exception-type", kind)], &json!({ "message": message }))
}

#[test]
fn s6_a_changed_byte_is_a_cut_and_never_another_word() {
    let bytes = vendor().bytes("parallel_calls");
    let whole = decode(&bytes);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x20;
        let outcome = decode(&changed);
        match outcome.error {
            Some(ModelError::Cut { .. } | ModelError::TooLarge { .. }) => {
                assert_eq!(outcome.chunks, whole.chunks[..outcome.chunks.len()], "at {at}");
            }
            Some(other) => panic!("at {at}: {other:?}"),
            // The last frame, which holds only usage, seems not to end.
            None => {
                let mut without_usage = whole.chunks.clone();
                without_usage.retain(|chunk| !matches!(chunk, Chunk::Usage { .. }));
                assert_eq!(outcome.chunks, without_usage, "at {at}");
            }
        }
    }
}

#[test]
fn s6_replies_are_the_same_at_every_split() {
    for story in ["reasoning", "parallel_calls", "citations", "broken"] {
        let bytes = vendor().bytes(story);
        let whole = vendor().reply(story);
        for at in 0..=bytes.len() {
            let (left, right) = bytes.split_at(at);
            assert_eq!((vendor().decode)(&[left, right]), whole, "{story} at {at}");
        }
    }
}

#[test]
fn s6_bytes_that_are_no_frames_end_in_one_typed_error() {
    for junk in [&b"data: {}\n\n"[..], b"<html>a page where a model should be</html>", &[0; 64], &[0xff; 64]]
    {
        let outcome = decode(junk);
        assert!(outcome.chunks.is_empty() && outcome.error.is_some(), "{junk:?}");
    }
}

#[test]
fn s6_unknown_events_headers_and_fields_are_kept_and_no_error() {
    let mut bytes = event("soonToCome", &json!({ "x": 1 }));
    bytes.extend(frame(&[(":message-type", "initial-response")], &json!({})));
    bytes.extend(event("contentBlockStart", &json!({ "start": { "image": { "format": "png" } } })));
    bytes.extend(event("contentBlockDelta", &json!({ "delta": { "hologram": 1 }, "contentBlockIndex": 0 })));
    bytes.extend(event("contentBlockDelta", &json!({ "delta": { "text": "ok" }, "p": "abc" })));
    bytes.extend(event("messageStop", &json!({ "stopReason": "something_new" })));
    let value = json!({ UNKNOWN: [
        { "event": "soonToCome", "data": { "x": 1 } },
        { "data": {} },
        { "event": "contentBlockStart", "data": { "start": { "image": { "format": "png" } } } },
        { "event": "contentBlockDelta", "data": { "delta": { "hologram": 1 }, "contentBlockIndex": 0 } },
    ] });
    let expected =
        vec![Chunk::text("ok"), Chunk::Metadata { value }, Chunk::Finish { reason: FinishReason::Other }];
    assert_eq!(decode(&bytes), Outcome { chunks: expected, error: None });
}

#[test]
fn s6_bedrock_keeps_the_fields_of_known_events_that_nobody_knows() {
    let call = json!({ "toolUse": { "toolUseId": "t", "name": "add", "mood": "good" } });
    let stop = json!({ "stopReason": "tool_use", "why": "done" });
    let bytes = [
        event("contentBlockDelta", &json!({ "delta": { "text": "ok", "tone": "calm" }, "p": "ab", "at": 1 })),
        event("contentBlockStart", &json!({ "contentBlockIndex": 1, "start": call })),
        event("messageStop", &stop),
        event(
            "metadata",
            &json!({ "usage": { "inputTokens": 1, "joules": 3 }, "metrics": { "latencyMs": 1 }, "tier": "x" }),
        ),
    ]
    .concat();
    let outcome = decode(&bytes);
    let facts = outcome.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Metadata { value } => Some(value.clone()),
        _ => None,
    });
    let fields = json!({
        "at": [1], "delta.tone": ["calm"], "start.toolUse.mood": ["good"],
        "why": ["done"], "usage.joules": [3], "tier": ["x"],
    });
    assert_eq!((facts, outcome.error), (Some(json!({ UNKNOWN_FIELDS: fields })), None));
}

#[test]
fn blocks_that_the_vendor_wants_back_keep_their_place() {
    let delta = |key: u64, delta: Value| {
        event("contentBlockDelta", &json!({ "contentBlockIndex": key, "delta": delta }))
    };
    let start = |key: u64, start: Value| {
        event("contentBlockStart", &json!({ "contentBlockIndex": key, "start": start }))
    };
    let stop = |key: u64| event("contentBlockStop", &json!({ "contentBlockIndex": key }));
    let search =
        json!({ "toolUse": { "toolUseId": "s1", "name": "nova_grounding", "type": "server_tool_use" } });
    let bytes = [
        delta(0, json!({ "reasoningContent": { "redactedContent": "AAEC" } })),
        delta(0, json!({ "reasoningContent": { "redactedContent": "AwQF" } })),
        stop(0),
        start(1, search),
        delta(1, json!({ "toolUse": { "input": "{\"q\":" } })),
        delta(1, json!({ "toolUse": { "input": "1}" } })),
        stop(1),
        start(2, json!({ "toolResult": { "toolUseId": "s1", "type": "nova_grounding_result" } })),
        delta(2, json!({ "toolResult": [{ "text": "found" }] })),
        stop(2),
        delta(3, json!({ "text": "It rains." })),
        event("messageStop", &json!({ "stopReason": "end_turn" })),
        event(
            "metadata",
            &json!({ "usage": { "inputTokens": 5, "outputTokens": 3, "totalTokens": 20,
            "cacheReadInputTokens": 8, "cacheWriteInputTokens": 4 }, "metrics": { "latencyMs": 1 } }),
        ),
    ]
    .concat();
    let call = json!({ "toolUse": { "toolUseId": "s1", "name": "nova_grounding", "type": "server_tool_use",
        "input": { "q": 1 } } });
    let result = json!({ "toolResult": { "toolUseId": "s1", "type": "nova_grounding_result",
        "content": [{ "text": "found" }] } });
    let usage = Usage {
        input_tokens: 17,
        output_tokens: 3,
        cached_tokens: 8,
        cache_write_tokens: 4,
        ..Usage::default()
    };
    let expected = vec![
        Chunk::ReasoningMetadata { value: json!({ "bedrock": { "redactedContent": "AAECAwQF" } }) },
        Chunk::Opaque { value: json!({ "bedrock": call }) },
        Chunk::Opaque { value: json!({ "bedrock": result }) },
        Chunk::text("It rains."),
        Chunk::Usage { usage },
        Chunk::Finish { reason: FinishReason::Stop },
    ];
    assert_eq!(decode(&bytes), Outcome { chunks: expected, error: None });
}

#[test]
fn exceptions_in_the_stream_are_typed() {
    let error = |kind: &str, message: &str| decode(&exception(kind, message)).error.unwrap();
    assert!(matches!(error("throttlingException", "x"), ModelError::RateLimited { .. }));
    assert!(matches!(error("internalServerException", "x"), ModelError::Overloaded { status: 500, .. }));
    assert!(matches!(error("serviceUnavailableException", "x"), ModelError::Overloaded { status: 503, .. }));
    assert!(matches!(error("modelStreamErrorException", "x"), ModelError::Overloaded { status: 424, .. }));
    assert!(matches!(error("validationException", "bad"), ModelError::RequestRefused { status: 400, .. }));
    let long = error("validationException", "Input is too long for requested model.");
    assert!(matches!(long, ModelError::ContextTooLong { .. }));
    assert_eq!(long.to_string(), "The conversation is longer than the model can read");
    let bare = frame(
        &[(":message-type", "error"), (":error-code", "InternalFailure"), (":error-message", "oh")],
        &json!({}),
    );
    let bare = decode(&bare).error.unwrap();
    assert!(
        matches!(bare, ModelError::Overloaded { status: 500, .. }) && bare.detail().unwrap().contains("oh")
    );
}

#[test]
fn refusals_are_typed_by_the_vendors_names() {
    let refused = |status: u16, name: &str, body: &str| {
        let headers = vec![("x-amzn-errortype".to_owned(), name.to_owned())];
        Decoder::refused(&Refusal { status, headers, body: body.into(), ..Refusal::default() })
    };
    assert!(matches!(refused(403, "AccessDeniedException", "{}"), ModelError::KeyRefused { .. }));
    assert!(matches!(refused(403, "ExpiredTokenException:http://x", "{}"), ModelError::KeyRefused { .. }));
    assert!(matches!(refused(404, "ResourceNotFoundException", "{}"), ModelError::UnknownModel { .. }));
    assert!(matches!(refused(429, "ThrottlingException", "{}"), ModelError::RateLimited { .. }));
    assert!(matches!(refused(424, "ModelErrorException", "{}"), ModelError::Overloaded { status: 424, .. }));
    assert!(matches!(refused(400, "ServiceQuotaExceededException", "{}"), ModelError::OutOfQuota { .. }));
    for said in
        ["Output blocked by content filtering policy", "This request was blocked by our content filters."]
    {
        let body = json!({ "message": said }).to_string();
        let filtered = refused(400, "ValidationException", &body);
        assert!(matches!(filtered, ModelError::Filtered { .. }), "{filtered:?}");
    }
    let model = "{\"message\":\"The provided model identifier is invalid.\"}";
    assert!(matches!(refused(400, "ValidationException", model), ModelError::UnknownModel { .. }));
    let long = "{\"message\":\"prompt is too long: 220000 tokens > 200000 maximum\"}";
    assert!(matches!(refused(400, "ValidationException", long), ModelError::ContextTooLong { .. }));
    let typed = "{\"__type\":\"com.amazon.coral.service#AccessDeniedException\"}";
    let by_body = Decoder::refused(&Refusal { status: 400, body: typed.into(), ..Refusal::default() });
    assert!(matches!(by_body, ModelError::KeyRefused { .. }));
    assert!(matches!(refused(502, "", "<html>"), ModelError::Overloaded { status: 502, .. }));
}

/// The time of `signatures.json`.
fn then() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_368_245)
}

#[test]
fn signatures_equal_those_of_the_vendors_own_package() {
    let text = std::fs::read(folder().join("bedrock/signatures.json")).unwrap();
    let wanted: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(wanted["unix"], json!(1_772_368_245));
    let signed = wanted["signed"].as_array().unwrap();
    assert_eq!(signed.len(), 3);
    for case in signed {
        let session = case["session"].as_str().map(Into::into);
        let secret = "wJalrXUtnFEMI/EXAMPLEKEY".into();
        let signer = Signer::new("eu-central-1", "AKIDEXAMPLE", &secret, session.as_ref()).at(then);
        let body = case["body"].as_str().unwrap().as_bytes();
        let attempt = Attempt { method: "POST", url: case["url"].as_str().unwrap(), headers: &[], body };
        let headers: Vec<Header> = signer.sign(&attempt).unwrap();
        let headers: Value = headers.iter().map(|h| (h.name().to_owned(), json!(h.exposed()))).collect();
        assert_eq!(headers, case["headers"]);
        assert!(!format!("{signer:?}").contains("EXAMPLEKEY"));
    }
}

static TICKS: AtomicU64 = AtomicU64::new(0);

fn a_second_later() -> SystemTime {
    then() + Duration::from_secs(TICKS.fetch_add(1, Ordering::Relaxed))
}

#[tokio::test]
async fn s7_a_throttled_request_is_repeated_with_a_signature_of_its_own() {
    let upstream = Upstream::serve([throttled(), frames(vendor().bytes("text"))]).await.unwrap();
    let secret = "canary-secret".into();
    let signer = Signer::new("eu-central-1", "AKIDEXAMPLE", &secret, None).at(a_second_later);
    let outcome = collect(&at(&upstream.base_url(), keys()).with_signer(signer), hello()).await;
    assert_eq!(outcome, vendor().reply("text"));
    let [first, second] = upstream.requests().try_into().unwrap();
    assert_eq!(first.path, "/v1/model/amazon.nova-lite-v1%3A0/converse-stream");
    assert_eq!(first.body["messages"][0]["content"], json!([{ "text": "hi" }]));
    let date = |seen: &toolyard_models::scripted::Seen| seen.header("x-amz-date").unwrap().to_owned();
    assert!(date(&first) < date(&second), "{} {}", date(&first), date(&second));
    let proof = |seen: &toolyard_models::scripted::Seen| seen.header("authorization").unwrap().to_owned();
    assert!(proof(&first).starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"));
    assert_ne!(proof(&first), proof(&second));
}

#[tokio::test]
async fn s7_at_most_two_repeats_and_none_after_the_first_chunk() {
    let always = Upstream::answer(|_| throttled()).await.unwrap();
    let outcome = collect(&at(&always.base_url(), keys()), hello()).await;
    assert!(matches!(outcome.error, Some(ModelError::RateLimited { .. })), "{outcome:?}");
    assert_eq!(always.requests().len(), 3);

    let broken = Upstream::answer(|_| frames(vendor().bytes("broken"))).await.unwrap();
    let outcome = collect(&at(&broken.base_url(), keys()), hello()).await;
    assert_eq!(outcome.text(), "Half a sen");
    assert!(matches!(outcome.error, Some(ModelError::Cut { .. })));
    assert_eq!(broken.requests().len(), 1);

    let early = Upstream::serve([frames(vendor().bytes("overloaded")), frames(vendor().bytes("text"))]);
    let early = early.await.unwrap();
    assert_eq!(collect(&at(&early.base_url(), keys()), hello()).await, vendor().reply("text"));
}

#[tokio::test]
async fn s6_cuts_over_http_equal_cuts_decoded() {
    let bytes = vendor().bytes("parallel_calls");
    for cut in (0..bytes.len()).step_by(61) {
        let upstream = Upstream::answer({
            let bytes = bytes.clone();
            move |_| frames(bytes.clone()).until_close().cut_after(cut)
        });
        let upstream = upstream.await.unwrap();
        let outcome = collect(&at(&upstream.base_url(), keys()), hello()).await;
        assert_eq!(outcome.chunks, decode(&bytes[..cut]).chunks, "cut at {cut}");
        assert!(outcome.ends_once());
    }
}

#[tokio::test]
async fn a_bearer_key_goes_as_it_is_and_no_secret_reaches_an_error() {
    let refusal = |_: &_| {
        Reply::new(403, "application/json")
            .header("x-amzn-errortype", "AccessDeniedException")
            .raw("{\"message\":\"canary-secret canary-session canary-bearer is not allowed\"}")
    };
    let upstream = Upstream::answer(refusal).await.unwrap();
    for access in [keys(), Access::Bearer("canary-bearer".into())] {
        let model = at(&upstream.base_url(), access.clone());
        let shown = format!("{model:?} {access:?}");
        assert!(!shown.contains("canary"), "{shown}");
        let error = collect(&model, hello()).await.error.unwrap();
        let own: &[&str] = match access {
            Access::Keys { .. } => &["canary-secret", "canary-session"],
            Access::Bearer(_) => &["canary-bearer"],
        };
        assert!(own.iter().all(|secret| !error.detail().unwrap().contains(secret)), "{:?}", error.detail());
    }
    let seen = upstream.requests();
    assert_eq!(seen[0].header("x-amz-security-token"), Some("canary-session"));
    assert_eq!(seen[1].header("authorization"), Some("Bearer canary-bearer"));
    assert_eq!(seen[1].header("x-amz-date"), None);
}

#[tokio::test]
async fn a_reply_that_is_not_streamed_is_accepted() {
    let thought = json!({ "reasoningText": { "text": "Hm", "signature": "s1" } });
    let body = json!({ "output": { "message": { "role": "assistant", "content": [
        { "reasoningContent": thought }, { "text": "Both." },
        { "toolUse": { "toolUseId": "t1", "name": "f", "input": { "a": 1 } } },
        { "toolUse": { "toolUseId": "t2", "name": "g", "input": {} } }] } },
        "stopReason": "tool_use", "usage": { "inputTokens": 1, "outputTokens": 2, "totalTokens": 3 } });
    let upstream = Upstream::serve([Reply::json(&body)]).await.unwrap();
    let outcome = collect(&at(&upstream.base_url(), keys()), hello()).await;
    let call = |index, name: &str, args_text: &str, id: &str| Chunk::ToolCall {
        index,
        name: name.into(),
        args_text: args_text.into(),
        vendor_id: Some(id.into()),
        metadata: Value::Null,
    };
    let start = |index, name: &str| Chunk::ToolInputStart { index, name: name.into() };
    let expected = vec![
        Chunk::ReasoningDelta { text: "Hm".into() },
        Chunk::ReasoningMetadata { value: json!({ "bedrock": { "signature": "s1" } }) },
        Chunk::text("Both."),
        start(0, "f"),
        Chunk::ToolInputDelta { index: 0, text: "{\"a\":1}".into() },
        start(1, "g"),
        Chunk::ToolInputDelta { index: 1, text: "{}".into() },
        call(0, "f", "{\"a\":1}", "t1"),
        call(1, "g", "{}", "t2"),
        Chunk::Usage { usage: Usage { input_tokens: 1, output_tokens: 2, ..Usage::default() } },
        Chunk::Finish { reason: FinishReason::ToolCalls },
    ];
    assert_eq!(outcome, Outcome { chunks: expected, error: None });
}

#[tokio::test]
async fn a_models_name_is_one_piece_of_the_path() {
    let upstream = Upstream::answer(|_| frames(vendor().bytes("text"))).await.unwrap();
    let model = at(&upstream.base_url(), keys());
    let arn = "arn:aws:bedrock:eu-central-1:1:inference-profile/eu.x?y#z";
    assert_eq!(collect(&model, Request { model: arn.into(), ..hello() }).await.error, None);
    let path = upstream.requests()[0].path.clone();
    let piece = "arn%3Aaws%3Abedrock%3Aeu-central-1%3A1%3Ainference-profile%2Feu.x%3Fy%23z";
    assert_eq!(path, format!("/v1/model/{piece}/converse-stream"));
    for dots in ["", ".", ".."] {
        let outcome = collect(&model, Request { model: dots.into(), ..hello() }).await;
        assert!(matches!(outcome.error, Some(ModelError::UnknownModel { .. })), "{dots:?}");
    }
    assert_eq!(upstream.requests().len(), 1);
    assert_eq!(model.provider(), "aws");
}

#[test]
fn the_environment_says_where_and_who() {
    let find = |set: &[(&str, &str)], address: Option<&str>| {
        let read = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Place::find(read, address.map(str::to_owned), None)
    };
    let account = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "eu-west-1")];
    let place = find(&account, None).unwrap();
    assert_eq!(place.address, "https://bedrock-runtime.eu-west-1.amazonaws.com");
    assert!(matches!(place.access, Access::Keys { session: None, .. }));
    let bearer =
        [("AWS_BEARER_TOKEN_BEDROCK", "b"), ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://localhost:1")];
    let place = find(&[&account[..], &bearer[..]].concat(), None).unwrap();
    assert_eq!(place.address, "http://localhost:1");
    assert!(matches!(place.access, Access::Bearer(_)));
    assert_eq!(find(&bearer, Some("http://127.0.0.1:2")).unwrap().address, "http://127.0.0.1:2");
    let all = [("AWS_ENDPOINT_URL", "http://localhost:9")];
    let of_all = |set: &[(&str, &str)]| find(&[&account[..], &all[..], set].concat(), None).unwrap().address;
    assert_eq!(of_all(&[]), "http://localhost:9");
    assert_eq!(of_all(&bearer), "http://localhost:1", "the address of this service goes before that of all");
    assert_eq!(find(&account[..2], None).unwrap_err(), NoPlace::Region);
    assert_eq!(find(&account[1..], None).unwrap_err(), NoPlace::Access);
    assert_eq!(find(&[("AWS_REGION", " ")], None).unwrap_err(), NoPlace::Access);
}
