//! Schemas in the form that a vendor takes.
//!
//! A tool's schema is whatever its owner wrote. References are written out,
//! the root becomes an object, and what a vendor refuses is dropped. A cleaned
//! schema may allow more than the original, never less: the arguments are
//! checked against the original when the call comes. A schema that cannot be
//! cleaned costs its own tool, never the request.

mod gemini;
mod inline;
mod merge;
mod output;
mod root;

use serde_json::Value;

use crate::request::{OfferedTool, Request};
use crate::wire::LeftOut;

/// How much of JSON Schema a vendor understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// Most of it, with an object at the root.
    Object,
    /// The subset of OpenAPI that Gemini takes, with an object at the root.
    Gemini,
    /// What vendors that enforce an answer's form take: closed objects and no
    /// limits on lengths and numbers. The root may be anything.
    Output,
    /// The same for OpenAI, whose strict form also wants an object at the root,
    /// all fields required and a type everywhere.
    Strict,
    /// The part of JSON Schema that Gemini takes for answers.
    GeminiOutput,
    /// The same for its models before 2.5, which know only its own subset.
    GeminiOldOutput,
}

/// Why a schema cannot be offered. The text is for the tool's owner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSchema {
    #[error("the schema has no object or boolean at {at}")]
    NoSchema { at: String },
    #[error("the schema refers to {reference:?}, which it does not contain")]
    Reference { reference: String },
    #[error("the schema has more than {limit} parts once its references are written out")]
    TooLarge { limit: usize },
    #[error("the schema is nested deeper than {limit} levels")]
    TooDeep { limit: usize },
    #[error("the schema describes no object, and the vendor wants one")]
    NoObject,
    #[error("the schema leaves open what the vendor wants closed: names, types or presence of fields")]
    Open,
}

/// The schema as a vendor takes it.
pub fn clean(schema: &Value, rules: Rules) -> Result<Value, BadSchema> {
    let plain = inline::inline(schema)?;
    if matches!(rules, Rules::Output | Rules::Strict) && output::is_open(&plain) {
        return Err(BadSchema::Open);
    }
    match rules {
        Rules::Object => root::as_object(plain),
        Rules::Gemini => Ok(gemini::subset(&root::as_object(plain)?)),
        Rules::Output => Ok(output::close(plain)),
        Rules::Strict => output::strict(root::as_object(plain)?).ok_or(BadSchema::Open),
        Rules::GeminiOutput => Ok(output::for_gemini(plain)),
        Rules::GeminiOldOutput => Ok(gemini::subset(&plain)),
    }
}

/// The request's tools with clean schemas. Those that cannot be cleaned are
/// told apart.
pub(crate) fn take_tools(request: &mut Request, rules: Rules) -> (Vec<OfferedTool>, Vec<LeftOut>) {
    let mut left_out = Vec::new();
    let tools =
        std::mem::take(&mut request.tools).into_iter().filter_map(|tool| match clean(&tool.schema, rules) {
            Ok(schema) => Some(OfferedTool { schema, ..tool }),
            Err(why) => {
                left_out.push(LeftOut::tool(tool.name, &why));
                None
            }
        });
    (tools.collect(), left_out)
}
