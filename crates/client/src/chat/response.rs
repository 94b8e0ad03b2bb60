//! The whole answer to one message.

use std::collections::BTreeMap;

use toolyard_protocol::RunId;

use crate::call::ToolCall;
use crate::event::{Event, EventKind, RunError};
use crate::journal::Outcome;

/// What came of a message, of all runs that it reached.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatResponse {
    /// All that was said, steps joined.
    pub text: String,
    pub reasoning: String,
    pub runs: Vec<RunId>,
    /// `completed`, `failed`, `canceled`, or `waiting_tool` if calls were left
    /// open. Empty if no agent was reached.
    pub status: String,
    /// The model's word for why it stopped: `stop`, `tool-calls`, …
    pub finish_reason: Option<String>,
    pub error: Option<RunError>,
    /// What this client executed.
    pub tool_results: Vec<(ToolCall, Outcome)>,
    /// Calls that nobody of this client takes, or may take any more.
    pub pending: Vec<ToolCall>,
    pub max_tool_rounds_reached: bool,
}

/// Puts the answer together from events.
#[derive(Debug, Default)]
pub(super) struct Gather {
    pub(super) response: ChatResponse,
    /// Whole steps, in the order of the first word of each.
    steps: BTreeMap<(usize, u32), (String, String)>,
}

impl Gather {
    pub(super) fn take(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Replied(reply) => {
                let run = event.run.as_ref();
                let at = self.response.runs.iter().position(|known| Some(known) == run).unwrap_or(0);
                self.steps.insert((at, reply.step), (reply.text(), reply.reasoning()));
                self.response.finish_reason.clone_from(&reply.finish_reason);
            }
            EventKind::Finished(finished) => {
                // Of several runs the one that went wrong is told.
                if self.response.status.is_empty() || finished.status != "completed" {
                    self.response.status.clone_from(&finished.status);
                }
                if finished.error.is_some() {
                    self.response.error.clone_from(&finished.error);
                }
            }
            _ => {}
        }
    }

    pub(super) fn finish(&mut self) -> ChatResponse {
        let joined = |pick: fn(&(String, String)) -> &String| {
            let said = self.steps.values().map(pick).filter(|text| !text.is_empty());
            said.cloned().collect::<Vec<_>>().join("\n")
        };
        let (text, reasoning) = (joined(|step| &step.0), joined(|step| &step.1));
        let response = &mut self.response;
        (response.text, response.reasoning) = (text, reasoning);
        if !response.pending.is_empty() && response.status.is_empty() {
            response.status = "waiting_tool".to_owned();
        }
        response.clone()
    }
}
