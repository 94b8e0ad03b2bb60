//! Ids of messages, derived from what they stand for: every reader and every
//! replay names the same things.

use toolyard_protocol::{CallId, RunId};

fn bare(run: &RunId) -> &str {
    run.as_str().trim_start_matches("run_")
}

/// The assistant message of one step.
pub(super) fn step_message(run: &RunId, step: u32) -> String {
    format!("stp_{}_{step}", bare(run))
}

/// A message of its own for a call that is handed out after its step was told.
/// Clients run the calls of new messages only.
pub(super) fn late_call(run: &RunId, step: u32, call: &CallId) -> String {
    format!("stp_{}_{step}_{}", bare(run), call.as_str().trim_start_matches("call_"))
}

/// The nth thought of a step.
pub(super) fn thought(run: &RunId, step: u32, nth: u32) -> String {
    format!("rsn_{}_{step}_{nth}", bare(run))
}

/// The result of a call.
pub(super) fn result(call: &CallId) -> String {
    format!("res_{}", call.as_str().trim_start_matches("call_"))
}

/// Was this id given by the gateway? Such a message comes from the store and
/// never from a request.
pub fn is_ours(id: &str) -> bool {
    ["stp_", "rsn_", "res_", "msg_"].iter().any(|prefix| id.starts_with(prefix))
}
