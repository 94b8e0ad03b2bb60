//! The request in the vendor's words.

use serde_json::{Map, Value, json};
use toolyard_protocol::agent::{Reasoning, ReasoningEffort, ToolChoice};

use super::messages::push_turns;
use crate::names::Names;
use crate::request::{OfferedTool, OutputSchema, Request};
use crate::wire::Encoded;

/// The body of a streamed chat completion. `provider_options.openai` is merged
/// last: its fields replace ours, and a `null` removes one.
pub fn encode(request: Request) -> Encoded {
    let names = Names::of(&request);
    let tools_on = request.tools_on();
    let mut body = Map::new();
    let role = system_role(request.reasoning.as_ref());
    let mut messages = Vec::with_capacity(request.turns.len() + 1);
    if let (Some(text), Some(role)) = (request.system, role) {
        messages.push(json!({ "role": role, "content": text }));
    }
    push_turns(request.turns, &names, &mut messages);
    // The vendor's newer models want another word for the same limit; most
    // other servers know only the old one.
    let limit = if thinks(&request.model) { "max_completion_tokens" } else { "max_tokens" };
    body.insert("model".to_owned(), Value::from(request.model));
    body.insert("messages".to_owned(), Value::from(messages));
    body.insert("stream".to_owned(), Value::from(true));
    body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    if !request.tools.is_empty() {
        let choice = match request.tool_choice {
            ToolChoice::Auto => "auto",
            ToolChoice::Required => "required",
            ToolChoice::None => "none",
        };
        let tools: Vec<Value> = request.tools.into_iter().map(|offered| tool(offered, &names)).collect();
        body.insert("tools".to_owned(), Value::from(tools));
        if !tools_on || choice != "auto" {
            body.insert("tool_choice".to_owned(), Value::from(choice));
        }
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), Value::from(temperature));
    }
    if let Some(tokens) = request.max_output_tokens {
        body.insert(limit.to_owned(), Value::from(tokens));
    }
    if let Some(effort) = request.reasoning.filter(|r| r.enabled).and_then(|r| r.effort) {
        body.insert("reasoning_effort".to_owned(), Value::from(effort_word(effort)));
    }
    if let Some(output) = request.output {
        body.insert("response_format".to_owned(), form(output));
    }
    if let Some(Value::Object(mut options)) = request.provider_options.and_then(|mut o| o.remove("openai")) {
        // The same switch as on the vendor's newer wire.
        match options.remove("web_search") {
            Some(Value::Bool(true)) => drop(body.insert("web_search_options".to_owned(), json!({}))),
            Some(settings @ Value::Object(_)) => drop(body.insert("web_search_options".to_owned(), settings)),
            Some(_) | None => {}
        }
        for (name, value) in options {
            match value {
                Value::Null => body.remove(&name),
                value => body.insert(name, value),
            };
        }
    }
    Encoded { body: Value::Object(body), names, left_out: Vec::new() }
}

/// Reasoning models of some vendors want another role for the system text, or
/// none.
fn system_role(reasoning: Option<&Reasoning>) -> Option<&'static str> {
    match reasoning.and_then(|r| r.system_message_mode.as_deref()) {
        Some("developer") => Some("developer"),
        Some("remove") => None,
        _ => Some("system"),
    }
}

pub(crate) fn effort_word(effort: ReasoningEffort) -> &'static str {
    match effort {
        ReasoningEffort::None => "none",
        ReasoningEffort::Minimal => "minimal",
        ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High => "high",
        ReasoningEffort::XHigh => "xhigh",
    }
}

/// The vendor's models that think, by their names.
pub(crate) fn thinks(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let generation = |prefix: &str| {
        let digits = name.strip_prefix(prefix)?;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits.get(..end)?.parse::<u32>().ok()
    };
    generation("o").is_some()
        || name.starts_with("codex")
        || (generation("gpt-").is_some_and(|n| n >= 5) && !name.contains("-chat"))
}

fn form(OutputSchema { name, schema, strict }: OutputSchema) -> Value {
    let name = Names::new([name.as_str()]).alias(&name).to_owned();
    json!({ "type": "json_schema", "json_schema": { "name": name, "schema": schema, "strict": strict } })
}

fn tool(OfferedTool { name, description, schema }: OfferedTool, names: &Names) -> Value {
    let function = json!({ "name": names.alias(&name), "description": description, "parameters": schema });
    json!({ "type": "function", "function": function })
}
