//! Servers that speak chat completions in their own way: routers, hosts and
//! local servers.

use serde_json::{Value, json};
use toolyard_models::openai::encode;
use toolyard_models::{ChatTurn, Chunk, ModelError, OutputSchema, Request};
use toolyard_protocol::message::Part;
use toolyard_protocol::run::FinishReason;

use crate::fixtures::{ALL, Outcome, asking, decode};
use crate::memory::{file, remember};

fn events(events: &[Value]) -> Outcome {
    let bytes: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    decode([bytes.as_bytes()])
}

fn choice(delta: Value, finish: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

/// Calls as several local servers send them: whole in one piece, all with the
/// index 0, ids empty, repeated or missing.
#[test]
fn whole_calls_are_told_apart_without_help_of_the_server() {
    let call = |index: Value, id: Value, args: Value| {
        let function = json!({ "name": "move", "arguments": args });
        json!({ "index": index, "id": id, "type": "function", "function": function })
    };
    let args = |n: u32| json!(format!("{{\"x\":{n}}}"));
    let numbers = |calls: Vec<Value>, apart: bool| {
        let mut told: Vec<Value> = match apart {
            true => {
                calls.into_iter().map(|call| choice(json!({ "tool_calls": [call] }), Value::Null)).collect()
            }
            false => vec![choice(json!({ "tool_calls": calls }), Value::Null)],
        };
        told.push(choice(json!({}), json!("stop")));
        let outcome = events(&told);
        assert_eq!(outcome.chunks.last(), Some(&Chunk::Finish { reason: FinishReason::ToolCalls }));
        let texts = outcome.chunks.into_iter().filter_map(|chunk| match chunk {
            Chunk::ToolCall { args_text, .. } => Some(args_text),
            _ => None,
        });
        texts.collect::<Vec<_>>()
    };
    let cases: [(Value, Value, Value); 6] = [
        (json!(0), json!("a"), json!("b")),
        (json!(0), json!(""), json!("")),
        (json!(0), Value::Null, Value::Null),
        (json!(0), json!("same"), json!("same")),
        (Value::Null, json!("a"), json!("b")),
        (Value::Null, Value::Null, Value::Null),
    ];
    for (index, first, second) in cases {
        for apart in [true, false] {
            let calls = vec![
                call(index.clone(), first.clone(), args(1)),
                call(index.clone(), second.clone(), args(2)),
            ];
            assert_eq!(numbers(calls, apart), ["{\"x\":1}", "{\"x\":2}"], "{index} {first} {second} {apart}");
        }
    }
    let objects =
        vec![call(json!(0), Value::Null, json!({ "x": 1 })), call(json!(1), Value::Null, json!({ "x": 2 }))];
    assert_eq!(numbers(objects, false), ["{\"x\":1}", "{\"x\":2}"]);
}

#[test]
fn a_vendor_that_breaks_behind_a_router_is_an_error() {
    let error = json!({ "code": 502, "message": "Provider disconnected" });
    let shapes = [
        json!({ "id": "g", "error": error, "choices": [{ "index": 0, "delta": { "content": "" }, "finish_reason": "error" }] }),
        json!({ "choices": [{ "index": 0, "error": error, "finish_reason": "error" }] }),
        json!({ "choices": [], "x_groq": { "error": error } }),
        choice(json!({}), json!("error")),
    ];
    for shape in shapes {
        let error = events(&[choice(json!({ "content": "a" }), Value::Null), shape.clone()]).error.unwrap();
        assert!(matches!(error, ModelError::Overloaded { .. }), "{shape}: {error:?}");
    }
}

#[test]
fn errors_in_words_keep_their_meaning() {
    let error = |error: Value| events(&[json!({ "error": error })]).error.unwrap();
    for words in [
        "This model's maximum context length is 8192 tokens.",
        "the request exceeds the available context size",
        "Input exceeds the context window of this model",
    ] {
        let told = error(json!({ "code": 400, "message": words }));
        assert!(matches!(told, ModelError::ContextTooLong { .. }), "{words}: {told:?}");
    }
    let stumbled = error(json!({ "code": "tool_use_failed", "status_code": 400, "message": "x" }));
    assert!(stumbled.retryable(), "{stumbled:?}");
    let limited = error(json!({ "code": 429, "message": "x" }));
    assert!(matches!(limited, ModelError::RateLimited { .. }));
}

/// The thoughts of the turn that the model still works on go back as they
/// came; those of earlier turns stay.
#[test]
fn thoughts_go_back_while_the_model_works() {
    let message = |fixture: usize, later: Option<ChatTurn>| {
        let outcome = decode([ALL[fixture].bytes]);
        let mut turns = vec![ChatTurn::user("hi"), remember(&outcome.chunks)];
        turns.extend(later);
        encode(Request { turns, ..asking("hi") }).body["messages"][1].take()
    };
    let routed = message(4, None);
    let expected = json!([
        { "type": "reasoning.text", "text": "Let me.", "signature": "c2ln", "index": 0, "format": "anthropic-claude-v1" },
        { "type": "reasoning.summary", "summary": "Then ask.", "index": 1 },
        { "type": "reasoning.encrypted", "data": "c2VhbGVk", "id": "rs_1", "index": 2 },
    ]);
    assert_eq!(routed["reasoning_details"], expected);
    let plain = message(5, None);
    assert_eq!(plain["reasoning_content"], "Hm.");
    for fixture in [4, 5] {
        let past = message(fixture, Some(ChatTurn::user("and then?")));
        let fields: Vec<&String> = past.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["content", "role", "tool_calls"]);
    }
}

