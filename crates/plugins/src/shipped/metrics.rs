//! Metrics: what a turn took, as one event at its end.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use toolyard_protocol::manifest::HookName;

use crate::hooks::{Answer, Hook, Nature, Points, Prompt, Ran, Stage, Step};

pub(super) const ID: &str = "metrics";
const KEY: &str = "metrics";

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Options {
    pub event_name: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { event_name: "metrics".to_owned() }
    }
}

/// Counts in the run's state, so a restart loses nothing.
#[derive(Debug, Default)]
pub struct Metrics(Options);

impl Metrics {
    pub fn new(options: Options) -> Self {
        Self(options)
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Count {
    started_ms: u64,
    model_calls: u64,
    tool_calls: u64,
    tool_failures: u64,
}

fn count(stage: &mut Stage<'_>, change: impl FnOnce(&mut Count)) -> Count {
    let known = stage.state.get(KEY).cloned().unwrap_or(Value::Null);
    let mut count: Count = serde_json::from_value(known).unwrap_or_default();
    change(&mut count);
    stage.state.insert(KEY.to_owned(), json!(count));
    count
}

#[expect(clippy::disallowed_methods, reason = "a latency for people to read; nothing is decided by it")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Hook for Metrics {
    fn id(&self) -> &str {
        ID
    }

    fn nature(&self) -> Nature {
        let points =
            Points::of(&[HookName::OnUserMessage, HookName::OnAfterToolCall, HookName::OnAgentResponse]);
        Nature { points, ..Nature::default() }
    }

    fn on_user_message<'a>(&'a self, stage: &'a mut Stage<'_>, _: &'a mut Prompt) -> Step<'a> {
        count(stage, |count| {
            if count.started_ms == 0 {
                count.started_ms = now_ms();
            }
            count.model_calls += 1;
        });
        Box::pin(std::future::ready(Ok(())))
    }

    fn on_after_tool_call<'a>(&'a self, stage: &'a mut Stage<'_>, ran: &'a mut Ran) -> Step<'a> {
        let failed = ran.error.is_some();
        count(stage, |count| {
            count.tool_calls += 1;
            count.tool_failures += u64::from(failed);
        });
        Box::pin(std::future::ready(Ok(())))
    }

    fn on_agent_response<'a>(&'a self, stage: &'a mut Stage<'_>, answer: &'a mut Answer) -> Step<'a> {
        let count = count(stage, |_| {});
        let value = json!({
            "latencyMs": now_ms().saturating_sub(count.started_ms),
            "modelCalls": count.model_calls,
            "toolCalls": count.tool_calls,
            "toolFailures": count.tool_failures,
            "promptTokens": answer.usage.input_tokens,
            "completionTokens": answer.usage.output_tokens,
            "costMillionths": answer.cost,
        });
        stage.emit(&self.0.event_name, value);
        Box::pin(std::future::ready(Ok(())))
    }
}
