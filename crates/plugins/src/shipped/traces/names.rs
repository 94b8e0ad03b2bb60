//! The words of OpenTelemetry's conventions for generative AI. They still move:
//! ours stand here alone.

use serde_json::{Value, json};
use toolyard_protocol::run::FinishReason;

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const AGENT: &str = "gen_ai.agent.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const MODEL: &str = "gen_ai.request.model";
pub(super) const ANSWERED: &str = "gen_ai.response.model";
pub(super) const FINISH: &str = "gen_ai.response.finish_reasons";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const TOOL: &str = "gen_ai.tool.name";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(super) const CALL: &str = "gen_ai.tool.call.id";
pub(super) const INPUT: &str = "gen_ai.input.messages";
pub(super) const OUTPUT: &str = "gen_ai.output.messages";
pub(super) const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const RESULT: &str = "gen_ai.tool.call.result";
pub(super) const ERROR: &str = "error.type";
/// The conventions have no word for these.
pub(super) const COST: &str = "gen_ai.usage.cost";
pub(super) const RUN: &str = "toolyard.run.id";
pub(super) const STATUS: &str = "toolyard.run.status";
pub(super) const STEP: &str = "toolyard.step";

/// A vendor by the conventions' name for it.
pub(super) fn provider(vendor: &str) -> &str {
    match vendor {
        "gemini" => "gcp.gemini",
        "bedrock" => "aws.bedrock",
        other => other,
    }
}

pub(super) fn finish(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::MaxSteps => "max_steps",
        FinishReason::Stopped => "stopped",
        FinishReason::Paused => "paused",
        FinishReason::Other => "other",
    }
}

/// A list of one message.
pub(super) fn message(role: &str, text: &str, finish: Option<&str>) -> Value {
    let mut message = json!({ "role": role, "parts": [{ "type": "text", "content": text }] });
    if let Some(finish) = finish {
        message["finish_reason"] = json!(finish);
    }
    json!([message])
}
