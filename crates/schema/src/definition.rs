//! One tool definition: three shapes in, one form out.
//!
//! Documents write `{name, description, parameters}`, `{name, description, inputSchema}` and
//! `{type: "function", function: {…}}`. All are accepted everywhere; the surface that echoes a
//! definition knows which one it speaks.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::SchemaError;
use crate::limits::{Limits, Source};
use crate::measure::measure_schema;
use crate::name::NameRule;
use crate::options::{BadOption, ToolOptions};
use crate::text::{find_hidden, shorten};

/// Characters of a description in a request.
const MAX_REQUEST_DESCRIPTION: usize = 1024;

/// Bytes of a description in a config or plugin.
const MAX_TRUSTED_DESCRIPTION: usize = 4096;

/// A tool as its owner describes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    /// The input schema as given, annotations included: this is what a model is shown.
    #[serde(rename = "parameters")]
    pub schema: Value,
    #[serde(flatten)]
    pub options: ToolOptions,
}

/// What is wrong with one definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolProblem {
    #[error("must be an object")]
    NotAnObject,
    #[error("`type` must be \"function\" when the definition is wrapped in `function`")]
    WrapperType,
    #[error("has no name")]
    NameMissing,
    #[error("invalid name: use {rule}")]
    NameInvalid { rule: &'static str },
    #[error("has no description")]
    DescriptionMissing,
    #[error("the description must be a string")]
    DescriptionType,
    #[error("the description is longer than {limit} {unit}")]
    DescriptionTooLong { limit: usize, unit: &'static str },
    #[error("{place} has the hidden character U+{character:04X}", character = u32::from(*.character))]
    HiddenCharacter { place: &'static str, character: char },
    #[error("has no `parameters` (or `inputSchema`)")]
    SchemaMissing,
    #[error("has both `parameters` and `inputSchema`")]
    SchemaTwice,
    #[error(transparent)]
    Option(#[from] BadOption),
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl ToolProblem {
    /// The machine-readable name. Stable.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotAnObject => "tool_not_an_object",
            Self::WrapperType => "tool_wrapper_type",
            Self::NameMissing => "tool_name_missing",
            Self::NameInvalid { .. } => "tool_name_invalid",
            Self::DescriptionMissing => "tool_description_missing",
            Self::DescriptionType => "tool_description_type",
            Self::DescriptionTooLong { .. } => "tool_description_too_long",
            Self::HiddenCharacter { .. } => "tool_hidden_character",
            Self::SchemaMissing => "tool_schema_missing",
            Self::SchemaTwice => "tool_schema_twice",
            Self::Option(_) => "tool_option_invalid",
            Self::Schema(error) => error.code(),
        }
    }

    /// The number of the limit that was crossed, if it was one.
    #[must_use]
    pub const fn limit(&self) -> Option<u64> {
        match self {
            Self::DescriptionTooLong { limit, .. } => Some(*limit as u64),
            Self::Option(bad) => bad.limit(),
            Self::Schema(error) => error.limit(),
            Self::NotAnObject
            | Self::WrapperType
            | Self::NameMissing
            | Self::NameInvalid { .. }
            | Self::DescriptionMissing
            | Self::DescriptionType
            | Self::HiddenCharacter { .. }
            | Self::SchemaMissing
            | Self::SchemaTwice => None,
        }
    }
}

impl ToolDefinition {
    /// Reads a definition in any of its shapes and checks its name and texts.
    ///
    /// The schema is taken as it is: [`crate::ToolSchema::compile`] judges it.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(value: &Value, limits: &Limits, names: NameRule) -> Result<Self, ToolProblem> {
        let fields = unwrap(value)?;
        Ok(Self {
            name: name(fields, names)?,
            description: description(fields, limits)?,
            schema: schema(fields, limits)?,
            options: ToolOptions::parse(fields)?,
        })
    }

    /// What its owner should hear although the tool is taken (row L30).
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let advice = self.options.deprecated.as_deref()?;
        let name = &self.name;
        Some(match advice {
            "" => format!("Tool {name} is deprecated"),
            advice => format!("Tool {name} is deprecated: {advice}"),
        })
    }
}

