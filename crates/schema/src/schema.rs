//! A compiled tool schema: made once, cloned freely, asked for every call.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

use crate::argument::ArgumentError;
use crate::compile::compile;
use crate::error::SchemaError;
use crate::explain::explain;
use crate::limits::{Limits, MAX_ARGUMENT_DEPTH};
use crate::measure::{measure_schema, weigh};
use crate::meter::affordable;
use crate::parse::parse;
use crate::pattern;
use crate::survey::{Survey, survey};
use crate::tree::Tree;

/// A tool's input schema that has passed its limits and is ready to check arguments.
///
/// Cloning shares the compiled form. Only its own kind may answer for it: the type has no public
/// fields and no way to be made except [`ToolSchema::compile`].
#[derive(Clone)]
pub struct ToolSchema {
    compiled: Arc<Compiled>,
}

struct Compiled {
    tree: Tree,
    survey: Survey,
    validator: Validator,
}

impl ToolSchema {
    /// Checks a schema against the limits and compiles it.
    ///
    /// This takes up to some milliseconds and starts a thread for its stack: call it where
    /// blocking is allowed, and keep the result (see [`crate::Schemas`]).
    ///
    /// # Errors
    /// The first rule the schema breaks.
    pub fn compile(schema: &Value, limits: &Limits) -> Result<Self, SchemaError> {
        measure_schema(schema)?;
        let tree = parse(schema, limits)?;
        let survey = survey(&tree, limits)?;
        let validator = compile(&tree)?;
        Ok(Self { compiled: Arc::new(Compiled { tree, survey, validator }) })
    }

    /// Checks a call's arguments. The caller has already limited their bytes.
    ///
    /// # Errors
    /// At most [`crate::MAX_ARGUMENT_ERRORS`] reasons, at least one.
    pub fn check(&self, arguments: &Value) -> Result<(), Vec<ArgumentError>> {
        let Compiled { tree, survey, validator } = &*self.compiled;
        if !arguments.is_object() {
            return Err(vec![ArgumentError::NotAnObject]);
        }
        let Ok(weight) = weigh(arguments, MAX_ARGUMENT_DEPTH) else {
            return Err(vec![ArgumentError::TooDeep]);
        };
        if !affordable(tree, survey, arguments, weight) {
            return Err(vec![ArgumentError::TooComplex]);
        }
        // A panic in the validator must not let a call through, nor take the caller down.
        let verdict = catch_unwind(AssertUnwindSafe(|| {
            if validator.is_valid(arguments) { Ok(()) } else { Err(explain(tree, arguments)) }
        }));
        verdict.unwrap_or_else(|_| Err(vec![ArgumentError::Unchecked]))
    }

    /// Subschemas, counted as paths through references.
    #[must_use]
    pub fn nodes(&self) -> u64 {
        self.compiled.survey.nodes
    }

    /// Bytes of memory this schema may hold, estimated from measurements.
    pub(crate) fn weight(&self) -> u32 {
        let tree = &self.compiled.tree;
        let nodes = tree.nodes.len() as u64 * 2048;
        let patterns = tree.patterns.iter().fold(0, |sum: u64, (text, _)| {
            sum.saturating_add(4096).saturating_add(pattern::scan(text).states.saturating_mul(640))
        });
        u32::try_from(nodes.saturating_add(patterns)).unwrap_or(u32::MAX)
    }
}

/// Prints the size only: a schema's constants are its owner's.
impl fmt::Debug for ToolSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSchema")
            .field("nodes", &self.compiled.survey.nodes)
            .field("recursive", &self.compiled.survey.recursive)
            .finish_non_exhaustive()
    }
}
