//! `ClientToolProvider` (rows L10–L17, L24–L28): tools that a request brought,
//! executed by whoever sent it. It checks names and arguments and hands the
//! call to a callback.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolyard_schema::{
    ArgumentsVerdict, ClientToolCall, ClientToolSet, DefinitionErrors, Limits, NameRule, ToolDefinition,
};

/// Tools that one provider takes, as a secret key's request may bring.
const MAX_TOOLS: usize = 128;

/// For which task a call is made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskContext {
    pub task_id: String,
    pub context_id: String,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// What a call came to (row L12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionResult {
    pub tool_call_id: String,
    pub tool_name: String,
    pub success: bool,
    pub result: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl FunctionResult {
    /// The answer of a tool.
    pub fn of(call: &ClientToolCall, result: Value) -> Self {
        Self {
            tool_call_id: call.id.clone(),
            tool_name: call.function.name.clone(),
            success: true,
            result,
            error: None,
        }
    }
    /// Why a tool has no answer.
    pub fn failed(call: &ClientToolCall, error: impl Into<String>) -> Self {
        Self { success: false, error: Some(error.into()), ..Self::of(call, Value::Null) }
    }
}

type Callback = Arc<
    dyn Fn(ClientToolCall, TaskContext) -> BoxFuture<'static, Result<FunctionResult, String>> + Send + Sync,
>;

/// Tools of a request, each found by its name in constant time.
#[derive(Clone)]
pub struct ClientToolProvider {
    tools: ClientToolSet,
    callback: Callback,
    timeout: Option<Duration>,
}

impl fmt::Debug for ClientToolProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientToolProvider").field("tools", &self.tools.tools().len()).finish_non_exhaustive()
    }
}

impl ClientToolProvider {
    /// Takes definitions in any of their shapes, checked once. Errors begin
    /// with `Invalid client tool definitions: ` (row L8).
    pub fn new<F, R>(definitions: &[Value], on_input_required: F) -> Result<Self, DefinitionErrors>
    where
        F: Fn(ClientToolCall, TaskContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<FunctionResult, String>> + Send + 'static,
    {
        let limits = Limits::request().with_max_tools(MAX_TOOLS);
        Ok(Self {
            tools: ClientToolSet::new(definitions, &limits, NameRule::Config)?,
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
        self.tools.tools()
    }

    /// Hands a call to the callback. Trouble with a tool is its result.
    pub async fn execute(&self, call: &ClientToolCall, context: &TaskContext) -> FunctionResult {
        if let Err(unusable) = self.tools.resolve(call) {
            return FunctionResult::failed(call, unusable.to_string());
        }
        let answer = (self.callback)(call.clone(), context.clone());
        let answered = match self.timeout {
            None => answer.await,
            Some(limit) => match tokio::time::timeout(limit, answer).await {
                Ok(answered) => answered,
                Err(_) => {
                    let (name, ms) = (&call.function.name, limit.as_millis());
                    Err(format!("Tool {name} timed out after {ms} ms"))
                }
            },
        };
        answered.unwrap_or_else(|error| FunctionResult::failed(call, error))
    }

    /// Checks a call's arguments against its tool's whole schema (rows L15,
    /// L16, L28). Properties that the schema does not name are allowed unless
    /// it says otherwise.
    pub fn validate_tool_arguments(&self, call: &ClientToolCall) -> ArgumentsVerdict {
        self.tools.validate_arguments(call)
    }
}
