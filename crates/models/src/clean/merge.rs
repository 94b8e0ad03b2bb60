//! Two schemas as one. Where they cannot both be kept the second one stands.

use serde_json::{Map, Value};

/// A value that fits both.
pub(super) fn both(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Object(mut first), Value::Object(second)) => {
            for (key, value) in second {
                let merged = match (key.as_str(), first.remove(&key)) {
                    (_, None) => value,
                    ("required", Some(old)) => union(old, value),
                    ("properties" | "patternProperties" | "dependentSchemas", Some(old)) => {
                        each(old, value, both)
                    }
                    ("enum", Some(old)) => common(old, value),
                    ("allOf", Some(old)) => union(old, value),
                    ("anyOf" | "oneOf", Some(old)) if old == value => value,
                    ("anyOf" | "oneOf", Some(old)) => {
                        // Both lists hold; the old one goes on as a part of its own.
                        let mut part = Map::new();
                        part.insert(key.clone(), old);
                        push_all_of(&mut first, Value::Object(part));
                        value
                    }
                    (_, Some(_)) => value,
                };
                first.insert(key, merged);
            }
            Value::Object(first)
        }
        // `true` adds nothing, `false` is beyond repair.
        (object @ Value::Object(_), _) | (_, object) => object,
    }
}

/// A schema for values that fit one of both, as far as one object can say it.
pub(super) fn either(first: Value, second: Value) -> Value {
    let (Value::Object(mut first), Value::Object(second)) = (first, second) else {
        return Value::Bool(true);
    };
    let mut out = Map::new();
    for (key, value) in second {
        let merged = match (key.as_str(), first.remove(&key)) {
            ("properties", None) => Some(value),
            ("properties", Some(old)) => Some(each(old, value, any_of)),
            ("required", Some(old)) => Some(common(old, value)),
            ("description" | "title", old) => Some(old.unwrap_or(value)),
            (_, Some(old)) if old == value => Some(value),
            (_, _) => None,
        };
        if let Some(merged) = merged {
            out.insert(key, merged);
        }
    }
    for key in ["properties", "description", "title"] {
        if let Some(value) = first.remove(key) {
            out.insert(key.to_owned(), value);
        }
    }
    Value::Object(out)
}

fn any_of(first: Value, second: Value) -> Value {
    if first == second {
        return first;
    }
    let mut branches = Vec::new();
    for schema in [first, second] {
        match schema {
            Value::Object(mut map) if map.len() == 1 && map.contains_key("anyOf") => {
                if let Some(Value::Array(list)) = map.remove("anyOf") {
                    branches.extend(list);
                }
            }
            other => branches.push(other),
        }
    }
    branches.dedup();
    Value::Object(Map::from_iter([("anyOf".to_owned(), Value::Array(branches))]))
}

fn each(old: Value, new: Value, merge: fn(Value, Value) -> Value) -> Value {
    let (Value::Object(mut old), Value::Object(new)) = (old, new) else { return Value::Object(Map::new()) };
    for (name, schema) in new {
        let merged = match old.remove(&name) {
            Some(other) => merge(other, schema),
            None => schema,
        };
        old.insert(name, merged);
    }
    Value::Object(old)
}

fn union(old: Value, new: Value) -> Value {
    let (Value::Array(mut old), Value::Array(new)) = (old, new) else { return Value::Array(Vec::new()) };
    for value in new {
        if !old.contains(&value) {
            old.push(value);
        }
    }
    Value::Array(old)
}

fn common(old: Value, new: Value) -> Value {
    let (Value::Array(mut old), Value::Array(new)) = (old, new) else { return Value::Array(Vec::new()) };
    old.retain(|value| new.contains(value));
    Value::Array(old)
}

fn push_all_of(schema: &mut Map<String, Value>, part: Value) {
    match schema.get_mut("allOf") {
        Some(Value::Array(parts)) => parts.push(part),
        _ => {
            schema.insert("allOf".to_owned(), Value::Array(vec![part]));
        }
    }
}
