//! The form of an answer that a vendor enforces. Every object is closed, and
//! limits that vendors do not enforce go into the description.

use serde_json::{Map, Value, json};

/// Limits that become words.
const LIMITS: [&str; 14] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
];
/// Words that no vendor enforces.
const DROPPED: [&str; 10] = [
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "dependentSchemas",
    "dependentRequired",
    "not",
    "if",
    "then",
    "else",
];

pub(super) fn close(schema: Value) -> Value {
    let Value::Object(mut map) = schema else { return json!({}) };
    for key in DROPPED {
        map.remove(key);
    }
    if let Some(choices) = map.remove("oneOf") {
        map.entry("anyOf").or_insert(choices);
    }
    for key in ["anyOf", "allOf", "prefixItems"] {
        if let Some(Value::Array(list)) = map.get_mut(key) {
            list.iter_mut().for_each(|branch| *branch = close(branch.take()));
        }
    }
    if let Some(items) = map.get_mut("items") {
        *items = close(items.take());
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(|property| *property = close(property.take()));
    }
    if map.contains_key("properties") || map.get("type") == Some(&json!("object")) {
        map.insert("additionalProperties".to_owned(), json!(false));
        map.entry("properties").or_insert_with(|| json!({}));
    }
    tell_limits(&mut map);
    Value::Object(map)
}

fn tell_limits(map: &mut Map<String, Value>) {
    let mut told = Vec::new();
    for key in LIMITS {
        if let Some(value) = map.remove(key) {
            told.push(format!("{key}: {value}"));
        }
    }
    // Vendors know an empty list from one with something in it, no more.
    if let Some(least) = map.get("minItems").and_then(Value::as_u64).filter(|least| *least > 1) {
        map.insert("minItems".to_owned(), json!(1));
        told.push(format!("minItems: {least}"));
    }
    if !told.is_empty() {
        let told = format!("({})", told.join(", "));
        let text = match map.get("description").and_then(Value::as_str) {
            Some(text) => format!("{text} {told}"),
            None => told,
        };
        map.insert("description".to_owned(), Value::from(text));
    }
}
