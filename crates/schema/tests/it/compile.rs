//! H3, H18, H21, L4–L6, SPEC part 2 row 3: what is a schema, and how large it may be.

use serde_json::{Value, json};
use toolyard_schema::{Limits, SchemaError};

use crate::{code, object, request, sentences, trusted};

#[test]
fn h3_every_type_is_handled() {
    let schema = request(&object(&json!({
        "string": {"type": "string"}, "number": {"type": "number"},
        "integer": {"type": "integer"}, "boolean": {"type": "boolean"},
        "array": {"type": "array", "items": {"type": "string"}},
        "object": {"type": "object", "properties": {"a": {"type": "null"}}},
        "null": {"type": "null"}, "enum": {"enum": ["a", 1, null]}
    })))
    .unwrap();
    let good = json!({
        "string": "s", "number": 1.5, "integer": 2, "boolean": true, "array": ["x"],
        "object": {"a": null}, "null": null, "enum": null
    });
    assert_eq!(schema.check(&good), Ok(()));
    let bad = json!({
        "string": 1, "number": "1", "integer": true, "boolean": 0, "array": {},
        "object": [], "null": 0, "enum": 2
    });
    assert_eq!(sentences(&schema, &bad).len(), 8);
}

/// L6: the keyword list of the document compiles as it stands.
#[test]
fn l6_documented_keywords_are_accepted() {
    let schema = request(&json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name", "minLength": 1, "maxLength": 100,
                     "pattern": "^[a-z]+$"},
            "mail": {"type": "string", "format": "email"},
            "when": {"type": "string", "format": "date-time"},
            "link": {"type": "string", "format": "uri"},
            "odd": {"type": "string", "format": "no-such-format"},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "price": {"type": "number", "minimum": 0.01, "multipleOf": 0.01},
            "status": {"type": "string", "enum": ["active", "inactive"]},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 10},
            "address": {"type": "object", "properties": {"city": {"type": "string"}},
                        "required": ["city"]}
        },
        "required": ["name", "age"],
        "additionalProperties": false
    }))
    .unwrap();
    let good = json!({
        "name": "bo", "age": 3, "mail": "a@example.com", "when": "2026-01-02T03:04:05Z",
        "link": "https://example.com/a", "odd": "anything", "price": 19.99, "status": "active",
        "tags": ["t"], "address": {"city": "x"}
    });
    assert_eq!(schema.check(&good), Ok(()));
}

#[test]
fn l4_the_root_is_an_object_with_properties() {
    for schema in [
        json!(null),
        json!(true),
        json!("object"),
        json!([]),
        json!({}),
        json!({"type": "string"}),
        json!({"type": ["object"]}),
        json!({"type": ["object", "null"]}),
        json!({"properties": {}}),
    ] {
        assert_eq!(code(request(&schema)), "schema_root_type", "{schema}");
        assert_eq!(code(trusted(&schema)), "schema_root_type", "{schema}");
    }
    assert_eq!(code(request(&json!({"type": "object"}))), "schema_properties_missing");
    assert_eq!(code(request(&object(&json!({})))), "compiled");
}

#[test]
fn trusted_schemas_may_leave_properties_out() {
    let schema = trusted(&json!({"type": "object"})).unwrap();
    assert_eq!(schema.check(&json!({"anything": [1]})), Ok(()));
}

#[test]
fn h21_unknown_types_are_refused() {
    for name in [json!("date"), json!("any"), json!("String"), json!(["string", "file"]), json!("")] {
        let schema = object(&json!({"p": {"type": name}}));
        assert_eq!(code(request(&schema)), "schema_unknown_type", "{schema}");
        assert_eq!(code(trusted(&schema)), "schema_unknown_type", "{schema}");
    }
}

fn nested_properties(depth: usize) -> Value {
    let mut schema = json!({"type": "string"});
    for _ in 1..depth {
        schema = object(&json!({ "a": schema }));
    }
    schema
}

fn nested_items(depth: usize) -> Value {
    let mut schema = json!({"type": "string"});
    for _ in 2..depth {
        schema = json!({"type": "array", "items": schema});
    }
    object(&json!({ "a": schema }))
}

