//! Row H4: the schemas of tools in the forms that vendors take. A cleaned
//! schema may allow more than the original, never less.

use serde_json::{Map, Value, json};
use toolyard_models::clean::{BadSchema, Rules, clean};
use toolyard_models::scripted::{Reply, Upstream};
use toolyard_models::{Chunk, OfferedTool, Request};
use toolyard_schema::{Limits, ToolSchema};

use crate::fixtures::{asking, collect, model_at};

fn object(schema: &Value) -> Value {
    clean(schema, Rules::Object).unwrap()
}

fn gemini(schema: &Value) -> Value {
    clean(schema, Rules::Gemini).unwrap()
}

/// Schemas with arguments that they allow.
fn corpus() -> Vec<(Value, Vec<Value>)> {
    let shape = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:x",
        "type": "object", "required": ["at"],
        "properties": { "at": { "$ref": "#/$defs/point" }, "$ref": { "type": "string" } },
        "$defs": { "point": { "type": "object", "required": ["x"],
            "properties": { "x": { "$ref": "#/$defs/number" }, "y": { "$ref": "#/$defs/number" } } },
            "number": { "type": "number", "description": "A number" } } });
    let tree = json!({ "type": "object", "properties": { "root": { "$ref": "#/definitions/node" } },
        "definitions": { "node": { "type": "object", "properties": {
            "name": { "type": "string" },
            "children": { "type": "array", "items": { "$ref": "#/definitions/node" } } } } } });
    let choice = json!({ "oneOf": [
        { "type": "object", "properties": { "by": { "const": "id" }, "id": { "type": "integer" } },
            "required": ["by", "id"], "additionalProperties": false },
        { "type": "object", "properties": { "by": { "const": "name" }, "name": { "type": "string" } },
            "required": ["by", "name"], "additionalProperties": false }] });
    let all = json!({ "description": "Both", "allOf": [
        { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
        { "anyOf": [{ "properties": { "b": { "type": "string" } } }, { "required": ["c"] }] }],
        "properties": { "c": { "enum": [1, "two", null] } } });
    let nullable = json!({ "type": "object", "properties": {
        "a": { "type": "string", "nullable": true }, "b": { "type": ["integer", "null"] },
        "c": { "anyOf": [{ "type": "string", "maxLength": 3 }, { "type": "null" }] },
        "d": { "type": "string", "enum": ["x"], "nullable": true } } });
    let anchor = json!({ "type": "object", "properties": { "a": { "$ref": "#here" }, "self": { "$ref": "#" } },
        "$defs": { "b": { "$anchor": "here", "type": "string" } } });
    vec![
        (shape, vec![json!({ "at": { "x": 1 } }), json!({ "at": { "x": 1, "y": 2.5 }, "$ref": "r" })]),
        (
            tree,
            vec![
                json!({ "root": { "name": "a", "children": [{ "name": "b", "children": [] }] } }),
                json!({}),
            ],
        ),
        (choice, vec![json!({ "by": "id", "id": 7 }), json!({ "by": "name", "name": "n" })]),
        (
            all,
            vec![
                json!({ "a": "x", "b": "y" }),
                json!({ "a": "x", "c": null }),
                json!({ "a": "x", "c": "two" }),
            ],
        ),
        // `nullable` is no word of JSON Schema: the original does not allow null.
        (nullable, vec![json!({ "a": "s", "b": null, "c": null, "d": "x" }), json!({ "b": 3, "c": "abc" })]),
        (anchor, vec![json!({ "a": "x", "self": { "a": "y" } })]),
        (json!(true), vec![json!({}), json!({ "any": [1] })]),
        (json!({}), vec![json!({ "any": [1] })]),
        (
            json!({ "properties": { "old": { "type": "string", "required": true } } }),
            vec![json!({ "old": "x" })],
        ),
    ]
}

