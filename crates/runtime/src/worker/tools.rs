//! Gateway tools in flight.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};
use toolyard_engine::{Effect, EffectId, Input};
use toolyard_protocol::tool::ToolSpec;
use toolyard_protocol::{CallId, ToolOutcome, limits};
use toolyard_store::failpoint;
use toolyard_tools::{CallContext, ToolFailure, Toolbox};

use super::{Stop, Worker};
use crate::blob::fit;

/// A tool that ended.
pub(super) struct Done {
    call: CallId,
    outcome: ToolOutcome,
    untrusted: bool,
}

/// The tools that this worker runs right now.
#[derive(Default)]
pub(super) struct Hands {
    running: JoinSet<Done>,
    by_effect: HashMap<EffectId, AbortHandle>,
}

impl Hands {
    pub(super) fn is_empty(&self) -> bool {
        self.by_effect.is_empty()
    }

    /// Aborts all that is not due any more.
    pub(super) fn keep(&mut self, due: &[EffectId]) {
        self.by_effect.retain(|id, handle| {
            let stays = due.contains(id);
            if !stays {
                handle.abort();
            }
            stays
        });
    }

    /// The next tool that ends. None while nothing runs.
    pub(super) async fn next(&mut self) -> Option<Done> {
        loop {
            // An error is an abort: a panic was turned into an outcome already.
            if let Ok((id, done)) = self.running.join_next_with_id().await? {
                self.by_effect.retain(|_, handle| handle.id() != id);
                return Some(done);
            }
        }
    }
}

impl Worker {
    /// Starts a tool, once: what is in flight is known by its effect.
    pub(super) fn start_tool(&mut self, effect: Effect) {
        let id = effect.id();
        if self.hands.by_effect.contains_key(&id) {
            return;
        }
        let Effect::RunTool { call, tool, args, untrusted, .. } = effect else { return };
        let (tools, toolbox) = (self.tools().cloned(), self.rt.toolbox.clone());
        let context = self.context_of(&call);
        let task = async move {
            failpoint!("tool.before_start");
            let spec = tools.as_ref().and_then(|tools| tools.set.find(tool.as_str()));
            let outcome = match (spec, context) {
                (Some(spec), Some(context)) => execute(&toolbox, spec, &args, &context).await,
                _ => ToolOutcome::Failed(format!("Tool: {tool} not found")),
            };
            failpoint!("tool.after_effect");
            Done { call, outcome, untrusted }
        };
        let handle = self.hands.running.spawn(task);
        self.hands.by_effect.insert(id, handle);
    }

    /// Where a call of this run comes from.
    pub(super) fn context_of(&self, call: &CallId) -> Option<CallContext> {
        let created = self.run.created()?;
        Some(CallContext {
            tenant: self.tenant.clone(),
            run: self.id.clone(),
            space: created.space.clone(),
            agent_entity: created.agent_entity.clone(),
            agent: created.agent.clone(),
            trigger: created.trigger.as_ref().map(|t| t.entity.clone()),
            call: call.clone(),
        })
    }

    pub(super) async fn returned(&mut self, done: Done) -> Result<(), Stop> {
        let fitted = fit(done.outcome);
        let (blob, untrusted) = (fitted.blob_ref(), done.untrusted);
        let input = Input::ToolEnded { call: done.call, outcome: fitted.outcome, blob, untrusted };
        self.tell_with(input, fitted.blob.into_iter().collect()).await
    }
}

/// Runs a tool within its time.
async fn execute(toolbox: &Toolbox, spec: &ToolSpec, args: &Value, context: &CallContext) -> ToolOutcome {
    let limit = spec.timeout_ms.unwrap_or(limits::TOOL_TIMEOUT_MS);
    let run = caught(toolbox.execute(spec, args, context));
    match tokio::time::timeout(Duration::from_millis(limit), run).await {
        Ok(Ok(value)) => ToolOutcome::Ok(value),
        Ok(Err(ToolFailure::TellModel(text))) => ToolOutcome::Failed(text),
        Err(_) => ToolOutcome::Failed(format!("Tool timed out after {limit}ms")),
    }
}

/// A tool that panics has failed; its run goes on.
async fn caught<T>(run: impl Future<Output = Result<T, ToolFailure>>) -> Result<T, ToolFailure> {
    use futures::FutureExt;
    let ended = std::panic::AssertUnwindSafe(run).catch_unwind().await;
    ended.unwrap_or_else(|_| Err(ToolFailure::TellModel("The tool crashed".to_owned())))
}