fn nested_any_of(depth: usize) -> Value {
    let mut schema = json!({"type": "string"});
    for _ in 2..depth {
        schema = json!({"anyOf": [schema]});
    }
    object(&json!({ "a": schema }))
}

#[test]
fn h21_row3_depth_is_five_for_requests_and_sixteen_for_the_operator() {
    for build in [nested_properties, nested_items, nested_any_of] {
        assert_eq!(code(request(&build(5))), "compiled");
        let error = request(&build(6)).unwrap_err();
        assert_eq!(error, SchemaError::TooDeep { limit: 5 });
        assert_eq!(error.to_string(), "the schema is nested deeper than 5 levels");
        assert_eq!(code(trusted(&build(16))), "compiled");
        assert_eq!(trusted(&build(17)).unwrap_err(), SchemaError::TooDeep { limit: 16 });
    }
}

#[test]
fn boolean_schemas_are_no_level() {
    let mut schema = nested_properties(5);
    let leaf = schema.pointer_mut("/properties/a/properties/a/properties/a").unwrap();
    *leaf = json!({"type": "object", "properties": {}, "additionalProperties": false});
    assert_eq!(code(request(&schema)), "compiled");
}

fn wide(count: usize) -> Value {
    let names = (0..count).map(|n| (format!("p{n}"), json!({"type": "string"})));
    object(&Value::Object(names.collect()))
}

#[test]
fn h21_row3_properties_are_counted_per_object() {
    assert_eq!(code(request(&wide(20))), "compiled");
    let error = request(&wide(21)).unwrap_err();
    assert_eq!(error.code(), "schema_too_many_properties");
    assert_eq!(error.to_string(), "/properties has 21 properties, more than 20");
    assert_eq!(error.limit(), Some(20));
    assert_eq!(code(trusted(&wide(256))), "compiled");
    assert_eq!(code(trusted(&wide(257))), "schema_too_many_properties");
    // Two objects of 20 are fine.
    let two = object(&json!({"a": wide(20), "b": wide(20)}));
    assert_eq!(code(request(&two)), "compiled");
    let error = request(&object(&json!({"a": wide(21)}))).unwrap_err();
    assert!(error.to_string().starts_with("/properties/a/properties has 21"));
}

#[test]
fn row3_limits_can_be_tightened_but_not_lifted() {
    let tight = Limits { max_depth: 2, max_properties: 1, ..Limits::trusted() };
    let compile = |schema: &Value| code(toolyard_schema::ToolSchema::compile(schema, &tight));
    assert_eq!(compile(&nested_properties(2)), "compiled");
    assert_eq!(compile(&nested_properties(3)), "schema_too_deep");
    assert_eq!(compile(&wide(2)), "schema_too_many_properties");
    let loose = Limits { max_depth: 1_000, max_properties: 1_000_000, ..Limits::trusted() };
    let compile = |schema: &Value| code(toolyard_schema::ToolSchema::compile(schema, &loose));
    assert_eq!(compile(&nested_properties(40)), "schema_too_nested");
}

/// H18: a mistake is found, and its place is named.
#[test]
fn h18_malformed_keywords_name_their_place() {
    let cases = [
        (json!({"properties": []}), "/properties/p/properties"),
        (json!({"properties": {"q": 1}}), "/properties/p/properties/q"),
        (json!({"items": "string"}), "/properties/p/items"),
        (json!({"required": "a"}), "/properties/p/required"),
        (json!({"required": [1]}), "/properties/p/required"),
        (json!({"required": true}), "/properties/p/required"),
        (json!({"enum": "a"}), "/properties/p/enum"),
        (json!({"type": []}), "/properties/p/type"),
        (json!({"type": 1}), "/properties/p/type"),
        (json!({"minLength": -1}), "/properties/p/minLength"),
        (json!({"minLength": 1.5}), "/properties/p/minLength"),
        (json!({"maxItems": "3"}), "/properties/p/maxItems"),
        (json!({"minimum": "0"}), "/properties/p/minimum"),
        (json!({"multipleOf": 0}), "/properties/p/multipleOf"),
        (json!({"uniqueItems": 1}), "/properties/p/uniqueItems"),
        (json!({"pattern": 1}), "/properties/p/pattern"),
        (json!({"format": {}}), "/properties/p/format"),
        (json!({"anyOf": {}}), "/properties/p/anyOf"),
        (json!({"anyOf": []}), "/properties/p/anyOf"),
        (json!({"allOf": [1]}), "/properties/p/allOf/0"),
        (json!({"not": null}), "/properties/p/not"),
        (json!({"additionalProperties": "no"}), "/properties/p/additionalProperties"),
        (json!({"dependentRequired": {"a": [1]}}), "/properties/p/dependentRequired/a"),
        (json!({"exclusiveMinimum": true}), "/properties/p/exclusiveMinimum"),
        (json!({"a/b~c": 1, "properties": {"a/b~c": 5}}), "/properties/p/properties/a~1b~0c"),
    ];
    for (schema, place) in cases {
        let error = request(&object(&json!({ "p": schema }))).unwrap_err();
        match &error {
            SchemaError::Malformed { at, .. } => assert_eq!(at, place, "{schema}"),
            SchemaError::UnknownType { at } => assert_eq!(at, place, "{schema}"),
            other => panic!("{schema}: {other}"),
        }
        assert!(error.to_string().contains(place));
    }
}

