//! `waiting` tools: a durable pause (row G13). The call becomes a timer of the
//! ledger; the scheduler ends it.

use serde_json::{Value, json};
use toolyard_protocol::agent::execution::Waiting;
use toolyard_protocol::limits;

/// How long, and what the timer answers beside the moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub ms: u64,
    pub payload: Value,
}

/// Reads `duration` (ms) or `seconds` and `reason` from the input; the
/// configuration fills what is missing.
pub fn plan(waiting: &Waiting, args: &Value) -> Result<Plan, String> {
    let ms = match (args.get("duration"), args.get("seconds")) {
        (Some(ms), _) => number(ms, "duration", 1.0)?,
        (None, Some(seconds)) => number(seconds, "seconds", 1000.0)?,
        (None, None) => waiting.duration.ok_or("Say how long to wait: duration (ms) or seconds")?,
    };
    if ms > limits::WAITING_MAX_MS {
        return Err(format!("Cannot wait {ms} ms: the limit is {} ms", limits::WAITING_MAX_MS));
    }
    let reason = args.get("reason").and_then(Value::as_str).or(waiting.reason.as_deref());
    Ok(Plan { ms, payload: json!({ "waited": ms, "reason": reason }) })
}

fn number(value: &Value, name: &str, factor: f64) -> Result<u64, String> {
    let ms = value.as_f64().map(|n| (n * factor).ceil()).filter(|n| n.is_finite() && *n >= 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be finite and not negative; larger values saturate"
    )]
    ms.map(|ms| ms as u64).ok_or_else(|| format!("{name} must be a number that is not negative"))
}
