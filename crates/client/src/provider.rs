//! `ClientToolProvider` (rows L10–L17, L24–L28): tools that a request brought,
//! executed by whoever sent it. It checks names and arguments and hands the
//! call to a callback.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_schema::{
    ArgumentError, DefinitionErrors, Limits, NameRule, Schemas, ToolDefinition, ToolSchema, parse_arguments,
};

/// `{id, type: "function", function: {name, arguments}}` (row L14).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    pub id: String,
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    pub function: Function,
}

fn function() -> String {
    "function".to_owned()
}

/// The name, and the arguments as JSON text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    pub name: String,
    pub arguments: String,
}

impl FunctionCall {
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let function = Function { name: name.into(), arguments: arguments.into() };
        Self { id: id.into(), kind: self::function(), function }
    }
}

/// For which task a call is made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskContext {
    pub task_id: String,
    pub context_id: String,
    #[serde(flatten)]
    pub more: serde_json::Map<String, Value>,
}

/// What a call came to (row L12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionResult {
    pub tool_call_id: String,
    pub tool_name: String,
    pub success: bool,
    pub result: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Whether arguments fit (row L15).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validation {
    pub valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<String>>,
}

type Callback = Arc<
    dyn Fn(FunctionCall, TaskContext) -> BoxFuture<'static, Result<FunctionResult, String>> + Send + Sync,
>;

/// Tools of a request, each found by its name in constant time.
#[derive(Clone)]
pub struct ClientToolProvider {
    definitions: Vec<ToolDefinition>,
    schemas: HashMap<String, ToolSchema>,
    callback: Callback,
    timeout: Option<Duration>,
}

impl fmt::Debug for ClientToolProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientToolProvider").field("tools", &self.definitions.len()).finish_non_exhaustive()
    }
}

impl ClientToolProvider {
    /// Takes definitions in any of their shapes, checked once. Errors begin
    /// with `Invalid client tool definitions: ` (row L8).
    pub fn new<F, R>(definitions: &[Value], on_input_required: F) -> Result<Self, DefinitionErrors>
    where
        F: Fn(FunctionCall, TaskContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<FunctionResult, String>> + Send + 'static,
    {
        let limits = Limits::request().with_max_tools(128);
        let accepted = Schemas::new().accept(definitions, &limits, NameRule::Config)?;
        let schemas = accepted.iter().map(|(known, schema)| (known.name.clone(), schema.clone())).collect();
        Ok(Self {
            definitions: accepted.into_iter().map(|(definition, _)| definition).collect(),
            schemas,
            callback: Arc::new(move |call, context| Box::pin(on_input_required(call, context))),
            timeout: None,
        })
    }

    /// How long the client may take (row L32).
    #[must_use]
    pub fn with_timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// The checked definitions (row L10).
    pub fn get_tools(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Hands a call to the callback. Trouble with a tool is its result.
    pub async fn execute(&self, call: &FunctionCall, context: &TaskContext) -> FunctionResult {
        let failed = |error: String| FunctionResult {
            tool_call_id: call.id.clone(),
            tool_name: call.function.name.clone(),
            success: false,
            result: Value::Null,
            error: Some(error),
        };
        let name = &call.function.name;
        if !self.schemas.contains_key(name) {
            return failed(format!("Tool {name} not found in client tools"));
        }
        if let Err(error) = parse_arguments(&call.function.arguments) {
            return failed(error.to_string());
        }
        let answer = (self.callback)(call.clone(), context.clone());
        let answered = match self.timeout {
            None => answer.await,
            Some(limit) => match tokio::time::timeout(limit, answer).await {
                Ok(answered) => answered,
                Err(_) => Err(format!("Tool {name} timed out after {} ms", limit.as_millis())),
            },
        };
        answered.unwrap_or_else(failed)
    }

    /// Checks a call's arguments against its tool's whole schema (rows L15,
    /// L16, L28). Properties that the schema does not name are allowed unless
    /// it says otherwise.
    pub fn validate_tool_arguments(&self, call: &FunctionCall) -> Validation {
        let errors = match self.schemas.get(&call.function.name) {
            None => vec![format!("Tool {} not found in client tools", call.function.name)],
            Some(schema) => match parse_arguments(&call.function.arguments) {
                Err(error) => vec![error.to_string()],
                Ok(arguments) => match schema.check(&arguments) {
                    Ok(()) => Vec::new(),
                    Err(errors) => errors.iter().map(ArgumentError::to_string).collect(),
                },
            },
        };
        Validation { valid: errors.is_empty(), errors: (!errors.is_empty()).then_some(errors) }
    }
}
