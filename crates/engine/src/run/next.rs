//! Decide: which events an input causes. What follows from them by necessity
//! is added by settling, so that one `next` is one append.

use toolyard_protocol::event::{
    Answered, ChildStarted, Decision, ModelReplied, ReplyCall, RunStarted, StepRestarted, ToolProgressed,
    ToolReturned,
};
use toolyard_protocol::outcome::UNCERTAIN_TEXT;
use toolyard_protocol::principal::Actor;
use toolyard_protocol::run::{FinishReason, RunEnd, Usage};
use toolyard_protocol::{CallId, Event, Guarded, Timestamp, ToolOutcome};

use super::Run;
use super::route::route;
use crate::call::{Call, CallState};
use crate::input::{Input, Note, Reply, RoutedCall, Verdict};
use crate::state::{State, Tools};

/// Questions in flight are counted apart: they start no new round of the call.
pub(crate) const QUESTIONS_FROM: u32 = 1000;

fn question_round(call: &Call) -> u32 {
    QUESTIONS_FROM.saturating_add(call.questions)
}

/// The end of a question that a call asked in flight.
pub(super) fn withdrawn(call: &Call) -> Option<Event> {
    let (wait, kind) = match (&call.at, &call.asking) {
        (CallState::Gated { wait, kind }, _) => (wait.clone(), *kind),
        (CallState::Dispatched, Some((wait, kind))) => (wait.clone(), *kind),
        (
            CallState::Proposed
            | CallState::Cleared
            | CallState::Refused(_)
            | CallState::Dispatched
            | CallState::Parked { .. }
            | CallState::Ended(_),
            _,
        ) => return None,
    };
    let answered = Answered {
        wait,
        kind,
        call: call.id.clone(),
        visibility: call.visibility,
        decision: Decision::Withdraw,
        edited: Guarded::Hidden,
        recount: false,
        by: Guarded::Shown(Actor::Gateway {}),
    };
    Some(answered.into())
}

impl Run {
    /// The events that this input causes, as one append. Empty if the input
    /// is stale or nothing follows from it. The time is the database's; no
    /// decision depends on it today, because expiry is a fact of the scheduler.
    pub fn next(&self, _at: Timestamp, input: Input) -> Vec<Event> {
        if self.is_finished() {
            return Vec::new();
        }
        let thinking = matches!(self.state, State::Thinking { .. });
        let halted = match &input {
            Input::Claimed { .. } | Input::Halted { .. } => true,
            Input::ModelReplied { .. } | Input::ModelFailed { .. } => thinking,
            Input::Woken
            | Input::Routed(_)
            | Input::ToolEnded { .. }
            | Input::ChildStarted { .. }
            | Input::Progressed { .. }
            | Input::Noted(_) => false,
        };
        let mut events = self.decide(input);
        let mut run = self.clone();
        for event in &events {
            run.fold(event);
        }
        // A model call may be in flight where the run stood in Thinking before
        // this input, a tool where a call is still dispatched.
        let dispatched = run.state.calls().iter().any(Call::is_dispatched);
        run.settle(halted || (!thinking && !dispatched), &mut events);
        events
    }

    fn decide(&self, input: Input) -> Vec<Event> {
        match input {
            Input::Claimed { recovered, why } => self.claimed(recovered, why),
            Input::Woken => Vec::new(),
            Input::ModelReplied { reply, calls } => self.replied(reply, calls),
            Input::ModelFailed { code, message, detail, said } => match self.state {
                State::Thinking { .. } if self.halting() => self.said(said, FinishReason::Stopped),
                State::Thinking { .. } => {
                    let mut events = self.said(said, FinishReason::Other);
                    let mut run = self.clone();
                    events.iter().for_each(|e| run.fold(e));
                    events.push(run.finish(
                        RunEnd::Failed,
                        Some((code, message)),
                        Some(detail).filter(|d| !d.is_empty()),
                    ));
                    events
                }
                State::Queued | State::Acting { .. } | State::Waiting { .. } | State::Finished(_) => {
                    Vec::new()
                }
            },
            Input::Routed(routed) => self.routed(routed),
            Input::ToolEnded { call, outcome, blob, untrusted, notes } => {
                let Some(call) = self.dispatched(&call) else {
                    return Vec::new();
                };
                let mut end = self.end(call, outcome);
                end.untrusted = untrusted;
                end.blob = blob.map_or(Guarded::Hidden, Guarded::Shown);
                let mut events = vec![end.into()];
                events.extend(notes.into_iter().map(Event::from));
                events
            }
            Input::ChildStarted { call, child, expires, stream } => {
                // The child is made by the append that this event is part of.
                let Some(call) = self.dispatched(&call).filter(|_| !self.halting()) else {
                    return Vec::new();
                };
                let (tool, visibility) = (call.tool.clone(), call.visibility);
                let call = call.id.clone();
                vec![ChildStarted { call, tool, visibility, child, expires, stream }.into()]
            }
            Input::Progressed { call, fraction, message, preliminary, ticket } => match self.call(&call) {
                Some(call) if !call.is_ended() => vec![
                    ToolProgressed {
                        call: call.id.clone(),
                        tool: call.tool.clone(),
                        visibility: call.visibility,
                        fraction,
                        message: message.map_or(Guarded::Hidden, Guarded::Shown),
                        preliminary: preliminary.map_or(Guarded::Hidden, Guarded::Shown),
                        ticket: ticket.map_or(Guarded::Hidden, Guarded::Shown),
                        spent: Guarded::Hidden,
                    }
                    .into(),
                ],
                Some(_) | None => Vec::new(),
            },
            Input::Noted(notes) => {
                notes.into_iter().filter(|note| !self.knows(note)).map(Event::from).collect()
            }
            Input::Halted { said } => match self.state {
                State::Thinking { .. } if self.halting() => self.said(said, FinishReason::Stopped),
                State::Queued
                | State::Thinking { .. }
                | State::Acting { .. }
                | State::Waiting { .. }
                | State::Finished(_) => Vec::new(),
            },
        }
    }

