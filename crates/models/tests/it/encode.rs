//! The request in the vendor's words.

use serde_json::{Value, json};
use toolyard_models::openai;
use toolyard_models::{ChatTurn, OfferedTool, PastCall, PastResult, Request};
use toolyard_protocol::agent::{Reasoning, ReasoningEffort, ToolChoice};
use toolyard_protocol::ids::CallId;
use toolyard_protocol::message::Part;

use crate::fixtures::asking;

fn encode(request: Request) -> Value {
    openai::encode(request).body
}

fn file(media_type: &str, url: Option<&str>, name: Option<&str>) -> Part {
    let (url, name) = (url.map(str::to_owned), name.map(str::to_owned));
    Part::File { media_type: media_type.into(), file: None, url, name }
}

#[test]
fn a_whole_conversation_is_encoded_in_order() {
    let id = |text: &str| CallId::parse(text).unwrap();
    let call = |call: &str, metadata| PastCall {
        id: id(call),
        name: "read_screen".into(),
        args: json!({ "q": "a\"b" }),
        metadata,
    };
    let result = |call: &str, content: &str, is_error| PastResult {
        call: id(call),
        name: "read_screen".into(),
        content: content.into(),
        is_error,
    };
    let reasoning = Part::Reasoning { text: "secret".into(), metadata: Default::default() };
    let signed = json!({ "openai": { "extra_content": { "google": 1 } }, "other": 2 });
    let request = Request {
        trace: None,
        model: "gpt-x".into(),
        system: Some("Be brief.".into()),
        turns: vec![
            ChatTurn::User { parts: vec![Part::text("Hi")], name: Some("Ann Ü".into()) },
            ChatTurn::Assistant {
                parts: vec![reasoning],
                calls: vec![call("call_1", Value::Null), call("call_2", signed)],
            },
            ChatTurn::ToolResults(vec![result("call_1", "page", false), result("call_2", "no screen", true)]),
            ChatTurn::assistant("Done."),
            ChatTurn::System("The user is away.".into()),
            ChatTurn::user("Thanks"),
        ],
        tools: vec![OfferedTool {
            name: "read_screen".into(),
            description: "Reads.".into(),
            schema: json!({ "type": "object" }),
        }],
        tool_choice: ToolChoice::Required,
        temperature: Some(0.5),
        max_output_tokens: Some(100),
        reasoning: Some(Reasoning {
            enabled: true,
            effort: Some(ReasoningEffort::XHigh),
            ..Reasoning::default()
        }),
        provider_options: None,
        provider_tools: serde_json::Map::new(),
        output: None,
        structured_output: None,
    };
    let function = json!({ "name": "read_screen", "arguments": "{\"q\":\"a\\\"b\"}" });
    let expected = json!({
        "model": "gpt-x",
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "Hi", "name": "Ann__" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "call_1", "type": "function", "function": function },
                { "id": "call_2", "type": "function", "function": function, "extra_content": { "google": 1 } },
            ] },
            { "role": "tool", "tool_call_id": "call_1", "content": "page" },
            { "role": "tool", "tool_call_id": "call_2", "content": "Error: no screen" },
            { "role": "assistant", "content": "Done." },
            { "role": "system", "content": "The user is away." },
            { "role": "user", "content": "Thanks" },
        ],
        "stream": true,
        "stream_options": { "include_usage": true },
        "tools": [{ "type": "function", "function":
            { "name": "read_screen", "description": "Reads.", "parameters": { "type": "object", "properties": {} } } }],
        "tool_choice": "required",
        "temperature": 0.5,
        "max_tokens": 100,
        "reasoning_effort": "xhigh",
    });
    assert_eq!(encode(request), expected);
}