#[test]
fn older_drafts_are_read_as_they_are_meant() {
    let schema = trusted(&json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": {
            "above": {"type": "number", "minimum": 5, "exclusiveMinimum": true},
            "upto": {"type": "number", "maximum": 5, "exclusiveMaximum": false},
            "pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}],
                     "additionalItems": false},
            "whole": {"type": "integer"}
        },
        "dependencies": {"above": ["upto"], "whole": {"required": ["pair"]}},
        "definitions": {"unused": {"type": "string"}}
    }))
    .unwrap();
    let good = json!({"above": 6, "upto": 5, "pair": ["a", 1], "whole": 2.0});
    assert_eq!(schema.check(&good), Ok(()));
    let refused = |value: Value| sentences(&schema, &value);
    assert_eq!(refused(json!({"above": 5, "upto": 1})), ["Parameter above is too small (exclusiveMinimum)"]);
    assert_eq!(refused(json!({"pair": ["a", 1, 2]})), ["Parameter pair[2] is not allowed (false)"]);
    assert_eq!(
        refused(json!({"pair": [1]})),
        ["Parameter pair[0] has wrong type: expected string, got number"]
    );
    assert_eq!(
        refused(json!({"above": 6})),
        ["The arguments object lacks a parameter that another one requires (dependentRequired)"]
    );
    assert_eq!(refused(json!({"whole": 1})), ["Missing required parameter: pair"]);
}

#[test]
fn known_dialects_are_accepted_and_unknown_ones_refused() {
    for uri in [
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft/2020-12/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-04/schema#",
    ] {
        let schema = json!({"$schema": uri, "type": "object", "properties": {}});
        assert_eq!(code(request(&schema)), "compiled", "{uri}");
    }
    for uri in [
        json!("http://evil.example/schema"),
        json!(""),
        json!(7),
        json!(null),
        json!("file:///etc/passwd"),
        json!("http://json-schema.org.evil.example/draft-07/schema"),
        json!("http://json-schema.org/draft-03/schema#"),
        json!("draft-07"),
    ] {
        let schema = json!({"$schema": uri, "type": "object", "properties": {}});
        assert_eq!(code(trusted(&schema)), "schema_unknown_dialect", "{uri}");
        let nested = object(&json!({"p": {"$schema": uri}}));
        assert_eq!(code(trusted(&nested)), "schema_unknown_dialect", "{uri}");
    }
}

