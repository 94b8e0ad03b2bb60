//! The root of a tool's schema: vendors want one object there, without
//! choices.

use serde_json::{Map, Value, json};

use super::BadSchema;
use super::merge::{both, either};

/// How a schema says that it is one of several, or all of them.
const CHOICES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

pub(super) fn as_object(schema: Value) -> Result<Value, BadSchema> {
    let mut root = match flat(schema, 0) {
        Value::Object(map) => map,
        // No schema at all: anything goes.
        Value::Bool(true) => Map::new(),
        _ => return Err(BadSchema::NoObject),
    };
    let is_object = match root.get("type") {
        None => true,
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.contains(&json!("object")),
        Some(_) => false,
    };
    if !is_object {
        return Err(BadSchema::NoObject);
    }
    for key in ["enum", "const", "not", "if", "then", "else"] {
        root.remove(key);
    }
    match root.get("type") {
        Some(Value::String(_)) => {}
        _ => drop(root.insert("type".to_owned(), Value::from("object"))),
    }
    if !root.contains_key("properties") {
        root.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    if root.get("required").is_some_and(|names| names.as_array().is_none_or(Vec::is_empty)) {
        root.remove("required");
    }
    Ok(Value::Object(root))
}

/// Choices at the root become one object that allows each of them.
fn flat(schema: Value, depth: usize) -> Value {
    let Value::Object(mut map) = schema else { return schema };
    if depth > 8 || !CHOICES.iter().any(|key| map.contains_key(*key)) {
        return Value::Object(map);
    }
    let mut parts = Vec::new();
    if let Some(Value::Array(all)) = map.remove("allOf") {
        parts.extend(all.into_iter().map(|part| flat(part, depth + 1)));
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = map.remove(key) {
            let branches = branches.into_iter().filter(describes_object);
            match branches.map(|branch| flat(branch, depth + 1)).reduce(either) {
                Some(any) => parts.push(any),
                None => return Value::Bool(false),
            }
        }
    }
    // What the root says itself comes last, so that its words stand.
    parts.push(Value::Object(map));
    let merged = parts.into_iter().reduce(both).unwrap_or(Value::Bool(true));
    // A part may bring choices of its own.
    match merged {
        Value::Object(_) => flat(merged, depth + 1),
        other => other,
    }
}

fn describes_object(branch: &Value) -> bool {
    match &branch["type"] {
        Value::String(kind) => kind == "object",
        Value::Array(kinds) => kinds.contains(&json!("object")),
        _ => branch.is_object(),
    }
}
