//! Tools that run in this program: what the model reads of them, and the code
//! behind them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolyard_protocol::{CallId, RunId, WaitId};
pub use toolyard_schema::{ToolDefinition, ToolOptions};

use crate::call::ToolCall;
use crate::client::Client;
use crate::error::ClientError;

/// Why a tool has no answer. The model reads its text. `"text".into()` makes
/// one, and `?` makes one of every error.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A tool with its code.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    fn definition(&self) -> ToolDefinition;

    /// Executes a call. The gateway has checked the arguments.
    async fn execute(&self, args: Value, cx: CallContext) -> Result<Value, Failure>;

    /// Longer than this is a failure. Missing means the client's own limit.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// A second run of the same call has no second effect, so that a call
    /// which a crash interrupted may run again.
    fn is_idempotent(&self) -> bool {
        false
    }
}

/// What an executor may know and do besides its arguments.
#[derive(Clone)]
pub struct CallContext {
    client: Client,
    call: ToolCall,
    cancel: CancellationToken,
}

impl CallContext {
    pub(crate) fn new(client: Client, call: ToolCall, cancel: CancellationToken) -> Self {
        Self { client, call, cancel }
    }
    pub fn client(&self) -> &Client {
        &self.client
    }
    /// The call's id: the key for an effect that must happen once.
    pub fn call_id(&self) -> &CallId {
        &self.call.id
    }
    pub fn run_id(&self) -> Option<&RunId> {
        self.call.run.as_ref()
    }
    pub fn wait_id(&self) -> Option<&WaitId> {
        self.call.wait.as_ref()
    }
    pub fn tool(&self) -> &str {
        &self.call.name
    }
    /// Ends when nobody waits for the result any more.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }
    /// Tells readers of the run how far this call is (row H66). A call that
    /// belongs to no run has no readers.
    pub async fn progress(&self, fraction: f64, message: &str) -> Result<(), ClientError> {
        let Some(run) = &self.call.run else { return Ok(()) };
        // With the client's id it also renews the claim.
        let body = json!({
            "toolCallId": self.call.id, "clientId": self.client.id(),
            "fraction": fraction, "message": message,
        });
        self.client.runs().progress(run, &body).await
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext").field("call", &self.call.id).finish_non_exhaustive()
    }
}

/// A definition as the wire carries it.
pub fn definition_json(definition: &ToolDefinition) -> Value {
    // A definition is plain data: writing it cannot fail.
    serde_json::to_value(definition).unwrap_or_default()
}

/// Begins a tool: `tool("add").describe("Adds.").parameters(schema).run(…)`.
pub fn tool(name: impl Into<String>) -> ToolBuilder {
    ToolBuilder {
        definition: ToolDefinition {
            name: name.into(),
            description: String::new(),
            schema: json!({ "type": "object", "properties": {} }),
            options: ToolOptions::default(),
        },
        timeout: None,
        idempotent: false,
    }
}

/// A tool that has no code yet.
#[derive(Debug, Clone)]
pub struct ToolBuilder {
    definition: ToolDefinition,
    timeout: Option<Duration>,
    idempotent: bool,
}

impl ToolBuilder {
    /// What the model reads.
    #[must_use]
    pub fn describe(mut self, text: impl Into<String>) -> Self {
        self.definition.description = text.into();
        self
    }

    /// The JSON Schema of the arguments: an object.
    #[must_use]
    pub fn parameters(mut self, schema: Value) -> Self {
        self.definition.schema = schema;
        self
    }

    /// How long a call may take.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// What else the gateway may know: risk, category, expiry, version.
    #[must_use]
    pub fn options(mut self, options: ToolOptions) -> Self {
        self.definition.options = options;
        self
    }

    /// A second run of the same call does no harm.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// The definition alone, for a plugin whose hook answers the calls.
    pub fn declare(self) -> ToolDefinition {
        self.definition
    }

    /// The code: an async function of the arguments, as JSON or as a type that
    /// can be read from it.
    pub fn run<A, O, F, R>(self, code: F) -> Arc<dyn Tool>
    where
        A: DeserializeOwned + Send + 'static,
        O: Serialize + Send,
        F: Fn(A, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, Failure>> + Send + 'static,
    {
        let code: Code = Arc::new(move |args, cx| {
            let read = serde_json::from_value(args).map(|args| code(args, cx));
            Box::pin(async move {
                let work = read.map_err(|e| format!("the arguments cannot be read: {e}"))?;
                Ok(serde_json::to_value(work.await?)?)
            })
        });
        Arc::new(Coded { about: self, code })
    }
}

type Code = Arc<dyn Fn(Value, CallContext) -> BoxFuture<'static, Result<Value, Failure>> + Send + Sync>;

struct Coded {
    about: ToolBuilder,
    code: Code,
}

#[async_trait]
impl Tool for Coded {
    fn definition(&self) -> ToolDefinition {
        self.about.definition.clone()
    }
    async fn execute(&self, args: Value, cx: CallContext) -> Result<Value, Failure> {
        (self.code)(args, cx).await
    }
    fn timeout(&self) -> Option<Duration> {
        self.about.timeout
    }
    fn is_idempotent(&self) -> bool {
        self.about.idempotent
    }
}
