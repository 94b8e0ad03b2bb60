//! The request in Bedrock's words.

use serde_json::{Value, json};
use toolyard_models::bedrock::encode;
use toolyard_models::{ChatTurn, OfferedTool, OutputSchema, PastCall, PastResult, Request};
use toolyard_protocol::agent::{Reasoning, ReasoningEffort, ToolChoice};
use toolyard_protocol::ids::CallId;
use toolyard_protocol::message::Part;

use crate::bedrock::{decode, event};
use crate::fixtures::asking;
use crate::vendors::{VENDORS, remembered};

const CLAUDE: &str = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0";

fn tool(name: &str) -> OfferedTool {
    OfferedTool { name: name.into(), description: "Reads.".into(), schema: json!({ "type": "object" }) }
}

fn call(id: &str, name: &str) -> PastCall {
    let args = json!({ "q": 1 });
    PastCall { id: CallId::parse(id).unwrap(), name: name.into(), args, metadata: Value::Null }
}

fn result(id: &str, content: &str, is_error: bool) -> PastResult {
    let call = CallId::parse(id).unwrap();
    PastResult { call, name: "read.screen".into(), content: content.into(), is_error }
}

fn text(text: &str) -> Value {
    json!({ "text": text })
}

#[test]
fn l23_a_whole_conversation_is_encoded_in_order() {
    let signed = json!({ "bedrock": { "signature": "s1" }, "anthropic": { "signature": "other" } });
    let foreign = json!({ "anthropic": { "signature": "other" } });
    let search =
        json!({ "toolUse": { "toolUseId": "s1", "name": "x", "type": "server_tool_use", "input": {} } });
    let request = Request {
        model: CLAUDE.into(),
        system: Some("Be brief.".into()),
        turns: vec![
            ChatTurn::user("Hi"),
            ChatTurn::Assistant {
                parts: vec![
                    Part::Reasoning { text: "Hm".into(), metadata: signed.into() },
                    Part::Reasoning { text: "not yours".into(), metadata: foreign.into() },
                    Part::Reasoning { text: "unsigned".into(), metadata: Default::default() },
                    Part::Reasoning {
                        text: String::new(),
                        metadata: json!({ "bedrock": { "redactedContent": "AAEC" } }).into(),
                    },
                    Part::Opaque { value: json!({ "bedrock": search }).into() },
                    Part::Opaque { value: json!({ "gemini": 1 }).into() },
                    Part::text("Looking."),
                ],
                calls: vec![call("call_1", "read.screen"), call("call_2", "read.screen")],
            },
            ChatTurn::ToolResults(vec![result("call_2", "no screen", true), result("call_1", "page", false)]),
            ChatTurn::assistant("Done."),
            ChatTurn::System("The user is away.".into()),
            ChatTurn::user("Thanks"),
        ],
        tools: vec![tool("read.screen")],
        tool_choice: ToolChoice::Required,
        temperature: Some(0.5),
        max_output_tokens: Some(100),
        ..Request::default()
    };
    let encoded = encode(request);
    let alias = encoded.names.alias("read.screen").to_owned();
    assert!(alias.starts_with("read_screen_") && encoded.names.given(&alias) == "read.screen");
    let used = |id: &str| json!({ "toolUse": { "toolUseId": id, "name": alias, "input": { "q": 1 } } });
    let expected = json!({
        "system": [text("Be brief.")],
        "messages": [
            { "role": "user", "content": [text("Hi")] },
            { "role": "assistant", "content": [
                { "reasoningContent": { "reasoningText": { "text": "Hm", "signature": "s1" } } },
                { "reasoningContent": { "redactedContent": "AAEC" } },
                search,
                text("Looking."),
                used("call_1"),
                used("call_2"),
            ] },
            { "role": "user", "content": [
                { "toolResult": { "toolUseId": "call_1", "content": [text("page")] } },
                { "toolResult": { "toolUseId": "call_2", "content": [text("no screen")], "status": "error" } },
            ] },
            { "role": "assistant", "content": [text("Done.")] },
            { "role": "user", "content": [text("[system] The user is away."), text("Thanks")] },
        ],
        "toolConfig": {
            "tools": [{ "toolSpec": { "name": alias, "description": "Reads.",
                "inputSchema": { "json": { "type": "object", "properties": {} } } } }],
            "toolChoice": { "any": {} },
        },
        "inferenceConfig": { "maxTokens": 100, "temperature": 0.5 },
    });
    assert_eq!(encoded.body, expected);
}

