//! Requests in Anthropic's words.

use serde_json::{Value, json};
use toolyard_models::anthropic::{Decoder, encode};
use toolyard_models::{ChatTurn, Chunk, OfferedTool, OutputSchema, PastCall, PastResult, Request};
use toolyard_protocol::Guarded;
use toolyard_protocol::agent::{Reasoning, ReasoningEffort, ToolChoice};
use toolyard_protocol::ids::CallId;
use toolyard_protocol::message::Part;

use crate::anthropic::ALL;
use crate::fixtures::asking;
use crate::storm;

fn body(request: Request) -> Value {
    encode(request).body
}

/// A request with an option of this vendor.
fn with(option: Value, request: Request) -> Value {
    let options = json!({ "anthropic": option, "openai": { "seed": 1 } });
    body(Request { provider_options: options.as_object().cloned(), ..request })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn marked(mut block: Value) -> Value {
    block["cache_control"] = json!({ "type": "ephemeral" });
    block
}

fn tool(name: &str) -> OfferedTool {
    OfferedTool { name: name.into(), description: "Reads.".into(), schema: json!({ "type": "object" }) }
}

fn call(id: &str, name: &str, args: Value) -> PastCall {
    PastCall { id: CallId::parse(id).unwrap(), name: name.into(), args, metadata: Value::Null }
}

fn result(id: &str, content: &str, is_error: bool) -> PastResult {
    PastResult { call: CallId::parse(id).unwrap(), name: "f".into(), content: content.into(), is_error }
}

fn file(media_type: &str, url: Option<&str>, name: Option<&str>) -> Part {
    let (url, name) = (url.map(str::to_owned), name.map(str::to_owned));
    Part::File { media_type: media_type.into(), file: None, url, name }
}

/// The parts and calls that the gateway keeps of a recorded reply.
fn kept(fixture: usize) -> ChatTurn {
    let (mut parts, mut calls): (Vec<Part>, Vec<PastCall>) = Default::default();
    let mut open = false;
    for chunk in storm::decode::<Decoder>([ALL[fixture].bytes]).chunks {
        let was_open = std::mem::take(&mut open);
        match chunk {
            Chunk::TextDelta { text: more } => match parts.last_mut() {
                Some(Part::Text { text }) => text.push_str(&more),
                _ => parts.push(Part::text(more)),
            },
            Chunk::ReasoningDelta { text: more } => {
                open = true;
                match parts.last_mut() {
                    Some(Part::Reasoning { text, .. }) if was_open => text.push_str(&more),
                    _ => parts.push(Part::Reasoning { text: more, metadata: Guarded::Hidden }),
                }
            }
            Chunk::ReasoningMetadata { value } => match parts.last_mut() {
                Some(Part::Reasoning { metadata, .. }) if was_open => *metadata = value.into(),
                _ => parts.push(Part::Reasoning { text: String::new(), metadata: value.into() }),
            },
            Chunk::Opaque { value } => parts.push(Part::Opaque { value: value.into() }),
            Chunk::Source { url, title, start, end } => {
                parts.push(Part::Source { id: "s".into(), url, title, start_index: start, end_index: end });
            }
            Chunk::ToolCall { index, name, args_text, metadata, .. } => {
                let args = serde_json::from_str(&args_text).unwrap_or_default();
                calls.push(PastCall { metadata, ..call(&format!("call_{index}"), &name, args) });
            }
            _ => {}
        }
    }
    ChatTurn::Assistant { parts, calls }
}

#[test]
fn l23_a_whole_conversation_is_encoded_in_order() {
    let request = Request {
        model: "claude-sonnet-4-5".into(),
        system: Some("Be brief.".into()),
        turns: vec![
            ChatTurn::System("Today is Monday.".into()),
            ChatTurn::user("Hi"),
            ChatTurn::user("Look at both."),
            ChatTurn::Assistant {
                parts: vec![Part::text("Looking."), Part::text(" ")],
                calls: vec![
                    call("call_1", "files.read", json!({ "p": 1 })),
                    call("call_2", "f", Value::Null),
                ],
            },
            ChatTurn::ToolResults(vec![result("call_1", "page", false), result("call_2", "no screen", true)]),
            ChatTurn::System("The user is away.".into()),
            ChatTurn::user("Thanks"),
        ],
        tools: vec![tool("files.read"), tool("f")],
        tool_choice: ToolChoice::Required,
        temperature: Some(0.5),
        max_output_tokens: Some(100),
        ..Request::default()
    };
    let encoded = encode(request);
    let alias = encoded.names.alias("files.read").to_owned();
    let schema = json!({ "type": "object", "properties": {} });
    let expected = json!({
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "stream": true,
        "temperature": 0.5,
        "system": [text("Be brief."), marked(text("Today is Monday."))],
        "tools": [
            { "name": alias, "description": "Reads.", "input_schema": schema },
            marked(json!({ "name": "f", "description": "Reads.", "input_schema": schema })),
        ],
        "tool_choice": { "type": "any" },
        "messages": [
            { "role": "user", "content": [text("Hi"), text("Look at both.")] },
            { "role": "assistant", "content": [
                text("Looking. "),
                { "type": "tool_use", "id": "call_1", "name": alias, "input": { "p": 1 } },
                { "type": "tool_use", "id": "call_2", "name": "f", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "call_1", "content": "page" },
                { "type": "tool_result", "tool_use_id": "call_2", "content": "no screen", "is_error": true },
                text("<system>\nThe user is away.\n</system>"),
                marked(text("Thanks")),
            ] },
        ],
    });
    assert_eq!(encoded.body, expected);
}

#[test]
fn a_plain_request_has_no_field_too_many() {
    let expected = json!({
        "model": "m",
        "max_tokens": 16_000,
        "messages": [{ "role": "user", "content": [marked(text("hi"))] }],
        "stream": true,
    });
    assert_eq!(body(asking("hi")), expected);
    let old = body(Request { model: "claude-3-opus-20240229".into(), ..asking("hi") });
    assert_eq!(old["max_tokens"], 4096);
}

#[test]
fn u14_thinking_goes_back_unchanged_and_in_order() {
    let turns = vec![ChatTurn::user("Weather?"), kept(1)];
    let content = body(Request { turns, ..Request::default() })["messages"][1]["content"].clone();
    let kinds: Vec<&str> = content.as_array().unwrap().iter().filter_map(|b| b["type"].as_str()).collect();
    assert_eq!(kinds, ["thinking", "redacted_thinking", "text", "tool_use", "tool_use", "tool_use"]);
    assert_eq!(
        content[0],
        json!({ "type": "thinking", "thinking": "Two cities, two calls.", "signature": "EqQBCkYIBxgC==" })
    );
    assert_eq!(content[1], json!({ "type": "redacted_thinking", "data": "EmwKAhgBEgy/+=" }));
    assert_eq!(content[4]["caller"], json!({ "type": "direct" }));
}

#[test]
fn u14_thinking_of_others_and_thinking_without_a_signature_stay_here() {
    let foreign = json!({ "openai-responses": { "encrypted_content": "x" } });
    let parts = vec![
        Part::Reasoning { text: "cut".into(), metadata: Guarded::Hidden },
        Part::Reasoning { text: "theirs".into(), metadata: foreign.clone().into() },
        Part::Opaque { value: foreign.into() },
        Part::text("Said."),
    ];
    let turns =
        vec![ChatTurn::user("a"), ChatTurn::Assistant { parts, calls: Vec::new() }, ChatTurn::user("b")];
    let messages = body(Request { turns, ..Request::default() })["messages"].clone();
    assert_eq!(messages[1]["content"], json!([text("Said.")]));
}

#[test]
fn u14_searches_and_citations_go_back_at_their_places() {
    let turns = vec![ChatTurn::user("Rust?"), kept(2), ChatTurn::user("And?")];
    let content = body(Request { turns, ..Request::default() })["messages"][1]["content"].clone();
    let content = content.as_array().unwrap();
    let told: Vec<(&str, Option<&str>, usize)> = content
        .iter()
        .map(|block| {
            let cited = block["citations"].as_array().map_or(0, Vec::len);
            (block["type"].as_str().unwrap(), block["text"].as_str(), cited)
        })
        .collect();
    let expected = [
        ("text", Some("I search."), 0),
        ("server_tool_use", None, 0),
        ("web_search_tool_result", None, 0),
        ("text", Some("It is known that "), 0),
        ("text", Some("Größe zählt 🎉"), 2),
        ("text", Some(". And "), 0),
        ("text", Some("documents have no address"), 1),
        ("text", Some("."), 0),
    ];
    assert_eq!(told, expected);
    assert_eq!(content[1]["input"], json!({ "query": "rust 1.95 größe" }));
    assert_eq!(content[2]["content"][0]["encrypted_content"], "EqgfCioIARgB");
    assert_eq!(content[4]["citations"][0]["encrypted_index"], "Eo8B1");
}

#[test]
fn u14_calls_keep_their_places_between_words() {
    let turns = vec![ChatTurn::user("go"), kept(3)];
    let content = body(Request { turns, ..Request::default() })["messages"][1]["content"].clone();
    let kinds: Vec<&str> = content.as_array().unwrap().iter().filter_map(|b| b["type"].as_str()).collect();
    assert_eq!(kinds, ["tool_use", "text", "brand_new_block", "tool_use"]);
}

#[test]
fn a_search_without_its_result_goes_back_only_if_the_vendor_may_go_on() {
    let ChatTurn::Assistant { mut parts, calls } = kept(2) else { panic!() };
    parts.truncate(2);
    let turn = ChatTurn::Assistant { parts, calls };
    let kinds = |turns: Vec<ChatTurn>| {
        let content = body(Request { turns, ..Request::default() })["messages"][1]["content"].clone();
        content.as_array().unwrap().iter().map(|b| b["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(vec![ChatTurn::user("a"), turn.clone()]), ["text", "server_tool_use"]);
    assert_eq!(kinds(vec![ChatTurn::user("a"), turn, ChatTurn::user("b")]), ["text"]);
}

#[test]
fn amended_text_cites_nothing() {
    let ChatTurn::Assistant { mut parts, calls } = kept(2) else { panic!() };
    parts.retain(|part| !matches!(part, Part::Text { .. }));
    parts.insert(0, Part::text("Short"));
    let turns = vec![ChatTurn::user("a"), ChatTurn::Assistant { parts, calls }, ChatTurn::user("b")];
    let content = body(Request { turns, ..Request::default() })["messages"][1]["content"].to_string();
    assert!(content.contains("Short") && !content.contains("citations"), "{content}");
}

#[test]
fn files_go_as_images_documents_or_words() {
    let parts = vec![
        file("image/jpg", Some("data:image/jpeg;base64,AA=="), None),
        file("image/png", Some("https://example.com/a.png"), None),
        file("application/pdf", Some("data:application/pdf;base64,AA=="), Some("a.pdf")),
        file("application/pdf", Some("https://example.com/b.pdf"), None),
        file("text/csv", Some("https://example.com/c.csv"), Some("c.csv")),
        file("audio/wav", Some("data:audio/wav;base64,AA=="), None),
        Part::Data { name: "x".into(), value: json!(1) },
        Part::text("Look"),
    ];
    let turns = vec![ChatTurn::User { parts, name: None }];
    let content = body(Request { turns, ..Request::default() })["messages"][0]["content"].clone();
    let expected = json!([
        { "type": "image", "source": { "type": "base64", "media_type": "image/jpeg", "data": "AA==" } },
        { "type": "image", "source": { "type": "url", "url": "https://example.com/a.png" } },
        { "type": "document", "title": "a.pdf",
            "source": { "type": "base64", "media_type": "application/pdf", "data": "AA==" } },
        { "type": "document", "source": { "type": "url", "url": "https://example.com/b.pdf" } },
        text("[file c.csv (text/csv): https://example.com/c.csv]"),
        text("[file file (audio/wav) is not readable here]"),
        marked(text("Look")),
    ]);
    assert_eq!(content, expected);
}

#[test]
fn thinking_is_asked_for_as_the_model_takes_it() {
    let with = |model: &str, reasoning: Reasoning| {
        let (model, reasoning) = (model.to_owned(), Some(Reasoning { enabled: true, ..reasoning }));
        let tools = vec![tool("t")];
        let tool_choice = ToolChoice::Required;
        let max_output_tokens = Some(2000);
        let temperature = Some(0.3);
        body(Request { model, reasoning, tools, tool_choice, max_output_tokens, temperature, ..asking("hi") })
    };
    let effort = |effort| Reasoning { effort: Some(effort), ..Reasoning::default() };
    let budget = Reasoning { budget_tokens: Some(3000), ..Reasoning::default() };

    let old = with("claude-sonnet-4-5-20250929", budget.clone());
    assert_eq!(old["thinking"], json!({ "type": "enabled", "budget_tokens": 3000 }));
    assert_eq!(old["max_tokens"], 5000, "the budget leaves room for the reply");
    assert_eq!((old.get("temperature"), old.get("tool_choice")), (None, None));
    let low = with("claude-3-7-sonnet-latest", effort(ReasoningEffort::Low));
    assert_eq!(low["thinking"]["budget_tokens"], 2048);
    let least = Reasoning { budget_tokens: Some(1), include_thoughts: Some(false), ..Reasoning::default() };
    let least = with("claude-opus-4-1", least)["thinking"].clone();
    assert_eq!(least, json!({ "type": "enabled", "budget_tokens": 1024, "display": "omitted" }));

    let adaptive = json!({ "type": "adaptive", "display": "summarized" });
    let new = with("claude-opus-4-6", effort(ReasoningEffort::High));
    assert_eq!((&new["thinking"], &new["output_config"]), (&adaptive, &json!({ "effort": "high" })));
    assert_eq!(new["max_tokens"], 2000);
    assert_eq!(with("claude-opus-4-6", budget.clone())["thinking"]["type"], "enabled");
    assert_eq!(with("claude-opus-5", budget)["thinking"], adaptive);
    let off = with("claude-opus-5", effort(ReasoningEffort::None));
    assert_eq!((&off["thinking"], off.get("temperature")), (&json!({ "type": "disabled" }), None));
    let off = with("claude-sonnet-4-6", effort(ReasoningEffort::None));
    assert_eq!((&off["thinking"], &off["temperature"]), (&json!({ "type": "disabled" }), &json!(0.3)));
    let not_enabled = Request { reasoning: Some(effort(ReasoningEffort::Low)), ..asking("hi") };
    assert_eq!(body(not_enabled).get("thinking"), None);
}

#[test]
fn u14_a_model_that_takes_over_in_the_middle_of_calls_does_not_think() {
    let foreign =
        ChatTurn::Assistant { parts: vec![Part::text("Hm.")], calls: vec![call("call_1", "f", json!({}))] };
    let results = ChatTurn::ToolResults(vec![result("call_1", "1", false)]);
    let ask = |turn: ChatTurn| {
        let turns = vec![ChatTurn::user("a"), turn, results.clone()];
        let reasoning = Some(Reasoning { enabled: true, ..Reasoning::default() });
        body(Request { model: "claude-sonnet-4-5".into(), turns, reasoning, ..Request::default() })
    };
    assert_eq!(ask(foreign).get("thinking"), None);
    assert_eq!(ask(kept(1))["thinking"]["type"], "enabled");
}

#[test]
fn options_switch_search_and_caching() {
    let search = with(json!({ "web_search": true }), asking("hi"));
    assert_eq!(
        search["tools"],
        json!([marked(json!({ "type": "web_search_20250305", "name": "web_search" }))])
    );
    let settings = json!({ "web_search": { "type": "web_search_20260209", "max_uses": 2 }, "cache": "1h" });
    let search = with(settings, asking("hi"));
    assert_eq!(search["tools"][0]["max_uses"], 2);
    assert_eq!(search["tools"][0]["type"], "web_search_20260209");
    assert_eq!(search["tools"][0]["cache_control"], json!({ "type": "ephemeral", "ttl": "1h" }));
    let plain = with(json!({ "web_search": false, "cache": false, "betas": ["x"] }), asking("hi"));
    assert!(!plain.to_string().contains("cache"), "{plain}");
    assert_eq!((plain.get("tools"), plain.get("betas")), (None, None));
}

#[test]
fn options_replace_fields_and_null_removes_them() {
    let request = Request { temperature: Some(0.1), ..asking("hi") };
    let body = with(json!({ "temperature": null, "top_k": 5, "max_tokens": 7 }), request);
    assert_eq!(body.get("temperature"), None);
    assert_eq!((&body["top_k"], &body["max_tokens"], body.get("seed")), (&json!(5), &json!(7), None));
}

#[test]
fn the_form_of_an_answer_is_asked_for() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let output = |schema| Some(OutputSchema { name: "answer".into(), schema, strict: true });
    let asked = body(Request { output: output(schema), ..asking("hi") });
    let closed = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "additionalProperties": false });
    assert_eq!(asked["output_config"], json!({ "format": { "type": "json_schema", "schema": closed } }));
    let bad = encode(Request { output: output(json!({ "$ref": "#/x" })), ..asking("hi") });
    assert_eq!((bad.body.get("output_config"), bad.left_out.len()), (None, 1));
}

#[test]
fn a_history_with_calls_has_its_tools_even_if_none_may_be_used() {
    let turns = vec![
        ChatTurn::user("a"),
        ChatTurn::Assistant { parts: Vec::new(), calls: vec![call("call_1", "my.tool", json!([1]))] },
    ];
    let encoded = encode(Request { turns, ..Request::default() });
    assert_eq!(encoded.body["tools"][0]["name"], encoded.names.alias("my.tool"));
    assert_eq!(encoded.body["tool_choice"], json!({ "type": "none" }));
    assert_eq!(encoded.body["messages"][1]["content"][0]["input"], json!({ "input": [1] }));
    let lost = &encoded.body["messages"][2]["content"][0];
    assert_eq!((&lost["is_error"], &lost["tool_use_id"]), (&json!(true), &json!("call_1")));
}

#[test]
fn several_speakers_are_told_apart_and_the_user_comes_first() {
    let user =
        |text: &str, name: &str| ChatTurn::User { parts: vec![Part::text(text)], name: Some(name.into()) };
    let turns = vec![ChatTurn::assistant("Hello"), user("one", "ann"), user("two", "bob"), user(" ", "cy")];
    let messages = body(Request { turns, ..Request::default() })["messages"].clone();
    let expected = json!([
        { "role": "user", "content": [text("(The assistant begins.)")] },
        { "role": "assistant", "content": [text("Hello")] },
        { "role": "user", "content": [text("[ann]"), text("one"), text("[bob]"), marked(text("two"))] },
    ]);
    assert_eq!(messages, expected);
}
