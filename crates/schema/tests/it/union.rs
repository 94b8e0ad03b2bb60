//! H4: `anyOf`, `oneOf`, `allOf`, and sentences that say more than "no branch fits".

use serde_json::json;

use crate::{object, request, sentences, trusted};

#[test]
fn a_nullable_parameter_reports_its_types() {
    let schema = request(&object(&json!({
        "n": { "anyOf": [{ "type": "integer" }, { "type": "null" }] }
    })))
    .unwrap();
    assert_eq!(schema.check(&json!({"n": null})), Ok(()));
    assert_eq!(schema.check(&json!({"n": 3})), Ok(()));
    assert_eq!(
        sentences(&schema, &json!({"n": "x"})),
        ["Parameter n has wrong type: expected integer or null, got string"]
    );
}

#[test]
fn a_list_of_types_reports_them() {
    let schema = request(&object(&json!({"n": {"type": ["string", "null"]}}))).unwrap();
    assert_eq!(
        sentences(&schema, &json!({"n": 1.5})),
        ["Parameter n has wrong type: expected string or null, got number"]
    );
}

#[test]
fn the_only_branch_of_the_right_type_is_explained() {
    let schema = trusted(&json!({
        "type": "object",
        "properties": { "who": { "anyOf": [{ "$ref": "#/$defs/Person" }, { "type": "null" }] } },
        "$defs": { "Person": {
            "type": "object", "properties": { "age": { "type": "integer" } }, "required": ["name"]
        } }
    }))
    .unwrap();
    assert_eq!(
        sentences(&schema, &json!({"who": {"age": 1.5}})),
        ["Missing required parameter: who.name", "Parameter who.age must be an integer, got: 1.5",]
    );
}

#[test]
fn all_of_reports_each_branch() {
    let schema = request(&json!({
        "type": "object", "properties": {},
        "allOf": [{ "required": ["a"] }, { "required": ["b"] }, { "required": ["a"] }]
    }))
    .unwrap();
    assert_eq!(
        sentences(&schema, &json!({})),
        ["Missing required parameter: a", "Missing required parameter: b"]
    );
}

#[test]
fn tagged_unions_are_enforced() {
    let branch = |tag: &str, field: &str| {
        json!({
            "type": "object",
            "properties": { "kind": { "const": tag }, field: { "type": "string" } },
            "required": ["kind", field]
        })
    };
    let schema = request(&object(&json!({
        "shape": { "oneOf": [branch("a", "x"), branch("b", "y"), branch("c", "z")] }
    })))
    .unwrap();
    assert_eq!(schema.check(&json!({"shape": {"kind": "b", "y": "1"}})), Ok(()));
    assert_eq!(
        sentences(&schema, &json!({"shape": {"kind": "b", "z": "1"}})),
        ["Parameter shape does not match exactly one of the allowed forms (oneOf)"]
    );
}
