//! The request in the vendor's words.

use serde_json::{Map, Value, json};
use toolyard_protocol::agent::{Reasoning, ReasoningEffort, ToolChoice};

use super::messages::push_turns;
use crate::clean::{Rules, clean, take_tools};
use crate::names::Names;
use crate::request::{OfferedTool, OutputSchema, Request};
use crate::wire::Encoded;

/// The body of a streamed chat completion. `provider_options.openai` is merged
/// last: its fields replace ours, and a `null` removes one.
pub fn encode(mut request: Request) -> Encoded {
    let names = Names::of(&request);
    let (tools, left_out) = take_tools(&mut request, Rules::Object);
    let hosted = request.take_hosted("openai");
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
    if !tools.is_empty() || !hosted.is_empty() {
        let choice = match request.tool_choice {
            ToolChoice::Auto => "auto",
            ToolChoice::Required => "required",
            ToolChoice::None => "none",
        };
        let tools: Vec<Value> =
            tools.into_iter().map(|offered| tool(offered, &names)).chain(hosted).collect();
        body.insert("tools".to_owned(), Value::from(tools));
        if choice != "auto" {
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
        let form = json!({ "type": "json_schema", "json_schema": json_schema(output) });
        body.insert("response_format".to_owned(), form);
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
    Encoded { body: Value::Object(body), names, left_out }
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

/// The form of an answer. The vendor enforces only schemas that require all
/// their fields; for others it tries its best.
pub(crate) fn json_schema(OutputSchema { name, schema, strict }: OutputSchema) -> Map<String, Value> {
    let closed = clean(&schema, Rules::Output).ok().filter(|closed| strict && requires_all(closed));
    let name = Names::new([name.as_str()]).alias(&name).to_owned();
    Map::from_iter([
        ("name".to_owned(), Value::from(name)),
        ("strict".to_owned(), Value::from(closed.is_some())),
        ("schema".to_owned(), closed.unwrap_or(schema)),
    ])
}

fn requires_all(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            let required = map.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let all = match map.get("properties") {
                Some(Value::Object(fields)) => {
                    fields.keys().all(|name| required.iter().any(|known| known == name.as_str()))
                }
                Some(_) | None => true,
            };
            all && map.values().all(requires_all)
        }
        Value::Array(list) => list.iter().all(requires_all),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn tool(OfferedTool { name, description, schema }: OfferedTool, names: &Names) -> Value {
    let function = json!({ "name": names.alias(&name), "description": description, "parameters": schema });
    json!({ "type": "function", "function": function })
}
