//! What is to be done: a pure function of the state.

use super::Run;
use crate::call::CallState;
use crate::effect::Effect;
use crate::state::State;

impl Run {
    /// The effects that this state asks for, in call order. Empty while the
    /// run is queued, halting, parked, finished, or about to end.
    pub fn due(&self) -> Vec<Effect> {
        if self.halting() || self.must_fail().is_some() {
            return Vec::new();
        }
        match &self.state {
            State::Queued | State::Waiting { .. } | State::Finished(_) => Vec::new(),
            State::Thinking { step, attempt, tools } => {
                vec![Effect::CallModel { step: *step, attempt: *attempt, tools: *tools }]
            }
            State::Acting { calls, .. } => calls
                .as_slice()
                .iter()
                .filter_map(|call| match &call.at {
                    CallState::Proposed | CallState::Cleared => Some(Effect::route(call)),
                    CallState::Dispatched => Some(Effect::run_tool(call)),
                    CallState::Gated { .. }
                    | CallState::Refused(_)
                    | CallState::Parked { .. }
                    | CallState::Ended(_) => None,
                })
                .collect(),
        }
    }
}
