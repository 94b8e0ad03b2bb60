//! Executors: code on the gateway that runs a tool call.
//!
//! [`available`] says which execution types this release has. A [`Toolbox`]
//! runs a call. Two kinds never reach it: a `waiting` tool lies on disk until
//! the moment that [`waiting::plan`] says, and a [`prebuilt`] one runs inside
//! the transaction that logs its result. Nothing here knows of runs' logs,
//! keys or HTTP routes.

pub mod basic;
pub mod compute;
mod files;
mod image;
pub mod knowledge;
pub mod line;
pub mod literal;
mod mcp;
mod mcp_ask;
mod mcp_login;
mod plugin;
pub mod prebuilt;
#[cfg(feature = "failpoints")]
mod recorder;
pub mod remote_agent;
pub mod request;
pub mod sealer;
pub mod secrets;
pub mod template;
pub mod timing;
pub mod tokens;
pub mod waiting;

use std::sync::Arc;

pub use image::Pictures;
pub use mcp::{McpTools, Offer, Resumed};
pub use mcp_login::{Begun, LoggedIn, NoLogin};
pub use plugin::{
    FetchRule, MissingPlugin, PluginOffer, PluginRules, Plugins, admit_installed, keyring, offer_plugins,
};
pub use prebuilt::Results;
use serde_json::Value;
use toolyard_egress::{Door, Header};
use toolyard_plugins::sandbox::Sandbox;
use toolyard_protocol::agent::McpServer;
use toolyard_protocol::agent::execution::Execution;
use toolyard_protocol::tool::ToolSpec;
use toolyard_protocol::{AgentName, CallId, EntityId, RunId, SpaceId, TenantId, TraceParent};

use crate::secrets::Secrets;

/// Where a call comes from (row G5).
#[derive(Debug, Clone)]
pub struct CallContext {
    pub tenant: TenantId,
    pub run: RunId,
    pub space: Option<SpaceId>,
    pub agent_entity: Option<EntityId>,
    pub agent: AgentName,
    /// Who made the run begin.
    pub trigger: Option<EntityId>,
    /// Also the idempotency key towards the outside.
    pub call: CallId,
    /// The call's span, where runs are traced.
    pub trace: Option<TraceParent>,
}

impl CallContext {
    /// The header that names the call's span to whoever it goes to.
    pub(crate) fn traced(&self) -> Option<Header> {
        self.trace.as_ref().map(|trace| Header::plain("traceparent", trace.to_string()))
    }
}

/// Why a tool has no answer. The only question the loop has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolFailure {
    /// The model hears it and goes on.
    #[error("{0}")]
    TellModel(String),
    /// It may have taken effect, and nobody knows.
    #[error("{0}")]
    Uncertain(String),
    /// Somebody must give something first; then the call goes on.
    #[error("the call asks for input")]
    Ask(Box<Asking>),
}

/// What a call has stopped to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asking {
    Input {
        payload: Value,
        /// What the far side wants back with the answer. Secret.
        state: Value,
    },
    Credential {
        payload: Value,
        /// Which login it is, so that the call goes on once that is done. Secret.
        state: Value,
    },
}

/// Says whether this release can run such a tool, with a sentence if not.
pub fn available(execution: &Execution) -> Result<(), String> {
    match execution {
        Execution::Mcp(_)
        | Execution::Basic(_)
        | Execution::Waiting(_)
        | Execution::AiAgent(_)
        | Execution::Compute(_)
        | Execution::Plugin(_) => Ok(()),
        #[cfg(feature = "failpoints")]
        Execution::Recorder(_) => Ok(()),
        #[cfg(not(feature = "failpoints"))]
        Execution::Recorder(_) => {
            Err("execution type recorder exists only in builds for crash tests".to_owned())
        }
        Execution::Prebuilt(prebuilt) => match prebuilt::find(&prebuilt.action) {
            Some(_) => Ok(()),
            None => Err(format!("Unknown prebuilt tool: {}", prebuilt.action)),
        },
        Execution::ImageGenerator(image) => image::check(image),
        Execution::Request(request) => request::check(request),
        Execution::RemoteAgent(far) => remote_agent::check(far),
    }
}

/// Fills in what a configuration may leave out.
/// `has_schema` says whether the configuration has one of its own.
pub fn complete(spec: &mut ToolSpec, has_schema: bool) {
    if let Execution::Compute(compute) = &spec.execution
        && !has_schema
    {
        spec.input_schema = compute::schema(compute);
    }
    if let Execution::Prebuilt(prebuilt) = &spec.execution
        && let Some(action) = prebuilt::find(&prebuilt.action)
    {
        prebuilt::complete(action, spec, has_schema);
    }
    // The time of a request is the time of its tool.
    if let Execution::Request(request) = &spec.execution {
        spec.timeout_ms = spec.timeout_ms.or(request.timeout);
    }
    if let Execution::RemoteAgent(far) = &spec.execution {
        let own = far.timeout.unwrap_or(remote_agent::DEFAULT_MS);
        spec.timeout_ms = Some(spec.timeout_ms.unwrap_or(own));
    }
}