#[test]
fn a_plain_request_has_no_field_too_many() {
    let expected = json!({
        "model": "m",
        "messages": [{ "role": "user", "content": "hi" }],
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    let off = Request {
        reasoning: Some(Reasoning { effort: Some(ReasoningEffort::Low), ..Reasoning::default() }),
        ..asking("hi")
    };
    assert_eq!(encode(asking("hi")), expected);
    assert_eq!(encode(off), expected);
}

#[test]
fn files_go_as_images_data_or_words() {
    let parts = vec![
        Part::text("Look"),
        file("image/png", Some("https://example.com/a.png"), None),
        file("application/pdf", Some("data:application/pdf;base64,AA=="), Some("a.pdf")),
        file("application/pdf", Some("https://example.com/b.pdf"), Some("b.pdf")),
        file("audio/wav", None, None),
        Part::Data { name: "x".into(), value: json!(1) },
    ];
    let turns = vec![ChatTurn::User { parts, name: Some("  ☂".into()) }];
    let body = encode(Request { turns, ..Request::default() });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let content = json!([
        text("Look"),
        { "type": "image_url", "image_url": { "url": "https://example.com/a.png" } },
        { "type": "file", "file": { "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA==" } },
        text("[file b.pdf (application/pdf): https://example.com/b.pdf]"),
        text("[file file (audio/wav) is not readable here]"),
    ]);
    assert_eq!(body["messages"], json!([{ "role": "user", "content": content }]));
}

#[test]
fn options_replace_fields_and_null_removes_them() {
    let options = json!({
        "openai": { "max_tokens": null, "max_completion_tokens": 50, "temperature": 1, "seed": 7 },
        "anthropic": { "x": 1 },
    });
    let request = Request {
        max_output_tokens: Some(50),
        temperature: Some(0.1),
        provider_options: options.as_object().cloned(),
        ..asking("hi")
    };
    let body = encode(request);
    assert_eq!(body.get("max_tokens"), None);
    assert_eq!(body["max_completion_tokens"], 50);
    assert_eq!((&body["temperature"], &body["seed"]), (&json!(1), &json!(7)));
    assert_eq!(body.get("x"), None);
}

#[test]
fn the_system_text_takes_the_role_that_the_agent_says() {
    let with_mode = |mode: &str| {
        let reasoning = Reasoning { system_message_mode: Some(mode.into()), ..Reasoning::default() };
        let system = Some("S".to_owned());
        encode(Request { system, reasoning: Some(reasoning), ..asking("hi") })["messages"].clone()
    };
    assert_eq!(with_mode("developer")[0]["role"], "developer");
    assert_eq!(with_mode("system")[0]["role"], "system");
    assert_eq!(with_mode("remove")[0]["role"], "user");
}

#[test]
fn tools_that_are_off_are_offered_but_forbidden() {
    let tool = OfferedTool { name: "t".into(), description: String::new(), schema: json!({}) };
    let tools = vec![tool];
    let body = encode(Request { tools, tool_choice: ToolChoice::None, ..asking("hi") });
    assert_eq!(body["tool_choice"], "none");
    assert_eq!(body["tools"][0]["function"]["name"], "t");
}

/// Row U1: tools that the vendor runs itself stand behind those of the agent,
/// and no vendor hears of another's.
#[test]
fn u1_tools_of_the_vendor_reach_their_vendor_alone() {
    let all = json!({
        "openai": [{ "type": "web_search" }],
        "anthropic": [{ "type": "web_search_20250305", "name": "web_search" }],
        "gemini": [{ "googleSearch": {} }],
        "bedrock": [{ "systemTool": { "name": "nova_grounding" } }],
    });
    let request = || Request { provider_tools: all.as_object().cloned().unwrap(), ..asking("hi") };
    let bodies = [
        ("openai", toolyard_models::openai::encode(request()).body),
        ("openai", toolyard_models::responses::encode(request()).body),
        ("anthropic", toolyard_models::anthropic::encode(request()).body),
        ("gemini", toolyard_models::gemini::encode(request()).body),
        ("bedrock", toolyard_models::bedrock::encode(request()).body["toolConfig"].take()),
    ];
    for (vendor, mut body) in bodies {
        // The last tool carries the mark of the prompt cache, where there is one.
        body["tools"][0].as_object_mut().unwrap().remove("cache_control");
        assert_eq!(body["tools"], all[vendor], "{vendor}");
        assert_eq!(body.get("tool_choice"), None, "{vendor}");
    }
}
