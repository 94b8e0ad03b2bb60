//! Any JSON as schema, any JSON as arguments: never a panic, and the explanation agrees with the
//! verdict.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use toolyard_schema::{ArgumentError, Limits, NameRule, ToolSchema, validate_tool_definitions};

const KEYWORDS: &[&str] = &[
    "type",
    "properties",
    "required",
    "items",
    "prefixItems",
    "additionalItems",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "$defs",
    "definitions",
    "$id",
    "$anchor",
    "$schema",
    "$dynamicRef",
    "pattern",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "unevaluatedItems",
    "format",
    "default",
    "a",
    "b",
    "x-other",
];

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("object".to_owned()),
        Just("string".to_owned()),
        Just("integer".to_owned()),
        Just("array".to_owned()),
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just("#".to_owned()),
        Just("#/$defs/a".to_owned()),
        Just("#/properties/a".to_owned()),
        Just("^a".to_owned()),
        Just("date".to_owned()),
        "\\PC{0,6}",
    ]
}

fn numbers() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-3i64..6).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(0.5)),
        Just(json!(2.0)),
        Just(json!(-0.0)),
    ]
}

/// Any JSON, leaning towards what a schema is made of.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        numbers(),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let key = prop_oneof![4 => proptest::sample::select(KEYWORDS).prop_map(str::to_owned), 1 => texts()];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// A subschema that is well formed. `unevaluated…` is left out: the explanation does not judge it.
fn subschema() -> impl Strategy<Value = Value> {
    let kind =
        proptest::sample::select(&["string", "number", "integer", "boolean", "array", "object", "null"][..]);
    let small = 0u64..4;
    let leaf = prop_oneof![
        Just(json!({})),
        any::<bool>().prop_map(Value::from),
        kind.clone().prop_map(|kind| json!({"type": kind})),
        prop::collection::vec(kind, 1..3).prop_map(|kinds| json!({"type": kinds})),
        arguments_value().prop_map(|value| json!({"const": value})),
        prop::collection::vec(arguments_value(), 0..3).prop_map(|values| json!({"enum": values})),
        (-3i64..4).prop_map(|n| json!({"minimum": n})),
        (-3i64..4).prop_map(|n| json!({"exclusiveMaximum": n})),
        prop_oneof![Just(0.5), Just(1.0), Just(2.0), Just(3.0)].prop_map(|n| json!({"multipleOf": n})),
        small.clone().prop_map(|n| json!({"minLength": n})),
        small.clone().prop_map(|n| json!({"maxLength": n})),
        small.clone().prop_map(|n| json!({"minItems": n})),
        small.clone().prop_map(|n| json!({"maxItems": n})),
        small.clone().prop_map(|n| json!({"minProperties": n})),
        small.prop_map(|n| json!({"maxProperties": n})),
        Just(json!({"uniqueItems": true})),
        Just(json!({"pattern": "^a"})),
        Just(json!({"format": "date"})),
        Just(json!({"required": ["a"]})),
        Just(json!({"dependentRequired": {"a": ["b"]}})),
        Just(json!({"$ref": "#/$defs/x"})),
        Just(json!({"$ref": "#/$defs/y"})),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            list.clone().prop_map(|all| json!({"allOf": all})), list.clone().prop_map(|any| json!({"anyOf": any})),
            list.clone().prop_map(|one| json!({"oneOf": one})), inner.clone().prop_map(|not| json!({"not": not})),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(test, then, other)| json!({"if": test, "then": then, "else": other})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"properties": {"a": a, "b": b}})),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, pattern, more)| json!({"properties": {"a": a}, "patternProperties": {"^b": pattern}, "additionalProperties": more})),
            inner.clone().prop_map(|names| json!({"propertyNames": names})),
            inner.clone().prop_map(|items| json!({"items": items})),
            (list.clone(), inner.clone()).prop_map(|(prefix, items)| json!({"prefixItems": prefix, "items": items})),
            (list, inner.clone()).prop_map(|(items, more)| json!({"items": items, "additionalItems": more})),
            (inner.clone(), 0u64..3, 1u64..3).prop_map(|(item, min, max)| json!({"contains": item, "minContains": min, "maxContains": max})),
            inner.clone().prop_map(|contains| json!({"contains": contains})),
            inner.clone().prop_map(|needs| json!({"dependentSchemas": {"a": needs}})),
            (inner.clone(), inner).prop_map(|(left, right)| merge(left, right)),
        ]
    })
}

/// Two subschemas in one object, where they do not collide.
fn merge(left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::Object(mut left), Value::Object(right)) => {
            for (key, value) in right {
                left.entry(key).or_insert(value);
            }
            // A list of items next to prefixItems is refused, rightly.
            if left.contains_key("prefixItems") && left.get("items").is_some_and(Value::is_array) {
                left.remove("prefixItems");
            }
            Value::Object(left)
        }
        (left, _) => left,
    }
}

