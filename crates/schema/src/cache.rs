//! Compiled schemas, each compiled once per process and shared.

use std::sync::Arc;

use moka::sync::Cache;
use serde_json::Value;

use crate::canonical::{SchemaKey, schema_key};
use crate::definition::ToolDefinition;
use crate::definitions::{DefinitionErrors, validate_with};
use crate::error::SchemaError;
use crate::limits::Limits;
use crate::measure::measure_schema;
use crate::name::NameRule;
use crate::schema::ToolSchema;

/// Estimated bytes the cache may hold.
const CAPACITY: u64 = 64 * 1024 * 1024;

/// The process's compiled schemas, by content. Clones share one store. Refusals are not kept:
/// they are cheap, and a flood of them must not push out what is in use.
#[derive(Debug, Clone)]
pub struct Schemas {
    compiled: Cache<SchemaKey, ToolSchema>,
}

impl Default for Schemas {
    fn default() -> Self {
        Self::new()
    }
}

impl Schemas {
    #[must_use]
    pub fn new() -> Self {
        Self {
            compiled: Cache::builder()
                .max_capacity(CAPACITY)
                .weigher(|_, schema: &ToolSchema| schema.weight())
                .build(),
        }
    }

    /// The compiled form of a schema. Callers that ask at the same time wait for one compilation.
    ///
    /// # Errors
    /// As [`ToolSchema::compile`].
    pub fn compile(&self, schema: &Value, limits: &Limits) -> Result<ToolSchema, SchemaError> {
        // The key needs a walk over the schema, so its size comes first here too.
        measure_schema(schema)?;
        self.compiled
            .try_get_with(schema_key(schema, limits), || ToolSchema::compile(schema, limits))
            .map_err(Arc::unwrap_or_clone)
    }

    /// Like [`crate::validate_tool_definitions`], with the compiled schema of each tool.
    ///
    /// # Errors
    /// Every problem found, in the order of the tools.
    pub fn accept(
        &self,
        definitions: &[Value],
        limits: &Limits,
        names: NameRule,
    ) -> Result<Vec<(ToolDefinition, ToolSchema)>, DefinitionErrors> {
        validate_with(definitions, limits, names, |schema| self.compile(schema, limits))
    }

    /// Schemas held now, for metrics. Approximate while others compile.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.compiled.run_pending_tasks();
        self.compiled.entry_count()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
