//! Gemini's subset: OpenAPI words, one type per schema, `nullable`, text enums,
//! and choices that stand alone. What it cannot say is said in the description
//! or dropped, so that it allows more.

use serde_json::{Map, Value, json};

use super::merge::both;

/// Levels of a schema that are kept; deeper ones become anything.
const DEPTH: usize = 32;
/// Parts of a schema that are written. Choices within choices multiply, so
/// that a small schema could become a huge one.
const PARTS: usize = 20_000;

pub(super) fn subset(schema: &Value) -> Value {
    let mut left = PARTS;
    within(schema, 0, &mut left)
}

/// `left` counts the parts that may still be written; after them comes
/// anything.
fn within(schema: &Value, depth: usize, left: &mut usize) -> Value {
    let Value::Object(schema) = schema else { return anything() };
    if depth >= DEPTH || !spend(left, 1) {
        return anything();
    }
    let schema = &all_of(schema);
    let (kinds, nullable) = kinds_of(schema);
    if let Some(union) = union_of(schema, nullable, depth, left) {
        return union;
    }
    match kinds.as_slice() {
        [] => nullable_if(nullable, described(anything(), schema, None)),
        [kind] => nullable_if(nullable, one_kind(kind, schema, depth, left)),
        several => {
            let each = several.iter().map(|kind| nullable_if(nullable, one_kind(kind, schema, depth, left)));
            json!({ "anyOf": each.collect::<Vec<_>>() })
        }
    }
}

fn spend(left: &mut usize, parts: usize) -> bool {
    match left.checked_sub(parts) {
        Some(rest) => *left = rest,
        None => return false,
    }
    true
}

fn size(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(size).sum::<usize>(),
        Value::Array(list) => 1 + list.iter().map(size).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// The types that a value may have, and whether it may be `null`.
fn kinds_of(schema: &Map<String, Value>) -> (Vec<String>, bool) {
    let mut kinds: Vec<String> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => implied(schema).into_iter().map(str::to_owned).collect(),
    };
    let null = kinds.iter().any(|kind| kind == "null");
    kinds.retain(|kind| kind != "null");
    let listed = schema.get("enum").and_then(Value::as_array).is_some_and(|list| list.contains(&Value::Null));
    (kinds, null || listed || schema.get("nullable") == Some(&Value::Bool(true)))
}

/// The types that the other keywords speak of.
fn implied(schema: &Map<String, Value>) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for kind in choices(schema).filter_map(kind_of) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let has = |name: &str| schema.contains_key(name);
    if !kinds.is_empty() {
        kinds
    } else if has("properties") || has("required") || has("additionalProperties") {
        vec!["object"]
    } else if has("items") || has("prefixItems") {
        vec!["array"]
    } else {
        Vec::new()
    }
}

fn kind_of(value: &Value) -> Option<&'static str> {
    match value {
        Value::Bool(_) => Some("boolean"),
        Value::Number(n) if n.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        Value::String(_) => Some("string"),
        Value::Array(_) => Some("array"),
        Value::Object(_) => Some("object"),
        Value::Null => None,
    }
}

/// `anyOf` and `oneOf` stand alone on this wire: what stood beside them goes
/// into each choice.
fn union_of(schema: &Map<String, Value>, nullable: bool, depth: usize, left: &mut usize) -> Option<Value> {
    let choices = ["anyOf", "oneOf"].iter().find_map(|name| schema.get(*name)?.as_array())?;
    let is_null = |choice: &&Value| choice["type"] == "null" || choice.get("const") == Some(&Value::Null);
    let nullable = nullable || choices.iter().any(|choice| is_null(&choice));
    let mut beside = schema.clone();
    for name in ["anyOf", "oneOf"] {
        beside.remove(name);
    }
    let cost = beside.values().map(size).sum::<usize>().saturating_mul(choices.len());
    if !spend(left, cost) {
        return Some(anything());
    }
    let merged = choices.iter().filter(|choice| !is_null(choice)).map(|choice| {
        let whole = both(Value::Object(beside.clone()), choice.clone());
        nullable_if(nullable, within(&whole, depth + 1, left))
    });
    let mut merged: Vec<Value> = merged.collect();
    match merged.len() {
        0 => None,
        1 => merged.pop(),
        _ => Some(json!({ "anyOf": merged })),
    }
}

/// `allOf` as one schema.
pub(super) fn all_of(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut whole = schema.clone();
    // A part may hold parts of its own.
    for _ in 0..DEPTH {
        let Some(Value::Array(mut parts)) = whole.remove("allOf") else { break };
        // What the schema says itself comes last, so that its words stand.
        parts.push(Value::Object(whole));
        whole = match parts.into_iter().reduce(both) {
            Some(Value::Object(merged)) => merged,
            _ => Map::new(),
        };
    }
    whole
}

