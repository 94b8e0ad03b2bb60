//! Schemas of MCP servers in the form that request-supplied tools may have:
//! no references, no more than five levels.
//!
//! References into the schema itself are written out. What lies deeper than
//! the limit accepts anything there; the bridge checks the server's own schema
//! before it calls.

use serde_json::{Map, Value, json};
use toolyard_schema::{Limits, ToolSchema};

/// Deeper than this a schema is cut off; references that lead back into
/// themselves end here too.
const DEPTH: usize = 5;

/// Keywords that a request may not bring, or that are of no use without them.
const DROPPED: [&str; 8] =
    ["$defs", "definitions", "$schema", "$id", "$comment", "$anchor", "$dynamicRef", "$dynamicAnchor"];

/// The schema, narrowed; or why it cannot be.
pub(super) fn narrowed(schema: &Value) -> Result<Value, String> {
    let mut narrow = written_out(schema, schema, 1);
    if let Some(object) = narrow.as_object_mut() {
        object.entry("properties").or_insert_with(|| json!({}));
    }
    ToolSchema::compile(&narrow, &Limits::request()).map_err(|why| why.to_string())?;
    Ok(narrow)
}

fn written_out(root: &Value, schema: &Value, depth: usize) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    if depth > DEPTH {
        return json!({});
    }
    if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
        let found = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        let Some(target) = found else { return json!({}) };
        // A chain of references costs a level each, so that it ends.
        let mut whole = written_out(root, target, depth + usize::from(target.get("$ref").is_some()));
        if let (Some(whole), Some(said)) = (whole.as_object_mut(), object.get("description")) {
            whole.insert("description".to_owned(), said.clone());
        }
        return whole;
    }
    let mut out = Map::new();
    for (key, value) in object.iter().filter(|(key, _)| !DROPPED.contains(&key.as_str())) {
        let below = |value: &Value| written_out(root, value, depth + 1);
        let written = match (key.as_str(), value) {
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(fields)) => {
                if depth == DEPTH {
                    continue;
                }
                Value::Object(fields.iter().map(|(name, field)| (name.clone(), below(field))).collect())
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(all)) => {
                if depth == DEPTH {
                    continue;
                }
                Value::Array(all.iter().map(below).collect())
            }
            (
                "items"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames",
                Value::Object(_),
            ) => {
                if depth == DEPTH {
                    continue;
                }
                below(value)
            }
            _ => value.clone(),
        };
        out.insert(key.clone(), written);
    }
    // Without its properties an object must not refuse the others.
    if depth == DEPTH && object.contains_key("properties") {
        out.remove("additionalProperties");
        out.remove("required");
    }
    Value::Object(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn references_are_written_out_and_endless_ones_end() {
        let schema = json!({
            "type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": { "who": { "$ref": "#/$defs/Person", "description": "Whom" } },
            "$defs": { "Person": { "type": "object", "properties": {
                "name": { "type": "string" }, "friend": { "$ref": "#/$defs/Person" },
            }, "required": ["name"] } },
        });
        let narrow = narrowed(&schema).unwrap();
        assert_eq!(narrow.pointer("/properties/who/description"), Some(&json!("Whom")));
        assert_eq!(narrow.pointer("/properties/who/properties/name"), Some(&json!({ "type": "string" })));
        assert!(!narrow.to_string().contains("$ref") && !narrow.to_string().contains("$defs"));
        let compiled = ToolSchema::compile(&narrow, &Limits::request()).unwrap();
        assert!(compiled.check(&json!({ "who": { "name": "a", "friend": { "name": "b" } } })).is_ok());
        assert!(compiled.check(&json!({ "who": { "friend": {} } })).is_err());
    }

    #[test]
    fn a_schema_without_properties_gets_none() {
        assert_eq!(narrowed(&json!({ "type": "object" })).unwrap()["properties"], json!({}));
        assert!(narrowed(&json!({ "type": "string" })).is_err());
    }
}
