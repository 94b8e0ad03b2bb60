//! Ids of messages, derived from what they stand for: every reader and every
//! replay names the same things.
//!
//! The store has one message for a turn of a run; AG-UI has one for each step
//! of it. The name of a step's message begins with the name of the turn's, so a
//! request that brings it back says which stored message is meant.

use toolyard_protocol::{CallId, MessageId, RunId};

/// The assistant message of one step.
pub(super) fn step_message(turn: &MessageId, step: u32) -> String {
    format!("{turn}.{step}")
}

/// A message of its own for a call that is handed out after its step was told.
/// Clients run the calls of new messages only.
pub(super) fn late_call(turn: &MessageId, step: u32, call: &CallId) -> String {
    format!("{turn}.{step}.{}", call.bare())
}

/// The nth thought of a step.
pub(super) fn thought(run: &RunId, step: u32, nth: u32) -> String {
    format!("rsn_{}_{step}_{nth}", run.bare())
}

/// The result of a call.
pub(super) fn result(call: &CallId) -> String {
    format!("res_{}", call.bare())
}

/// Was this id given by the gateway?
pub(super) fn is_ours(id: &str) -> bool {
    ["msg_", "rsn_", "res_"].iter().any(|prefix| id.starts_with(prefix))
}

/// The store's name for a message that a client sends back.
pub fn stored_name(id: &str) -> &str {
    match id.split_once('.') {
        Some((turn, _)) if turn.starts_with("msg_") => turn,
        _ => id,
    }
}