fn words_of(schema: &Value, out: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                out.push(key.clone());
                match key.as_str() {
                    "properties" => {
                        value.as_object().unwrap().values().for_each(|value| words_of(value, out))
                    }
                    "default" | "enum" => {}
                    _ => words_of(value, out),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| words_of(value, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn h4_a_cleaned_schema_allows_what_the_original_allows() {
    for (schema, instances) in corpus() {
        let cleaned = object(&schema);
        let compiled = ToolSchema::compile(&cleaned, &Limits::trusted()).unwrap();
        for instance in instances {
            assert_eq!(compiled.check(&instance), Ok(()), "{instance} against {cleaned}");
        }
    }
}

#[test]
fn h4_a_cleaned_root_is_one_object_without_references_or_choices() {
    for (schema, _) in corpus() {
        let cleaned = object(&schema);
        assert_eq!(cleaned["type"], "object");
        assert!(cleaned["properties"].is_object());
        for key in ["anyOf", "oneOf", "allOf", "enum", "not"] {
            assert_eq!(cleaned.get(key), None, "{cleaned}");
        }
        let mut words = Vec::new();
        words_of(&cleaned, &mut words);
        assert!(words.iter().all(|word| !word.starts_with('$') && word != "definitions"), "{cleaned}");
        assert_eq!(object(&cleaned), cleaned, "cleaning twice changes nothing");
    }
}

#[test]
fn h4_gemini_gets_only_words_it_knows() {
    const KNOWN: [&str; 20] = [
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "items",
        "maxItems",
        "minItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "anyOf",
        "default",
        "minimum",
        "maximum",
    ];
    for (schema, _) in corpus() {
        let cleaned = gemini(&schema);
        let mut words = Vec::new();
        words_of(&cleaned, &mut words);
        assert!(words.iter().all(|word| KNOWN.contains(&word.as_str())), "{cleaned}");
        assert!(!cleaned.to_string().contains("\"null\""), "{cleaned}");
    }
}

#[test]
fn h4_references_are_written_out_and_words_beside_them_stand() {
    let schema = json!({ "type": "object",
        "properties": { "a": { "$ref": "#/$defs/t", "description": "mine", "minLength": 2 } },
        "$defs": { "t": { "type": "string", "description": "theirs", "maxLength": 9 } } });
    let a = json!({ "type": "string", "description": "mine", "minLength": 2, "maxLength": 9 });
    assert_eq!(object(&schema), json!({ "type": "object", "properties": { "a": a } }));
}

#[test]
fn h4_recursion_ends_in_a_permissive_object() {
    let schema = json!({ "type": "object", "properties": { "next": { "$ref": "#" } } });
    let once = json!({ "type": "object", "properties": { "next": { "type": "object" } } });
    assert_eq!(object(&schema), json!({ "type": "object", "properties": { "next": once } }));
}

#[test]
fn h4_gemini_forms_of_nullable_enums_and_tuples() {
    let property =
        |schema: Value| gemini(&json!({ "properties": { "p": schema } }))["properties"]["p"].clone();
    assert_eq!(
        property(json!({ "type": ["string", "null"] })),
        json!({ "type": "string", "nullable": true })
    );
    assert_eq!(
        property(json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "null" }] })),
        json!({ "type": "integer", "minimum": 1, "nullable": true })
    );
    assert_eq!(
        property(json!({ "type": ["string", "integer"] })),
        json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] })
    );
    assert_eq!(property(json!({ "const": "a" })), json!({ "type": "string", "enum": ["a"] }));
    assert_eq!(
        property(json!({ "enum": ["a", null] })),
        json!({ "type": "string", "enum": ["a"], "nullable": true })
    );
    assert_eq!(
        property(json!({ "enum": [1, 2], "description": "Level." })),
        json!({ "type": "integer", "description": "Level. One of: 1, 2" })
    );
    assert_eq!(
        property(json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "number" }] })),
        json!({ "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "number" }] } })
    );
    assert_eq!(
        property(json!({ "type": "array" })),
        json!({ "type": "array", "items": { "anyOf": [
            { "type": "string" }, { "type": "number" }, { "type": "boolean" }, { "type": "object" },
            { "type": "array", "items": { "type": "string" } }] } })
    );
    assert_eq!(
        property(json!({ "type": "string", "format": "uri" })),
        json!({ "type": "string", "description": "Format: uri" })
    );
    // Choices stand alone: what is said of them is said of each.
    assert_eq!(
        property(
            json!({ "description": "Both.", "oneOf": [{ "type": "string" }, { "enum": [1, "two", null] }] })
        ),
        json!({ "anyOf": [
            { "type": "string", "description": "Both." },
            { "anyOf": [
                { "type": "integer", "nullable": true, "description": "Both. One of: 1, \"two\"" },
                { "type": "string", "nullable": true, "description": "Both.", "enum": ["two"] }] }] })
    );
}

