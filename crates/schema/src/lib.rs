//! Tool definitions and tool arguments: parse, compile once, check many times.
//!
//! A tool schema comes from somebody else: a browser, an MCP server, a plugin. This crate turns it
//! into a [`ToolSchema`] or refuses it with a named error, within a fixed budget of time, memory
//! and stack. The road of a schema is one way:
//!
//! 1. `measure`: nesting and bytes, before anything recursive touches the value;
//! 2. `parse`: JSON to a typed `tree`, where every keyword is understood or dropped;
//! 3. `survey`: cycles, depth and node count *after expanding references as paths*;
//! 4. `emit` and `compile`: one clean 2020-12 document for the `jsonschema` crate.
//!
//! Arguments go through [`ToolSchema::check`]: `meter` prices the work before it is done, the
//! compiled validator gives the verdict, and `explain` finds the sentences for a refusal.
//!
//! What this crate never does: open a file or a socket, follow a reference out of its document,
//! print a constant of a schema, or hold a lock while it compiles.

mod argument;
mod cache;
mod canonical;
mod compile;
mod definition;
mod definitions;
mod emit;
mod error;
mod explain;
mod limits;
mod measure;
mod meter;
mod name;
mod options;
mod parse;
mod pattern;
mod pointer;
mod provider;
mod schema;
mod shape;
mod survey;
mod text;
mod tree;

pub use argument::{ArgumentError, ArgumentsJsonError, parse_arguments};
pub use cache::Schemas;
pub use definition::{ToolDefinition, ToolProblem, tool_name_of};
pub use definitions::{
    DefinitionError, DefinitionErrors, Validation, safe_validate_tool_definitions, validate_tool_definitions,
};
pub use error::SchemaError;
pub use limits::{
    ABSOLUTE_DEPTH, Limits, MAX_ARGUMENT_DEPTH, MAX_ARGUMENT_ERRORS, MAX_BYTES, MAX_CHECK_STEPS, MAX_ENUM,
    MAX_NESTING, MAX_NODES, MAX_PATTERN_BYTES, MAX_PATTERN_SIZE, MAX_PATTERNS, Source,
};
pub use name::NameRule;
pub use options::{BadOption, ToolOptions};
pub use provider::{ArgumentsVerdict, ClientToolCall, ClientToolSet, FunctionCall, UnusableCall};
pub use schema::ToolSchema;
pub use text::{Cleaned, HiddenCharacter, clean, find_hidden};
