//! Tool schemas as the models behind this vendor take them.

use serde_json::{Value, json};

/// The cleaned schema, or why there is none.
pub(super) fn cleaned(schema: Value) -> Result<Value, String> {
    match schema {
        Value::Object(mut fields) => {
            fields.entry("type").or_insert_with(|| json!("object"));
            Ok(Value::Object(fields))
        }
        _ => Err("the schema is no JSON object".to_owned()),
    }
}
