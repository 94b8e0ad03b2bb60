//! What is wrong with a call's arguments, in the words the model and the caller read.
//!
//! The sentences name the parameter and the rule. They print the caller's own numbers and types,
//! never a value of the schema: a list of allowed values can be another owner's secret.

use std::fmt;

use serde_json::Value;

use crate::limits::{MAX_ARGUMENT_DEPTH, MAX_CHECK_STEPS};
use crate::measure::weigh;

/// One reason to refuse arguments. `path` reads `a.b[2]`, and is empty for the whole object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentError {
    NotAnObject,
    TooDeep,
    /// The check itself would cost too much.
    TooComplex,
    Missing {
        path: String,
    },
    Unknown {
        path: String,
    },
    WrongType {
        path: String,
        /// Types joined by "or".
        expected: String,
        got: &'static str,
    },
    NotAnInteger {
        path: String,
        got: String,
    },
    Violation {
        path: String,
        keyword: &'static str,
    },
    /// The arguments do not fit, and no single rule could be named.
    Mismatch,
    /// The check itself failed. Not the caller's fault; the call is refused all the same.
    Unchecked,
}

impl ArgumentError {
    /// The machine-readable name. Stable.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotAnObject => "arguments_not_an_object",
            Self::TooDeep => "arguments_too_deep",
            Self::TooComplex => "arguments_too_complex",
            Self::Missing { .. } => "argument_missing",
            Self::Unknown { .. } => "argument_unknown",
            Self::WrongType { .. } => "argument_wrong_type",
            Self::NotAnInteger { .. } => "argument_not_an_integer",
            Self::Violation { .. } => "argument_violation",
            Self::Mismatch => "arguments_mismatch",
            Self::Unchecked => "arguments_unchecked",
        }
    }

    /// The parameter, if the reason has one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Missing { path }
            | Self::Unknown { path }
            | Self::WrongType { path, .. }
            | Self::NotAnInteger { path, .. }
            | Self::Violation { path, .. } => Some(path),
            Self::NotAnObject | Self::TooDeep | Self::TooComplex | Self::Mismatch | Self::Unchecked => None,
        }
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("Invalid tool arguments: must be an object."),
            Self::TooDeep => {
                write!(f, "Invalid tool arguments: nested deeper than {MAX_ARGUMENT_DEPTH} levels.")
            }
            Self::TooComplex => {
                write!(f, "Invalid tool arguments: checking them takes more than {MAX_CHECK_STEPS} steps.")
            }
            Self::Missing { path } => write!(f, "Missing required parameter: {path}"),
            Self::Unknown { path } => write!(f, "Unknown parameter: {path}"),
            Self::WrongType { path, expected, got } => {
                write!(f, "{} has wrong type: expected {expected}, got {got}", Subject(path))
            }
            Self::NotAnInteger { path, got } => {
                write!(f, "{} must be an integer, got: {got}", Subject(path))
            }
            Self::Violation { path, keyword } => {
                write!(f, "{} {} ({keyword})", Subject(path), sentence(keyword))
            }
            Self::Mismatch => f.write_str("Invalid tool arguments: they do not match the tool's schema."),
            Self::Unchecked => f.write_str("Invalid tool arguments: they could not be checked."),
        }
    }
}

impl std::error::Error for ArgumentError {}

struct Subject<'a>(&'a str);

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_str("The arguments object")
        } else {
            write!(f, "Parameter {}", self.0)
        }
    }
}

fn sentence(keyword: &str) -> &'static str {
    match keyword {
        "enum" => "is not one of the allowed values",
        "const" => "is not the required value",
        "minimum" | "exclusiveMinimum" => "is too small",
        "maximum" | "exclusiveMaximum" => "is too large",
        "multipleOf" => "is not a multiple of the required step",
        "minLength" => "is too short",
        "maxLength" => "is too long",
        "pattern" => "does not match the required pattern",
        "format" => "does not have the required format",
        "minItems" => "has too few items",
        "maxItems" => "has too many items",
        "uniqueItems" => "has repeated items",
        "contains" => "does not contain the required number of matching items",
        "minProperties" => "has too few properties",
        "maxProperties" => "has too many properties",
        "propertyNames" => "has a name that is not allowed",
        "dependentRequired" => "lacks a parameter that another one requires",
        "anyOf" => "matches none of the allowed forms",
        "oneOf" => "does not match exactly one of the allowed forms",
        "not" => "has a form that is excluded",
        "unevaluatedProperties" => "has a parameter that no rule allows",
        "unevaluatedItems" => "has an item that no rule allows",
        _ => "is not allowed",
    }
}

/// Arguments text that is not usable JSON.
#[derive(Debug, thiserror::Error)]
pub enum ArgumentsJsonError {
    #[error("Invalid tool arguments JSON: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error("Invalid tool arguments JSON: nested deeper than {MAX_ARGUMENT_DEPTH} levels")]
    TooDeep,
}

impl ArgumentsJsonError {
    /// The machine-readable name. Stable.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Syntax(_) => "arguments_invalid_json",
            Self::TooDeep => "arguments_too_deep",
        }
    }
}

/// A call's arguments, which models and clients send as a JSON string.
///
/// # Errors
/// The text is not JSON, or nests deeper than [`MAX_ARGUMENT_DEPTH`].
pub fn parse_arguments(text: &str) -> Result<Value, ArgumentsJsonError> {
    let value: Value = serde_json::from_str(text)?;
    weigh(&value, MAX_ARGUMENT_DEPTH).map_err(|_| ArgumentsJsonError::TooDeep)?;
    Ok(value)
}
