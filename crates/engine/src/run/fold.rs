//! State = fold(events). Every pair of state and event has an answer: what
//! does not fit changes nothing, because a call ends once and a run too.

use std::sync::Arc;

use toolyard_protocol::event::{MessageTaken, ModelReplied, ResultAmended, RunCreated, ToolReturned};
use toolyard_protocol::outcome::OutcomeKind;
use toolyard_protocol::run::{FinishReason, Usage};
use toolyard_protocol::{CallId, Event, MessageId, ToolOutcome};

use super::{QueuedMessage, Run};
use crate::call::{Call, CallState, Calls};
use crate::state::{State, Tools};
use crate::turn::{Returned, Step, Turn};

impl Run {
    /// Takes one event of the log.
    pub fn fold(&mut self, event: &Event) {
        if self.is_finished() {
            return;
        }
        match event {
            Event::RunCreated(e) => self.on_created(e),
            Event::RunStarted(_) => {
                if self.state == State::Queued {
                    self.think();
                }
            }
            Event::StepRestarted(e) => {
                if let State::Thinking { step, attempt, .. } = &mut self.state
                    && *step == e.step
                {
                    *attempt = (*attempt).max(e.attempt);
                }
            }
            Event::ModelReplied(e) => self.on_replied(e),
            Event::Asked(e) => self.on_asked(e),
            Event::Answered(e) => self.on_answered(e),
            Event::ToolCallRequested(e) => self.on_requested(e),
            Event::ToolReturned(e) => self.on_returned(e),
            Event::ChildStarted(e) => self.on_child_started(e),
            Event::ChildAsked(e) => self.on_child_asked(e),
            Event::ChildAnswered(e) => self.child_waits.retain(|w| w.wait != e.wait),
            Event::ReplyAmended(e) => self.amend_step(
                |step| step.reply.step == e.step,
                |step| Arc::make_mut(&mut step.reply).parts.clone_from(&e.parts),
            ),
            Event::ResultAmended(e) => self.on_result_amended(e),
            Event::ToolsetReplaced(e) => {
                self.toolset = e.toolset.shown().cloned().or(self.toolset.take());
                self.model = e.model.shown().cloned().or(self.model.take());
            }
            Event::MessageQueued(e) => {
                // Nobody talks in a waiting run, so there is nothing to interrupt.
                let talks = !matches!(self.state, State::Waiting { .. });
                self.queue(&e.message, e.interrupt && talks, e.foreign);
            }
            Event::MessageTaken(e) => self.on_taken(e),
            Event::CancelRequested(e) => {
                self.canceling.get_or_insert_with(|| Arc::new(e.clone()));
            }
            Event::HistoryCompacted(e) => {
                add(&mut self.usage, &e.usage);
                self.spend(e.cost);
                self.compacted = Some(Arc::new(e.clone()));
            }
            Event::PluginStateSaved(e) => {
                if let (Some(plugin), Some(state)) = (e.plugin.shown(), e.state.shown()) {
                    self.plugin_states.insert(plugin.clone(), Arc::new(state.clone()));
                }
            }
            Event::ToolProgressed(e) => {
                if let Some(spent) = e.spent.shown() {
                    add(&mut self.usage, &spent.usage);
                    self.spend(spent.cost);
                }
                if let Some(ticket) = e.ticket.shown() {
                    let ticket = Arc::new(ticket.clone());
                    self.move_call(&e.call, |call| call.ticket = Some(ticket));
                }
            }
            Event::PluginEmitted(_) => {}
            Event::RunPaused(_) => self.paused = self.is_parked(),
            Event::RunFinished(e) => {
                self.state = State::Finished(e.status);
                self.finished = Some(Arc::new(e.clone()));
                self.child_waits.clear();
                self.paused = false;
            }
        }
    }

    fn spend(&mut self, cost: Option<u64>) {
        if let Some(cost) = cost {
            self.cost = Some(self.cost.unwrap_or(0).saturating_add(cost));
        }
    }

    fn on_created(&mut self, e: &RunCreated) {
        if self.created.is_some() {
            return;
        }
        self.limits = e.limits.shown().cloned().unwrap_or_default();
        self.toolset = e.toolset.shown().cloned();
        self.model = e.model.shown().cloned();
        self.tainted |= e.tainted;
        self.created = Some(Arc::new(e.clone()));
    }

