//! Calls and results side by side. Vendors refuse a conversation in which a
//! call has no result or a result no call, so no encoder sends one.

use std::collections::HashMap;

use toolyard_protocol::ids::CallId;

use crate::request::{ChatTurn, PastCall, PastResult};

/// What a model reads of a call whose end nobody knows.
const NO_RESULT: &str = "There is no result of this call.";

/// The same turns; after each turn with calls comes exactly one turn with
/// their results, in the calls' order. A call without a result gets a failure.
/// A result without a call is dropped, and so is a second one.
pub fn paired(turns: Vec<ChatTurn>) -> Vec<ChatTurn> {
    let mut results: HashMap<CallId, PastResult> = HashMap::new();
    for turn in &turns {
        if let ChatTurn::ToolResults(given) = turn {
            for result in given {
                results.entry(result.call.clone()).or_insert_with(|| result.clone());
            }
        }
    }
    let mut out = Vec::with_capacity(turns.len());
    for turn in turns {
        match turn {
            ChatTurn::ToolResults(_) => {}
            ChatTurn::Assistant { calls, parts } if !calls.is_empty() => {
                let ended =
                    calls.iter().map(|call| results.remove(&call.id).unwrap_or_else(|| missing(call)));
                let ended = ended.collect();
                out.push(ChatTurn::Assistant { parts, calls });
                out.push(ChatTurn::ToolResults(ended));
            }
            other => out.push(other),
        }
    }
    out
}

fn missing(call: &PastCall) -> PastResult {
    PastResult {
        call: call.id.clone(),
        name: call.name.clone(),
        content: NO_RESULT.to_owned(),
        is_error: true,
    }
}
