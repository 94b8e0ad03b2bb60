//! The request in the vendor's words.

use serde_json::{Map, Value, json};
use toolyard_protocol::agent::{Reasoning, ReasoningEffort, ToolChoice};

use super::WIRE;
use super::turns::{History, write_turns};
use crate::clean::{Rules, take_tools};
use crate::names::Names;
use crate::request::{OfferedTool, OutputSchema, Request};
use crate::wire::Encoded;

/// The fewest tokens for thinking that a model takes.
const THINKING_LEAST: u32 = 1024;
/// Tokens for the answer beside the thinking, if the agent sets no limit.
const ANSWER_TOKENS: u32 = 8192;

/// The body of a streamed Converse call. The model's name is no part of it: it
/// belongs to the address.
///
/// `provider_options.bedrock` is merged last: its fields replace ours, and a
/// `null` removes one. `cachePoints: true` there is ours: it marks what the
/// vendor may keep (tools, system, history). It is off unless asked for, since
/// models without a cache refuse the marks.
pub fn encode(mut request: Request) -> Encoded {
    let names = Names::of(&request);
    let tools_on = request.tools_on();
    let (offered, left_out) = take_tools(&mut request, Rules::Object);
    let tools: Vec<Value> = match tools_on {
        true => offered.into_iter().map(|tool| spec(tool, &names)).collect(),
        false => Vec::new(),
    };
    let mut options = match request.provider_options.and_then(|mut all| all.remove(WIRE)) {
        Some(Value::Object(options)) => options,
        _ => Map::new(),
    };
    let cached = options.remove("cachePoints") == Some(Value::Bool(true));
    let thinking = request.reasoning.as_ref().and_then(|wish| thinking(&request.model, wish));

    let mut body = Map::new();
    // The vendor has no way to forbid tools that it is told of, and refuses
    // calls in the history without them. Then the history tells them in words.
    let history = if tools.is_empty() { History::InWords } else { History::AsCalls };
    let messages = write_turns(request.turns, &names, history, cached);
    body.insert("messages".to_owned(), Value::from(messages));
    if let Some(text) = request.system.filter(|text| !text.trim().is_empty()) {
        body.insert("system".to_owned(), marked(vec![json!({ "text": text })], cached));
    }
    if !tools.is_empty() {
        let mut config = json!({ "tools": marked(tools, cached) });
        // Models that think choose for themselves.
        if request.tool_choice == ToolChoice::Required && thinking.is_none() {
            config["toolChoice"] = json!({ "any": {} });
        }
        body.insert("toolConfig".to_owned(), config);
    }
    let mut limits = Map::new();
    let tokens = match &thinking {
        Some(Thinking { budget: Some(budget), .. }) => Some(room_for(*budget, request.max_output_tokens)),
        _ => request.max_output_tokens,
    };
    if let Some(tokens) = tokens {
        limits.insert("maxTokens".to_owned(), Value::from(tokens));
    }
    // Models that think refuse any other temperature than their own.
    if let (Some(temperature), None) = (request.temperature, &thinking) {
        limits.insert("temperature".to_owned(), Value::from(temperature));
    }
    if !limits.is_empty() {
        body.insert("inferenceConfig".to_owned(), Value::Object(limits));
    }
    if let Some(Thinking { fields, .. }) = thinking {
        body.insert("additionalModelRequestFields".to_owned(), fields);
    }
    if let Some(OutputSchema { name, schema, strict: _ }) = request.output {
        // The vendor takes the schema as text and always keeps to it.
        let schema = json!({ "name": name, "schema": schema.to_string() });
        let format = json!({ "type": "json_schema", "structure": { "jsonSchema": schema } });
        body.insert("outputConfig".to_owned(), json!({ "textFormat": format }));
    }
    for (name, value) in options {
        match value {
            Value::Null => body.remove(&name),
            value => body.insert(name, value),
        };
    }
    Encoded { body: Value::Object(body), names, left_out }
}

pub(super) fn cache_point() -> Value {
    json!({ "cachePoint": { "type": "default" } })
}

fn marked(mut blocks: Vec<Value>, cached: bool) -> Value {
    if cached {
        blocks.push(cache_point());
    }
    Value::from(blocks)
}

fn spec(OfferedTool { name, description, schema }: OfferedTool, names: &Names) -> Value {
    let mut spec = json!({ "name": names.alias(&name), "inputSchema": { "json": schema } });
    if !description.trim().is_empty() {
        spec["description"] = Value::from(description);
    }
    json!({ "toolSpec": spec })
}

/// How this model is told to think.
struct Thinking {
    /// Part of the output tokens.
    budget: Option<u32>,
    fields: Value,
}

/// The families behind this vendor have a way each. `None` if the agent does
/// not want it, or the model has no known way.
fn thinking(model: &str, wish: &Reasoning) -> Option<Thinking> {
    let effort = wish.effort.unwrap_or(ReasoningEffort::Medium);
    if !wish.enabled || effort == ReasoningEffort::None {
        return None;
    }
    if model.contains("anthropic.") {
        let budget = wish.budget_tokens.unwrap_or_else(|| budget_of(effort)).max(THINKING_LEAST);
        let fields = json!({ "thinking": { "type": "enabled", "budget_tokens": budget } });
        return Some(Thinking { budget: Some(budget), fields });
    }
    let word = match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High | ReasoningEffort::XHigh => "high",
    };
    if model.contains("amazon.nova-2") {
        let fields = json!({ "reasoningConfig": { "type": "enabled", "maxReasoningEffort": word } });
        return Some(Thinking { budget: None, fields });
    }
    if model.contains("openai.") {
        return Some(Thinking { budget: None, fields: json!({ "reasoning_effort": word }) });
    }
    None
}

fn budget_of(effort: ReasoningEffort) -> u32 {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal => THINKING_LEAST,
        ReasoningEffort::Low => 2048,
        ReasoningEffort::Medium => 8192,
        ReasoningEffort::High => 16_384,
        ReasoningEffort::XHigh => 32_768,
    }
}

/// Thinking counts as output, so that a limit below it leaves no answer.
fn room_for(budget: u32, wanted: Option<u32>) -> u32 {
    match wanted {
        Some(limit) if limit > budget => limit,
        limit => budget.saturating_add(limit.unwrap_or(ANSWER_TOKENS)),
    }
}
