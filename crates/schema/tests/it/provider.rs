//! L10, L13–L17, L26–L28, H5: the tools of one client, and calls of them.

use serde_json::{Value, json};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{IfAbsent, Place, Visibility};
use toolyard_schema::{ClientToolCall, ClientToolSet, Limits, NameRule};

fn set() -> ClientToolSet {
    let definitions = [
        json!({"name": "add", "description": "Adds", "parameters": {"type": "object", "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer"}, "note": {"type": "string", "enum": ["x", "y"]}},
            "required": ["a", "b"]}}),
        json!({"name": "strict", "description": "Strict", "inputSchema": {"type": "object",
            "properties": {"q": {"type": "string"}}, "additionalProperties": false}}),
    ];
    ClientToolSet::new(&definitions, &Limits::request(), NameRule::Config).unwrap()
}

fn call(name: &str, arguments: &str) -> ClientToolCall {
    serde_json::from_value(json!({"id": "c1", "type": "function",
        "function": {"name": name, "arguments": arguments}}))
    .unwrap()
}

fn verdict(name: &str, arguments: &str) -> Value {
    serde_json::to_value(set().validate_arguments(&call(name, arguments))).unwrap()
}

#[test]
fn l8_l10_the_set_is_what_was_validated_and_a_bad_one_is_not_made() {
    let tools = set();
    let names: Vec<_> = tools.tools().iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["add", "strict"]);
    assert_eq!(tools.find("strict").unwrap().description, "Strict");
    assert!(tools.find("Strict").is_none());
    let refused = ClientToolSet::new(&[json!({"name": ""})], &Limits::request(), NameRule::Config);
    let text = refused.unwrap_err().to_string();
    assert!(text.starts_with("Invalid client tool definitions: "), "{text}");
}

#[test]
fn l15_l16_l17_arguments_are_judged_in_the_documented_words() {
    assert_eq!(verdict("add", r#"{"a": 1, "b": 2}"#), json!({"valid": true}));
    assert_eq!(verdict("add", r#"{"a": 1, "b": 2, "more": true}"#), json!({"valid": true}));
    assert_eq!(
        verdict("add", r#"{"a": "1", "note": "x"}"#),
        json!({"valid": false, "errors": [
            "Missing required parameter: b",
            "Parameter a has wrong type: expected integer, got string"]})
    );
    assert_eq!(
        verdict("add", r#"{"a": 2.5, "b": 1}"#),
        json!({"valid": false, "errors": ["Parameter a must be an integer, got: 2.5"]})
    );
    assert_eq!(
        verdict("strict", r#"{"q": "x", "z": 1}"#),
        json!({"valid": false, "errors": ["Unknown parameter: z"]})
    );
    // L28: more than types.
    assert_eq!(verdict("add", r#"{"a": 1, "b": 2, "note": "z"}"#)["valid"], false);
    assert_eq!(verdict("gone", "{}"), json!({"valid": false, "errors": ["Tool gone not found"]}));
    let text = verdict("add", "{")["errors"][0].as_str().unwrap().to_owned();
    assert!(text.starts_with("Invalid tool arguments JSON: "), "{text}");
}

#[test]
fn l13_a_call_that_nobody_can_take_says_why() {
    let tools = set();
    let (tool, arguments) = tools.resolve(&call("add", r#"{"a": 1}"#)).unwrap();
    assert_eq!((tool.name.as_str(), arguments), ("add", json!({"a": 1})));
    let unknown = tools.resolve(&call("gone", "{}")).unwrap_err();
    assert_eq!(unknown.to_string(), "Tool gone not found in client tools");
    let broken = tools.resolve(&call("add", "{]")).unwrap_err().to_string();
    assert!(broken.starts_with("Invalid tool arguments JSON: "), "{broken}");
}

#[test]
fn h5_a_definition_becomes_a_tool_without_an_executor() {
    let spec_of = |extra: Value| {
        let mut definition = json!({"name": "send_mail", "description": "Sends",
            "parameters": {"type": "object", "properties": {}}});
        for (key, value) in extra.as_object().unwrap() {
            definition[key] = value.clone();
        }
        let set = ClientToolSet::new(&[definition], &Limits::request(), NameRule::Chat).unwrap();
        set.tools()[0].client_spec().unwrap()
    };
    let plain = spec_of(json!({}));
    assert!(plain.is_client());
    assert_eq!(
        (plain.place, plain.visibility, plain.risk),
        (Place::Client, Visibility::Public, Risk::Medium)
    );
    assert_eq!((plain.approval, plain.if_absent), (None, IfAbsent::Wait));
    assert_eq!(plain.brought.as_ref().map(|name| name.as_str()), Some("send_mail"));
    // A request raises a risk, and never lowers it.
    assert_eq!(spec_of(json!({"risk": "low"})).risk, Risk::Medium);
    assert_eq!(spec_of(json!({"risk": "high"})).risk, Risk::High);
    let full = spec_of(json!({"version": "2", "serviceId": "post", "category": "mail",
        "timeoutMs": 5, "expiresMs": 6, "ifAbsent": "fail", "deprecated": "no"}));
    assert_eq!(full.key(), "post:send_mail");
    assert_eq!((full.timeout_ms, full.expires_ms, full.if_absent), (Some(5), Some(6), IfAbsent::Fail));
    assert_eq!((full.category.as_deref(), full.deprecated.as_deref()), (Some("mail"), Some("no")));
    // A grant was given for one version of the contract.
    assert_ne!(plain.fingerprint(), spec_of(json!({"version": "2"})).fingerprint());
}
