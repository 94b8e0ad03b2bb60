//! L13, L15–L17, L27, L28: arguments and the words about them.

use serde_json::{Value, json};
use toolyard_schema::{ArgumentError, MAX_ARGUMENT_DEPTH, MAX_ARGUMENT_ERRORS, parse_arguments};

use crate::{object, request, sentences, trusted};

/// The tool of seeds/001.
fn search() -> toolyard_schema::ToolSchema {
    request(&json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "Search query" },
            "limit": { "type": "integer", "minimum": 1, "maximum": 100 }
        },
        "required": ["query"]
    }))
    .unwrap()
}

#[test]
fn l27_valid_arguments_pass() {
    assert_eq!(search().check(&json!({"query": "a", "limit": 10})), Ok(()));
    assert_eq!(search().check(&json!({"query": "a"})), Ok(()));
}

#[test]
fn l16_missing_required_parameter() {
    assert_eq!(sentences(&search(), &json!({"limit": 3})), ["Missing required parameter: query"]);
}

#[test]
fn l16_wrong_type() {
    assert_eq!(
        sentences(&search(), &json!({"query": 7})),
        ["Parameter query has wrong type: expected string, got number"]
    );
    assert_eq!(
        sentences(&search(), &json!({"query": "a", "limit": "many"})),
        ["Parameter limit has wrong type: expected integer, got string"]
    );
    for (value, got) in
        [(json!(null), "null"), (json!(true), "boolean"), (json!([]), "array"), (json!({}), "object")]
    {
        assert_eq!(
            sentences(&search(), &json!({"query": value})),
            [format!("Parameter query has wrong type: expected string, got {got}")]
        );
    }
}

#[test]
fn l16_integer() {
    assert_eq!(
        sentences(&search(), &json!({"query": "a", "limit": 2.5})),
        ["Parameter limit must be an integer, got: 2.5"]
    );
    assert_eq!(search().check(&json!({"query": "a", "limit": 2.0})), Ok(()));
}

#[test]
fn l16_unknown_parameter_only_if_additional_properties_is_false() {
    let closed = request(&json!({
        "type": "object",
        "properties": { "a": { "type": "string" } },
        "additionalProperties": false
    }))
    .unwrap();
    assert_eq!(sentences(&closed, &json!({"a": "x", "b": 1})), ["Unknown parameter: b"]);
    // L17: open by default.
    assert_eq!(search().check(&json!({"query": "a", "b": 1})), Ok(()));
}

#[test]
fn several_errors_come_together_in_a_stable_order() {
    let schema = request(&json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "integer" } },
        "required": ["z", "y"],
        "additionalProperties": false
    }))
    .unwrap();
    let mut found = sentences(&schema, &json!({"a": 1, "b": 1.5, "c": 0}));
    found.sort();
    assert_eq!(
        found,
        [
            "Missing required parameter: y",
            "Missing required parameter: z",
            "Parameter a has wrong type: expected string, got number",
            "Parameter b must be an integer, got: 1.5",
            "Unknown parameter: c",
        ]
    );
}

#[test]
fn nested_paths_read_like_code() {
    let schema = request(&json!({
        "type": "object",
        "properties": {
            "a": { "type": "object", "properties": {
                "b": { "type": "array", "items": {
                    "type": "object",
                    "properties": { "c": { "type": "string" } },
                    "required": ["d"],
                    "additionalProperties": false
                } }
            } }
        }
    }))
    .unwrap();
    let found = sentences(&schema, &json!({"a": {"b": [{"d": 1, "c": "x"}, {"c": 2}]}}));
    assert_eq!(
        found,
        [
            "Unknown parameter: a.b[0].d",
            "Missing required parameter: a.b[1].d",
            "Parameter a.b[1].c has wrong type: expected string, got number",
        ]
    );
    assert_eq!(
        sentences(&schema, &json!({"a": {"b": [1, 2]}})),
        [
            "Parameter a.b[0] has wrong type: expected object, got number",
            "Parameter a.b[1] has wrong type: expected object, got number",
        ]
    );
}

