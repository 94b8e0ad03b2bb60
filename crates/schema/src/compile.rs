//! The one place that talks to the `jsonschema` crate.
//!
//! The crate is built without its network and file features; the retriever refuses as well, so
//! that a feature switched on by another dependency opens nothing. Patterns run on the linear
//! engine with a size limit. Compilation runs on a thread with its own stack: the depth of a
//! schema is bounded, but the frames are large and the caller's stack is not ours.

use std::error::Error;
use std::thread;

use jsonschema::{Draft, PatternOptions, Retrieve, Uri, ValidationOptions, Validator};
use serde_json::{Value, json};

use crate::emit::emit;
use crate::error::SchemaError;
use crate::limits::MAX_PATTERN_SIZE;
use crate::tree::Tree;

#[cfg(test)]
mod tests;

const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Answers every request for a document with no.
#[derive(Debug)]
struct Refuse;

impl Retrieve for Refuse {
    fn retrieve(&self, _uri: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        Err("schemas are not fetched".into())
    }
}

fn options() -> ValidationOptions<'static> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_retriever(Refuse)
        .with_pattern_options(
            PatternOptions::regex().size_limit(MAX_PATTERN_SIZE).dfa_size_limit(MAX_PATTERN_SIZE),
        )
        .should_validate_formats(true)
}

pub(crate) fn compile(tree: &Tree) -> Result<Validator, SchemaError> {
    let document = emit(tree);
    let built = thread::scope(|scope| {
        thread::Builder::new()
            .name("schema-compile".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || options().build(&document).ok())
            .map_err(|_| SchemaError::Unusable)?
            .join()
            .map_err(|_| SchemaError::Unusable)
    })?;
    built.ok_or_else(|| blame(tree))
}

/// Which pattern the compiler did not like: everything else was checked by the parser.
fn blame(tree: &Tree) -> SchemaError {
    tree.patterns
        .iter()
        .find(|(pattern, _)| single("pattern", &Value::from(pattern.as_str())).is_none())
        .map_or(SchemaError::Unusable, |(_, at)| SchemaError::PatternInvalid { at: at.clone() })
}

/// A validator for one assertion alone.
pub(crate) fn single(keyword: &str, value: &Value) -> Option<Validator> {
    options().build(&json!({ keyword: value })).ok()
}
