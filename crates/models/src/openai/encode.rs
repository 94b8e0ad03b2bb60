//! The request in the vendor's words.

use serde_json::{Map, Value, json};
use toolyard_protocol::agent::{Reasoning, ReasoningEffort, ToolChoice};
use toolyard_protocol::message::{Part, text_of};

use crate::clean::{Rules, take_tools};
use crate::names::Names;
use crate::pairs::paired;
use crate::request::{ChatTurn, OfferedTool, PastCall, PastResult, Request};
use crate::wire::Encoded;

/// Characters of a speaker's name.
const SPEAKER_CHARS: usize = 64;

/// The body of a streamed chat completion. `provider_options.openai` is merged
/// last: its fields replace ours, and a `null` removes one.
pub fn encode(mut request: Request) -> Encoded {
    let names = Names::of(&request);
    let (tools, left_out) = take_tools(&mut request, Rules::Object);
    let mut body = Map::new();
    let role = system_role(request.reasoning.as_ref());
    let mut messages = Vec::with_capacity(request.turns.len() + 1);
    if let (Some(text), Some(role)) = (request.system, role) {
        messages.push(json!({ "role": role, "content": text }));
    }
    for turn in paired(request.turns) {
        push_turn(turn, &names, &mut messages);
    }
    body.insert("model".to_owned(), Value::from(request.model));
    body.insert("messages".to_owned(), Value::from(messages));
    body.insert("stream".to_owned(), Value::from(true));
    body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    if !tools.is_empty() {
        let choice = match request.tool_choice {
            ToolChoice::Auto => "auto",
            ToolChoice::Required => "required",
            ToolChoice::None => "none",
        };
        let tools: Vec<Value> = tools.into_iter().map(|offered| tool(offered, &names)).collect();
        body.insert("tools".to_owned(), Value::from(tools));
        if choice != "auto" {
            body.insert("tool_choice".to_owned(), Value::from(choice));
        }
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), Value::from(temperature));
    }
    if let Some(tokens) = request.max_output_tokens {
        body.insert("max_tokens".to_owned(), Value::from(tokens));
    }
    if let Some(effort) = request.reasoning.filter(|r| r.enabled).and_then(|r| r.effort) {
        body.insert("reasoning_effort".to_owned(), Value::from(effort_word(effort)));
    }
    if let Some(Value::Object(options)) = request.provider_options.and_then(|mut o| o.remove("openai")) {
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

fn effort_word(effort: ReasoningEffort) -> &'static str {
    match effort {
        ReasoningEffort::None => "none",
        ReasoningEffort::Minimal => "minimal",
        ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High => "high",
        ReasoningEffort::XHigh => "xhigh",
    }
}

fn tool(OfferedTool { name, description, schema }: OfferedTool, names: &Names) -> Value {
    let function = json!({ "name": names.alias(&name), "description": description, "parameters": schema });
    json!({ "type": "function", "function": function })
}

fn push_turn(turn: ChatTurn, names: &Names, messages: &mut Vec<Value>) {
    match turn {
        ChatTurn::User { parts, name } => {
            let mut message = json!({ "role": "user", "content": user_content(parts) });
            if let Some(name) = name.as_deref().and_then(speaker) {
                message["name"] = Value::from(name);
            }
            messages.push(message);
        }
        ChatTurn::Assistant { parts, calls } => {
            let text = text_of(&parts);
            // The vendor wants `null` beside calls, and text without them.
            let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { Value::from(text) };
            let mut message = json!({ "role": "assistant", "content": content });
            if !calls.is_empty() {
                message["tool_calls"] = calls.into_iter().map(|call| past_call(call, names)).collect();
            }
            messages.push(message);
        }
        ChatTurn::ToolResults(results) => messages.extend(results.into_iter().map(past_result)),
        ChatTurn::System(text) => messages.push(json!({ "role": "system", "content": text })),
    }
}

fn past_call(PastCall { id, name, args, mut metadata }: PastCall, names: &Names) -> Value {
    let function = json!({ "name": names.alias(&name), "arguments": args.to_string() });
    let mut call = json!({ "id": id.as_str(), "type": "function", "function": function });
    if let Some(extra) = metadata.pointer_mut("/openai/extra_content") {
        call["extra_content"] = extra.take();
    }
    call
}

fn past_result(PastResult { call, name: _, content, is_error }: PastResult) -> Value {
    // The wire has no field for failure.
    let content = if is_error { format!("Error: {content}") } else { content };
    json!({ "role": "tool", "tool_call_id": call.as_str(), "content": content })
}

fn user_content(parts: Vec<Part>) -> Value {
    if !parts.iter().any(|part| matches!(part, Part::File { .. })) {
        return Value::from(text_of(&parts));
    }
    parts.into_iter().filter_map(user_part).collect()
}

fn user_part(part: Part) -> Option<Value> {
    match part {
        Part::Text { text } => Some(json!({ "type": "text", "text": text })),
        Part::File { media_type, file: _, url, name } => Some(file_part(&media_type, url, name)),
        Part::Reasoning { .. }
        | Part::Source { .. }
        | Part::ToolCall { .. }
        | Part::ToolResult { .. }
        | Part::Data { .. }
        | Part::Opaque { .. } => None,
    }
}

/// Images go by address. Other files only go inside the request; an address
/// of one is told to the model as text.
fn file_part(media_type: &str, url: Option<String>, name: Option<String>) -> Value {
    let name = name.unwrap_or_else(|| "file".to_owned());
    match url {
        Some(url) if media_type.starts_with("image/") => {
            json!({ "type": "image_url", "image_url": { "url": url } })
        }
        Some(data) if data.starts_with("data:") => {
            json!({ "type": "file", "file": { "filename": name, "file_data": data } })
        }
        Some(url) => {
            json!({ "type": "text", "text": format!("[file {name} ({media_type}): {url}]") })
        }
        None => {
            json!({ "type": "text", "text": format!("[file {name} ({media_type}) is not readable here]") })
        }
    }
}

/// A name that the vendor accepts, if anything is left of it.
fn speaker(name: &str) -> Option<String> {
    let fits = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }
    };
    let name: String = name.trim().chars().take(SPEAKER_CHARS).map(fits).collect();
    name.contains(|c: char| c != '_').then_some(name)
}