/// Arguments that meet the names and texts of the schemas above.
fn arguments_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..5).prop_map(Value::from),
        Just(json!(1.5)),
        Just(json!(2.0)),
        Just(json!("")),
        Just(json!("a")),
        Just(json!("ab")),
        Just(json!("b1")),
        Just(json!("2026-01-02")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let name = proptest::sample::select(&["a", "b", "bb", "c"][..]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..4).prop_map(|entries| Value::Object(
                entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    let name = proptest::sample::select(&["a", "b", "bb", "c"][..]);
    prop::collection::vec((name, arguments_value()), 0..4).prop_map(|entries| {
        let map: Map<String, Value> =
            entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Value::Object(map)
    })
}

fn assert_sound(schema: &ToolSchema, value: &Value) {
    if let Err(errors) = schema.check(value) {
        assert!((1..=20).contains(&errors.len()));
        for error in errors {
            assert_ne!(error, ArgumentError::Unchecked);
            assert!(error.to_string().len() < 600);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_as_schema_never_panics(mut schema in any_json(), value in any_json()) {
        for limits in [Limits::request(), Limits::trusted()] {
            if let Ok(schema) = ToolSchema::compile(&schema, &limits) {
                assert_sound(&schema, &value);
            }
        }
        // Most JSON fails at the root; as a property it is read to the end.
        if let Value::Object(map) = &mut schema {
            map.insert("type".to_owned(), json!("object"));
        }
        let schema = json!({"type": "object", "properties": {"a": schema}, "$defs": {"a": {"type": "string"}}});
        if let Ok(schema) = ToolSchema::compile(&schema, &Limits::trusted()) {
            assert_sound(&schema, &value);
            assert_sound(&schema, &json!({"a": value}));
        }
    }

    #[test]
    fn any_json_as_definition_never_panics(value in any_json(), name in "\\PC{0,5}") {
        for rule in [NameRule::Chat, NameRule::Config] {
            drop(validate_tool_definitions(&[value.clone(), json!({"name": name, "parameters": value})], &Limits::request(), rule));
        }
    }

    /// The verdict is the library's, on the rewritten schema; the sentences are found by a walk of
    /// our own. Whatever is refused has a sentence that names its rule, so the two agree.
    #[test]
    fn every_refusal_of_a_well_formed_schema_is_explained(
        p in subschema(), x in subschema(), y in subschema(), value in arguments()
    ) {
        let schema = json!({
            "type": "object", "properties": {"a": p}, "allOf": [p], "$defs": {"x": x, "y": y}
        });
        if let Ok(schema) = ToolSchema::compile(&schema, &Limits::trusted())
            && let Err(errors) = schema.check(&value)
        {
            prop_assert!(!errors.contains(&ArgumentError::Mismatch), "{errors:?}");
            prop_assert!(!errors.contains(&ArgumentError::Unchecked));
        }
    }

    /// The same schema, once as written and once compiled by the library without our rewriting.
    #[test]
    fn the_rewritten_schema_gives_the_verdict_of_the_original(p in subschema(), value in arguments()) {
        let original = json!({
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "type": "object", "properties": {"a": p}, "allOf": [p],
            "$defs": {"x": {"type": "string"}, "y": {"properties": {"a": {"$ref": "#/$defs/x"}}}}
        });
        let text = original.to_string();
        // 2019-09 has no prefixItems; everything else here it has.
        if text.contains("prefixItems") {
            return Ok(());
        }
        let library = jsonschema::options().should_validate_formats(true).build(&original);
        if let (Ok(ours), Ok(library)) = (ToolSchema::compile(&original, &Limits::trusted()), library) {
            let verdict = ours.check(&value).is_ok();
            prop_assert_eq!(verdict, library.is_valid(&value), "{} {}", text, value);
        }
    }
}

/// The tests above say something only if schemas compile and both verdicts occur.
#[test]
fn the_generators_reach_both_verdicts() {
    let mut runner = TestRunner::deterministic();
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..300 {
        let p = subschema().new_tree(&mut runner).unwrap().current();
        let value = arguments().new_tree(&mut runner).unwrap().current();
        let schema = json!({
            "type": "object", "properties": {"a": p}, "allOf": [p],
            "$defs": {"x": {"type": "string"}, "y": {"properties": {"a": {"$ref": "#/$defs/x"}}}}
        });
        if let Ok(schema) = ToolSchema::compile(&schema, &Limits::trusted()) {
            match schema.check(&value) {
                Ok(()) => accepted += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(accepted > 50 && refused > 50, "{accepted} accepted, {refused} refused of 300");
}
