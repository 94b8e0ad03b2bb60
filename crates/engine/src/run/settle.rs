//! Settle: what follows by necessity from the state, until nothing does.

use toolyard_protocol::event::{Decision, MessageTaken, OpenWait, RunFinished, RunPaused};
use toolyard_protocol::outcome::{CANCELED_TEXT, DENIED_TEXT, SUPERSEDED_TEXT};
use toolyard_protocol::run::RunEnd;
use toolyard_protocol::{ErrorCode, Event, Guarded, ToolOutcome};

use super::Run;
use super::next::withdrawn;
use crate::call::{Call, CallState};
use crate::state::State;

impl Run {
    /// Folds and adds what follows. `idle` says that nothing is in flight, so
    /// a cancel or an interrupt may close what is open.
    pub(super) fn settle(&mut self, idle: bool, events: &mut Vec<Event>) {
        loop {
            let more = self.follows(idle);
            if more.is_empty() {
                return;
            }
            for event in &more {
                self.fold(event);
            }
            events.extend(more);
        }
    }

    fn follows(&self, idle: bool) -> Vec<Event> {
        if self.is_finished() {
            return Vec::new();
        }
        if self.halting() {
            return if idle { self.halt() } else { Vec::new() };
        }
        if let Some((code, message)) = self.must_fail() {
            return vec![self.finish(RunEnd::Failed, Some((code, message)), None)];
        }
        match &self.state {
            State::Acting { calls, .. } if calls.as_slice().is_empty() => {
                if self.queued.is_empty() {
                    vec![self.finish(RunEnd::Completed, None, None)]
                } else {
                    vec![self.take()]
                }
            }
            State::Acting { calls, .. } => {
                calls.as_slice().iter().filter_map(|c| self.end_refused(c)).collect()
            }
            State::Waiting { .. } if !self.paused => self.pause().into_iter().collect(),
            State::Queued | State::Thinking { .. } | State::Waiting { .. } | State::Finished(_) => Vec::new(),
        }
    }

    /// Ends what is open, then ends the run or hears the messages.
    fn halt(&self) -> Vec<Event> {
        let canceled = self.canceling.is_some();
        let text = if canceled { CANCELED_TEXT } else { SUPERSEDED_TEXT };
        let mut events = Vec::new();
        for call in self.state.calls().iter().filter(|c| !c.is_ended()) {
            events.extend(withdrawn(call));
            events.push(self.end(call, ToolOutcome::Canceled(text.to_owned())).into());
        }
        events.push(if canceled { self.finish(RunEnd::Canceled, None, None) } else { self.take() });
        events
    }

    fn take(&self) -> Event {
        MessageTaken { messages: self.queued.iter().map(|q| q.message.clone()).collect() }.into()
    }

    pub(super) fn finish(
        &self,
        status: RunEnd,
        error: Option<(ErrorCode, String)>,
        detail: Option<String>,
    ) -> Event {
        let (error, message) = error.unzip();
        let detail = detail.map_or(Guarded::Hidden, Guarded::Shown);
        RunFinished { status, usage: self.usage, cost: self.cost, error, message, detail }.into()
    }

    fn pause(&self) -> Option<Event> {
        let reason = self.pause_reason()?;
        let mut waits = self.open_waits();
        waits.extend(self.child_waits.iter().filter_map(|w| {
            let tool = self.call(&w.call)?.tool.clone();
            Some(OpenWait { wait: w.wait.clone(), kind: w.kind, call: w.call.clone(), tool })
        }));
        Some(RunPaused { reason, waits }.into())
    }

    /// A closed gate whose call has no end yet. Facts write both at once; this
    /// keeps a log without the second half from standing still.
    fn end_refused(&self, call: &Call) -> Option<Event> {
        let CallState::Refused(decision) = call.at else {
            return None;
        };
        let outcome = match decision {
            Decision::Expire => ToolOutcome::Expired("Expired: nobody answered".to_owned()),
            Decision::Withdraw => ToolOutcome::Canceled(SUPERSEDED_TEXT.to_owned()),
            Decision::Deny | Decision::Allow | Decision::Provide => {
                ToolOutcome::Denied(DENIED_TEXT.to_owned())
            }
        };
        Some(self.end(call, outcome).into())
    }

    /// A limit of the whole run is reached, so the next step must not begin.
    pub(super) fn must_fail(&self) -> Option<(ErrorCode, String)> {
        let State::Thinking { .. } = self.state else {
            return None;
        };
        let failures = self.limits.tool_failures;
        if self.failures >= failures && failures > 0 {
            let message = format!("Stopped after {failures} consecutive tool failures");
            return Some((ErrorCode::ToolFailures, message));
        }
        let steps = self.limits.run_steps;
        if self.replies >= steps {
            let message = format!("Stopped after {steps} model calls in one run");
            return Some((ErrorCode::RunSteps, message));
        }
        let tokens = self.usage.input_tokens.saturating_add(self.usage.output_tokens);
        if let Some(most) = self.limits.max_tokens.filter(|most| tokens >= *most) {
            let message = format!("Stopped after {tokens} tokens: the budget of a run is {most}");
            return Some((ErrorCode::BudgetExceeded, message));
        }
        let cost = self.cost.unwrap_or(0);
        if let Some(most) = self.limits.max_cost.filter(|most| cost >= *most) {
            let (cost, most) = (dollars(cost), dollars(most));
            let message = format!("Stopped after {cost} USD: the budget of a run is {most} USD");
            return Some((ErrorCode::BudgetExceeded, message));
        }
        None
    }
}

/// Millionths as people write them.
fn dollars(millionths: u64) -> String {
    let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
