//! `requestInput`: the model asks a person. The call becomes a wait of kind
//! input; the answer is the tool's result.

use serde_json::{Value, json};
use toolyard_schema::{Limits, ToolSchema};

use super::{Action, Way};

pub(super) const REQUEST: Action = Action {
    name: "requestInput",
    alias: None,
    description: "Ask the user for something that only they know or may decide, and wait for the answer. The question is shown to them; schema, if given, is the JSON Schema of the form they fill in.",
    schema,
    way: Way::AskUser,
};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "message": {"type": "string", "minLength": 1, "description": "The question, as the user reads it."},
            "schema": {"type": "object", "description": "JSON Schema of the answer. Missing means a plain text."}
        },
        "required": ["message"]
    })
}

/// What the user is shown, if it can be asked.
pub fn asked(args: &Value) -> Result<Value, String> {
    let message = args.get("message").and_then(Value::as_str).unwrap_or_default();
    let mut payload = json!({ "message": message });
    if let Some(schema) = args.get("schema").filter(|schema| !schema.is_null()) {
        ToolSchema::compile(schema, &Limits::request()).map_err(|e| format!("schema: {e}"))?;
        payload["schema"] = schema.clone();
    }
    Ok(payload)
}

/// The answer as the model reads it.
pub fn answered(value: &Value) -> Value {
    json!({ "success": true, "answer": value })
}
