//! Calls and results of a conversation, always in pairs. Vendors refuse a
//! history in which one of them is alone.

use crate::request::{ChatTurn, PastCall, PastResult};

/// What a call without a result is told to have come to.
const NO_RESULT: &str = "The call has no result.";

/// Every call gets a result right behind its turn, in the order of the calls.
/// A result without a call is dropped.
pub(crate) fn paired(turns: Vec<ChatTurn>) -> Vec<ChatTurn> {
    let mut all = Vec::with_capacity(turns.len());
    let mut turns = turns.into_iter().peekable();
    while let Some(turn) = turns.next() {
        match turn {
            ChatTurn::Assistant { parts, calls } if !calls.is_empty() => {
                let mut given = Vec::new();
                while let Some(ChatTurn::ToolResults(results)) =
                    turns.next_if(|next| matches!(next, ChatTurn::ToolResults(_)))
                {
                    given.extend(results);
                }
                let results = calls.iter().map(|call| result_of(call, &mut given)).collect();
                all.push(ChatTurn::Assistant { parts, calls });
                all.push(ChatTurn::ToolResults(results));
            }
            ChatTurn::ToolResults(_) => {}
            turn @ (ChatTurn::User { .. } | ChatTurn::Assistant { .. } | ChatTurn::System(_)) => {
                all.push(turn);
            }
        }
    }
    all
}

fn result_of(call: &PastCall, given: &mut Vec<PastResult>) -> PastResult {
    match given.iter().position(|result| result.call == call.id) {
        Some(index) => given.remove(index),
        None => PastResult {
            call: call.id.clone(),
            name: call.name.clone(),
            content: NO_RESULT.to_owned(),
            is_error: true,
        },
    }
}
