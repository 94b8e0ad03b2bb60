//! The hostile schemas, and arguments to meet them.

use serde_json::{Map, Value, json};

use crate::object;

/// Nested `properties`, built by moving so that building does not recurse.
pub(crate) fn nested(levels: usize) -> Value {
    wrap(levels, |inner| {
        let mut properties = Map::new();
        properties.insert("a".to_owned(), inner);
        let mut schema = Map::new();
        schema.insert("type".to_owned(), Value::from("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        Value::Object(schema)
    })
}

pub(super) fn wrap(levels: usize, step: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(Value::Object(Map::new()), |inner, _| step(inner))
}

/// One keyword around another, as a property `p`.
pub(super) fn keyword_chain(levels: usize, step: impl Fn(Value) -> Value) -> Value {
    object(&json!({ "p": wrap(levels, step) }))
}

/// `$defs` `d0 … d<count>`, each made from the reference to the next, the last one plain.
pub(super) fn ladder(count: usize, rung: impl Fn(Value) -> Value) -> Value {
    let mut definitions = Map::new();
    for n in 0..count {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        definitions.insert(format!("d{n}"), rung(next));
    }
    definitions.insert(format!("d{count}"), json!({"type": "integer"}));
    json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
}

pub(super) fn with_defs(properties: &Value, definitions: &Value) -> Value {
    json!({"type": "object", "properties": properties, "$defs": definitions})
}

pub(super) fn list(count: usize, item: impl Fn(usize) -> Value) -> Value {
    (0..count).map(item).collect()
}

pub(super) fn map(count: usize, item: impl Fn(usize) -> Value) -> Value {
    Value::Object((0..count).map(|n| (format!("k{n}"), item(n))).collect())
}

/// Name, schema, outcome under the operator's limits (a request is never allowed more).
#[allow(clippy::too_many_lines)]
pub(super) fn corpus() -> Vec<(&'static str, Value, &'static str)> {
    let two = |next: Value| json!({"allOf": [next, next]});
    vec![
        // Cycles that stand still.
        ("root refers to itself", json!({"type": "object", "$ref": "#"}), "schema_ref_cycle"),
        ("allOf the root", json!({"type": "object", "allOf": [{"$ref": "#"}]}), "schema_ref_cycle"),
        ("anyOf the root", json!({"type": "object", "anyOf": [{"$ref": "#"}, {}]}), "schema_ref_cycle"),
        ("oneOf the root", json!({"type": "object", "oneOf": [{"$ref": "#"}]}), "schema_ref_cycle"),
        ("not the root", json!({"type": "object", "not": {"$ref": "#"}}), "schema_ref_cycle"),
        ("if the root", json!({"type": "object", "if": {"$ref": "#"}, "then": {}}), "schema_ref_cycle"),
        (
            "dependent on the root",
            json!({"type": "object", "dependentSchemas": {"a": {"$ref": "#"}}}),
            "schema_ref_cycle",
        ),
        (
            "two refer to each other",
            with_defs(
                &json!({"p": {"$ref": "#/$defs/a"}}),
                &json!({"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}),
            ),
            "schema_ref_cycle",
        ),
        (
            "a cycle nobody uses",
            with_defs(&json!({}), &json!({"a": {"$ref": "#/$defs/a"}})),
            "schema_ref_cycle",
        ),
        (
            "three through combiners",
            with_defs(
                &json!({"p": {"$ref": "#/$defs/a"}}),
                &json!({"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"$ref": "#/$defs/c"}]}, "c": {"not": {"$ref": "#/$defs/a"}}}),
            ),
            "schema_ref_cycle",
        ),
        (
            "a cycle beside a descent",
            with_defs(
                &json!({"p": {"$ref": "#/$defs/a"}}),
                &json!({"a": {"properties": {"x": {"$ref": "#/$defs/b"}}, "allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}),
            ),
            "schema_ref_cycle",
        ),
        (
            "a cycle by pointer into itself",
            object(&json!({"p": {"allOf": [{"$ref": "#/properties/p"}]}})),
            "schema_ref_cycle",
        ),
        (
            "a cycle by anchor",
            with_defs(&json!({}), &json!({"a": {"$anchor": "x", "$ref": "#x"}})),
            "schema_ref_cycle",
        ),
        (
            "a long cycle",
            {
                let mut ring = ladder(1_200, |next| next);
                ring["$defs"]["d1200"] = json!({"$ref": "#/$defs/d0"});
                ring
            },
            "schema_ref_cycle",
        ),
        // Cycles that descend are recursion.
        ("a tree", object(&json!({"kids": {"type": "array", "items": {"$ref": "#"}}})), "compiled"),
        ("a linked list", object(&json!({"a": {"$ref": "#"}})), "compiled"),
        ("a list of two names", object(&json!({"a": {"$ref": "#"}, "b": {"$ref": "#"}})), "compiled"),
        (
            "recursion through additional properties",
            json!({"type": "object", "additionalProperties": {"$ref": "#"}}),
            "compiled",
        ),
        (
            "recursion through patterns",
            json!({"type": "object", "patternProperties": {"": {"$ref": "#"}}}),
            "compiled",
        ),
        ("recursion through names", json!({"type": "object", "propertyNames": {"$ref": "#"}}), "compiled"),
        (
            "recursion that doubles",
            with_defs(
                &json!({"a": {"$ref": "#/$defs/t"}}),
                &json!({"t": {"allOf": [{"properties": {"a": {"$ref": "#/$defs/t"}}}, {"properties": {"a": {"$ref": "#/$defs/t"}}}]}}),
            ),
            "compiled",
        ),
        (
            "recursion that doubles in a union",
            with_defs(
                &json!({"a": {"$ref": "#/$defs/t"}}),
                &json!({"t": {"anyOf": [{"properties": {"a": {"$ref": "#/$defs/t"}}, "required": ["z"]}, {"properties": {"a": {"$ref": "#/$defs/t"}}, "required": ["y"]}]}}),
            ),
            "compiled",
        ),
        (
            "recursion by four names and patterns",
            json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}, "^a": {"$ref": "#"}, "a$": {"$ref": "#"}}}),
            "compiled",
        ),
        (
            "recursion with unevaluated",
            json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "unevaluatedProperties": {"$ref": "#"}}),
            "compiled",
        ),
        (
            "recursion of items and contains",
            object(
                &json!({"a": {"items": {"$ref": "#/properties/a"}, "contains": {"$ref": "#/properties/a"}, "minContains": 0}}),
            ),
            "compiled",
        ),
        (
            "mutual recursion",
            with_defs(
                &json!({"a": {"$ref": "#/$defs/x"}}),
                &json!({"x": {"properties": {"a": {"$ref": "#/$defs/y"}}}, "y": {"properties": {"a": {"$ref": "#/$defs/x"}}}}),
            ),
            "compiled",
        ),
        (
            "not of not of itself, descending",
            object(&json!({"a": {"not": {"properties": {"a": {"not": {"$ref": "#/properties/a"}}}}}})),
            "compiled",
        ),
        // Ladders: small text, many paths.
        ("28 times two", ladder(28, two), "schema_path_too_long"),
        ("14 times two", ladder(14, two), "schema_too_many_nodes"),
        ("10 times two", ladder(10, two), "compiled"),
        (
            "6 times five",
            ladder(6, |next| json!({"anyOf": [next, next, next, next, next]})),
            "schema_too_many_nodes",
        ),
        (
            "4 times nine",
            ladder(4, |next| json!({"oneOf": list(9, |_| next.clone())})),
            "schema_too_many_nodes",
        ),
        ("not, twice", ladder(13, |next| json!({"not": {}, "allOf": [next, next]})), "schema_too_many_nodes"),
        (
            "if, then, else",
            ladder(8, |next| json!({"if": next, "then": next, "else": next})),
            "schema_too_many_nodes",
        ),
        (
            "properties that double",
            ladder(12, |next| json!({"properties": {"a": next, "b": next}})),
            "schema_too_many_nodes",
        ),
        (
            "prefix items that double",
            ladder(12, |next| json!({"prefixItems": [next, next]})),
            "schema_too_many_nodes",
        ),
        (
            "dependent schemas that double",
            ladder(12, |next| json!({"dependentSchemas": {"a": next, "b": next}})),
            "schema_too_many_nodes",
        ),
        (
            "patterns that double",
            ladder(12, |next| json!({"patternProperties": {"a": next, "b": next}})),
            "schema_too_many_nodes",
        ),
        (
            "unevaluated doubles by itself",
            ladder(12, |next| json!({"allOf": [next], "unevaluatedProperties": false})),
            "schema_too_many_nodes",
        ),
        (
            "contains and items",
            ladder(12, |next| json!({"items": next, "contains": next})),
            "schema_too_many_nodes",
        ),
        // Chains of references.
        ("10,000 references", ladder(10_000, |next| next), "schema_too_large"),
        ("1,500 references", ladder(1_500, |next| next), "schema_path_too_long"),
        ("31 references", ladder(31, |next| next), "schema_path_too_long"),
        ("29 references", ladder(29, |next| next), "compiled"),
        (
            "sixteen levels, each by reference",
            ladder(14, |next| json!({"properties": {"a": next}})),
            "compiled",
        ),
        (
            "seventeen levels, each by reference",
            ladder(15, |next| json!({"properties": {"a": next}})),
            "schema_path_too_long",
        ),
        // Depth.
        ("properties, 17 deep", nested(17), "schema_too_deep"),
        ("properties, 127 deep", nested(62), "schema_too_nested"),
        ("properties, 2,000 deep", nested(1_000), "schema_too_nested"),
        ("items, 31 deep", keyword_chain(29, |inner| json!({"items": inner})), "schema_too_deep"),
        (
            "items, 500 deep",
            keyword_chain(500, |inner| {
                let mut map = Map::new();
                map.insert("items".into(), inner);
                Value::Object(map)
            }),
            "schema_too_nested",
        ),
        ("not, 14 deep", keyword_chain(14, |inner| json!({"not": inner})), "compiled"),
        ("not, 20 deep", keyword_chain(20, |inner| json!({"not": inner})), "schema_too_deep"),
        ("anyOf, 14 deep", keyword_chain(14, |inner| json!({"anyOf": [inner]})), "compiled"),
        ("anyOf, 20 deep", keyword_chain(20, |inner| json!({"anyOf": [inner]})), "schema_too_deep"),
        (
            "data, 200 deep",
            object(&json!({"p": {"const": wrap(200, |inner| Value::Array(vec![inner]))}})),
            "schema_too_nested",
        ),
        (
            "default, 200 deep",
            object(&json!({"p": {"default": wrap(200, |inner| Value::Array(vec![inner]))}})),
            "schema_too_nested",
        ),
        (
            "an unknown keyword, 200 deep",
            object(&json!({"p": {"x": wrap(200, |inner| Value::Array(vec![inner]))}})),
            "schema_too_nested",
        ),
        // Width.
        (
            "2^14 branches in text",
            keyword_chain(14, |inner| json!({"anyOf": [inner, inner]})),
            "schema_too_large",
        ),
        (
            "2^12 branches in text",
            keyword_chain(12, |inner| json!({"anyOf": [inner, inner]})),
            "schema_too_many_nodes",
        ),
        ("2^10 branches in text", keyword_chain(10, |inner| json!({"anyOf": [inner, inner]})), "compiled"),
        (
            "5,001 branches",
            object(&json!({"p": {"anyOf": list(5_001, |_| json!({}))}})),
            "schema_too_many_nodes",
        ),
        (
            "13,000 true branches",
            object(&json!({"p": {"allOf": list(13_000, |_| json!(true))}})),
            "schema_too_many_nodes",
        ),
        ("4,900 branches", object(&json!({"p": {"allOf": list(4_900, |_| json!({}))}})), "compiled"),
        (
            "3,000 branches that fail",
            object(&json!({"p": {"anyOf": list(3_000, |_| json!({"minimum": 9}))}})),
            "compiled",
        ),
        (
            "3,000 branches with long texts",
            object(&json!({"p": {"anyOf": list(3_000, |_| json!({"maxLength": 1}))}})),
            "compiled",
        ),
        (
            "3,000 times unique",
            object(&json!({"p": {"allOf": list(3_000, |_| json!({"uniqueItems": true}))}})),
            "compiled",
        ),
        ("10,000 properties", object(&map(10_000, |_| json!(true))), "schema_too_large"),
        ("257 properties", object(&map(257, |_| json!({}))), "schema_too_many_properties"),
        (
            "257 patterns",
            json!({"type": "object", "patternProperties": map(257, |_| json!({}))}),
            "schema_too_many_properties",
        ),
        (
            "33 patterns",
            json!({"type": "object", "patternProperties": map(33, |_| json!({}))}),
            "schema_too_many_patterns",
        ),
        (
            "32 large patterns",
            object(&json!({"p": {"allOf": list(32, |n| json!({"pattern": format!("[^<>]{{1,240}}{n}$")}))}})),
            "compiled",
        ),
        (
            "5,000 required names",
            json!({"type": "object", "required": list(5_000, |n| json!(format!("k{n}")))}),
            "compiled",
        ),
        (
            "20,000 equal required names",
            json!({"type": "object", "required": list(16_000, |_| json!(""))}),
            "compiled",
        ),
        (
            "enum of a million",
            object(&json!({"p": {"enum": list(1_000_000, |n| json!(n))}})),
            "schema_too_large",
        ),
        ("enum of 1,001", object(&json!({"p": {"enum": list(1_001, |n| json!(n))}})), "schema_enum_too_long"),
        ("enum of 1,000", object(&json!({"p": {"enum": list(1_000, |n| json!(n))}})), "compiled"),
        (
            "ten enums of 1,000",
            object(&json!({"p": {"allOf": list(10, |_| json!({"enum": list(1_000, |n| json!(n))}))}})),
            "compiled",
        ),
        (
            "a megabyte of description",
            object(&json!({"p": {"description": "x".repeat(1 << 20)}})),
            "schema_too_large",
        ),
        ("a long name", object(&json!({"k".repeat(65_000): {}})), "compiled"),
        (
            "long names in every place",
            object(
                &json!({"k".repeat(20_000): {"properties": {"k".repeat(20_000): {"properties": {"k".repeat(20_000): 1}}}}}),
            ),
            "schema_malformed",
        ),
        // Numbers.
        ("tiny step", object(&json!({"p": {"multipleOf": 1e-308}})), "compiled"),
        ("huge step", object(&json!({"p": {"multipleOf": 1e308}})), "compiled"),
        ("smallest step", object(&json!({"p": {"multipleOf": 5e-324}})), "compiled"),
        ("huge bounds", object(&json!({"p": {"minimum": -1.7e308, "maximum": 1.7e308}})), "compiled"),
        (
            "huge counts",
            object(
                &json!({"p": {"minLength": u64::MAX, "maxItems": u64::MAX, "minContains": u64::MAX, "contains": {}}}),
            ),
            "compiled",
        ),
        ("float counts", object(&json!({"p": {"minLength": 1e300}})), "schema_malformed"),
        ("negative counts", object(&json!({"p": {"maxProperties": -0.5}})), "schema_malformed"),
        // Dynamic scope.
        (
            "dynamic reference",
            json!({"type": "object", "$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}}),
            "schema_keyword_refused",
        ),
        (
            "recursive reference",
            json!({"type": "object", "$recursiveAnchor": true, "properties": {"a": {"$recursiveRef": "#"}}}),
            "schema_keyword_refused",
        ),
        (
            "own vocabulary",
            json!({"type": "object", "$vocabulary": {"http://127.0.0.1:1/v": true}}),
            "compiled",
        ),
        (
            "two anchors of one name",
            with_defs(&json!({}), &json!({"a": {"$anchor": "x"}, "b": {"$anchor": "x"}})),
            "schema_malformed",
        ),
    ]
}

/// Arguments made to meet the corpus: its names are `p`, `a`, `kids`.
pub(super) fn hostile_arguments() -> Vec<Value> {
    let deep = |levels: usize, step: fn(Value) -> Value| (0..levels).fold(json!({}), |inner, _| step(inner));
    vec![
        json!({}),
        json!({"p": 1.5, "a": 7}),
        json!({"p": "x".repeat(100_000)}),
        json!({"p": list(10_000, |n| json!(n))}),
        json!({"p": list(2_000, |n| json!({"a": n}))}),
        map(5_000, |n| json!(n)),
        deep(63, |inner| json!({"a": inner})),
        deep(20, |inner| json!({"a": inner})),
        deep(62, |inner| json!({"p": [inner]})),
        deep(30, |inner| json!({"a": inner, "b": inner["b"], "k": [1, "x"]})),
        deep(31, |inner| json!({"kids": [inner]})),
        json!({"p": 1e308, "a": -0.0}),
    ]
}
