//! One name per schema: the SHA-256 of its canonical text and of the limits it was made under.
//!
//! Canonical means sorted keys and no spaces, so that the order in which a client writes its
//! keywords does not matter. The limits are part of the name: a schema that is fine for the
//! operator is not thereby fine for a browser.

use aws_lc_rs::digest::{Context, SHA256};
use serde_json::Value;

use crate::limits::Limits;

/// A schema's key in the cache.
pub(crate) type SchemaKey = [u8; 32];

/// Expects a value that [`crate::measure`] has passed.
pub(crate) fn schema_key(schema: &Value, limits: &Limits) -> SchemaKey {
    let Limits { source, max_tools: _, max_depth, max_properties } = limits;
    let mut text = format!("{source:?} {max_depth} {max_properties}\n");
    write_sorted(schema, &mut text);
    let mut context = Context::new(&SHA256);
    context.update(text.as_bytes());
    let mut key = SchemaKey::default();
    key.copy_from_slice(context.finish().as_ref());
    key
}

fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_sorted(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, item) in entries {
                write_text(name, text);
                text.push(':');
                write_sorted(item, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::String(string) => write_text(string, text),
        Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
    }
}

/// Length first, so that no text can imitate structure.
fn write_text(string: &str, text: &mut String) {
    text.push_str(&string.len().to_string());
    text.push('"');
    text.push_str(string);
    text.push('"');
}
