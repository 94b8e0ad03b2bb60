//! Gateway tools in flight.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use toolyard_engine::{Effect, EffectId, Input, Run};
use toolyard_protocol::agent::execution::{Execution, Method};
use toolyard_protocol::tool::ToolSpec;
use toolyard_protocol::{CallId, ToolOutcome, limits};
use toolyard_store::failpoint;
use toolyard_tools::line::{Line, WORDS, Word};
use toolyard_tools::{Asking, CallContext, Resumed, ToolFailure};

use super::{Stop, Worker};
use crate::blob::fit;
use crate::traces::trace_of;

/// Progress of one call is logged at most so often: each is a commit.
const PROGRESS: Duration = Duration::from_millis(500);

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

/// News of the tools that run.
pub(super) enum FromHands {
    Word(CallId, Word),
    Done(Done),
}

/// Both ends of what tools say while they run.
type Words = (mpsc::Sender<(CallId, Word)>, mpsc::Receiver<(CallId, Word)>);

/// The tools that this worker runs right now.
pub(super) struct Hands {
    running: JoinSet<Done>,
    by_effect: HashMap<EffectId, AbortHandle>,
    /// What the running tools say in between.
    words: Words,
    /// Questions that somebody is asked, by their call.
    questions: HashMap<CallId, oneshot::Sender<Value>>,
    /// When progress of a call was logged last.
    told: HashMap<CallId, Instant>,
}

impl Default for Hands {
    fn default() -> Self {
        Self {
            running: JoinSet::new(),
            by_effect: HashMap::new(),
            words: mpsc::channel(WORDS),
            questions: HashMap::new(),
            told: HashMap::new(),
        }
    }
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

    /// Gives answers to the calls that wait for them.
    fn pass_on(&mut self, run: &Run) {
        let answered = |id: &CallId| run.call(id).is_none_or(|call| call.asking.is_none());
        let ids: Vec<CallId> = self.questions.keys().filter(|id| answered(id)).cloned().collect();
        for id in ids {
            let given = run.call(&id).and_then(|call| call.provided.as_deref().cloned());
            if let (Some(reply), Some(given)) = (self.questions.remove(&id), given) {
                // A call that has ended meanwhile hears nothing.
                let _ = reply.send(given);
            }
        }
    }

    /// What a tool says, or how it ends. None while nothing runs.
    pub(super) async fn next(&mut self) -> Option<FromHands> {
        loop {
            tokio::select! {
                biased;
                // The end of a tool is its last word.
                Some((call, word)) = self.words.1.recv() => return Some(FromHands::Word(call, word)),
                // An error is an abort: a panic was turned into an outcome already.
                joined = self.running.join_next_with_id() => if let Ok((id, done)) = joined? {
                    self.by_effect.retain(|_, handle| handle.id() != id);
                    return Some(FromHands::Done(done));
                },
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
        let Effect::RunTool { call, tool, args, untrusted, provided, state, ticket, .. } = effect else {
            return;
        };
        let (tools, toolbox) = (self.tools().cloned(), self.rt.toolbox.clone());
        let context = self.context_of(&call);
        let agent = self.agent.as_ref().ok().cloned();
        let begun = call.clone();
        let line = Line::new(call.clone(), self.hands.words.0.clone(), self.rt.handing_back.clone());
        let resumed = Resumed { provided, state, ticket, line: Some(line) };
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
            trace: trace_of(&self.run, call),
        })
    }

    /// Logs what a running tool says: progress not too often, a ticket before
    /// the tool goes on, a question as a row of the ledger.
    pub(super) async fn hear_word(&mut self, call: CallId, word: Word) -> Result<(), Stop> {
        match word {
            Word::Progressed { fraction, message } => {
                let now = Instant::now();
                let last = self.hands.told.get(&call);
                if last.is_some_and(|at| now.duration_since(*at) < PROGRESS) {
                    return Ok(());
                }
                self.hands.told.insert(call.clone(), now);
                let (preliminary, ticket) = (None, None);
                self.tell(Input::Progressed { call, fraction, message, preliminary, ticket }).await
            }
            Word::Ticket { ticket, kept } => {
                let (fraction, message, preliminary) = (None, None, None);
                let ticket = Some(ticket);
                failpoint!("mcp.before_ticket_commit");
                self.tell(Input::Progressed { call, fraction, message, preliminary, ticket }).await?;
                failpoint!("mcp.after_ticket_commit");
                let _ = kept.send(());
                Ok(())
            }
            Word::Asked { payload, reply } => {
                // One question at a time: the next one gets a no.
                if self.hands.questions.contains_key(&call) {
                    return Ok(());
                }
                self.question(&call, payload).await?;
                if self.run.call(&call).is_some_and(|call| call.asking.is_some()) {
                    self.hands.questions.insert(call, reply);
                }
                Ok(())
            }
        }
    }

    /// Answers that came reach the calls that asked.
    pub(super) fn pass_answers_on(&mut self) {
        self.hands.pass_on(&self.run);
    }

    /// Logs how a tool ended, or what it asks for.
    pub(super) async fn ended(&mut self, done: Done) -> Result<(), Stop> {
        let outcome = match done.end {
            End::Outcome(outcome) => outcome,
            End::Asks(asking) => return self.ask(done.call, asking).await,
        };
        let (outcome, untrusted, notes) = self.hooked_result(&done.call, outcome, done.untrusted).await;
        let fitted = fit(outcome);
        let blob = fitted.blob_ref();
        let input = Input::ToolEnded { call: done.call, outcome: fitted.outcome, blob, untrusted, notes };
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
