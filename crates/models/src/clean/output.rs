//! The form of an answer that a vendor enforces. Every object is closed, and
//! limits that vendors do not enforce go into the description.

use serde_json::{Map, Value, json};

use super::gemini::all_of;

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
/// Words that no vendor enforces, and notes that some refuse.
const DROPPED: [&str; 18] = [
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
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

/// The forms of text that all of them know.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
/// What the JSON Schema of Gemini's answers may say.
const GEMINI: [&str; 15] = [
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "properties",
    "additionalProperties",
    "required",
];

/// A schema that OpenAI enforces: its objects require all their fields, and
/// every value has a type. None if this one cannot be written so without
/// another meaning.
pub(super) fn strict(root: Value) -> Option<Value> {
    let closed = close(root);
    is_strict(&closed).then_some(closed)
}

/// An object whose fields have any name cannot be closed: closed, it would hold
/// nothing.
pub(super) fn is_open(schema: &Value) -> bool {
    let Value::Object(map) = schema else { return false };
    let open = match map.get("additionalProperties") {
        None | Some(Value::Bool(false)) => false,
        // Beside fields of its own this only repeats the default.
        Some(Value::Bool(true)) => !map.contains_key("properties"),
        Some(_) => true,
    };
    let lists =
        ["anyOf", "oneOf", "allOf", "prefixItems"].iter().filter_map(|name| map.get(*name)?.as_array());
    let fields = map.get("properties").and_then(Value::as_object);
    open || map.contains_key("patternProperties")
        || lists.flatten().any(is_open)
        || fields.into_iter().flat_map(|fields| fields.values()).any(is_open)
        || map.get("items").is_some_and(is_open)
}

fn is_strict(schema: &Value) -> bool {
    let Value::Object(map) = schema else { return false };
    let list = |name: &str| map.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if map.contains_key("prefixItems") || map.contains_key("allOf") {
        return false;
    }
    if let Some(choices) = map.get("anyOf").and_then(Value::as_array) {
        return choices.iter().all(is_strict);
    }
    let required = list("required");
    let complete = match map.get("properties") {
        Some(Value::Object(fields)) => fields
            .iter()
            .all(|(name, field)| required.iter().any(|known| known == name.as_str()) && is_strict(field)),
        Some(_) | None => true,
    };
    let of_list =
        map.get("type").is_some_and(|kind| kind == "array" || list("type").contains(&json!("array")));
    let itemized = !of_list || map.get("items").is_some_and(is_strict);
    let typed = ["type", "enum", "const"].iter().any(|name| map.contains_key(*name));
    complete && itemized && typed
}

/// The part of JSON Schema that Gemini takes for answers. What it cannot say
/// is said in the description.
pub(super) fn for_gemini(schema: Value) -> Value {
    let Value::Object(map) = schema else { return json!({}) };
    let mut map = all_of(&map);
    if let Some(choices) = map.remove("oneOf") {
        map.entry("anyOf").or_insert(choices);
    }
    if let Some(only) = map.remove("const") {
        map.entry("enum").or_insert_with(|| json!([only]));
    }
    let mut told = Vec::new();
    for key in ["minLength", "maxLength", "pattern", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"] {
        if let Some(value) = map.remove(key) {
            told.push(format!("{key}: {value}"));
        }
    }
    map.retain(|key, _| GEMINI.contains(&key.as_str()));
    each_schema(&mut map, for_gemini);
    if let Some(rest) = map.get_mut("additionalProperties").filter(|rest| rest.is_object()) {
        *rest = for_gemini(rest.take());
    }
    tell(&mut map, told);
    Value::Object(map)
}

fn each_schema(map: &mut Map<String, Value>, change: fn(Value) -> Value) {
    for key in ["anyOf", "allOf", "prefixItems"] {
        if let Some(Value::Array(list)) = map.get_mut(key) {
            list.iter_mut().for_each(|branch| *branch = change(branch.take()));
        }
    }
    if let Some(items) = map.get_mut("items") {
        *items = change(items.take());
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(|property| *property = change(property.take()));
    }
}

pub(super) fn close(schema: Value) -> Value {
    let Value::Object(map) = schema else { return json!({}) };
    let mut map = all_of(&map);
    for key in DROPPED {
        map.remove(key);
    }
    if let Some(choices) = map.remove("oneOf") {
        map.entry("anyOf").or_insert(choices);
    }
    each_schema(&mut map, close);
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
    let odd = |format: &Value| format.as_str().is_none_or(|format| !FORMATS.contains(&format));
    if let Some(format) = map.get("format").filter(|format| odd(format)).cloned() {
        map.remove("format");
        told.push(format!("format: {format}"));
    }
    // No vendor's checker looks around.
    if let Some(pattern) = map.get("pattern").filter(|p| p.as_str().is_none_or(|p| p.contains("(?"))).cloned()
    {
        map.remove("pattern");
        told.push(format!("pattern: {pattern}"));
    }
    // Vendors know an empty list from one with something in it, no more.
    if let Some(least) = map.get("minItems").and_then(Value::as_u64).filter(|least| *least > 1) {
        map.insert("minItems".to_owned(), json!(1));
        told.push(format!("minItems: {least}"));
    }
    tell(map, told);
}

/// Limits in words.
fn tell(map: &mut Map<String, Value>, told: Vec<String>) {
    if !told.is_empty() {
        let told = format!("({})", told.join(", "));
        let text = match map.get("description").and_then(Value::as_str) {
            Some(text) => format!("{text} {told}"),
            None => told,
        };
        map.insert("description".to_owned(), Value::from(text));
    }
}
