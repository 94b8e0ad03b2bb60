//! Each schema compiles once per process.

use serde_json::{Value, json};
use toolyard_schema::{Limits, NameRule, Schemas, Source};

use crate::object;

#[test]
fn equal_schemas_share_one_entry_whatever_the_order_of_their_keys() {
    let schemas = Schemas::new();
    let one: Value = serde_json::from_str(
        r#"{"type":"object","properties":{"a":{"type":"string","minLength":1},"b":{}}}"#,
    )
    .unwrap();
    let two: Value = serde_json::from_str(
        r#"{"properties":{"b":{},"a":{"minLength":1,"type":"string"}},"type":"object"}"#,
    )
    .unwrap();
    schemas.compile(&one, &Limits::request()).unwrap();
    schemas.compile(&two, &Limits::request()).unwrap();
    assert_eq!(schemas.len(), 1);
    schemas.compile(&object(&json!({"a": {}})), &Limits::request()).unwrap();
    assert_eq!(schemas.len(), 2);
}

/// What the operator may use is not thereby allowed to a request.
#[test]
fn the_cache_keeps_limits_apart() {
    let schemas = Schemas::new();
    let schema = json!({
        "type": "object", "$defs": {"a": {}}, "properties": {"p": {"$ref": "#/$defs/a"}}
    });
    schemas.compile(&schema, &Limits::trusted()).unwrap();
    let error = schemas.compile(&schema, &Limits::request()).unwrap_err();
    assert_eq!(error.code(), "schema_keyword_refused");
    // Who asks counts even where all numbers are the same.
    let same_numbers = Limits { source: Source::Request, ..Limits::trusted() };
    assert_eq!(schemas.compile(&schema, &same_numbers).unwrap_err().code(), "schema_keyword_refused");
    // The number of tools says nothing about a schema.
    schemas.compile(&schema, &Limits::trusted().with_max_tools(3)).unwrap();
    assert_eq!(schemas.len(), 1);
}

#[test]
fn refusals_are_not_kept() {
    let schemas = Schemas::new();
    assert!(schemas.is_empty());
    for _ in 0..3 {
        let error = schemas.compile(&json!({"type": "string"}), &Limits::trusted()).unwrap_err();
        assert_eq!(error.code(), "schema_root_type");
    }
    assert!(schemas.is_empty());
}

#[test]
fn texts_cannot_imitate_structure() {
    let schemas = Schemas::new();
    let pairs = [
        (json!({"const": "a"}), json!({"const": "a\""})),
        (json!({"const": ["a", "b"]}), json!({"const": ["a\",1\"b"]})),
        (json!({"const": 1}), json!({"const": "1"})),
        (json!({"const": null}), json!({"const": "null"})),
        (json!({"const": [[], []]}), json!({"const": [[[]]]})),
        (json!({"const": 1}), json!({"const": 1.0})),
    ];
    let mut kept = std::collections::HashSet::new();
    for (left, right) in pairs {
        for rule in [left, right] {
            schemas.compile(&object(&json!({"p": rule})), &Limits::trusted()).unwrap();
            kept.insert(rule.to_string());
        }
    }
    assert_eq!(schemas.len(), kept.len() as u64);
}

#[test]
fn the_same_schema_asked_for_at_once_is_compiled_for_all() {
    let schemas = Schemas::new();
    let schema = object(&json!({"a": {"type": "integer"}}));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let compiled = schemas.compile(&schema, &Limits::request()).unwrap();
                assert!(compiled.check(&json!({"a": "x"})).is_err());
            });
        }
    });
    assert_eq!(schemas.len(), 1);
}

#[test]
fn accept_gives_each_tool_with_its_compiled_schema() {
    let schemas = Schemas::new();
    let tools = [
        json!({"name": "a", "description": "A", "parameters": object(&json!({"x": {"type": "string"}}))}),
        json!({"name": "b", "description": "B", "inputSchema": object(&json!({"x": {"type": "string"}}))}),
    ];
    let accepted = schemas.accept(&tools, &Limits::request(), NameRule::Chat).unwrap();
    let names: Vec<&str> = accepted.iter().map(|(tool, _)| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(accepted.iter().all(|(_, schema)| schema.check(&json!({"x": 1})).is_err()));
    assert_eq!(schemas.len(), 1);
    let error = schemas.accept(&tools[..1], &Limits::request().with_max_tools(0), NameRule::Chat);
    assert_eq!(error.unwrap_err().code(), "too_many_tools");
}
