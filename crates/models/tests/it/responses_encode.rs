//! OpenAI Responses: the request in the vendor's words (row L23).

use serde_json::{Value, json};
use toolyard_models::responses::{Decoder, encode};
use toolyard_models::{ChatTurn, OfferedTool, OutputSchema, PastCall, Request};
use toolyard_protocol::agent::{Reasoning, ReasoningEffort, ToolChoice};
use toolyard_protocol::message::Part;

use crate::fixtures::asking;
use crate::memory::{file, id, remember, result};
use crate::{responses, storm};

fn tool(name: &str) -> OfferedTool {
    let schema = json!({ "type": "object", "properties": { "q": { "type": "string" } } });
    OfferedTool { name: name.into(), description: "Reads.".into(), schema }
}

#[test]
fn l23_a_whole_request_is_encoded_in_order() {
    let request = Request {
        trace: None,
        model: "gpt-5".into(),
        system: Some("Be brief.".into()),
        turns: vec![
            ChatTurn::User { parts: vec![Part::text("Hi")], name: Some("Ann".into()) },
            ChatTurn::Assistant {
                parts: vec![Part::Reasoning { text: "unsigned".into(), metadata: Default::default() }],
                calls: vec![PastCall {
                    id: id(0),
                    name: "files.read".into(),
                    args: json!({ "q": 1 }),
                    metadata: json!({ "anthropic": { "x": 1 } }),
                }],
            },
            ChatTurn::ToolResults(vec![result(0, "files.read", "no such file", true)]),
            ChatTurn::assistant("Done."),
            ChatTurn::System("The user is away.".into()),
            ChatTurn::user("Thanks"),
        ],
        tools: vec![tool("files.read")],
        tool_choice: ToolChoice::Required,
        temperature: Some(0.5),
        max_output_tokens: Some(100),
        reasoning: Some(Reasoning {
            enabled: true,
            effort: Some(ReasoningEffort::Low),
            summary: Some("concise".into()),
            ..Reasoning::default()
        }),
        provider_tools: serde_json::Map::new(),
        structured_output: None,
        output: Some(OutputSchema {
            name: "an answer".into(),
            schema: json!({ "type": "object" }),
            strict: true,
        }),
        provider_options:
            json!({ "openai": { "web_search": { "search_context_size": "low" }, "user": "u" } })
                .as_object()
                .cloned(),
    };
    let encoded = encode(request);
    let alias = encoded.names.alias("files.read").to_owned();
    assert_eq!(encoded.names.given(&alias), "files.read");
    assert!(alias.starts_with("files_read") && alias != "files.read");
    let mut body = encoded.body;
    let form = body["text"]["format"]["name"].take();
    assert!(form.as_str().unwrap().starts_with("an_answer"));
    let parameters = body["tools"][0]["parameters"].take();
    assert_eq!(parameters["properties"]["q"]["type"], "string");
    let text = |text: &str| json!([{ "type": "input_text", "text": text }]);
    let expected = json!({
        "model": "gpt-5",
        "instructions": "Be brief.",
        "input": [
            { "type": "message", "role": "user", "content": text("Hi") },
            { "type": "function_call", "call_id": "call_0", "name": alias, "arguments": "{\"q\":1}" },
            { "type": "function_call_output", "call_id": "call_0", "output": "Error: no such file" },
            { "type": "message", "role": "assistant", "content": "Done." },
            { "type": "message", "role": "system", "content": "The user is away." },
            { "type": "message", "role": "user", "content": text("Thanks") },
        ],
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "tools": [
            { "type": "function", "name": alias, "description": "Reads.", "parameters": null, "strict": false },
            { "type": "web_search", "search_context_size": "low" },
        ],
        "tool_choice": "required",
        "max_output_tokens": 100,
        "reasoning": { "effort": "low", "summary": "concise" },
        "text": { "format": { "type": "json_schema", "name": null, "schema": body["text"]["format"]["schema"], "strict": true } },
        "user": "u",
    });
    assert_eq!(body, expected);
}

