//! How events move the calls of the open step, and the step with them.

use std::sync::Arc;

use toolyard_protocol::event::{Answered, Asked, ChildAsked, ChildStarted, Decision, ToolCallRequested};
use toolyard_protocol::outcome::OutcomeKind;
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{CallId, WaitId};

use super::{ChildWait, Run};
use crate::call::{Call, CallState};
use crate::state::State;

impl Run {
    pub(super) fn on_asked(&mut self, e: &Asked) {
        self.move_call(&e.call, |call| match call.at {
            CallState::Dispatched if e.held => {
                call.asking = Some((e.wait.clone(), e.kind));
                call.questions = call.questions.saturating_add(1);
            }

            // A dispatched call may stop to ask; then nothing of it is in flight.
            CallState::Proposed | CallState::Cleared | CallState::Dispatched => {
                call.at = CallState::Gated { wait: e.wait.clone(), kind: e.kind };
                call.round = call.round.saturating_add(1);
                call.place = e.place;
                call.risk = e.risk;
                call.fingerprint = e.fingerprint.shown().cloned();
                call.state = e.state.shown().cloned().map(Arc::new);
            }
            CallState::Gated { .. }
            | CallState::Refused(_)
            | CallState::Parked { .. }
            | CallState::Ended(_) => {}
        });
    }

    pub(super) fn on_answered(&mut self, e: &Answered) {
        if e.recount {
            self.steps_in_turn = 0;
        }
        let asked = |call: &Call| matches!(&call.at, CallState::Gated { wait, .. } if *wait == e.wait);
        self.move_call(&e.call, |call| {
            let given = e.edited.shown().map(|v| Arc::new(v.clone()));
            // A question in flight: the call goes on, or its end follows.
            if call.asking.as_ref().is_some_and(|(wait, _)| *wait == e.wait) {
                call.asking = None;
                call.provided = given.filter(|_| e.decision == Decision::Provide);
                return;
            }
            if !asked(call) {
                return;
            }
            call.at = match e.decision {
                Decision::Allow => {
                    call.approved = true;
                    if let Some(args) = given {
                        call.args = args;
                        call.edited = true;
                    }
                    CallState::Cleared
                }
                Decision::Provide => {
                    call.provided = given;
                    CallState::Cleared
                }
                Decision::Deny | Decision::Expire | Decision::Withdraw => CallState::Refused(e.decision),
            };
        });
    }

    pub(super) fn on_requested(&mut self, e: &ToolCallRequested) {
        self.move_call(&e.call, |call| {
            if !matches!(call.at, CallState::Proposed | CallState::Cleared) {
                return;
            }
            call.place = e.place;
            call.risk = e.risk;
            call.idempotent = e.idempotent;
            call.untrusted = e.untrusted;
            call.expires = e.expires;
            call.fingerprint = e.fingerprint.shown().cloned();
            if let Some(args) = e.args.shown()
                && *args != *call.args
            {
                call.args = Arc::new(args.clone());
            }
            call.at = match &e.wait {
                Some(parked) => CallState::Parked { wait: parked.wait.clone(), kind: parked.kind },
                None => CallState::Dispatched,
            };
        });
    }

    pub(super) fn on_child_started(&mut self, e: &ChildStarted) {
        self.move_call(&e.call, |call| {
            if call.is_dispatched() {
                let wait = WaitId::of(WaitKind::Child, &call.id, 0);
                call.at = CallState::Parked { wait, kind: WaitKind::Child };
                call.expires = e.expires;
            }
        });
    }

    pub(super) fn on_child_asked(&mut self, e: &ChildAsked) {
        let open = self.call(&e.call).is_some_and(|c| !c.is_ended());
        if open && self.child_waits.iter().all(|w| w.wait != e.wait) {
            self.child_waits.push(ChildWait {
                call: e.call.clone(),
                child: e.child.clone(),
                wait: e.wait.clone(),
                kind: e.kind,
            });
            self.paused = false;
        }
    }

    /// Changes one call of the open step, then sees where the step stands.
    pub(super) fn move_call(&mut self, id: &CallId, change: impl FnOnce(&mut Call)) {
        let (State::Acting { calls, .. } | State::Waiting { calls, .. }) = &mut self.state else {
            return;
        };
        let Some(call) = calls.find_mut(id) else {
            return;
        };
        change(call);
        if calls.all_ended() {
            self.close_step();
            return;
        }
        let state = std::mem::replace(&mut self.state, State::Queued);
        self.state = match state {
            State::Acting { step, calls } | State::Waiting { step, calls } => {
                if calls.rest_outside() {
                    State::Waiting { step, calls }
                } else {
                    self.paused = false;
                    State::Acting { step, calls }
                }
            }
            other @ (State::Queued | State::Thinking { .. } | State::Finished(_)) => other,
        };
    }

    /// Failures count in call order, whatever the order of arrival.
    fn close_step(&mut self) {
        for call in self.state.calls() {
            if let CallState::Ended(outcome) = &call.at {
                if outcome.kind().is_failure() {
                    self.failures = self.failures.saturating_add(1);
                } else if outcome.kind() == OutcomeKind::Ok {
                    self.failures = 0;
                }
            }
        }
        self.think();
    }
}