#[test]
fn calls_without_results_and_results_without_calls_are_mended() {
    let turns = vec![
        ChatTurn::user("a"),
        ChatTurn::Assistant { parts: vec![], calls: vec![call("c1", "t"), call("c2", "t"), call("c2", "t")] },
        ChatTurn::ToolResults(vec![
            result("c2", " ", false),
            result("c2", "again", false),
            result("c9", "x", false),
        ]),
        ChatTurn::user("b"),
    ];
    let messages = encode(Request { turns, tools: vec![tool("t")], ..asking("") }).body["messages"].clone();
    let answer = |id: &str, said: &str| json!({ "toolUseId": id, "content": [text(said)] });
    let mut missing = answer("c1", "There is no result of this call.");
    missing["status"] = json!("error");
    let expected = json!([{ "toolResult": missing }, { "toolResult": answer("c2", "(nothing)") }, text("b")]);
    assert_eq!(messages[2]["content"], expected);
    assert_eq!(messages[1]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn without_tools_earlier_calls_are_told_in_words() {
    let turns = vec![
        ChatTurn::user("a"),
        ChatTurn::Assistant { parts: vec![], calls: vec![call("c1", "read.screen")] },
        ChatTurn::ToolResults(vec![result("c1", "gone", true)]),
    ];
    let off =
        Request { turns: turns.clone(), tools: vec![tool("t")], tool_choice: ToolChoice::None, ..asking("") };
    for request in [off, Request { turns, ..asking("") }] {
        let body = encode(request).body;
        assert_eq!(body.get("toolConfig"), None);
        assert_eq!(body["messages"][1]["content"], json!([text("[called read.screen with {\"q\":1}]")]));
        assert_eq!(body["messages"][2]["content"], json!([text("[read.screen failed: gone]")]));
    }
}

#[test]
fn cache_points_are_set_when_asked_for() {
    let options =
        json!({ "bedrock": { "cachePoints": true, "serviceTier": { "type": "flex" }, "system": null } });
    let plain = Request { system: Some("S".into()), tools: vec![tool("t")], ..asking("hi") };
    let point = json!({ "cachePoint": { "type": "default" } });
    assert!(!encode(plain.clone()).body.to_string().contains("cachePoint"));
    let body = encode(Request { provider_options: options.as_object().cloned(), ..plain.clone() }).body;
    assert_eq!(body["messages"][0]["content"][1], point);
    assert_eq!(body["toolConfig"]["tools"][1], point);
    assert_eq!(body["serviceTier"]["type"], "flex");
    assert_eq!((body.get("system"), body.get("cachePoints")), (None, None));
    let options = json!({ "bedrock": { "cachePoints": true } });
    let body = encode(Request { provider_options: options.as_object().cloned(), ..plain }).body;
    assert_eq!(body["system"], json!([text("S"), point]));
}

#[test]
fn thinking_is_asked_for_in_the_words_of_each_family() {
    let body = |model: &str, effort, budget_tokens, max_output_tokens| {
        let reasoning = Some(Reasoning { enabled: true, effort, budget_tokens, ..Reasoning::default() });
        let (tools, tool_choice) = (vec![tool("t")], ToolChoice::Required);
        let temperature = Some(0.1);
        let model = model.to_owned();
        encode(Request {
            model,
            reasoning,
            tools,
            tool_choice,
            temperature,
            max_output_tokens,
            ..asking("hi")
        })
        .body
    };
    let high = Some(ReasoningEffort::High);
    let claude = body(CLAUDE, high, None, Some(500));
    let fields = json!({ "thinking": { "type": "enabled", "budget_tokens": 16384 } });
    assert_eq!(claude["additionalModelRequestFields"], fields);
    // The answer's own tokens come on top, and nothing that thinking forbids.
    assert_eq!(claude["inferenceConfig"], json!({ "maxTokens": 16884 }));
    assert_eq!(claude["toolConfig"].get("toolChoice"), None);
    assert_eq!(body(CLAUDE, None, Some(2000), Some(9000))["inferenceConfig"]["maxTokens"], 9000);
    assert_eq!(body(CLAUDE, None, Some(5), None)["inferenceConfig"]["maxTokens"], 1024 + 8192);
    let newer = body("anthropic.claude-opus-4-7", high, None, Some(500));
    let fields = json!({ "thinking": { "type": "adaptive", "display": "summarized" } });
    assert_eq!(newer["additionalModelRequestFields"], fields);
    assert_eq!(newer["outputConfig"], json!({ "effort": "high" }));
    assert_eq!(newer["inferenceConfig"], json!({ "maxTokens": 500 }));
    let nova = body("us.amazon.nova-2-lite-v1:0", high, None, None);
    let fields = json!({ "reasoningConfig": { "type": "enabled", "maxReasoningEffort": "high" } });
    assert_eq!(nova["additionalModelRequestFields"], fields);
    let oss = body("openai.gpt-oss-120b-1:0", Some(ReasoningEffort::Minimal), None, None);
    assert_eq!(oss["additionalModelRequestFields"], json!({ "reasoning_effort": "low" }));
    let none = body("meta.llama3-1-70b-instruct-v1:0", high, None, None);
    assert_eq!(none.get("additionalModelRequestFields"), None);
    assert_eq!(none["inferenceConfig"]["temperature"], 0.1);
    assert_eq!(none["toolConfig"]["toolChoice"], json!({ "any": {} }));
    let off = body(CLAUDE, Some(ReasoningEffort::None), None, None);
    assert_eq!(off.get("additionalModelRequestFields"), None);
}

#[test]
fn newer_models_are_told_no_temperature() {
    let body =
        |model: &str| encode(Request { model: model.into(), temperature: Some(0.1), ..asking("hi") }).body;
    assert_eq!(body("anthropic.claude-opus-4-7").get("inferenceConfig"), None);
    assert_eq!(body(CLAUDE)["inferenceConfig"], json!({ "temperature": 0.1 }));
}

#[test]
fn a_turn_without_thoughts_that_goes_on_after_its_calls_goes_on_without() {
    let reasoning = Some(Reasoning { enabled: true, ..Reasoning::default() });
    let signed = json!({ "bedrock": { "signature": "s1" } });
    let thought = Part::Reasoning { text: "Hm".into(), metadata: signed.into() };
    for (parts, thinks) in [(vec![], false), (vec![thought], true)] {
        let turns = vec![
            ChatTurn::user("a"),
            ChatTurn::Assistant { parts, calls: vec![call("c1", "t")] },
            ChatTurn::ToolResults(vec![result("c1", "ok", false)]),
        ];
        let model = CLAUDE.to_owned();
        let body = encode(Request {
            model,
            turns,
            tools: vec![tool("t")],
            reasoning: reasoning.clone(),
            ..asking("")
        })
        .body;
        assert_eq!(body.get("additionalModelRequestFields").is_some(), thinks);
    }
}

#[test]
fn files_go_as_bytes_or_words() {
    let file = |media_type: &str, url: Option<&str>, name: Option<&str>| Part::File {
        media_type: media_type.into(),
        file: None,
        url: url.map(str::to_owned),
        name: name.map(str::to_owned),
    };
    let pdf = "data:application/pdf;base64,JVBERg==";
    let parts = vec![
        file("image/png", Some("data:image/png;base64,AAAA"), None),
        file("application/pdf", Some(pdf), Some("A_b/ü.pdf")),
        file("application/pdf", Some(pdf), Some("A b ü pdf")),
        file("image/jpeg", Some("https://example.com/a.jpg"), Some("a.jpg")),
        file("image/png", Some("s3://bucket/key.png"), None),
        file("image/png", Some("data:image/png;base64,%%%"), None),
        file("audio/wav", Some("data:audio/wav;base64,AAAA"), None),
        file("text/plain", None, None),
    ];
    let turns = vec![ChatTurn::User { parts, name: None }];
    let body = encode(Request { turns, ..Request::default() }).body;
    let document = |name: &str| json!({ "document": { "format": "pdf", "name": name, "source": { "bytes": "JVBERg==" } } });
    let image = |source: Value| json!({ "image": { "format": "png", "source": source } });
    let expected = json!([
        image(json!({ "bytes": "AAAA" })),
        document("A b pdf"),
        document("A b pdf (2)"),
        text("[file a.jpg (image/jpeg): https://example.com/a.jpg]"),
        image(json!({ "s3Location": { "uri": "s3://bucket/key.png" } })),
        text("[file file (image/png) is not readable here]"),
        text("[file file (audio/wav) is not readable here]"),
        text("[file file (text/plain) is not readable here]"),
    ]);
    assert_eq!(body["messages"][0]["content"], expected);
}

#[test]
fn h4_one_bad_schema_leaves_out_one_tool_and_says_so() {
    let bad = OfferedTool { schema: json!("nonsense"), ..tool("bad") };
    let encoded = encode(Request { tools: vec![tool("good"), bad], ..asking("hi") });
    assert_eq!(encoded.body["toolConfig"]["tools"].as_array().unwrap().len(), 1);
    let left_out: Vec<&str> = encoded.left_out.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(left_out, ["bad"]);
    assert!(!encoded.left_out[0].reason.is_empty());
}

#[test]
fn a_plain_request_has_no_field_too_many_and_structured_output_is_text() {
    let plain = json!({ "messages": [{ "role": "user", "content": [text("hi")] }] });
    assert_eq!(encode(asking("hi")).body, plain);
    let nothing = json!({ "messages": [{ "role": "user", "content": [text("(nothing)")] }] });
    assert_eq!(encode(Request::default()).body, nothing);
    let output = OutputSchema { name: "answer".into(), schema: json!({ "type": "object" }), strict: true };
    let body = encode(Request { output: Some(output), ..asking("hi") }).body;
    let schema = json!({ "name": "answer", "schema": "{\"additionalProperties\":false,\"properties\":{},\"type\":\"object\"}" });
    let format = json!({ "type": "json_schema", "structure": { "jsonSchema": schema } });
    assert_eq!(body["outputConfig"], json!({ "textFormat": format }));
}

/// Row U19: what a reply cites goes back with it, and calls keep their places.
#[test]
fn u19_citations_and_the_order_of_calls_go_back() {
    let vendor = VENDORS.iter().find(|vendor| vendor.name == "bedrock").unwrap();
    let replayed = |model: &str, turns: Vec<ChatTurn>| {
        let turns = [vec![ChatTurn::user("Look")], turns, vec![ChatTurn::user("Go on")]].concat();
        let request =
            Request { model: model.into(), turns, tools: vec![tool("clock")], ..Request::default() };
        encode(request).body["messages"][1]["content"].clone()
    };
    let cited = remembered(&vendor.reply("citations"));
    let content = replayed(CLAUDE, cited.clone());
    assert_eq!(content[0], json!({ "text": "On 🌍: " }));
    let first = &content[1]["citationsContent"];
    assert_eq!(first["content"], json!([{ "text": "Zürich is dry." }]));
    assert_eq!(first["citations"][0]["title"], "Wetter");
    assert_eq!(first["citations"][0]["location"]["web"]["url"], "https://example.com/wetter?q=ü");
    assert_eq!(first["citations"][0]["sourceContent"], json!([{ "text": "Zürich is dry." }]));
    assert_eq!(content[3]["citationsContent"]["content"][0]["text"], "go out");
    // A family that does not cite gets the words.
    let plain = replayed("meta.llama3-1-70b-instruct-v1:0", cited.clone());
    assert_eq!(plain, json!([{ "text": "On 🌍: Zürich is dry. So go out." }]));
    // Words that somebody changed cite nothing any more.
    let mut shortened = cited;
    if let ChatTurn::Assistant { parts, .. } = &mut shortened[0] {
        parts.iter_mut().for_each(|part| {
            if let Part::Text { text } = part {
                *text = "x".into();
            }
        });
    }
    assert!(!replayed(CLAUDE, shortened).to_string().contains("citationsContent"));

    // A call, words, another call.
    let mark = |before: u64| Part::Opaque { value: json!({ "bedrock": { "toolyardCalls": before } }).into() };
    let calls = vec![call("call_1", "clock"), call("call_2", "clock")];
    let turns = vec![
        ChatTurn::Assistant { parts: vec![mark(1), Part::text("And now?")], calls },
        ChatTurn::ToolResults(vec![result("call_1", "noon", false), result("call_2", "noon", false)]),
    ];
    let content = replayed(CLAUDE, turns);
    let kinds: Vec<&str> = content
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block.as_object().unwrap().keys().next().unwrap().as_str())
        .collect();
    assert_eq!(kinds, ["toolUse", "text", "toolUse"], "{content}");
}

/// The decoder leaves the marks that the encoder reads.
#[test]
fn u19_a_reply_says_where_its_calls_stood() {
    let block = |key: u64, delta: Value| {
        event("contentBlockDelta", &json!({ "contentBlockIndex": key, "delta": delta }))
    };
    let call = |key: u64| {
        event(
            "contentBlockStart",
            &json!({ "contentBlockIndex": key,
        "start": { "toolUse": { "toolUseId": format!("t{key}"), "name": "clock" } } }),
        )
    };
    let stop = |key: u64| event("contentBlockStop", &json!({ "contentBlockIndex": key }));
    let mut bytes =
        [call(0), stop(0), block(1, json!({ "text": "And now?" })), stop(1), call(2), stop(2)].concat();
    bytes.extend(event("messageStop", &json!({ "stopReason": "tool_use" })));
    let turns = remembered(&decode(&bytes));
    let ChatTurn::Assistant { parts, calls } = &turns[0] else { panic!("{turns:?}") };
    assert_eq!(calls.len(), 2);
    assert_eq!(parts[0], Part::Opaque { value: json!({ "bedrock": { "toolyardCalls": 1 } }).into() });
}
