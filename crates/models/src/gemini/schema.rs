//! A tool's schema in the vendor's subset of JSON Schema.
//!
//! The vendor refuses a whole request for one keyword that it does not know.
//! What it cannot say is said in the description, or left out: arguments are
//! checked against the real schema later.

use serde_json::{Map, Value, json};

/// Levels of a schema that are kept; deeper ones become anything.
const DEPTH: usize = 32;

/// The parameters of a function, or `None` if it takes none.
pub(super) fn parameters(schema: &Value) -> Result<Option<Value>, String> {
    let schema = subset(schema, 0);
    let object = schema["type"] == "object";
    if !object && schema.get("anyOf").is_none() {
        return Err("its arguments are not an object".to_owned());
    }
    Ok((!object || schema.get("properties").is_some()).then_some(schema))
}

fn subset(schema: &Value, depth: usize) -> Value {
    let Value::Object(schema) = schema else { return anything() };
    if depth >= DEPTH {
        return anything();
    }
    let schema = &all_of(schema);
    let (kinds, nullable) = kinds_of(schema);
    if let Some(union) = union_of(schema, nullable, depth) {
        return union;
    }
    match kinds.as_slice() {
        [] => nullable_if(nullable, described(anything(), schema, None)),
        [kind] => nullable_if(nullable, one_kind(kind, schema, depth)),
        several => {
            let each = several.iter().map(|kind| nullable_if(nullable, one_kind(kind, schema, depth)));
            json!({ "anyOf": each.collect::<Vec<_>>() })
        }
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

/// The type that the other keywords speak of.
fn implied(schema: &Map<String, Value>) -> Option<&'static str> {
    let sample =
        schema.get("const").or_else(|| schema.get("enum")?.as_array()?.iter().find(|v| !v.is_null()));
    match sample {
        Some(Value::String(_)) => return Some("string"),
        Some(Value::Bool(_)) => return Some("boolean"),
        Some(Value::Number(n)) => return Some(if n.is_f64() { "number" } else { "integer" }),
        Some(Value::Object(_)) => return Some("object"),
        Some(Value::Array(_)) => return Some("array"),
        Some(Value::Null) | None => {}
    }
    let has = |name: &str| schema.contains_key(name);
    if has("properties") || has("required") || has("additionalProperties") {
        Some("object")
    } else if has("items") || has("prefixItems") {
        Some("array")
    } else {
        None
    }
}

/// `anyOf` and `oneOf` stand alone on this wire: what stood beside them goes
/// into each choice.
fn union_of(schema: &Map<String, Value>, nullable: bool, depth: usize) -> Option<Value> {
    let choices = ["anyOf", "oneOf"].iter().find_map(|name| schema.get(*name)?.as_array())?;
    let is_null = |choice: &&Value| choice["type"] == "null" || choice.get("const") == Some(&Value::Null);
    let nullable = nullable || choices.iter().any(|choice| is_null(&choice));
    let mut beside = schema.clone();
    for name in ["anyOf", "oneOf"] {
        beside.remove(name);
    }
    let merged = choices.iter().filter(|choice| !is_null(choice)).map(|choice| {
        let whole = match choice {
            Value::Object(choice) => join(beside.clone(), choice),
            _ => beside.clone(),
        };
        nullable_if(nullable, subset(&Value::Object(whole), depth + 1))
    });
    let mut merged: Vec<Value> = merged.collect();
    match merged.len() {
        0 => None,
        1 => merged.pop(),
        _ => Some(json!({ "anyOf": merged })),
    }
}

/// `allOf` as one schema.
fn all_of(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut whole = schema.clone();
    // A part may hold parts of its own.
    for _ in 0..DEPTH {
        let Some(Value::Array(parts)) = whole.remove("allOf") else { break };
        for part in parts.iter().filter_map(Value::as_object) {
            whole = join(whole, part);
        }
    }
    whole
}

/// Both schemas in one: properties and required fields of both, else the
/// second one's word.
fn join(mut first: Map<String, Value>, second: &Map<String, Value>) -> Map<String, Value> {
    for (name, value) in second {
        match (first.get_mut(name), value) {
            (Some(Value::Object(mine)), Value::Object(theirs)) if name == "properties" => {
                mine.extend(theirs.clone());
            }
            (Some(Value::Array(mine)), Value::Array(theirs)) if name == "required" => {
                mine.extend(theirs.clone());
            }
            _ => {
                first.insert(name.clone(), value.clone());
            }
        }
    }
    first
}

fn one_kind(kind: &str, schema: &Map<String, Value>, depth: usize) -> Value {
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
            keep_properties(schema, &mut kept, depth);
        }
        "array" => {
            keep(&["minItems", "maxItems"]);
            kept.insert("items".to_owned(), items(schema, depth));
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

fn keep_properties(schema: &Map<String, Value>, kept: &mut Map<String, Value>, depth: usize) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty())
    else {
        return;
    };
    let each = properties.iter().map(|(name, property)| (name.clone(), subset(property, depth + 1)));
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
fn items(schema: &Map<String, Value>, depth: usize) -> Value {
    let listed = |name: &str| schema.get(name).and_then(Value::as_array).filter(|list| !list.is_empty());
    match (listed("prefixItems").or_else(|| listed("items")), schema.get("items")) {
        (Some(each), _) => {
            let mut kinds: Vec<Value> = Vec::new();
            for item in each.iter().map(|item| subset(item, depth + 1)) {
                if !kinds.contains(&item) {
                    kinds.push(item);
                }
            }
            if kinds.len() == 1 { kinds.remove(0) } else { json!({ "anyOf": kinds }) }
        }
        (None, Some(items)) => subset(items, depth + 1),
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
        (Some(told), Some(note)) => format!("{told} ({note})"),
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
    json!({ "anyOf": [{ "type": "string" }, { "type": "number" }, { "type": "boolean" }, { "type": "object" }] })
}
