//! Gemini's subset: OpenAPI words, one type per schema, `nullable`, and text
//! enums. What it cannot say is dropped, so that it allows more.

use serde_json::{Map, Value, json};

use super::merge::both;

/// Words that stay as they are.
const KEPT: [&str; 14] = [
    "title",
    "description",
    "nullable",
    "required",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "pattern",
    "default",
];
/// The formats that it knows; others are an error there.
const FORMATS: [&str; 7] = ["float", "double", "int32", "int64", "date-time", "enum", "date"];

pub(super) fn subset(schema: Value) -> Value {
    let Value::Object(map) = schema else { return json!({}) };
    let map = flatten_all_of(map);
    let mut out: Map<String, Value> =
        KEPT.iter().filter_map(|key| Some(((*key).to_owned(), map.get(*key)?.clone()))).collect();
    if let Some(format) = map.get("format").filter(|f| f.as_str().is_some_and(|f| FORMATS.contains(&f))) {
        out.insert("format".to_owned(), format.clone());
    }
    put_values(&map, &mut out);
    let mut branches = choices(&map);
    match map.get("type") {
        Some(Value::Array(kinds)) => put_kinds(kinds, &mut out, &mut branches),
        Some(kind @ Value::String(_)) => {
            out.insert("type".to_owned(), kind.clone());
        }
        _ if map.contains_key("properties") => {
            out.insert("type".to_owned(), json!("object"));
        }
        _ => {}
    }
    put_choices(branches, &mut out);
    if let Some(Value::Object(properties)) = map.get("properties") {
        let cleaned: Map<String, Value> =
            properties.iter().map(|(name, schema)| (name.clone(), subset(schema.clone()))).collect();
        // A required name without a property is an error there.
        if let Some(Value::Array(names)) = out.get_mut("required") {
            names.retain(|name| name.as_str().is_some_and(|name| cleaned.contains_key(name)));
        }
        out.insert("properties".to_owned(), Value::Object(cleaned));
    } else {
        out.remove("required");
    }
    if out.get("required") == Some(&json!([])) {
        out.remove("required");
    }
    if out.get("type") == Some(&json!("array")) {
        out.insert("items".to_owned(), items(&map));
    }
    Value::Object(out)
}

fn flatten_all_of(mut map: Map<String, Value>) -> Map<String, Value> {
    let Some(Value::Array(mut parts)) = map.remove("allOf") else { return map };
    parts.push(Value::Object(map));
    match parts.into_iter().reduce(both) {
        Some(Value::Object(merged)) if merged.contains_key("allOf") => flatten_all_of(merged),
        Some(Value::Object(merged)) => merged,
        _ => Map::new(),
    }
}

/// `enum` and `const`. Only text can be one there; other values become words.
fn put_values(map: &Map<String, Value>, out: &mut Map<String, Value>) {
    let mut values = match (map.get("enum"), map.get("const")) {
        (_, Some(value)) => vec![value.clone()],
        (Some(Value::Array(values)), None) => values.clone(),
        _ => return,
    };
    if values.contains(&Value::Null) {
        out.insert("nullable".to_owned(), json!(true));
        values.retain(|value| !value.is_null());
    }
    if values.is_empty() {
        return;
    }
    if values.iter().all(Value::is_string) {
        out.insert("type".to_owned(), json!("string"));
        out.insert("enum".to_owned(), Value::Array(values));
        return;
    }
    let listed: Vec<String> = values.iter().map(Value::to_string).collect();
    let told = format!("One of: {}", listed.join(", "));
    let text = match out.get("description").and_then(Value::as_str) {
        Some(text) => format!("{text} {told}"),
        None => told,
    };
    out.insert("description".to_owned(), Value::from(text));
    let kind = values.first().and_then(kind_of);
    if let Some(kind) = kind.filter(|kind| values.iter().all(|value| kind_of(value) == Some(kind))) {
        out.insert("type".to_owned(), json!(kind));
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

fn choices(map: &Map<String, Value>) -> Vec<Value> {
    let lists = ["anyOf", "oneOf"].iter().filter_map(|key| map.get(*key)?.as_array());
    lists.flatten().cloned().collect()
}

/// Several types are several branches; `null` is a flag.
fn put_kinds(kinds: &[Value], out: &mut Map<String, Value>, branches: &mut Vec<Value>) {
    let rest: Vec<&Value> = kinds.iter().filter(|kind| **kind != json!("null")).collect();
    if rest.len() < kinds.len() {
        out.insert("nullable".to_owned(), json!(true));
    }
    match rest.as_slice() {
        [] => {}
        [kind] => {
            out.insert("type".to_owned(), (*kind).clone());
        }
        several if branches.is_empty() => branches.extend(several.iter().map(|kind| json!({ "type": kind }))),
        _ => {}
    }
}

fn put_choices(branches: Vec<Value>, out: &mut Map<String, Value>) {
    let (nulls, rest): (Vec<Value>, Vec<Value>) =
        branches.into_iter().partition(|branch| branch["type"] == "null");
    if !nulls.is_empty() {
        out.insert("nullable".to_owned(), json!(true));
    }
    let mut rest: Vec<Value> = rest.into_iter().map(subset).collect();
    match rest.len() {
        0 => {}
        // One branch that is left is no choice.
        1 => {
            if let Some(Value::Object(only)) = rest.pop() {
                for (key, value) in only {
                    out.entry(key).or_insert(value);
                }
            }
        }
        _ => {
            out.insert("anyOf".to_owned(), Value::Array(rest));
        }
    }
}

/// A list must say what is in it.
fn items(map: &Map<String, Value>) -> Value {
    match (map.get("items"), map.get("prefixItems").and_then(Value::as_array)) {
        (Some(schema @ Value::Object(_)), _) => subset(schema.clone()),
        (_, Some(prefix)) if !prefix.is_empty() => {
            let mut out = Map::new();
            put_choices(prefix.clone(), &mut out);
            Value::Object(out)
        }
        _ => json!({ "type": "string" }),
    }
}
