//! Executors: code on the gateway that runs a tool call.
//!
//! [`available`] says which execution types this release has. [`execute`] runs
//! a call. A `waiting` tool never runs: [`waiting::plan`] says until when its
//! call lies on disk. Nothing here knows of runs' logs, keys or HTTP routes.

pub mod basic;
#[cfg(feature = "failpoints")]
mod recorder;
pub mod waiting;

use serde_json::Value;
use toolyard_protocol::agent::execution::Execution;
use toolyard_protocol::tool::ToolSpec;
use toolyard_protocol::{AgentName, CallId, EntityId, RunId, SpaceId, TenantId};

/// Where a call comes from (row G5).
#[derive(Debug, Clone)]
pub struct CallContext {
    pub tenant: TenantId,
    pub run: RunId,
    pub space: Option<SpaceId>,
    pub agent_entity: Option<EntityId>,
    pub agent: AgentName,
    /// Also the idempotency key towards the outside.
    pub call: CallId,
}

/// Why a tool has no answer. The only question the loop has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolFailure {
    /// The model hears it and goes on.
    #[error("{0}")]
    TellModel(String),
}

/// Says whether this release can run such a tool, with a sentence if not.
pub fn available(execution: &Execution) -> Result<(), String> {
    match execution {
        Execution::Basic(_) | Execution::Waiting(_) => Ok(()),
        #[cfg(feature = "failpoints")]
        Execution::Recorder(_) => Ok(()),
        #[cfg(not(feature = "failpoints"))]
        Execution::Recorder(_) => {
            Err("execution type recorder exists only in builds for crash tests".to_owned())
        }
        Execution::Request(_)
        | Execution::ImageGenerator(_)
        | Execution::AiAgent(_)
        | Execution::Compute(_)
        | Execution::Prebuilt(_) => {
            Err(format!("execution type {} is not available in this release", execution.type_name()))
        }
    }
}

/// Runs a call to its end.
pub async fn execute(spec: &ToolSpec, args: &Value, context: &CallContext) -> Result<Value, ToolFailure> {
    match &spec.execution {
        Execution::Basic(basic) => basic::execute(basic, args).ok_or_else(|| {
            ToolFailure::TellModel(format!("Tool {} is executed by a client, not by the gateway", spec.name))
        }),
        #[cfg(feature = "failpoints")]
        Execution::Recorder(recorder) => recorder::execute(recorder, args, context).await,
        #[cfg(not(feature = "failpoints"))]
        Execution::Recorder(_) => Err(unavailable(spec, context)),
        Execution::Waiting(_)
        | Execution::Request(_)
        | Execution::ImageGenerator(_)
        | Execution::AiAgent(_)
        | Execution::Compute(_)
        | Execution::Prebuilt(_) => Err(unavailable(spec, context)),
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