/// What executors share: the doors, the workers and the far sides that they
/// use. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Toolbox {
    /// For code that is not trusted. Without it such tools say that they cannot run.
    pub sandbox: Option<Sandbox>,
    /// For tools that paint.
    pub pictures: Option<Pictures>,
    /// The documents. The runtime brings them.
    pub knowledge: Option<Arc<knowledge::Knowledge>>,
    /// The results of the run itself. The runtime brings them.
    pub results: Option<Results>,
    /// The servers of the operator and of agents.
    pub mcp: Option<McpTools>,
    /// What tenants have installed.
    pub plugins: Option<Plugins>,
    requests: Option<Arc<Requests>>,
}

/// What `request` tools need.
#[derive(Debug)]
struct Requests {
    door: Door,
    secrets: Secrets,
}

impl Toolbox {
    /// With documents to search.
    #[must_use]
    pub fn with_knowledge(mut self, knowledge: Arc<knowledge::Knowledge>) -> Self {
        self.knowledge = Some(knowledge);
        self
    }

    /// With results to read on.
    #[must_use]
    pub fn with_results(mut self, results: Results) -> Self {
        self.results = Some(results);
        self
    }

    /// Lets `request` tools out by this door.
    #[must_use]
    pub fn with_requests(mut self, door: Door, secrets: Secrets) -> Self {
        self.requests = Some(Arc::new(Requests { door, secrets }));
        self
    }

    /// Runs a call to its end. `servers` are the agent's.
    pub async fn execute(
        &self,
        spec: &ToolSpec,
        args: &Value,
        context: &CallContext,
        servers: &[McpServer],
        resumed: Resumed,
    ) -> Result<Value, ToolFailure> {
        match &spec.execution {
            Execution::Basic(basic) => basic::execute(basic, args).ok_or_else(|| {
                ToolFailure::TellModel(format!(
                    "Tool {} is executed by a client, not by the gateway",
                    spec.name
                ))
            }),
            Execution::Compute(compute) => match &self.sandbox {
                Some(sandbox) => compute::execute(compute, args, sandbox).await,
                None => Err(unavailable(spec, context)),
            },
            Execution::ImageGenerator(image) => match &self.pictures {
                Some(pictures) => image::execute(image, args, context, pictures).await,
                None => Err(unavailable(spec, context)),
            },
            #[cfg(feature = "failpoints")]
            Execution::Recorder(recorder) => recorder::execute(recorder, args, context).await,
            #[cfg(not(feature = "failpoints"))]
            Execution::Recorder(_) => Err(unavailable(spec, context)),
            Execution::Request(request) => match &self.requests {
                Some(with) => request::execute(request, args, context, &with.door, &with.secrets).await,
                None => Err(unavailable(spec, context)),
            },
            Execution::RemoteAgent(far) => match &self.requests {
                Some(with) => {
                    let out = remote_agent::Way { door: &with.door, secrets: &with.secrets };
                    remote_agent::execute(far, spec, args, context, out, resumed).await
                }
                None => Err(unavailable(spec, context)),
            },
            Execution::Prebuilt(prebuilt) => {
                let action =
                    prebuilt::find(&prebuilt.action).filter(|a| matches!(a.way, prebuilt::Way::Read));
                match (action.map(|a| a.name), &self.knowledge, &self.results) {
                    (Some(prebuilt::READ_RESULT), _, Some(results)) => results.call(args, context).await,
                    (Some(prebuilt::READ_RESULT) | None, ..) | (_, None, _) => {
                        Err(unavailable(spec, context))
                    }
                    (Some(_), Some(knowledge), _) => knowledge.call(args, context).await,
                }
            }
            Execution::Mcp(call) => match &self.mcp {
                Some(mcp) => mcp.call(call, spec, args, context, servers, resumed).await,
                None => Err(unavailable(spec, context)),
            },
            Execution::Plugin(call) => match (&self.plugins, &self.sandbox) {
                (Some(plugins), Some(sandbox)) => plugins.call(call, spec, args, context, sandbox).await,
                _ => Err(unavailable(spec, context)),
            },
            Execution::Waiting(_) | Execution::AiAgent(_) => Err(unavailable(spec, context)),
        }
    }
}

fn unavailable(spec: &ToolSpec, context: &CallContext) -> ToolFailure {
    ToolFailure::TellModel(format!(
        "Tool {} of agent {} cannot run here: execution type {}",
        spec.name,
        context.agent,
        spec.execution.type_name()
    ))
}