    /// Whoever claims a run has started nothing of it, so a dispatched call was
    /// started by a former owner: it is repeated only where that is harmless.
    fn claimed(&self, recovered: bool, why: String) -> Vec<Event> {
        match &self.state {
            State::Queued if self.halting() => Vec::new(),
            State::Queued => vec![RunStarted {}.into()],
            State::Thinking { step, attempt, .. } if recovered && !self.halting() => {
                let attempt = attempt.saturating_add(1);
                vec![StepRestarted { step: *step, attempt, why: Guarded::Shown(why) }.into()]
            }
            State::Acting { calls, .. } => {
                let open = calls.as_slice().iter().filter(|c| c.is_dispatched());
                open.flat_map(|call| self.left_behind(call)).collect()
            }
            State::Thinking { .. } | State::Waiting { .. } | State::Finished(_) => Vec::new(),
        }
    }

    /// What is said of a call that a former owner had in flight. Nobody waits
    /// for the answer to a question that it had asked; a far side that works on
    /// by itself is asked for the end.
    fn left_behind(&self, call: &Call) -> Vec<Event> {
        let mut events: Vec<Event> = withdrawn(call).into_iter().collect();
        if !call.idempotent && call.ticket.is_none() {
            events.push(self.end(call, ToolOutcome::Uncertain(UNCERTAIN_TEXT.to_owned())).into());
        }
        events
    }

    fn replied(&self, reply: Reply, calls: Vec<RoutedCall>) -> Vec<Event> {
        let State::Thinking { step, tools, .. } = self.state else {
            return Vec::new();
        };
        if self.halting() && (self.canceling.is_some() || !calls.is_empty()) {
            return self.said(Some(reply), FinishReason::Stopped);
        }
        let dropped = tools == Tools::Off && !calls.is_empty();
        let finish = if dropped { FinishReason::MaxSteps } else { reply.finish };
        let calls = if dropped { Vec::new() } else { calls };
        let asked = calls
            .iter()
            .map(|c| ReplyCall {
                call: c.call.clone(),
                tool: c.tool.clone(),
                visibility: c.visibility,
                args: Guarded::Shown(c.args.clone()),
                metadata: c.metadata.clone().map_or(Guarded::Hidden, Guarded::Shown),
            })
            .collect();
        let mut events = self.reply(reply, asked, finish, false);
        events.extend(calls.into_iter().map(|c| route(step, 0, c)));
        events
    }

    /// What was shown of a reply that does not come to its end.
    fn said(&self, said: Option<Reply>, finish: FinishReason) -> Vec<Event> {
        match said {
            Some(reply) if !reply.parts.is_empty() || reply.usage != Usage::default() => {
                self.reply(reply, Vec::new(), finish, true)
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn reply(&self, reply: Reply, calls: Vec<ReplyCall>, finish: FinishReason, partial: bool) -> Vec<Event> {
        let replied = ModelReplied {
            step: self.step,
            message: self.message(),
            parts: reply.parts,
            show_reasoning: self.created().is_some_and(|c| c.show_reasoning),
            calls,
            usage: reply.usage,
            cost: reply.cost,
            model: reply.model.map_or(Guarded::Hidden, Guarded::Shown),
            finish,
            partial,
            metadata: reply.metadata.map_or(Guarded::Hidden, Guarded::Shown),
        };
        let mut events = vec![replied.into()];
        events.extend(reply.notes.into_iter().map(Event::from));
        events
    }

    fn routed(&self, routed: RoutedCall) -> Vec<Event> {
        let Some(call) = self.call(&routed.call) else {
            return Vec::new();
        };
        let takes = match call.at {
            CallState::Proposed | CallState::Cleared => true,
            CallState::Dispatched => match routed.verdict {
                Verdict::Ask { .. } => true,
                Verdict::Question { .. } => call.asking.is_none(),
                Verdict::Run | Verdict::Park { .. } | Verdict::Refuse(_) | Verdict::Unknown(_) => false,
            },
            CallState::Gated { .. }
            | CallState::Refused(_)
            | CallState::Parked { .. }
            | CallState::Ended(_) => false,
        };
        // A halting run ends its calls; it opens nothing new.
        let round = match routed.verdict {
            Verdict::Question { .. } => question_round(call),
            Verdict::Run
            | Verdict::Park { .. }
            | Verdict::Ask { .. }
            | Verdict::Refuse(_)
            | Verdict::Unknown(_) => call.round,
        };
        if takes && !self.halting() { vec![route(self.step, round, routed)] } else { Vec::new() }
    }

    /// A summary that the log has, because only the answer to its commit was lost.
    fn knows(&self, note: &Note) -> bool {
        match (note, self.compacted()) {
            (Note::HistoryCompacted(new), Some(old)) => new.up_to <= old.up_to,
            _ => false,
        }
    }

    fn dispatched(&self, id: &CallId) -> Option<&Call> {
        self.call(id).filter(|c| c.is_dispatched())
    }

    pub(super) fn end(&self, call: &Call, outcome: ToolOutcome) -> ToolReturned {
        let by = Actor::Gateway {};
        ToolReturned::new(call.id.clone(), call.tool.clone(), call.visibility, outcome, by)
    }
}