#[test]
fn a_plain_request_has_no_field_too_many() {
    let input =
        json!([{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hi" }] }]);
    let expected = json!({ "model": "m", "input": input, "stream": true, "store": false });
    assert_eq!(encode(asking("hi")).body, expected);
}

#[test]
fn sealed_thoughts_are_asked_for_only_where_models_think() {
    let asks =
        |model: &str| encode(Request { model: model.into(), ..asking("hi") }).body.get("include").is_some();
    for model in ["o3", "o4-mini", "gpt-5", "gpt-5.6-mini", "openai/gpt-5", "codex-mini-latest"] {
        assert!(asks(model), "{model}");
    }
    for model in ["gpt-4o", "gpt-4.1-mini", "gpt-5-chat-latest", "llama-3", "olmo"] {
        assert!(!asks(model), "{model}");
    }
}

/// What the vendor said comes back unchanged: thoughts with ids and sealed
/// content, calls between them, the vendor's own searches, phases.
#[test]
fn a_reply_goes_back_as_its_items_in_order() {
    for (index, fixture) in responses::ALL[..3].iter().enumerate() {
        let outcome = storm::decode::<Decoder>([fixture.bytes]);
        let turns = vec![ChatTurn::user("hi"), remember(&outcome.chunks)];
        let input = encode(Request { turns, ..asking("hi") }).body["input"].take();
        let text = std::str::from_utf8(fixture.bytes).unwrap();
        let last = text.lines().rfind(|line| line.starts_with("data: ")).unwrap();
        let mut last: Value = serde_json::from_str(&last["data: ".len()..]).unwrap();
        let mut calls = 0;
        let expected: Vec<Value> = last["response"]["output"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .map(|item| {
                if item["type"] == "function_call" {
                    item["call_id"] = json!(format!("call_{calls}"));
                    if item["arguments"] == "" {
                        item["arguments"] = json!("{}");
                    }
                    calls += 1;
                } else if item["type"] == "message" {
                    // Messages go back by their text: the vendor keeps none.
                    let mut easy =
                        json!({ "type": "message", "role": "assistant", "content": item["content"][0]["text"] });
                    if let Some(phase) = item.get("phase") {
                        easy["phase"] = phase.clone();
                    }
                    return easy;
                }
                item.take()
            })
            .collect();
        let said: Vec<&Value> = input
            .as_array()
            .unwrap()
            .iter()
            .skip(1)
            .filter(|item| item["type"] != "function_call_output")
            .collect();
        assert_eq!(said, expected.iter().collect::<Vec<_>>(), "fixture {index}");
        let answered = input.as_array().unwrap().iter().filter(|item| item["type"] == "function_call_output");
        assert_eq!(answered.count(), calls, "every call has a result");
    }
}

#[test]
fn a_thought_that_nothing_follows_stays_behind() {
    let sealed = json!({ "openai-responses": { "at": 0, "item": { "type": "reasoning", "id": "rs_1",
        "summary": [], "encrypted_content": "x" } } });
    let thought = Part::Reasoning { text: String::new(), metadata: sealed.into() };
    let turns = vec![
        ChatTurn::user("a"),
        ChatTurn::Assistant { parts: vec![thought], calls: vec![] },
        ChatTurn::user("b"),
    ];
    let body = encode(Request { turns, ..asking("hi") }).body;
    let kinds: Vec<&Value> = body["input"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["message", "message"]);
}

#[test]
fn metadata_of_other_wires_stays_here() {
    let foreign =
        json!({ "anthropic": { "signature": "SECRET" }, "gemini": { "thoughtSignature": "SECRET" } });
    let turns = vec![
        ChatTurn::user("a"),
        ChatTurn::Assistant {
            parts: vec![
                Part::Reasoning { text: "SECRET".into(), metadata: foreign.clone().into() },
                Part::Opaque { value: foreign.clone().into() },
                Part::text("Said."),
            ],
            calls: vec![PastCall { id: id(0), name: "t".into(), args: json!({}), metadata: foreign }],
        },
    ];
    let body = encode(Request { turns, ..asking("hi") }).body.to_string();
    assert!(!body.contains("SECRET"), "{body}");
    assert!(body.contains("Said."));
}

#[test]
fn files_go_as_images_documents_or_words() {
    let parts = vec![
        Part::text("Look"),
        file("image/png", Some("https://example.com/a.png"), None),
        file("image/png", Some("data:image/png;base64,AA=="), None),
        file("application/pdf", Some("data:application/pdf;base64,AA=="), Some("a.pdf")),
        file("application/pdf", Some("https://example.com/b.pdf"), Some("b.pdf")),
        file("audio/wav", Some("https://example.com/c.wav"), None),
        file("text/plain", None, Some("gone.txt")),
    ];
    let turns = vec![ChatTurn::User { parts, name: None }];
    let body = encode(Request { turns, ..Request::default() }).body;
    let image = |url: &str| json!({ "type": "input_image", "image_url": url, "detail": "auto" });
    let text = |text: &str| json!({ "type": "input_text", "text": text });
    let expected = json!([
        text("Look"),
        image("https://example.com/a.png"),
        image("data:image/png;base64,AA=="),
        { "type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA==" },
        { "type": "input_file", "file_url": "https://example.com/b.pdf" },
        text("[file file (audio/wav): https://example.com/c.wav]"),
        text("[file gone.txt (text/plain) is not readable here]"),
    ]);
    assert_eq!(body["input"][0]["content"], expected);
}

#[test]
fn options_replace_fields_and_null_removes_them() {
    let options =
        json!({ "openai": { "store": null, "temperature": 1, "web_search": true }, "gemini": { "x": 1 } });
    let request =
        Request { temperature: Some(0.1), provider_options: options.as_object().cloned(), ..asking("hi") };
    let body = encode(request).body;
    assert_eq!(body.get("store"), None);
    assert_eq!(body.get("x"), None);
    assert_eq!(body["temperature"], 1);
    assert_eq!(body["tools"], json!([{ "type": "web_search" }]));
}

#[test]
fn several_speakers_are_told_apart() {
    let said = |name: &str| ChatTurn::User { parts: vec![Part::text("Hi")], name: Some(name.into()) };
    let body = encode(Request { turns: vec![said("ann"), said("bob")], ..Request::default() }).body;
    let text = |text: &str| json!({ "type": "input_text", "text": text });
    assert_eq!(body["input"][1]["content"], json!([text("[bob]"), text("Hi")]));
}
