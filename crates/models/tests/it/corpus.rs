//! Requests with everything that an agent may ask for. Each vendor's own types
//! judge how they are encoded.

use serde_json::{Value, json};
use toolyard_models::{ChatTurn, OfferedTool, OutputSchema, PastCall, PastResult, Request};
use toolyard_protocol::agent::{Reasoning, ReasoningEffort, ToolChoice};
use toolyard_protocol::ids::CallId;
use toolyard_protocol::message::Part;

use crate::vendors::{VENDORS, remembered};

const PNG: &str = "data:image/png;base64,iVBORw0KGgo=";
const PDF: &str = "data:application/pdf;base64,JVBERi0xLjQ=";

fn tool(name: &str, schema: Value) -> OfferedTool {
    OfferedTool { name: name.into(), description: format!("Does {name}."), schema }
}

fn read_screen() -> OfferedTool {
    let properties = json!({ "q": { "type": "string", "description": "What" } });
    tool("read_screen", json!({ "type": "object", "properties": properties, "required": ["q"] }))
}

fn file(media_type: &str, url: Option<&str>, name: Option<&str>) -> Part {
    let (url, name) = (url.map(str::to_owned), name.map(str::to_owned));
    Part::File { media_type: media_type.into(), file: None, url, name }
}

fn call(id: &str, name: &str, args: Value) -> PastCall {
    PastCall { id: CallId::parse(id).unwrap(), name: name.into(), args, metadata: Value::Null }
}

fn result(id: &str, name: &str, content: &str, is_error: bool) -> PastResult {
    PastResult { call: CallId::parse(id).unwrap(), name: name.into(), content: content.into(), is_error }
}

fn thinking(effort: Option<ReasoningEffort>, budget_tokens: Option<u32>) -> Option<Reasoning> {
    Some(Reasoning { enabled: true, effort, budget_tokens, ..Reasoning::default() })
}

/// Tools that run at the vendor, beside ours: each wire has its own.
pub(crate) fn hosted(vendor: &str, model: &str) -> Vec<(&'static str, Request)> {
    let (key, tools) = match vendor {
        "openai-responses" => (
            "openai.responses",
            json!([{ "type": "web_search" }, { "type": "code_interpreter", "container": { "type": "auto" } }]),
        ),
        "anthropic" => {
            ("anthropic.messages", json!([{ "type": "web_search_20250305", "name": "web_search" }]))
        }
        "gemini" => ("google", json!([{ "codeExecution": {} }, { "urlContext": {} }])),
        "bedrock" => ("amazon-bedrock", json!([{ "systemTool": { "name": "nova_grounding" } }])),
        // The older wire of the vendor runs nothing itself.
        _ => return Vec::new(),
    };
    let provider_tools = json!({ key: tools }).as_object().cloned().unwrap();
    let turns = vec![ChatTurn::user("Look")];
    let alone = Request { model: model.into(), turns, provider_tools, ..Request::default() };
    let beside = Request { tools: vec![read_screen()], ..alone.clone() };
    vec![("tools of the vendor", alone), ("tools of the vendor beside ours", beside)]
}

/// Schemas as tools of the world have them (row H4).
fn odd_schemas() -> Vec<OfferedTool> {
    let tree = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:tree",
        "type": "object", "properties": { "root": { "$ref": "#/$defs/node" } },
        "$defs": { "node": { "type": "object", "properties": { "value": { "type": ["string", "null"] },
            "children": { "type": "array", "items": { "$ref": "#/$defs/node" } } } } } });
    vec![
        tool("empty", json!({})),
        tool("nothing", json!({ "type": "object" })),
        tool("tree", tree),
        tool(
            "choice",
            json!({ "type": "object", "properties": {
            "a": { "oneOf": [{ "type": "string" }, { "type": "integer", "minimum": 0 }] },
            "b": { "anyOf": [{ "type": "null" }, { "type": "array", "items": { "enum": ["x", "y"] } }] },
            "c": { "allOf": [{ "type": "object", "properties": { "d": { "const": 1 } } }] } },
            "additionalProperties": false }),
        ),
        tool(
            "numbers",
            json!({ "type": "object", "properties": {
            "n": { "type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5, "default": 1 },
            "s": { "type": "string", "format": "date-time", "pattern": "^\\d+$", "minLength": 1 },
            "e": { "enum": [1, "two", null] } }, "patternProperties": { "^x-": {} } }),
        ),
    ]
}