fn one_kind(kind: &str, schema: &Map<String, Value>, depth: usize, left: &mut usize) -> Value {
    let mut kept = Map::new();
    kept.insert("type".to_owned(), Value::from(kind));
    let mut keep = |names: &[&str]| {
        for name in names {
            if let Some(value) = schema.get(*name).filter(|value| value.is_number() || value.is_string()) {
                kept.insert((*name).to_owned(), value.clone());
            }
        }
    };
    let mut note = None;
    match kind {
        "object" => {
            keep(&["minProperties", "maxProperties"]);
            keep_properties(schema, &mut kept, depth, left);
        }
        "array" => {
            keep(&["minItems", "maxItems"]);
            kept.insert("items".to_owned(), items(schema, depth, left));
        }
        "string" => {
            keep(&["minLength", "maxLength", "pattern"]);
            let choices: Vec<&Value> = choices(schema).filter(|value| value.is_string()).collect();
            if !choices.is_empty() {
                kept.insert("enum".to_owned(), json!(choices));
            }
            note = keep_format(schema, &["date-time"], &mut kept);
        }
        "number" | "integer" => {
            keep(&["minimum", "maximum"]);
            let formats = if kind == "number" { ["float", "double"] } else { ["int32", "int64"] };
            note = keep_format(schema, &formats, &mut kept).or_else(|| one_of(schema));
        }
        "boolean" => note = one_of(schema),
        // No such type exists.
        _ => return described(anything(), schema, None),
    }
    described(Value::Object(kept), schema, note)
}

fn keep_properties(
    schema: &Map<String, Value>,
    kept: &mut Map<String, Value>,
    depth: usize,
    left: &mut usize,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty())
    else {
        return;
    };
    let each = properties.iter().map(|(name, property)| (name.clone(), within(property, depth + 1, left)));
    kept.insert("properties".to_owned(), Value::Object(each.collect()));
    let mut required: Vec<&str> = Vec::new();
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if let Some(name) = name.as_str().filter(|name| properties.contains_key(*name))
            && !required.contains(&name)
        {
            required.push(name);
        }
    }
    if !required.is_empty() {
        kept.insert("required".to_owned(), json!(required));
    }
}

/// The vendor wants one schema for all items.
fn items(schema: &Map<String, Value>, depth: usize, left: &mut usize) -> Value {
    let listed = |name: &str| schema.get(name).and_then(Value::as_array).filter(|list| !list.is_empty());
    match (listed("prefixItems").or_else(|| listed("items")), schema.get("items")) {
        (Some(each), _) => {
            let mut kinds: Vec<Value> = Vec::new();
            for item in each.iter().map(|item| within(item, depth + 1, left)) {
                if !kinds.contains(&item) {
                    kinds.push(item);
                }
            }
            if kinds.len() == 1 { kinds.remove(0) } else { json!({ "anyOf": kinds }) }
        }
        (None, Some(items)) => within(items, depth + 1, left),
        (None, None) => anything(),
    }
}

fn choices(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    schema.get("const").into_iter().chain(listed)
}

/// Only strings may be listed on this wire; other values are told in words.
fn one_of(schema: &Map<String, Value>) -> Option<String> {
    let values: Vec<String> = choices(schema).filter(|v| !v.is_null()).map(Value::to_string).collect();
    (!values.is_empty()).then(|| format!("One of: {}", values.join(", ")))
}

fn keep_format(schema: &Map<String, Value>, known: &[&str], kept: &mut Map<String, Value>) -> Option<String> {
    let format = schema.get("format")?.as_str()?;
    if known.contains(&format) {
        kept.insert("format".to_owned(), Value::from(format));
        return None;
    }
    Some(format!("Format: {format}"))
}

fn described(mut kept: Value, schema: &Map<String, Value>, note: Option<String>) -> Value {
    let told = schema.get("description").and_then(Value::as_str).filter(|text| !text.is_empty());
    let text = match (told, note) {
        (Some(told), Some(note)) if told.ends_with(['.', '!', '?', ')']) => format!("{told} {note}"),
        (Some(told), Some(note)) => format!("{told}. {note}"),
        (Some(told), None) => told.to_owned(),
        (None, Some(note)) => note,
        (None, None) => return kept,
    };
    each_choice(&mut kept, |choice| choice["description"] = Value::from(text.as_str()));
    kept
}

/// A union stands alone on this wire: what is said of it is said of each
/// choice.
fn each_choice(schema: &mut Value, say: impl Fn(&mut Value)) {
    match schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        Some(choices) => choices.iter_mut().for_each(say),
        None => say(schema),
    }
}

fn nullable_if(nullable: bool, mut schema: Value) -> Value {
    if nullable {
        each_choice(&mut schema, |choice| choice["nullable"] = Value::from(true));
    }
    schema
}

/// The wire has no schema for every value; this is the widest.
fn anything() -> Value {
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let kinds = ["string", "number", "boolean", "object"].map(|kind| json!({ "type": kind }));
    json!({ "anyOf": kinds.into_iter().chain([list]).collect::<Vec<_>>() })
}
