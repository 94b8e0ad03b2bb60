//! Gemini: the request in the vendor's words (rows L23, C4, H4).

use serde_json::{Value, json};
use toolyard_models::gemini::{Decoder, encode};
use toolyard_models::{ChatTurn, OfferedTool, OutputSchema, PastCall, Request};
use toolyard_protocol::agent::{Reasoning, ReasoningEffort, ToolChoice};
use toolyard_protocol::message::Part;

use crate::fixtures::asking;
use crate::memory::{file, id, remember, result};
use crate::{gemini, storm};

fn tool(name: &str, schema: Value) -> OfferedTool {
    OfferedTool { name: name.into(), description: "Reads.".into(), schema }
}

fn query() -> Value {
    json!({ "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"] })
}

#[test]
fn l23_a_whole_request_is_encoded_in_order() {
    let call = |index: usize, name: &str| PastCall {
        id: id(index),
        name: name.into(),
        args: json!({ "q": "a" }),
        metadata: Value::Null,
    };
    let request = Request {
        trace: None,
        model: "gemini-2.5-flash".into(),
        system: Some("Be brief.".into()),
        turns: vec![
            ChatTurn::user("Hi"),
            ChatTurn::user("Are you there?"),
            ChatTurn::Assistant {
                parts: vec![
                    Part::Reasoning { text: "unsigned".into(), metadata: Default::default() },
                    Part::text("Yes."),
                ],
                calls: vec![call(0, "read"), call(1, "read")],
            },
            ChatTurn::ToolResults(vec![
                result(1, "read", "no screen", true),
                result(0, "read", "page", false),
            ]),
            ChatTurn::System("The user is away.".into()),
            ChatTurn::assistant("Done."),
            ChatTurn::user("Thanks"),
        ],
        tools: vec![tool("read", query()), tool("ping", json!({ "type": "object" }))],
        tool_choice: ToolChoice::Required,
        temperature: Some(0.5),
        max_output_tokens: Some(100),
        reasoning: Some(Reasoning { enabled: true, budget_tokens: Some(2000), ..Reasoning::default() }),
        provider_options: json!({ "gemini": {
            "safetySettings": [],
            "generationConfig": { "temperature": null, "topK": 3 },
        }, "openai": { "x": 1 } })
        .as_object()
        .cloned(),
        provider_tools: serde_json::Map::new(),
        output: None,
        structured_output: None,
    };
    let called = json!({ "functionCall": { "name": "read", "args": { "q": "a" } } });
    let answered = |response: Value| json!({ "functionResponse": { "name": "read", "response": response } });
    let expected = json!({
        "systemInstruction": { "parts": [{ "text": "Be brief." }] },
        "contents": [
            { "role": "user", "parts": [{ "text": "Hi" }, { "text": "Are you there?" }] },
            { "role": "model", "parts": [{ "text": "Yes." }, called, called] },
            { "role": "user", "parts": [
                answered(json!({ "output": "page" })),
                answered(json!({ "error": "no screen" })),
            ] },
            { "role": "user", "parts": [
                { "text": "<system>\nThe user is away.\n</system>" },
            ] },
            { "role": "model", "parts": [{ "text": "Done." }] },
            { "role": "user", "parts": [{ "text": "Thanks" }] },
        ],
        "tools": [{ "functionDeclarations": [
            { "name": "read", "description": "Reads.", "parameters": query() },
            { "name": "ping", "description": "Reads." },
        ] }],
        "toolConfig": { "functionCallingConfig": { "mode": "ANY" } },
        "generationConfig": {
            "maxOutputTokens": 100,
            "topK": 3,
            "thinkingConfig": { "includeThoughts": true, "thinkingBudget": 2000 },
        },
        "safetySettings": [],
    });
    assert_eq!(encode(request).body, expected);
}