/// Row 3: Python MCP servers emit `$defs` for every model.
#[test]
fn row3_local_definitions_work_for_the_operator() {
    let schema = trusted(&json!({
        "$id": "https://example.com/tool",
        "type": "object",
        "$defs": {
            "Point": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
            "Name[str]": {"type": "string", "maxLength": 3},
            "a/b": {"$anchor": "named", "type": "boolean"}
        },
        "properties": {
            "from": {"$ref": "#/$defs/Point", "description": "start"},
            "name": {"$ref": "#/$defs/Name%5Bstr%5D"},
            "same": {"$ref": "#/$defs/Name[str]", "minLength": 2},
            "flag": {"$ref": "#/$defs/a~1b"},
            "anchor": {"$ref": "#named"},
            "copy": {"$ref": "#/properties/from"}
        },
        "required": ["from"]
    }))
    .unwrap();
    let good = json!({"from": {"x": 1}, "name": "abc", "same": "ab", "flag": true,
                      "anchor": false, "copy": {"x": 2}});
    assert_eq!(schema.check(&good), Ok(()));
    let bad = json!({"from": {}, "name": "abcd", "same": "a", "flag": 1, "anchor": 1,
                     "copy": {"x": 1.5}});
    let mut found = sentences(&schema, &bad);
    found.sort();
    assert_eq!(
        found,
        [
            "Missing required parameter: from.x",
            "Parameter anchor has wrong type: expected boolean, got number",
            "Parameter copy.x must be an integer, got: 1.5",
            "Parameter flag has wrong type: expected boolean, got number",
            "Parameter name is too long (maxLength)",
            "Parameter same is too short (minLength)",
        ]
    );
}

#[test]
fn recursive_schemas_that_descend_work() {
    let schema = trusted(&json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#"}}
        },
        "required": ["name"],
        "additionalProperties": false
    }))
    .unwrap();
    assert_eq!(schema.check(&json!({"name": "a", "children": [{"name": "b", "children": []}]})), Ok(()));
    assert_eq!(
        sentences(&schema, &json!({"name": "a", "children": [{"children": [{"name": 1}]}]})),
        [
            "Missing required parameter: children[0].name",
            "Parameter children[0].children[0].name has wrong type: expected string, got number",
        ]
    );
}

/// H21: requests may not use any of it, not even unused or empty.
#[test]
fn h21_requests_may_not_use_references() {
    for (key, value) in [
        ("$ref", json!("#/properties/a")),
        ("$ref", json!("#")),
        ("$defs", json!({})),
        ("$defs", json!({"a": {"type": "string"}})),
        ("definitions", json!({})),
        ("$dynamicRef", json!("#a")),
        ("$recursiveRef", json!("#")),
        ("$id", json!("a")),
        ("$anchor", json!("a")),
        ("x-unknown", json!([{"$ref": "#/a"}])),
    ] {
        let mut schema = object(&json!({"a": {"type": "string"}}));
        schema[key] = value.clone();
        assert_eq!(code(request(&schema)), "schema_keyword_refused", "{key}");
        let nested = object(&json!({"a": {"type": "object", key: value}}));
        assert_eq!(code(request(&nested)), "schema_keyword_refused", "{key}");
    }
}

/// A parameter may be called like a keyword.
#[test]
fn properties_named_like_keywords_are_properties() {
    let schema = request(&object(&json!({
        "$ref": {"type": "string"}, "$defs": {"type": "string"}, "$id": {"type": "string"},
        "type": {"type": "string"}, "enum": {"type": "string"}, "__proto__": {"type": "string"}
    })))
    .unwrap();
    let good = json!({"$ref": "http://example.com", "$defs": "a", "$id": "b", "type": "c",
                      "enum": "d", "__proto__": "e"});
    assert_eq!(schema.check(&good), Ok(()));
    assert_eq!(
        sentences(&schema, &json!({"$ref": 1})),
        ["Parameter $ref has wrong type: expected string, got number"]
    );
}

#[test]
fn unknown_keywords_and_annotations_are_ignored() {
    let schema = request(&json!({
        "type": "object", "title": "T", "description": "D", "default": {"a": 1},
        "examples": [{"$ref": "http://127.0.0.1:1/"}], "$comment": "c", "x-order": 3,
        "additionalProperties": true, "nullable": true, "deprecated": true,
        "properties": {"a": {"type": "integer", "x-widget": {"type": "slider"}}}
    }))
    .unwrap();
    assert_eq!(schema.check(&json!({"a": 1})), Ok(()));
}

#[test]
fn a_clone_shares_the_compiled_schema_across_threads() {
    let schema = request(&object(&json!({"a": {"type": "integer"}}))).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let schema = schema.clone();
            std::thread::spawn(move || schema.check(&json!({ "a": n })).is_ok())
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
}