#[test]
fn h4_the_form_of_an_answer_is_closed_and_limits_become_words() {
    let schema = json!({ "type": "object", "required": ["n"], "properties": {
        "n": { "type": "integer", "minimum": 1, "description": "Count." },
        "list": { "type": "array", "minItems": 3, "items": { "type": "object", "properties": {} } } } });
    let closed = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let expected = json!({ "type": "object", "required": ["n"], "additionalProperties": false, "properties": {
        "n": { "type": "integer", "description": "Count. (minimum: 1)" },
        "list": { "type": "array", "minItems": 1, "items": closed, "description": "(minItems: 3)" } } });
    assert_eq!(clean(&schema, Rules::Output).unwrap(), expected);
}

#[test]
fn h4_a_schema_that_cannot_be_cleaned_says_why() {
    let why = |schema: Value| clean(&schema, Rules::Object).unwrap_err();
    let reference = "https://example.com/other.json";
    assert_eq!(
        why(json!({ "properties": { "a": { "$ref": reference } } })),
        BadSchema::Reference { reference: reference.into() }
    );
    assert_eq!(
        why(json!({ "$ref": "#/$defs/none" })),
        BadSchema::Reference { reference: "#/$defs/none".into() }
    );
    assert_eq!(why(json!({ "properties": { "a": 5 } })), BadSchema::NoSchema { at: "properties/a".into() });
    assert_eq!(why(json!({ "properties": [] })), BadSchema::NoSchema { at: "properties".into() });
    assert_eq!(why(json!("object")), BadSchema::NoSchema { at: "the root".into() });
    for other in [json!(false), json!({ "type": "string" }), json!({ "anyOf": [{ "type": "string" }] })] {
        assert_eq!(why(other), BadSchema::NoObject);
    }
    // Twenty levels that double each time are a million parts.
    let mut defs = serde_json::Map::new();
    for n in 0..20 {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        defs.insert(format!("d{n}"), json!({ "properties": { "a": next, "b": next } }));
    }
    defs.insert("d20".into(), json!({}));
    let bomb = json!({ "$ref": "#/$defs/d0", "$defs": defs });
    assert!(matches!(why(bomb), BadSchema::TooLarge { .. } | BadSchema::TooDeep { .. }));
}

#[tokio::test]
async fn h4_a_bad_schema_costs_its_own_tool_and_says_so() {
    let tool = |name: &str, schema| OfferedTool { name: name.into(), description: String::new(), schema };
    let tools = vec![tool("bad.one", json!({ "$ref": "#/nowhere" })), tool("good.one", json!({}))];
    let upstream = Upstream::answer(|seen| {
        let name = seen.body["tools"][0]["function"]["name"].as_str().unwrap_or_default();
        Reply::calling(&[(name, json!({}))])
    })
    .await
    .unwrap();
    let outcome = collect(&model_at(&upstream.base_url()), Request { tools, ..asking("hi") }).await;
    let [seen] = upstream.requests().try_into().unwrap();
    assert_eq!(seen.body["tools"].as_array().unwrap().len(), 1);
    assert!(!seen.body["tools"][0]["function"]["name"].as_str().unwrap().contains('.'));
    let called: Vec<&str> = outcome
        .chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::ToolInputStart { name, .. } | Chunk::ToolCall { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(called, ["good.one", "good.one"], "the tool's own name comes back");
    let told = outcome.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Metadata { value } => Some(value["toolsLeftOut"].clone()),
        _ => None,
    });
    let reason = "the schema refers to \"#/nowhere\", which it does not contain";
    assert_eq!(told, Some(json!([{ "name": "bad.one", "reason": reason }])));
}

/// Choices within choices multiply. A small schema of somebody's tool must not
/// become a huge one.
#[test]
fn h4_choices_that_multiply_end_in_anything() {
    let pair = |n: usize| {
        let field = |side: &str| json!({ "properties": { (format!("{side}{n}")): { "type": "string" } } });
        json!({ "anyOf": [field("a"), field("b")] })
    };
    let product: Vec<Value> = (0..40).map(pair).collect();
    let wide: Map<String, Value> =
        (0..3000).map(|n| (format!("p{n}"), json!({ "type": "string" }))).collect();
    let many: Vec<Value> = (0..3000).map(|n| json!({ "required": [format!("p{n}")] })).collect();
    for nested in
        [json!({ "allOf": product }), json!({ "type": "object", "properties": wide, "anyOf": many })]
    {
        let cleaned = gemini(&json!({ "properties": { "p": nested } })).to_string();
        assert!(cleaned.len() < 4 << 20, "{} bytes", cleaned.len());
    }
}
