//! The tools that one client brings, ready to be asked about (rows L10, L13–L15, L26): what there
//! is, and whether a call fits. Who executes a call is the client's business, not this crate's.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_protocol::ToolName;
use toolyard_protocol::agent::execution::{Basic, Execution};
use toolyard_protocol::name::BadName;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{Place, ToolSpec, Visibility};

use crate::argument::{ArgumentsJsonError, parse_arguments};
use crate::cache::Schemas;
use crate::definition::ToolDefinition;
use crate::definitions::{DefinitionErrors, validate_with};
use crate::limits::Limits;
use crate::name::NameRule;
use crate::schema::ToolSchema;

/// A call as the documents write it (row L14).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientToolCall {
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    pub function: FunctionCall,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    pub name: String,
    /// JSON in a string, as models write it.
    pub arguments: String,
}

fn function() -> String {
    "function".to_owned()
}

/// Whether a call's arguments fit (row L15).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArgumentsVerdict {
    pub valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<String>>,
}

/// A call that cannot be handed to anybody (row L13).
#[derive(Debug, thiserror::Error)]
pub enum UnusableCall {
    #[error("Tool {0} not found in client tools")]
    Unknown(String),
    #[error(transparent)]
    Json(#[from] ArgumentsJsonError),
}

/// Validated definitions, each found by its name in constant time.
#[derive(Debug, Clone)]
pub struct ClientToolSet {
    definitions: Vec<ToolDefinition>,
    by_name: HashMap<String, (usize, ToolSchema)>,
}

impl ClientToolSet {
    /// Checks the definitions as [`crate::validate_tool_definitions`] does, once.
    ///
    /// # Errors
    /// Every problem found. The text begins `Invalid client tool definitions: ` (row L8).
    pub fn new(definitions: &[Value], limits: &Limits, names: NameRule) -> Result<Self, DefinitionErrors> {
        let accepted =
            validate_with(definitions, limits, names, |schema| ToolSchema::compile(schema, limits))?;
        Ok(Self::of(accepted))
    }

    /// As [`ClientToolSet::new`], with schemas that were compiled before.
    ///
    /// # Errors
    /// The same.
    pub fn cached(
        schemas: &Schemas,
        definitions: &[Value],
        limits: &Limits,
        names: NameRule,
    ) -> Result<Self, DefinitionErrors> {
        schemas.accept(definitions, limits, names).map(Self::of)
    }

    fn of(accepted: Vec<(ToolDefinition, ToolSchema)>) -> Self {
        let mut definitions = Vec::with_capacity(accepted.len());
        let mut by_name = HashMap::with_capacity(accepted.len());
        for (index, (definition, schema)) in accepted.into_iter().enumerate() {
            by_name.insert(definition.name.clone(), (index, schema));
            definitions.push(definition);
        }
        Self { definitions, by_name }
    }

    /// The validated definitions, in the order in which they were given (row L10).
    #[must_use]
    pub fn tools(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    #[must_use]
    pub fn find(&self, name: &str) -> Option<&ToolDefinition> {
        self.by_name.get(name).and_then(|(index, _)| self.definitions.get(*index))
    }

    /// The definitions with their compiled schemas.
    pub fn into_parts(self) -> impl Iterator<Item = (ToolDefinition, ToolSchema)> {
        let Self { definitions, mut by_name } = self;
        definitions.into_iter().filter_map(move |definition| {
            let (_, schema) = by_name.remove(&definition.name)?;
            Some((definition, schema))
        })
    }

    /// What the owner of the tools should hear although they are taken.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.definitions.iter().filter_map(ToolDefinition::warning).collect()
    }

    /// The tool that a call means and its arguments, which are JSON but may not fit its schema.
    ///
    /// # Errors
    /// No such tool, or no such JSON, in the words of row L13.
    pub fn resolve(&self, call: &ClientToolCall) -> Result<(&ToolDefinition, Value), UnusableCall> {
        let name = &call.function.name;
        let tool = self.find(name).ok_or_else(|| UnusableCall::Unknown(name.clone()))?;
        Ok((tool, parse_arguments(&call.function.arguments)?))
    }

    /// Checks a call's arguments against its tool's schema (rows L15, L16, L28).
    #[must_use]
    pub fn validate_arguments(&self, call: &ClientToolCall) -> ArgumentsVerdict {
        let name = &call.function.name;
        let Some((_, schema)) = self.by_name.get(name) else {
            return ArgumentsVerdict::refused(vec![format!("Tool {name} not found")]);
        };
        let arguments = match parse_arguments(&call.function.arguments) {
            Ok(arguments) => arguments,
            Err(error) => return ArgumentsVerdict::refused(vec![error.to_string()]),
        };
        match schema.check(&arguments) {
            Ok(()) => ArgumentsVerdict { valid: true, errors: None },
            Err(errors) => ArgumentsVerdict::refused(errors.iter().map(ToString::to_string).collect()),
        }
    }
}

impl ArgumentsVerdict {
    fn refused(errors: Vec<String>) -> Self {
        Self { valid: false, errors: Some(errors) }
    }
}

impl ToolDefinition {
    /// The tool as a run knows it: schema only, no executor here (row H5), and seen by the client
    /// that runs it.
    ///
    /// # Errors
    /// The name fits no run. It cannot be for a definition that passed its rule.
    pub fn client_spec(&self) -> Result<ToolSpec, BadName> {
        let name = ToolName::parse(&self.name)?;
        let options = &self.options;
        let suggested = Risk::of_name(&self.name);
        Ok(ToolSpec {
            brought: Some(name.clone()),
            name,
            description: self.description.clone(),
            input_schema: self.schema.clone(),
            execution: Execution::Basic(Basic::default()),
            place: Place::Client,
            // A request may raise a risk, not lower it.
            risk: options.risk.map_or(suggested, |risk| risk.max(suggested)),
            visibility: Visibility::Public,
            approval: None,
            answerers: None,
            timeout_ms: options.timeout_ms,
            expires_ms: options.expires_ms,
            if_absent: options.if_absent.unwrap_or_default(),
            idempotent: false,
            trusted: false,
            service_id: options.service_id.clone(),
            deprecated: options.deprecated.clone(),
            category: options.category.clone(),
            version: options.version.clone(),
        })
    }
}
