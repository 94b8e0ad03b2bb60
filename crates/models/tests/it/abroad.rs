//! Responses and Gemini over real HTTP: rows S6, S7, X8 and C5.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_egress::{Door, Target};
use toolyard_models::gemini::Gemini;
use toolyard_models::responses::Responses;
use toolyard_models::scripted::{Reply, Upstream};
use toolyard_models::{Chunk, Model, ModelError, OfferedTool, Request, Retry};
use toolyard_protocol::error::ErrorCode;

use crate::fixtures::{Fixture, asking, collect, hasty};
use crate::{gemini, responses, storm};

const KEY: &str = "key-canary-0123456789";

/// A vendor as its tests need it.
struct Vendor {
    open: fn(&str) -> Box<dyn Model>,
    fixtures: &'static [Fixture],
    path: &'static str,
    header: (&'static str, String),
}

fn target(base: &str) -> Target {
    Target::parse(base).unwrap()
}

const RETRY: Retry = Retry { max: 2, pause: Duration::from_millis(1) };

fn vendors() -> [Vendor; 2] {
    [
        Vendor {
            open: |base| {
                let door = Door::operator().unwrap();
                let model = Responses::new("abroad", door, &target(base), Some(KEY.into()));
                Box::new(model.with_timeouts(hasty()).with_retry(RETRY))
            },
            fixtures: &responses::ALL,
            path: "/v1/responses",
            header: ("authorization", format!("Bearer {KEY}")),
        },
        Vendor {
            open: |base| {
                let door = Door::operator().unwrap();
                let model = Gemini::new("abroad", door, &target(base), Some(KEY.into()));
                Box::new(model.with_timeouts(hasty()).with_retry(RETRY))
            },
            fixtures: &gemini::ALL,
            path: "/v1/models/m:streamGenerateContent?alt=sse",
            header: ("x-goog-api-key", KEY.to_owned()),
        },
    ]
}

fn whole(fixture: &Fixture) -> Reply {
    Reply::stream().raw(fixture.bytes)
}

#[tokio::test]
async fn s6_fixtures_over_http_equal_fixtures_decoded() {
    for vendor in vendors() {
        for fixture in vendor.fixtures {
            let script = [whole(fixture), whole(fixture).one_byte_writes(), whole(fixture).until_close()];
            let upstream = Upstream::serve(script).await.unwrap();
            let model = (vendor.open)(&upstream.base_url());
            for _ in 0..3 {
                let outcome = collect(&*model, asking("hi")).await;
                assert_eq!(outcome.error, None);
                assert_eq!(outcome.lines(), fixture.lines, "{}", fixture.name);
            }
            let seen = &upstream.requests()[0];
            assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", vendor.path));
            assert_eq!(seen.header(vendor.header.0), Some(vendor.header.1.as_str()));
        }
    }
}

#[tokio::test]
async fn s7_a_busy_vendor_is_asked_at_most_three_times() {
    let busy = || Reply::refusal(429, "slow down").header("retry-after", "0");
    for vendor in vendors() {
        let fixture = &vendor.fixtures[0];
        let upstream = Upstream::serve([busy(), busy(), whole(fixture)]).await.unwrap();
        let outcome = collect(&*(vendor.open)(&upstream.base_url()), asking("hi")).await;
        assert_eq!(outcome.lines(), fixture.lines);

        let upstream = Upstream::serve([busy(), busy(), busy(), whole(fixture)]).await.unwrap();
        let outcome = collect(&*(vendor.open)(&upstream.base_url()), asking("hi")).await;
        assert!(matches!(outcome.error, Some(ModelError::RateLimited { .. })), "{outcome:?}");
        assert_eq!(upstream.requests().len(), 3);
    }
}

#[tokio::test]
async fn s7_there_is_no_second_request_after_the_first_chunk() {
    let fault = json!({ "type": "error", "error": { "code": "server_error", "status": "INTERNAL" } });
    for vendor in vendors() {
        let fixture = &vendor.fixtures[0];
        // Up to the end of the first event that shows something.
        let first = (0..fixture.bytes.len())
            .find(|at| {
                let outcome = match vendor.path.contains("responses") {
                    true => storm::decode::<toolyard_models::responses::Decoder>([&fixture.bytes[..*at]]),
                    false => storm::decode::<toolyard_models::gemini::Decoder>([&fixture.bytes[..*at]]),
                };
                !outcome.chunks.is_empty() && fixture.bytes[..*at].ends_with(b"\n\n")
            })
            .unwrap();
        let shown = || Reply::stream().raw(&fixture.bytes[..first]);
        let endings = [
            shown().cut_after(usize::MAX),
            shown().event(&fault),
            shown().until_close(),
            shown().raw("data: x\n\n"),
        ];
        for ending in endings {
            let upstream = Upstream::serve([ending, whole(fixture)]).await.unwrap();
            let outcome = collect(&*(vendor.open)(&upstream.base_url()), asking("hi")).await;
            assert_eq!(outcome.chunks, [Chunk::text("Grüße ")]);
            assert_eq!(outcome.error.unwrap().code(), ErrorCode::ModelStreamCut);
            assert_eq!(upstream.requests().len(), 1);
        }
    }
}

#[tokio::test]
async fn s7_an_error_event_before_the_first_chunk_is_tried_again() {
    let fault = json!({ "type": "error", "error": { "code": 503, "status": "UNAVAILABLE", "message": "x" } });
    for vendor in vendors() {
        let fixture = &vendor.fixtures[0];
        let script = [Reply::stream().event(&fault), whole(fixture)];
        let upstream = Upstream::serve(script).await.unwrap();
        let outcome = collect(&*(vendor.open)(&upstream.base_url()), asking("hi")).await;
        assert_eq!(outcome.lines(), fixture.lines);
        assert_eq!(upstream.requests().len(), 2);
    }
}

#[tokio::test]
async fn x8_a_vendor_that_repeats_the_key_does_not_leak_it() {
    let said = format!("API key not valid: {KEY}");
    for vendor in vendors() {
        let fault = json!({ "type": "error", "error": { "message": said, "code": 400 } });
        for reply in [Reply::refusal(401, &said), Reply::html(&said), Reply::stream().event(&fault)] {
            let upstream = Upstream::serve([reply]).await.unwrap();
            let model = (vendor.open)(&upstream.base_url());
            let error = collect(&*model, asking("hi")).await.error.unwrap();
            let told = format!("{error} {error:?} {:?} {model:?}", error.detail());
            assert!(!told.contains("canary"), "{told}");
            assert!(!error.to_string().contains("not valid"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_tool_gets_its_own_name_back() {
    let name = "files.read";
    let tool =
        OfferedTool { name: name.into(), description: String::new(), schema: json!({ "type": "object" }) };
    let call = |alias: &Value| {
        let item =
            json!({ "type": "function_call", "id": "fc", "call_id": "c", "name": alias, "arguments": "{}" });
        let body = json!({ "status": "completed", "output": [item] });
        Reply::stream().event(&json!({ "type": "response.completed", "response": body }))
    };
    let upstream = Upstream::answer(move |seen| match seen.path.contains("responses") {
        true => call(&seen.body["tools"][0]["name"]),
        false => {
            let alias = &seen.body["tools"][0]["functionDeclarations"][0]["name"];
            let part = json!({ "functionCall": { "name": alias } });
            let candidate = json!({ "content": { "parts": [part] }, "finishReason": "STOP" });
            Reply::stream().event(&json!({ "candidates": [candidate] }))
        }
    })
    .await
    .unwrap();
    for vendor in vendors() {
        let model = (vendor.open)(&upstream.base_url());
        let outcome = collect(&*model, Request { tools: vec![tool.clone()], ..asking("hi") }).await;
        let names: Vec<&str> = outcome
            .chunks
            .iter()
            .filter_map(|chunk| match chunk {
                Chunk::ToolInputStart { name, .. } | Chunk::ToolCall { name, .. } => Some(name.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(names, [name, name]);
    }
}

/// A model's name is part of Gemini's address.
#[tokio::test]
async fn a_model_name_leads_nowhere_else() {
    let upstream = Upstream::serve([]).await.unwrap();
    let gemini = (vendors()[1].open)(&upstream.base_url());
    for model in ["../v2/x", "models/../x", "a/b", "a?key=b", "a#b", "", "..", "files/x", "a:delete", "a%2f"]
    {
        let outcome = collect(&*gemini, Request { model: model.into(), ..asking("hi") }).await;
        assert!(matches!(outcome.error, Some(ModelError::UnknownModel { .. })), "{model}: {outcome:?}");
    }
    assert_eq!(upstream.requests(), []);
    let upstream = Upstream::serve([]).await.unwrap();
    let gemini = (vendors()[1].open)(&upstream.base_url());
    collect(&*gemini, Request { model: "tunedModels/mine-1".into(), ..asking("hi") }).await;
    assert_eq!(upstream.requests()[0].path, "/v1/tunedModels/mine-1:streamGenerateContent?alt=sse");
}