#[test]
fn arguments_that_are_not_an_object_have_one_sentence() {
    for value in [json!([]), json!("x"), json!(1), json!(null), json!(true)] {
        assert_eq!(sentences(&search(), &value), ["Invalid tool arguments: must be an object."]);
    }
}

#[test]
fn l13_invalid_json_text() {
    for text in ["", "{", "{'a':1}", "{\"a\":}", "undefined", "{} {}", "1e999"] {
        let error = parse_arguments(text).unwrap_err();
        assert!(error.to_string().starts_with("Invalid tool arguments JSON: "), "{text}: {error}");
        assert_eq!(error.code(), "arguments_invalid_json");
    }
    assert_eq!(parse_arguments("{\"a\": [1]}").unwrap(), json!({"a": [1]}));
}

#[test]
fn arguments_text_is_limited_in_depth() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse_arguments(&nested(MAX_ARGUMENT_DEPTH)).is_ok());
    let error = parse_arguments(&nested(MAX_ARGUMENT_DEPTH + 1)).unwrap_err();
    assert_eq!(error.code(), "arguments_too_deep");
    assert_eq!(error.to_string(), "Invalid tool arguments JSON: nested deeper than 64 levels");
    // Beyond what the JSON parser itself accepts.
    assert!(parse_arguments(&nested(100_000)).is_err());
}

#[test]
fn check_refuses_arguments_deeper_than_64_levels() {
    let schema = trusted(&json!({"type": "object"})).unwrap();
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
    assert_eq!(schema.check(&nested(64)), Ok(()));
    assert_eq!(sentences(&schema, &nested(65)), ["Invalid tool arguments: nested deeper than 64 levels."]);
}

#[test]
fn at_most_twenty_errors() {
    let schema = request(&object(&json!({
        "list": { "type": "array", "items": { "type": "string" } }
    })))
    .unwrap();
    let errors = schema.check(&json!({"list": vec![0; 1000]})).unwrap_err();
    assert_eq!(errors.len(), MAX_ARGUMENT_ERRORS);
    assert_eq!(errors[19].path(), Some("list[19]"));
}

/// L28: every assertion keyword is enforced, and named without its constant.
#[test]
fn l28_each_keyword_is_enforced_and_named() {
    let cases = [
        (json!({"enum": ["SECRET"]}), json!("x"), "enum"),
        (json!({"const": "SECRET"}), json!("x"), "const"),
        (json!({"minimum": 77_771}), json!(1), "minimum"),
        (json!({"maximum": -77_771}), json!(1), "maximum"),
        (json!({"exclusiveMinimum": 1}), json!(1), "exclusiveMinimum"),
        (json!({"exclusiveMaximum": 1}), json!(1), "exclusiveMaximum"),
        (json!({"multipleOf": 77_771}), json!(3), "multipleOf"),
        (json!({"minLength": 77_771}), json!("x"), "minLength"),
        (json!({"maxLength": 0}), json!("x"), "maxLength"),
        (json!({"pattern": "^SECRET$"}), json!("x"), "pattern"),
        (json!({"format": "email"}), json!("x"), "format"),
        (json!({"format": "date-time"}), json!("x"), "format"),
        (json!({"format": "uri"}), json!("x"), "format"),
        (json!({"minItems": 77_771}), json!([]), "minItems"),
        (json!({"maxItems": 0}), json!([1]), "maxItems"),
        (json!({"uniqueItems": true}), json!([1, 1]), "uniqueItems"),
        (json!({"contains": {"const": "SECRET"}}), json!([1]), "contains"),
        (json!({"minProperties": 77_771}), json!({}), "minProperties"),
        (json!({"maxProperties": 0}), json!({"a": 1}), "maxProperties"),
        (json!({"dependentRequired": {"a": ["SECRET"]}}), json!({"a": 1}), "dependentRequired"),
        (json!({"not": {"const": "x"}}), json!("x"), "not"),
        (json!({"anyOf": [{"const": "SECRET"}, {"const": 2}]}), json!("x"), "anyOf"),
        (json!({"oneOf": [{"const": "SECRET"}, {"const": 2}]}), json!("x"), "oneOf"),
        (json!({"oneOf": [{"minimum": 0}, {"minimum": 1}]}), json!(5), "oneOf"),
    ];
    for (rule, value, keyword) in cases {
        let schema = request(&object(&json!({ "p": rule }))).unwrap();
        let errors = schema.check(&json!({ "p": value })).unwrap_err();
        assert_eq!(errors, [ArgumentError::Violation { path: "p".to_owned(), keyword }], "{rule}");
        let text = errors[0].to_string();
        assert!(text.starts_with("Parameter p "), "{text}");
        assert!(text.ends_with(&format!("({keyword})")), "{text}");
        assert!(!text.contains("SECRET") && !text.contains("77771"), "{text}");
    }
}