/// The name a broken definition seems to have, for the message about it.
pub(crate) fn claimed_name(value: &Value) -> Option<String> {
    tool_name_of(value).map(|name| shorten(name, crate::name::MAX_NAME))
}

/// The name in a definition of any shape, unchecked: for selections that come before the check.
#[must_use]
pub fn tool_name_of(definition: &Value) -> Option<&str> {
    unwrap(definition).ok()?.get("name")?.as_str()
}

fn unwrap(value: &Value) -> Result<&Map<String, Value>, ToolProblem> {
    let outer = value.as_object().ok_or(ToolProblem::NotAnObject)?;
    match outer.get("function") {
        None => Ok(outer),
        Some(inner) => {
            if outer.get("type").and_then(Value::as_str) != Some("function") {
                return Err(ToolProblem::WrapperType);
            }
            inner.as_object().ok_or(ToolProblem::NotAnObject)
        }
    }
}

fn name(fields: &Map<String, Value>, names: NameRule) -> Result<String, ToolProblem> {
    match fields.get("name").and_then(Value::as_str) {
        None | Some("") => Err(ToolProblem::NameMissing),
        Some(name) if names.accepts(name) => Ok(name.to_owned()),
        Some(_) => Err(ToolProblem::NameInvalid { rule: names.describe() }),
    }
}

fn description(fields: &Map<String, Value>, limits: &Limits) -> Result<String, ToolProblem> {
    let text = match fields.get("description") {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) => text,
        Some(_) => return Err(ToolProblem::DescriptionType),
    };
    let (length, limit, unit) = match limits.source {
        // Bytes first: counting the characters of a megabyte is work nobody asked for.
        Source::Request if text.len() > 4 * MAX_REQUEST_DESCRIPTION => {
            (text.len(), MAX_REQUEST_DESCRIPTION, "characters")
        }
        Source::Request => (text.chars().count(), MAX_REQUEST_DESCRIPTION, "characters"),
        Source::Trusted => (text.len(), MAX_TRUSTED_DESCRIPTION, "bytes"),
    };
    if length == 0 && limits.is_request() {
        return Err(ToolProblem::DescriptionMissing);
    }
    if length > limit {
        return Err(ToolProblem::DescriptionTooLong { limit, unit });
    }
    refuse_hidden("the description", text)?;
    Ok(text.to_owned())
}

fn schema(fields: &Map<String, Value>, limits: &Limits) -> Result<Value, ToolProblem> {
    match (fields.get("parameters"), fields.get("inputSchema")) {
        (Some(_), Some(_)) => Err(ToolProblem::SchemaTwice),
        (Some(schema), None) | (None, Some(schema)) => {
            // A copy recurses as deep as the value: first know that it is shallow and small.
            measure_schema(schema)?;
            Ok(schema.clone())
        }
        (None, None) if limits.is_request() => Err(ToolProblem::SchemaMissing),
        (None, None) => Ok(json!({ "type": "object", "properties": {} })),
    }
}

/// The texts of a schema that a model reads: names of parameters, titles, descriptions.
/// Expects a schema that has passed its limits.
pub(crate) fn refuse_hidden_in_schema(schema: &Value) -> Result<(), ToolProblem> {
    match schema {
        Value::Object(map) => map.iter().try_for_each(|(key, value)| {
            refuse_hidden("a name in the schema", key)?;
            match (key.as_str(), value) {
                ("description" | "title" | "$comment", Value::String(text)) => {
                    refuse_hidden("a description in the schema", text)
                }
                _ => refuse_hidden_in_schema(value),
            }
        }),
        Value::Array(items) => items.iter().try_for_each(refuse_hidden_in_schema),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn refuse_hidden(place: &'static str, text: &str) -> Result<(), ToolProblem> {
    match find_hidden(text) {
        None => Ok(()),
        Some(hidden) => Err(ToolProblem::HiddenCharacter { place, character: hidden.character }),
    }
}