    fn on_replied(&mut self, e: &ModelReplied) {
        let State::Thinking { step, tools, .. } = self.state else {
            return;
        };
        if step != e.step {
            return;
        }
        add(&mut self.usage, &e.usage);
        self.spend(e.cost);
        self.replies = self.replies.saturating_add(1);
        // The last step is over when it is over: nobody is asked to go on.
        let paused = e.finish == FinishReason::Paused && e.calls.is_empty() && tools == Tools::On;
        if !e.calls.is_empty() || paused {
            self.steps_in_turn = self.steps_in_turn.saturating_add(1);
        }
        if let Some(turn) = self.turns.last_mut() {
            Arc::make_mut(turn).steps.push(Arc::new(Step::new(e.clone())));
        }
        let calls = Calls::new(e.calls.iter().map(Call::proposed).collect());
        self.state = State::Acting { step, calls };
        if paused {
            self.think();
        }
    }

    /// The first end of a call counts; a second one changes nothing.
    fn on_returned(&mut self, e: &ToolReturned) {
        let Some(call) = self.call(&e.call).filter(|c| !c.is_ended()) else {
            return;
        };
        let untrusted = e.untrusted || call.untrusted;
        // What went wrong is told in the far side's words too.
        let foreign = match e.outcome {
            OutcomeKind::Ok | OutcomeKind::Failed | OutcomeKind::Uncertain => true,
            OutcomeKind::Denied | OutcomeKind::Expired | OutcomeKind::Canceled => false,
        };
        self.tainted |= untrusted && foreign;
        self.child_waits.retain(|w| w.call != e.call);
        if e.recount {
            self.steps_in_turn = 0;
        }
        if let Some(spent) = e.spent.shown() {
            add(&mut self.usage, &spent.usage);
            self.spend(spent.cost);
        }
        let returned = Returned { outcome: e.outcome(), blob: e.blob.shown().cloned() };
        self.put_result(&e.call, returned);
        self.move_call(&e.call, |call| call.at = CallState::Ended(e.outcome()));
    }

    fn on_result_amended(&mut self, e: &ResultAmended) {
        self.tainted |= e.untrusted;
        let outcome = ToolOutcome::from_parts(e.outcome, e.value.shown().cloned(), e.error.shown().cloned());
        self.put_result(&e.call, Returned { outcome, blob: None });
    }

    fn on_taken(&mut self, e: &MessageTaken) {
        let open = self.state.calls().iter().any(|c| !c.is_ended());
        if open {
            // Messages are heard between steps only. The calls that are still
            // open end first, as after an interrupt.
            e.messages.iter().for_each(|m| self.queue(m, true, false));
            return;
        }
        self.mixed |= self.queued.iter().any(|q| q.foreign && e.messages.contains(&q.message));
        self.queued.retain(|q| !e.messages.contains(&q.message));
        let number = self.turn().saturating_add(1);
        self.turns.push(Arc::new(Turn {
            number,
            message: MessageId::of_turn(&self.id, number),
            taken: e.messages.clone(),
            steps: Vec::new(),
        }));
        // Somebody looked at it and wrote on: counting starts again.
        self.steps_in_turn = 0;
        self.failures = 0;
        if self.state != State::Queued {
            self.think();
        }
    }

    fn queue(&mut self, message: &MessageId, interrupt: bool, foreign: bool) {
        match self.queued.iter_mut().find(|q| &q.message == message) {
            Some(queued) => {
                queued.interrupt |= interrupt;
                queued.foreign |= foreign;
            }
            None => self.queued.push(QueuedMessage { message: message.clone(), interrupt, foreign }),
        }
    }

    /// The next step begins.
    pub(super) fn think(&mut self) {
        self.step = self.step.saturating_add(1);
        let used_up = self.steps_in_turn >= self.limits.max_steps;
        let tools = if used_up { Tools::Off } else { Tools::On };
        self.state = State::Thinking { step: self.step, attempt: 1, tools };
        self.paused = false;
    }

    fn put_result(&mut self, call: &CallId, returned: Returned) {
        self.amend_step(
            |step| step.reply.calls.iter().any(|c| &c.call == call),
            |step| step.put(call, returned),
        );
    }

    fn amend_step(&mut self, found: impl Fn(&Step) -> bool, amend: impl FnOnce(&mut Step)) {
        for turn in self.turns.iter_mut().rev() {
            if let Some(place) = turn.steps.iter().position(|s| found(s)) {
                if let Some(step) = Arc::make_mut(turn).steps.get_mut(place) {
                    amend(Arc::make_mut(step));
                }
                return;
            }
        }
    }
}

/// Adds without overflow: a hostile number must not stop a fold.
fn add(sum: &mut Usage, more: &Usage) {
    sum.input_tokens = sum.input_tokens.saturating_add(more.input_tokens);
    sum.output_tokens = sum.output_tokens.saturating_add(more.output_tokens);
    sum.reasoning_tokens = sum.reasoning_tokens.saturating_add(more.reasoning_tokens);
    sum.cached_tokens = sum.cached_tokens.saturating_add(more.cached_tokens);
    sum.cache_write_tokens = sum.cache_write_tokens.saturating_add(more.cache_write_tokens);
}