#[test]
fn rules_for_the_whole_object_and_its_names_are_named() {
    let schema = request(&json!({
        "type": "object", "properties": {}, "minProperties": 1,
        "propertyNames": { "pattern": "^[a-z]+$" }
    }))
    .unwrap();
    assert_eq!(
        sentences(&schema, &json!({})),
        ["The arguments object has too few properties (minProperties)"]
    );
    assert_eq!(
        sentences(&schema, &json!({"A": 1})),
        ["Parameter A has a name that is not allowed (propertyNames)"]
    );
}

#[test]
fn unevaluated_properties_are_refused_and_named() {
    let schema = request(&json!({
        "type": "object", "properties": { "a": {} },
        "allOf": [{ "properties": { "b": {} } }],
        "unevaluatedProperties": false
    }))
    .unwrap();
    assert_eq!(schema.check(&json!({"a": 1, "b": 2})), Ok(()));
    assert_eq!(
        sentences(&schema, &json!({"c": 1})),
        ["The arguments object has a parameter that no rule allows (unevaluatedProperties)"]
    );
}

#[test]
fn conditions_explain_the_branch_that_applies() {
    let schema = request(&json!({
        "type": "object", "properties": { "kind": { "type": "string" } },
        "if": { "properties": { "kind": { "const": "a" } }, "required": ["kind"] },
        "then": { "required": ["x"] },
        "else": { "required": ["y"] }
    }))
    .unwrap();
    assert_eq!(sentences(&schema, &json!({"kind": "a"})), ["Missing required parameter: x"]);
    assert_eq!(sentences(&schema, &json!({"kind": "b"})), ["Missing required parameter: y"]);
}

#[test]
fn hostile_names_are_cleaned_in_sentences() {
    let schema = request(&json!({
        "type": "object", "properties": {}, "additionalProperties": false
    }))
    .unwrap();
    let name = format!("a\u{202E}\n{}", "x".repeat(500));
    let found = sentences(&schema, &json!({ name: 1 }));
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("Unknown parameter: a\\u{202e}\\u{a}xxx"));
    assert!(found[0].len() < 120, "{}", found[0]);
}

/// The check is on the whole value: what the explanation cannot name is refused all the same.
#[test]
fn every_refusal_has_at_least_one_sentence() {
    let schema = trusted(&json!({
        "type": "object",
        "properties": { "list": { "type": "array", "prefixItems": [{}], "unevaluatedItems": false } }
    }))
    .unwrap();
    let found = sentences(&schema, &json!({"list": [1, 2]}));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("unevaluatedItems"), "{}", found[0]);
}

#[test]
fn debug_output_of_a_schema_shows_no_constants() {
    let schema = request(&object(&json!({"p": {"const": "SECRET"}}))).unwrap();
    let shown: String = format!("{schema:?} {:?}", Value::Null);
    assert!(!shown.contains("SECRET"), "{shown}");
}
