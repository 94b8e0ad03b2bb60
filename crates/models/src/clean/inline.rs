//! Writes references out and drops what only matters to a schema's own
//! document. Knows where schemas stand, so that a property named `$ref` or a
//! default that looks like a schema is left alone.

use serde_json::{Map, Value, json};

use super::BadSchema;
use super::merge::both;

/// Parts of a schema once it is written out.
const PARTS: usize = 20_000;
/// Levels of a schema.
const LEVELS: usize = 64;

pub(super) fn inline(schema: &Value) -> Result<Value, BadSchema> {
    let mut work = Work { root: schema, open: Vec::new(), at: Vec::new(), parts: 0 };
    work.schema(schema)
}

struct Work<'s> {
    root: &'s Value,
    /// References that are being written out.
    open: Vec<&'s str>,
    /// Where we are, for the error text.
    at: Vec<&'s str>,
    parts: usize,
}

impl<'s> Work<'s> {
    fn schema(&mut self, node: &'s Value) -> Result<Value, BadSchema> {
        self.parts += 1;
        if self.parts > PARTS {
            return Err(BadSchema::TooLarge { limit: PARTS });
        }
        if self.at.len() + self.open.len() > LEVELS {
            return Err(BadSchema::TooDeep { limit: LEVELS });
        }
        match node {
            Value::Bool(_) => Ok(node.clone()),
            Value::Object(map) => match map.get("$ref").and_then(Value::as_str) {
                None => self.object(map),
                Some(reference) => {
                    let target = self.target(reference)?;
                    let beside = self.object(map)?;
                    Ok(both(target, beside))
                }
            },
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => Err(self.no_schema()),
        }
    }

    fn no_schema(&self) -> BadSchema {
        let at = if self.at.is_empty() { "the root".to_owned() } else { self.at.join("/") };
        BadSchema::NoSchema { at }
    }

    fn target(&mut self, reference: &'s str) -> Result<Value, BadSchema> {
        let unknown = || BadSchema::Reference { reference: reference.chars().take(200).collect() };
        let id = self.root["$id"].as_str().unwrap_or_default();
        let local = reference.strip_prefix(id).unwrap_or(reference);
        let place = local.strip_prefix('#').ok_or_else(unknown)?;
        let target = match place {
            "" => Some(self.root),
            pointer if pointer.starts_with('/') => self.root.pointer(pointer),
            anchor => anchored(self.root, anchor, 0),
        };
        let target = target.ok_or_else(unknown)?;
        if self.open.contains(&reference) {
            // Without an end. Whatever is below may be anything of its kind.
            let kind = target["type"].as_str().unwrap_or("object");
            return Ok(json!({ "type": kind }));
        }
        self.open.push(reference);
        let written = self.schema(target)?;
        self.open.pop();
        Ok(written)
    }

    fn object(&mut self, map: &'s Map<String, Value>) -> Result<Value, BadSchema> {
        let mut out = Map::new();
        for (key, value) in map {
            self.at.push(key);
            match key.as_str() {
                "definitions" | "nullable" => {}
                document if document.starts_with('$') || document.starts_with("x-") => {}
                "properties" | "patternProperties" | "dependentSchemas" => {
                    out.insert(key.clone(), self.named(value)?);
                }
                // An old way to write a tuple.
                "items" if value.is_array() => {
                    out.insert("prefixItems".to_owned(), self.list(value)?);
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    out.insert(key.clone(), self.list(value)?);
                }
                "items"
                | "additionalProperties"
                | "additionalItems"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties" => {
                    out.insert(key.clone(), self.schema(value)?);
                }
                // Very old schemas say it at each property.
                "required" if !value.is_array() => {}
                _ => {
                    out.insert(key.clone(), value.clone());
                }
            }
            self.at.pop();
        }
        if map.get("nullable") == Some(&Value::Bool(true)) {
            allow_null(&mut out);
        }
        Ok(Value::Object(out))
    }

    fn named(&mut self, value: &'s Value) -> Result<Value, BadSchema> {
        let map = value.as_object().ok_or_else(|| self.no_schema())?;
        let mut out = Map::new();
        for (name, schema) in map {
            self.at.push(name);
            out.insert(name.clone(), self.schema(schema)?);
            self.at.pop();
        }
        Ok(Value::Object(out))
    }

    fn list(&mut self, value: &'s Value) -> Result<Value, BadSchema> {
        let list = value.as_array().ok_or_else(|| self.no_schema())?;
        list.iter().map(|schema| self.schema(schema)).collect()
    }
}

fn anchored<'s>(node: &'s Value, name: &str, depth: usize) -> Option<&'s Value> {
    if depth > LEVELS {
        return None;
    }
    match node {
        Value::Object(map) if map.get("$anchor").and_then(Value::as_str) == Some(name) => Some(node),
        Value::Object(map) => map.values().find_map(|value| anchored(value, name, depth + 1)),
        Value::Array(list) => list.iter().find_map(|value| anchored(value, name, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// OpenAPI's word for "or null".
fn allow_null(schema: &mut Map<String, Value>) {
    if let Some(kind @ Value::String(_)) = schema.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = schema.get_mut(key) {
            branches.push(json!({ "type": "null" }));
        }
    }
}
