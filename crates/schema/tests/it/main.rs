//! What the crate promises, by row of the reliability and specification tables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arguments;
mod cache;
mod compile;
mod definitions;
mod hostile;
mod hostile_refs;
mod patterns;
mod properties;
mod provider;
mod text;
mod union;

use serde_json::{Value, json};
use toolyard_schema::{ArgumentError, Limits, SchemaError, ToolSchema};

/// Compiles under the operator's limits.
fn trusted(schema: &Value) -> Result<ToolSchema, SchemaError> {
    ToolSchema::compile(schema, &Limits::trusted())
}

/// Compiles under the limits of a request.
fn request(schema: &Value) -> Result<ToolSchema, SchemaError> {
    ToolSchema::compile(schema, &Limits::request())
}

/// An object schema with these properties.
fn object(properties: &Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

/// The sentences of a refusal; none if the arguments are accepted.
fn sentences(schema: &ToolSchema, arguments: &Value) -> Vec<String> {
    match schema.check(arguments) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(ArgumentError::to_string).collect(),
    }
}

/// The code a schema is refused with.
fn code(outcome: Result<ToolSchema, SchemaError>) -> &'static str {
    match outcome {
        Ok(_) => "compiled",
        Err(error) => error.code(),
    }
}