/// Name and request. `model` is the vendor's own.
pub(crate) fn corpus(model: &str) -> Vec<(&'static str, Request)> {
    let plain = || Request { model: model.into(), turns: vec![ChatTurn::user("Hi")], ..Request::default() };
    let with = |turns: Vec<ChatTurn>| Request { turns, tools: vec![read_screen()], ..plain() };
    let asked = |calls| ChatTurn::Assistant { parts: vec![], calls };
    let one = || vec![call("call_1", "read_screen", json!({ "q": "a" }))];
    let two = || {
        let second = call("call_2", "read_screen", json!({ "q": "b" }));
        [one(), vec![second]].concat()
    };
    let long_id = "x".repeat(96);
    let names = ["files.read", "a/b:c", "Ümläut", "mcp server tool", &"long".repeat(40), "files_read"];
    let user = |parts| ChatTurn::User { parts, name: None };
    let mut all = vec![
        ("plain", plain()),
        ("system", Request { system: Some("Be brief.".into()), ..plain() }),
        ("limits", Request { temperature: Some(0.3), max_output_tokens: Some(200), ..plain() }),
        ("one tool", with(vec![ChatTurn::user("Look")])),
        (
            "tool required",
            Request { tool_choice: ToolChoice::Required, ..with(vec![ChatTurn::user("Look")]) },
        ),
        ("tools forbidden", Request { tool_choice: ToolChoice::None, ..with(vec![ChatTurn::user("Look")]) }),
        (
            "names that need aliases",
            Request {
                tools: names.iter().map(|name| tool(name, json!({ "type": "object" }))).collect(),
                ..plain()
            },
        ),
        ("odd schemas", Request { tools: odd_schemas(), ..plain() }),
        (
            "a tool without description",
            Request { tools: vec![OfferedTool { description: String::new(), ..read_screen() }], ..plain() },
        ),
        (
            "call and result",
            with(vec![
                ChatTurn::user("Look"),
                asked(one()),
                ChatTurn::ToolResults(vec![result("call_1", "read_screen", "a page", false)]),
            ]),
        ),
        (
            "parallel calls, one failed, one empty",
            with(vec![
                ChatTurn::user("Look"),
                asked(two()),
                ChatTurn::ToolResults(vec![
                    result("call_2", "read_screen", "no screen", true),
                    result("call_1", "read_screen", "", false),
                ]),
                ChatTurn::assistant("There is none."),
                ChatTurn::user("Thanks"),
            ]),
        ),
        (
            "a call without its result",
            with(vec![ChatTurn::user("Look"), asked(two()), ChatTurn::user("Well?")]),
        ),
        (
            "a result without its call",
            with(vec![
                ChatTurn::user("Look"),
                ChatTurn::ToolResults(vec![result("call_9", "read_screen", "a page", false)]),
                ChatTurn::user("Well?"),
            ]),
        ),
        (
            "calls in the history, tools off",
            Request {
                tools: vec![],
                ..with(vec![
                    ChatTurn::user("Look"),
                    asked(one()),
                    ChatTurn::ToolResults(vec![result("call_1", "read_screen", "a page", false)]),
                    ChatTurn::user("And?"),
                ])
            },
        ),
        (
            "long ids and an odd name in the history",
            with(vec![
                ChatTurn::user("Look"),
                asked(vec![call(&long_id, "no such.tool", json!("not an object"))]),
                ChatTurn::ToolResults(vec![result(&long_id, "no such.tool", "unknown tool", true)]),
            ]),
        ),
        (
            "system in the middle",
            with(vec![
                ChatTurn::user("Look"),
                ChatTurn::assistant("Yes"),
                ChatTurn::System("The user is away.".into()),
                ChatTurn::user("Back"),
                ChatTurn::user("Hello?"),
            ]),
        ),
        (
            "a reply that was empty",
            with(vec![ChatTurn::user("a"), ChatTurn::assistant(""), ChatTurn::user("b")]),
        ),
        ("the assistant begins", with(vec![ChatTurn::assistant("Welcome"), ChatTurn::user("Hi")])),
        (
            "images",
            Request {
                turns: vec![user(vec![
                    Part::text("Look"),
                    file("image/png", Some(PNG), Some("a.png")),
                    file("image/jpeg", Some("https://example.com/a.jpg"), None),
                ])],
                ..plain()
            },
        ),
        (
            "files",
            Request {
                turns: vec![user(vec![
                    file("application/pdf", Some(PDF), Some("Report (final)/v2.pdf")),
                    file("application/pdf", Some(PDF), Some("Report (final)/v2.pdf")),
                    file("text/plain", Some("data:text/plain;base64,aGVsbG8="), None),
                    file("audio/wav", None, None),
                ])],
                ..plain()
            },
        ),
        (
            "a speaker with a name",
            Request {
                turns: vec![ChatTurn::User { parts: vec![Part::text("Hi")], name: Some("Ann Ü".into()) }],
                ..plain()
            },
        ),
        ("thinking by effort", Request { reasoning: thinking(Some(ReasoningEffort::High), None), ..plain() }),
        (
            "thinking by budget, tools required",
            Request {
                reasoning: thinking(None, Some(4000)),
                tool_choice: ToolChoice::Required,
                temperature: Some(0.2),
                max_output_tokens: Some(1000),
                ..with(vec![ChatTurn::user("Look")])
            },
        ),
        (
            "structured output",
            Request {
                output: Some(OutputSchema {
                    name: "answer".into(),
                    schema: json!({ "type": "object", "properties": { "yes": { "type": "boolean" } },
                        "required": ["yes"], "additionalProperties": false }),
                    strict: true,
                }),
                ..plain()
            },
        ),
        (
            "structured output of an odd schema",
            Request {
                output: Some(OutputSchema {
                    name: "an answer: odd".into(),
                    schema: json!({ "$schema": "https://json-schema.org/draft/2020-12/schema",
                        "$defs": { "item": { "type": "object", "properties": {
                            "id": { "type": "string", "format": "uri", "pattern": "^(?=x)y" },
                            "n": { "type": ["integer", "null"], "minimum": 1, "default": 3 } } } },
                        "allOf": [{ "type": "object", "properties": { "items": {
                            "type": "array", "minItems": 2, "items": { "$ref": "#/$defs/item" } } } }],
                        "properties": { "kind": { "const": "list" } }, "required": ["items"] }),
                    strict: true,
                }),
                ..plain()
            },
        ),
        (
            "structured output that no vendor enforces",
            Request {
                output: Some(OutputSchema {
                    name: "map".into(),
                    schema: json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
                    strict: true,
                }),
                ..plain()
            },
        ),
        (
            "the vendor's own search",
            Request {
                provider_options: json!({
                    "openai": { "web_search": true },
                    "anthropic": { "web_search": { "max_uses": 3 } },
                    "gemini": { "google_search": true },
                })
                .as_object()
                .cloned(),
                ..plain()
            },
        ),
        (
            "cache markers",
            Request {
                system: Some("Be brief.".into()),
                provider_options: json!({ "bedrock": { "cachePoints": true } }).as_object().cloned(),
                ..with(vec![ChatTurn::user("a"), ChatTurn::assistant("b"), ChatTurn::user("c")])
            },
        ),
    ];
    // What any vendor said, in the next request of this one: a conversation may
    // change its model.
    for (name, story) in [
        ("thoughts of all vendors", "reasoning"),
        ("calls of all vendors", "parallel_calls"),
        ("a bare call of all vendors", "call_without_arguments"),
        ("citations of all vendors", "citations"),
    ] {
        let mut turns = vec![ChatTurn::user("Think")];
        for vendor in VENDORS {
            turns.extend(remembered(&vendor.reply(story)));
            turns.push(ChatTurn::user("Go on"));
        }
        all.push((name, Request { reasoning: thinking(None, None), ..with(turns) }));
    }
    all
}
