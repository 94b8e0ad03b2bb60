//! The objects of a response.

use serde_json::{Value, json};
use toolyard_protocol::RunId;
use toolyard_protocol::run::Usage;

/// What a response is called: its run, and where in the run it begins.
pub(super) fn response_id(run: &RunId, seq: i64) -> String {
    format!("resp_{}_{seq}", run.bare())
}

/// The run behind the name of a response.
pub fn run_of(response: &str) -> Option<RunId> {
    let (run, seq) = response.strip_prefix("resp_")?.rsplit_once('_')?;
    seq.parse::<i64>().ok()?;
    RunId::parse(&format!("run_{run}")).ok()
}

pub(super) fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": { "cached_tokens": usage.cached_tokens },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": { "reasoning_tokens": usage.reasoning_tokens },
        "total_tokens": usage.input_tokens + usage.output_tokens,
    })
}

/// A message item, as far as it was said.
pub(super) fn message(id: &str, status: &str, content: Vec<Value>) -> Value {
    json!({ "id": id, "type": "message", "role": "assistant", "status": status, "content": content })
}

pub(super) fn output_text(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

pub(super) fn summary_text(text: &str) -> Value {
    json!({ "type": "summary_text", "text": text })
}

pub(super) fn reasoning(id: &str, summary: Vec<Value>) -> Value {
    json!({ "id": id, "type": "reasoning", "summary": summary })
}

pub(super) fn function_call(call: &str, name: &str, arguments: &str, status: &str) -> Value {
    let id = format!("fc_{}", call.trim_start_matches("call_"));
    json!({
        "id": id, "type": "function_call", "call_id": call, "name": name,
        "arguments": arguments, "status": status,
    })
}