#[test]
fn a_turn_of_nothing_is_no_message() {
    let thought = Part::Reasoning { text: "Hm".into(), metadata: Default::default() };
    let silent = ChatTurn::Assistant { parts: vec![thought], calls: vec![] };
    let turns = vec![ChatTurn::user("a"), silent, ChatTurn::user("b")];
    let body = encode(Request { turns, ..asking("hi") }).body;
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn the_form_of_an_answer_is_a_response_format() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
    let output = Some(OutputSchema { name: "my answer".into(), schema, strict: true });
    let format = encode(Request { output, ..asking("hi") }).body["response_format"].take();
    assert_eq!((&format["type"], &format["json_schema"]["strict"]), (&json!("json_schema"), &json!(true)));
    assert_eq!(format["json_schema"]["schema"]["properties"]["a"]["type"], "string");
    // An answer with optional fields cannot be enforced.
    let loose = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let output = Some(OutputSchema { name: "a".into(), schema: loose.clone(), strict: true });
    let tried = encode(Request { output, ..asking("hi") }).body["response_format"].take();
    assert_eq!(tried["json_schema"], json!({ "name": "a", "schema": loose, "strict": false }));
    let name = format["json_schema"]["name"].as_str().unwrap();
    assert!(name.starts_with("my_answer") && !name.contains(' '));
}

#[test]
fn the_limit_of_tokens_has_the_word_that_the_model_knows() {
    let limit = |model: &str| {
        let body = encode(Request { model: model.into(), max_output_tokens: Some(9), ..asking("hi") }).body;
        (body.get("max_tokens").is_some(), body.get("max_completion_tokens").is_some())
    };
    assert_eq!(limit("gpt-5-mini"), (false, true));
    assert_eq!(limit("o3"), (false, true));
    for model in ["gpt-4o", "gpt-oss-20b", "llama3.2", "qwen3:8b"] {
        assert_eq!(limit(model), (true, false), "{model}");
    }
}

#[test]
fn the_vendors_search_has_one_switch_on_both_wires() {
    let body = |setting: Value| {
        let options = json!({ "openai": { "web_search": setting } });
        encode(Request { provider_options: options.as_object().cloned(), ..asking("hi") }).body
    };
    assert_eq!(body(json!(true))["web_search_options"], json!({}));
    let low = json!({ "search_context_size": "low" });
    assert_eq!(body(low.clone())["web_search_options"], low);
    let off = body(json!(false));
    assert_eq!((off.get("web_search_options"), off.get("web_search")), (None, None));
}

#[test]
fn sound_goes_inside_the_request() {
    let parts = vec![file("audio/mpeg", Some("data:audio/mpeg;base64,AA=="), None)];
    let turns = vec![ChatTurn::User { parts, name: None }];
    let body = encode(Request { turns, ..Request::default() }).body;
    let sound = json!([{ "type": "input_audio", "input_audio": { "data": "AA==", "format": "mp3" } }]);
    assert_eq!(body["messages"][0]["content"], sound);
}