#[test]
fn a_plain_request_has_no_field_too_many() {
    let expected = json!({ "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }] });
    assert_eq!(encode(asking("hi")).body, expected);
}

/// Signatures return to the parts that they came with.
#[test]
fn a_reply_goes_back_as_its_parts_in_order() {
    let parts_of = |fixture: usize, model: &str| {
        let outcome = storm::decode::<Decoder>([gemini::ALL[fixture].bytes]);
        let turns = vec![ChatTurn::user("hi"), remember(&outcome.chunks)];
        let body = encode(Request { model: model.into(), turns, ..Request::default() }).body;
        (body["contents"][1]["parts"].clone(), body["contents"][2]["parts"].clone())
    };
    let (text, _) = parts_of(0, "gemini-3-pro");
    assert_eq!(
        text,
        json!([{ "text": "Grüße aus Zürich 🎉" }, { "text": "", "thoughtSignature": "c2lnLWVuZA==" }])
    );
    let (calls, results) = parts_of(1, "gemini-3-pro");
    let expected = json!([
        { "text": "I ask ", "thoughtSignature": "c2lnLXRleHQ=" },
        { "text": "both." },
        { "functionCall": { "name": "weather", "args": { "city": "Zürich", "days": [1, 2] } },
          "thoughtSignature": "c2lnLWNhbGw=" },
        { "functionCall": { "name": "weather", "args": { "city": "Bern" } } },
        { "functionCall": { "name": "clock", "args": {}, "id": "fc-7" } },
    ]);
    assert_eq!(calls, expected);
    let ids: Vec<Option<&str>> =
        results.as_array().unwrap().iter().map(|part| part["functionResponse"]["id"].as_str()).collect();
    assert_eq!(ids, [None, None, Some("fc-7")]);
    let (odd, _) = parts_of(3, "gemini-3-pro");
    let expected = json!([
        { "text": "half" },
        { "executableCode": { "language": "PYTHON", "code": "print(1)" } },
        { "codeExecutionResult": { "outcome": "OUTCOME_OK", "output": "1" } },
        { "toolCall": { "id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {} }, "thoughtSignature": "c2ln" },
        { "text": " a thought", "thought": true, "thoughtSignature": "c2ln" },
        { "text": "", "thoughtSignature": "YWxvbmU=" },
    ]);
    assert_eq!(odd, expected);
}

#[test]
fn calls_of_another_model_say_so_where_it_matters() {
    let past = |model: &str| {
        let call = |index| PastCall {
            id: id(index),
            name: "t".into(),
            args: Value::Null,
            metadata: json!({ "anthropic": { "signature": "SECRET" } }),
        };
        let turn = ChatTurn::Assistant { parts: vec![], calls: vec![call(0), call(1)] };
        let turns = vec![ChatTurn::user("a"), turn];
        let body = encode(Request { model: model.into(), turns, ..Request::default() }).body;
        assert!(!body.to_string().contains("SECRET"));
        let parts = body["contents"][1]["parts"].as_array().unwrap().clone();
        parts.iter().map(|part| part.get("thoughtSignature").is_some()).collect::<Vec<_>>()
    };
    assert_eq!(past("gemini-3-pro-preview"), [true, false]);
    assert_eq!(past("gemini-2.5-flash"), [false, false]);
}

#[test]
fn a_conversation_that_the_model_began_gets_a_user_before_it() {
    let body = encode(Request { turns: vec![ChatTurn::assistant("Hello!")], ..Request::default() }).body;
    let roles: Vec<&Value> = body["contents"].as_array().unwrap().iter().map(|turn| &turn["role"]).collect();
    assert_eq!(roles, ["user", "model"]);
}

#[test]
fn files_go_inside_by_address_or_in_words() {
    let parts = vec![
        file("image/png", Some("data:image/jpeg;base64,AA=="), None),
        file("application/pdf", Some("https://example.com/b.pdf"), Some("b.pdf")),
        file("text/plain", None, Some("gone.txt")),
    ];
    let turns = vec![ChatTurn::User { parts, name: None }];
    let expected = json!([
        { "inlineData": { "mimeType": "image/jpeg", "data": "AA==" } },
        { "fileData": { "mimeType": "application/pdf", "fileUri": "https://example.com/b.pdf" } },
        { "text": "[file gone.txt (text/plain) is not readable here]" },
    ]);
    assert_eq!(encode(Request { turns, ..Request::default() }).body["contents"][0]["parts"], expected);
}

#[test]
fn thinking_is_a_level_or_a_budget() {
    let thinking = |model: &str, effort| {
        let reasoning = Some(Reasoning { enabled: true, effort: Some(effort), ..Reasoning::default() });
        let body = encode(Request { model: model.into(), reasoning, ..asking("hi") }).body;
        body["generationConfig"]["thinkingConfig"].clone()
    };
    let level = json!({ "includeThoughts": true, "thinkingLevel": "low" });
    assert_eq!(thinking("gemini-3-pro", ReasoningEffort::Low), level);
    let budget = json!({ "includeThoughts": true, "thinkingBudget": 0 });
    assert_eq!(thinking("gemini-2.5-flash", ReasoningEffort::None), budget);
}

#[test]
fn the_form_of_an_answer_is_a_schema() {
    let form = |model: &str| {
        let output = Some(OutputSchema { name: "a".into(), schema: query(), strict: true });
        let mut body = encode(Request { model: model.into(), output, ..asking("hi") }).body;
        body["generationConfig"].take()
    };
    let new = form("gemini-2.5-pro");
    assert_eq!(new["responseMimeType"], "application/json");
    assert_eq!(new["responseJsonSchema"]["required"], json!(["q"]));
    let old = form("gemini-2.0-flash");
    assert_eq!(old["responseSchema"]["properties"]["q"]["type"], "string");
}

#[test]
fn the_vendors_search_is_a_tool_by_option() {
    let body = |model: &str, tools: Vec<OfferedTool>| {
        let options = json!({ "gemini": { "google_search": true } });
        let provider_options = options.as_object().cloned();
        encode(Request { model: model.into(), tools, provider_options, ..asking("hi") }).body
    };
    let alone = body("gemini-2.5-flash", vec![]);
    assert_eq!(alone["tools"], json!([{ "googleSearch": {} }]));
    assert_eq!(alone.get("toolConfig"), None);
    let both = body("gemini-3-pro", vec![tool("read", query())]);
    assert_eq!(both["tools"][1], json!({ "googleSearch": {} }));
    assert_eq!(both["toolConfig"], json!({ "includeServerSideToolInvocations": true }));
}

/// Row H4: schemas that the vendor would refuse are told in its subset, and
/// one that cannot be told costs only its own tool.
#[test]
fn h4_schemas_fit_the_vendors_subset() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "kind": { "const": "a" },
            "level": { "enum": [1, 2, null] },
            "mail": { "type": ["string", "null"], "format": "email", "description": "Whom" },
            "when": { "type": "string", "format": "date-time" },
            "either": { "description": "Both", "oneOf": [{ "type": "string" }, { "type": "integer" }] },
            "maybe": { "anyOf": [{ "type": "number", "exclusiveMinimum": 0 }, { "type": "null" }] },
            "pair": { "type": "array", "prefixItems": [{ "type": "string" }, { "type": "string" }] },
            "free": { "type": "object", "additionalProperties": true },
            "mixed": { "allOf": [
                { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
                { "properties": { "b": { "type": "boolean" } }, "required": ["b"] },
            ] },
        },
        "required": ["kind", "missing"],
    });
    let tools = vec![tool("good", schema), tool("bad", json!({ "type": "string" }))];
    let encoded = encode(Request { tools, ..asking("hi") });
    let functions = encoded.body["tools"][0]["functionDeclarations"].as_array().unwrap();
    assert_eq!(functions.len(), 1);
    assert_eq!(encoded.left_out.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["bad"]);
    let parameters = &functions[0]["parameters"];
    assert_eq!(parameters["required"], json!(["kind"]));
    assert_eq!(parameters.get("additionalProperties"), None);
    let property = |name: &str| parameters["properties"][name].clone();
    assert_eq!(property("kind"), json!({ "type": "string", "enum": ["a"] }));
    let level = json!({ "type": "integer", "nullable": true, "description": "One of: 1, 2" });
    assert_eq!(property("level"), level);
    let mail = json!({ "type": "string", "nullable": true, "description": "Whom. Format: email" });
    assert_eq!(property("mail"), mail);
    assert_eq!(property("when"), json!({ "type": "string", "format": "date-time" }));
    let either = json!({ "anyOf": [
        { "type": "string", "description": "Both" },
        { "type": "integer", "description": "Both" },
    ] });
    assert_eq!(property("either"), either);
    assert_eq!(property("maybe"), json!({ "type": "number", "nullable": true }));
    assert_eq!(property("pair"), json!({ "type": "array", "items": { "type": "string" } }));
    assert_eq!(property("free"), json!({ "type": "object" }));
    let mixed = property("mixed");
    assert_eq!((&mixed["type"], &mixed["required"]), (&json!("object"), &json!(["a", "b"])));
}

#[test]
fn a_name_begins_with_a_letter_on_this_wire() {
    let names = ["0start", "-dash", "plain", "ünter", "_under", ".dot"];
    let tools = names.map(|name| tool(name, query())).to_vec();
    let encoded = encode(Request { tools, ..asking("hi") });
    let functions = encoded.body["tools"][0]["functionDeclarations"].as_array().unwrap();
    for (function, name) in functions.iter().zip(names) {
        let alias = function["name"].as_str().unwrap();
        assert!(alias.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'), "{alias}");
        assert_eq!(encoded.names.given(alias), name);
    }
    assert_eq!((&functions[2]["name"], &functions[4]["name"]), (&json!("plain"), &json!("_under")));
}

#[test]
fn several_speakers_are_told_apart() {
    let said = |name: &str| ChatTurn::User { parts: vec![Part::text("Hi")], name: Some(name.into()) };
    let parts = |turns: Vec<ChatTurn>| {
        encode(Request { turns, ..Request::default() }).body["contents"][0]["parts"].take()
    };
    let two = json!([{ "text": "[ann]" }, { "text": "Hi" }, { "text": "[bob]" }, { "text": "Hi" }]);
    assert_eq!(parts(vec![said("ann"), said("bob")]), two);
    assert_eq!(parts(vec![said("ann"), said("ann")]), json!([{ "text": "Hi" }, { "text": "Hi" }]));
}
