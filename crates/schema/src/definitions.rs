//! A list of tool definitions, as one request or config brings it.

use std::collections::HashSet;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::definition::{ToolDefinition, ToolProblem, claimed_name, refuse_hidden_in_schema};
use crate::error::SchemaError;
use crate::limits::Limits;
use crate::name::NameRule;
use crate::schema::ToolSchema;

/// One thing wrong with a list of tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    #[error("Too many tools: {count} given, at most {limit} allowed")]
    TooMany { limit: usize, count: usize },
    #[error("Duplicate tool names: {}", names.join(", "))]
    Duplicates { names: Vec<String> },
    #[error("Tool {}: {problem}", label(*index, name.as_deref()))]
    Tool {
        /// Position in the list, from 0.
        index: usize,
        /// The name it claims, cleaned for printing.
        name: Option<String>,
        problem: ToolProblem,
    },
}

fn label(index: usize, name: Option<&str>) -> String {
    match name {
        Some(name) if !name.is_empty() => format!("{name} (#{})", index + 1),
        _ => format!("#{}", index + 1),
    }
}

impl DefinitionError {
    /// The machine-readable name. Stable.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooMany { .. } => "too_many_tools",
            Self::Duplicates { .. } => "tool_names_duplicate",
            Self::Tool { problem, .. } => problem.code(),
        }
    }

    /// The number of the limit that was crossed, if it was one.
    #[must_use]
    pub const fn limit(&self) -> Option<u64> {
        match self {
            Self::TooMany { limit, .. } => Some(*limit as u64),
            Self::Duplicates { .. } => None,
            Self::Tool { problem, .. } => problem.limit(),
        }
    }
}

/// Everything wrong with a list of tools. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionErrors {
    errors: Vec<DefinitionError>,
}

impl DefinitionErrors {
    /// Each error, in the order of the tools.
    #[must_use]
    pub fn errors(&self) -> &[DefinitionError] {
        &self.errors
    }

    /// The name of the first error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.errors.first().map_or("tool_definitions_invalid", DefinitionError::code)
    }

    /// The limit that the first error names.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.errors.first().and_then(DefinitionError::limit)
    }
}

impl fmt::Display for DefinitionErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Invalid client tool definitions: ")?;
        for (position, error) in self.errors.iter().enumerate() {
            if position > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for DefinitionErrors {}

/// Checks a list of tool definitions: count, shape, names, texts, schemas, duplicates.
///
/// Each schema is compiled to know that it can be; to keep the compiled form, use
/// [`crate::Schemas::accept`].
///
/// # Errors
/// Every problem found, in the order of the tools.
pub fn validate_tool_definitions(
    definitions: &[Value],
    limits: &Limits,
    names: NameRule,
) -> Result<Vec<ToolDefinition>, DefinitionErrors> {
    let accepted = validate_with(definitions, limits, names, |schema| ToolSchema::compile(schema, limits))?;
    Ok(accepted.into_iter().map(|(definition, _)| definition).collect())
}

/// What [`safe_validate_tool_definitions`] finds. As JSON it is `{"success": true, "data": …}` or
/// `{"success": false, "errors": […]}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Validation {
    Valid { success: True, data: Vec<ToolDefinition>, warnings: Vec<String> },
    Invalid { success: False, errors: Vec<String> },
}

impl Validation {
    #[must_use]
    pub const fn success(&self) -> bool {
        matches!(self, Self::Valid { .. })
    }
}

macro_rules! constant {
    ($name:ident, $value:literal) => {
        /// Always the same, so that a reader of the JSON can tell the two forms apart.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name;
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bool($value)
            }
        }
    };
}
constant!(True, true);
constant!(False, false);

/// The twin of [`validate_tool_definitions`] for callers that have any JSON at all and want an
/// answer in every case (row L9).
#[must_use]
pub fn safe_validate_tool_definitions(definitions: &Value, limits: &Limits, names: NameRule) -> Validation {
    let Some(list) = definitions.as_array() else {
        return Validation::Invalid {
            success: False,
            errors: vec!["The tool definitions must be a list".to_owned()],
        };
    };
    match validate_tool_definitions(list, limits, names) {
        Ok(data) => {
            let warnings = data.iter().filter_map(ToolDefinition::warning).collect();
            Validation::Valid { success: True, data, warnings }
        }
        Err(refused) => {
            let errors = refused.errors.iter().map(ToString::to_string).collect();
            Validation::Invalid { success: False, errors }
        }
    }
}

pub(crate) fn validate_with(
    definitions: &[Value],
    limits: &Limits,
    names: NameRule,
    compile: impl Fn(&Value) -> Result<ToolSchema, SchemaError>,
) -> Result<Vec<(ToolDefinition, ToolSchema)>, DefinitionErrors> {
    // Alone and first: beyond the limit no tool is looked at.
    if definitions.len() > limits.max_tools {
        return Err(DefinitionErrors {
            errors: vec![DefinitionError::TooMany { limit: limits.max_tools, count: definitions.len() }],
        });
    }
    let mut accepted = Vec::with_capacity(definitions.len());
    let mut errors = Vec::new();
    for (index, value) in definitions.iter().enumerate() {
        match accept_one(value, limits, names, &compile) {
            Ok(tool) => accepted.push(tool),
            Err(problem) => errors.push(DefinitionError::Tool { index, name: claimed_name(value), problem }),
        }
    }
    let duplicates = duplicates(accepted.iter().map(|(definition, _)| &definition.name));
    if !duplicates.is_empty() {
        errors.push(DefinitionError::Duplicates { names: duplicates });
    }
    if errors.is_empty() { Ok(accepted) } else { Err(DefinitionErrors { errors }) }
}

fn accept_one(
    value: &Value,
    limits: &Limits,
    names: NameRule,
    compile: &impl Fn(&Value) -> Result<ToolSchema, SchemaError>,
) -> Result<(ToolDefinition, ToolSchema), ToolProblem> {
    let definition = ToolDefinition::parse(value, limits, names)?;
    let schema = compile(&definition.schema)?;
    refuse_hidden_in_schema(&definition.schema)?;
    Ok((definition, schema))
}

/// Names that occur more than once, each once, in the order of their first repetition.
fn duplicates<'n>(names: impl Iterator<Item = &'n String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut repeated: Vec<String> = Vec::new();
    for name in names {
        if !seen.insert(name) && !repeated.contains(name) {
            repeated.push(name.clone());
        }
    }
    repeated
}
