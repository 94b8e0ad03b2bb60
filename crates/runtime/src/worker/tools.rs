//! Gateway tools in flight.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};
use toolyard_engine::{Effect, EffectId, Input};
use toolyard_protocol::agent::execution::{Execution, Method};
use toolyard_protocol::tool::ToolSpec;
use toolyard_protocol::{CallId, ToolOutcome, limits};
use toolyard_store::failpoint;
use toolyard_tools::{Asking, CallContext, Resumed, ToolFailure};

use super::{Stop, Worker};
use crate::blob::fit;

/// A tool that ended, or stopped to ask.
pub(super) struct Done {
    call: CallId,
    end: End,
    untrusted: bool,
}

enum End {
    Outcome(ToolOutcome),
    Asks(Asking),
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
        let Effect::RunTool { call, tool, args, untrusted, provided, state, .. } = effect else { return };
        let (tools, toolbox) = (self.tools().cloned(), self.rt.toolbox.clone());
        let context = self.context_of(&call);
        let agent = self.agent.as_ref().ok().cloned();
        let resumed = Resumed { provided, state };
        let begun = call.clone();
        let task = async move {
            failpoint!("tool.before_start");
            let spec = tools.as_ref().and_then(|tools| tools.set.find(tool.as_str()));
            let servers =
                agent.as_ref().and_then(|a| a.config.mcp.as_ref()).map(|mcp| mcp.servers.as_slice());
            let end = match (spec, context) {
                (Some(spec), Some(context)) => {
                    let run = toolbox.execute(spec, &args, &context, servers.unwrap_or_default(), resumed);
                    // A call is a large thing to carry: it lies on the heap.
                    Box::pin(within(spec, run)).await
                }
                _ => End::Outcome(ToolOutcome::Failed(format!("Tool: {tool} not found"))),
            };
            failpoint!("tool.after_effect");
            Done { call, end, untrusted }
        };
        self.began.insert(begun, Instant::now());
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
            trigger: self.works_for(),
            call: call.clone(),
        })
    }

    /// Logs how a tool ended, or what it asks for.
    pub(super) async fn ended(&mut self, done: Done) -> Result<(), Stop> {
        let outcome = match done.end {
            End::Outcome(outcome) => outcome,
            End::Asks(asking) => return self.ask(done.call, asking).await,
        };
        let fitted = fit(outcome);
        let (blob, untrusted) = (fitted.blob_ref(), done.untrusted);
        let input = Input::ToolEnded { call: done.call, outcome: fitted.outcome, blob, untrusted };
        self.tell_with(input, fitted.blob.into_iter().collect()).await
    }
}

/// Runs a tool within its time. A server's own times hold for its tools.
async fn within(spec: &ToolSpec, run: impl Future<Output = Result<Value, ToolFailure>>) -> End {
    let own = if matches!(spec.execution, Execution::Mcp(_)) {
        limits::MCP_TIMEOUT_MAX_MS
    } else {
        limits::TOOL_TIMEOUT_MS
    };
    let limit = spec.timeout_ms.unwrap_or(own);
    let outcome = match tokio::time::timeout(Duration::from_millis(limit), caught(run)).await {
        Ok(Ok(value)) => ToolOutcome::Ok(value),
        Ok(Err(ToolFailure::TellModel(text))) => ToolOutcome::Failed(text),
        Ok(Err(ToolFailure::Uncertain(text))) => ToolOutcome::Uncertain(text),
        Ok(Err(ToolFailure::Ask(asking))) => return End::Asks(*asking),
        // What reaches outside may have arrived there.
        Err(_) if outside(spec) => ToolOutcome::Uncertain(format!("Tool timed out after {limit}ms")),
        Err(_) => ToolOutcome::Failed(format!("Tool timed out after {limit}ms")),
    };
    End::Outcome(outcome)
}

/// Its effect is somebody else's, and a repeat may be a second one.
fn outside(spec: &ToolSpec) -> bool {
    let harmless = matches!(&spec.execution, Execution::Request(request) if request.method == Method::Get);
    !spec.repeats_safely() && !harmless
}

/// A tool that panics has failed; its run goes on.
async fn caught<T>(run: impl Future<Output = Result<T, ToolFailure>>) -> Result<T, ToolFailure> {
    use futures::FutureExt;
    let ended = std::panic::AssertUnwindSafe(run).catch_unwind().await;
    ended.unwrap_or_else(|_| Err(ToolFailure::TellModel("The tool crashed".to_owned())))
}
