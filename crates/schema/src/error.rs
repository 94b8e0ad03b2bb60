//! Why a schema is refused. One variant per rule; the text names the place and the number.
//!
//! `at` is a JSON Pointer into the caller's own schema, `/` for the root. Texts never repeat a
//! reference's address or a constant, so an error cannot be used to read anything.

use crate::limits::{
    ABSOLUTE_DEPTH, MAX_BYTES, MAX_ENUM, MAX_NESTING, MAX_NODES, MAX_PATTERN_BYTES, MAX_PATTERN_SIZE,
    MAX_PATTERNS,
};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    #[error("the schema must be an object schema: `type` at the root must be \"object\"")]
    RootType,
    #[error("the schema must list its parameters: `properties` is missing at the root")]
    PropertiesMissing,
    #[error("the schema is larger than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("the schema is nested deeper than {limit} levels")]
    TooDeep { limit: usize },
    #[error("the schema's JSON is nested deeper than {MAX_NESTING} levels")]
    TooNested,
    #[error("a path through the schema and its references is longer than {ABSOLUTE_DEPTH} steps")]
    PathTooLong,
    #[error("the schema expands to more than {MAX_NODES} subschemas")]
    TooManyNodes,
    #[error("{at} has {count} properties, more than {limit}")]
    TooManyProperties { at: String, count: usize, limit: usize },
    #[error("{at} has {count} enum values, more than {MAX_ENUM}")]
    EnumTooLong { at: String, count: usize },
    #[error("the pattern at {at} is longer than {MAX_PATTERN_BYTES} bytes")]
    PatternTooLong { at: String },
    #[error("the schema has more than {MAX_PATTERNS} different patterns")]
    TooManyPatterns,
    #[error(
        "the pattern at {at} uses look-around or a back-reference, which the linear regular \
         expression engine does not support"
    )]
    PatternUnsupported { at: String },
    #[error(
        "the pattern at {at} is not a regular expression, or compiles to more than \
         {MAX_PATTERN_SIZE} bytes"
    )]
    PatternInvalid { at: String },
    #[error("{at} has an unknown type: use string, number, integer, boolean, array, object or null")]
    UnknownType { at: String },
    #[error("{at} uses `{keyword}`, which is not allowed here")]
    KeywordRefused { at: String, keyword: &'static str },
    #[error("{at} is a reference out of the schema: only local references (`#…`) are allowed")]
    ExternalRef { at: String },
    #[error("{at} refers to something that is not a subschema of this schema")]
    RefTarget { at: String },
    #[error("the schema refers to itself without descending into properties or items")]
    RefCycle,
    #[error("`$schema` at {at} is not a known JSON Schema draft")]
    UnknownDialect { at: String },
    #[error("{at} is not valid JSON Schema: expected {expected}")]
    Malformed { at: String, expected: &'static str },
    #[error("the schema could not be compiled")]
    Unusable,
}

impl SchemaError {
    /// The machine-readable name. Stable: clients and documentation rely on it.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::RootType => "schema_root_type",
            Self::PropertiesMissing => "schema_properties_missing",
            Self::TooLarge => "schema_too_large",
            Self::TooDeep { .. } => "schema_too_deep",
            Self::TooNested => "schema_too_nested",
            Self::PathTooLong => "schema_path_too_long",
            Self::TooManyNodes => "schema_too_many_nodes",
            Self::TooManyProperties { .. } => "schema_too_many_properties",
            Self::EnumTooLong { .. } => "schema_enum_too_long",
            Self::PatternTooLong { .. } => "schema_pattern_too_long",
            Self::TooManyPatterns => "schema_too_many_patterns",
            Self::PatternUnsupported { .. } => "schema_pattern_unsupported",
            Self::PatternInvalid { .. } => "schema_pattern_invalid",
            Self::UnknownType { .. } => "schema_unknown_type",
            Self::KeywordRefused { .. } => "schema_keyword_refused",
            Self::ExternalRef { .. } => "schema_external_ref",
            Self::RefTarget { .. } => "schema_ref_target",
            Self::RefCycle => "schema_ref_cycle",
            Self::UnknownDialect { .. } => "schema_unknown_dialect",
            Self::Malformed { .. } => "schema_malformed",
            Self::Unusable => "schema_unusable",
        }
    }

    /// The number of the limit that was crossed, for error bodies that carry it as a field.
    #[must_use]
    pub const fn limit(&self) -> Option<u64> {
        match self {
            Self::TooLarge => Some(MAX_BYTES as u64),
            Self::TooDeep { limit } | Self::TooManyProperties { limit, .. } => Some(*limit as u64),
            Self::TooNested => Some(MAX_NESTING as u64),
            Self::PathTooLong => Some(ABSOLUTE_DEPTH as u64),
            Self::TooManyNodes => Some(MAX_NODES),
            Self::EnumTooLong { .. } => Some(MAX_ENUM as u64),
            Self::PatternTooLong { .. } => Some(MAX_PATTERN_BYTES as u64),
            Self::TooManyPatterns => Some(MAX_PATTERNS as u64),
            Self::PatternInvalid { .. } => Some(MAX_PATTERN_SIZE as u64),
            Self::RootType
            | Self::PropertiesMissing
            | Self::PatternUnsupported { .. }
            | Self::UnknownType { .. }
            | Self::KeywordRefused { .. }
            | Self::ExternalRef { .. }
            | Self::RefTarget { .. }
            | Self::RefCycle
            | Self::UnknownDialect { .. }
            | Self::Malformed { .. }
            | Self::Unusable => None,
        }
    }
}
