//! The request in the vendor's words.

use serde_json::{Map, Value, json};
use toolyard_protocol::agent::{Reasoning, ReasoningEffort, ToolChoice};

use super::body::{Body, Content, Field, Function, Message, Tool};
use super::messages::push_turns;
use crate::clean::{BadSchema, Rules, clean, take_tools};
use crate::names::Names;
use crate::request::{OfferedTool, OutputSchema, Request};
use crate::wire::{Encoded, LeftOut};

/// Whose options and tools these are.
pub(crate) const VENDOR: &str = "openai";

/// The body of a streamed chat completion, to look at.
pub fn encode(request: Request) -> Encoded {
    let Encoded { body, names, left_out } = write(request);
    // Texts as keys: it cannot fail.
    Encoded { body: serde_json::to_value(body).unwrap_or_default(), names, left_out }
}

/// As [`encode`], to be sent. `provider_options.openai` is merged last: its
/// fields replace ours, and a `null` removes one.
pub(super) fn write(mut request: Request) -> Encoded<Body> {
    let names = Names::of(&request);
    let (tools, mut left_out) = take_tools(&mut request, Rules::Object);
    let hosted = request.take_hosted(VENDOR);
    let mut options = request.take_options(VENDOR);
    let form = form(&mut request, &mut left_out);
    let mut body = Body::default();
    let role = system_role(request.reasoning.as_ref());
    let mut messages = Vec::with_capacity(request.turns.len() + 1);
    if let (Some(text), Some(role)) = (request.system, role) {
        messages.push(Message::new(role, Content::Text(text)));
    }
    push_turns(request.turns, &names, &mut messages);
    // The vendor's newer models want another word for the same limit; most
    // other servers know only the old one.
    let limit = if thinks(&request.model) { "max_completion_tokens" } else { "max_tokens" };
    let tempered = takes_temperature(&request.model, request.reasoning.as_ref());
    body.set("model", request.model);
    body.set("messages", Field::Messages(messages));
    body.set("stream", true);
    body.set("stream_options", json!({ "include_usage": true }));
    if !tools.is_empty() || !hosted.is_empty() {
        let choice = match request.tool_choice {
            ToolChoice::Auto => "auto",
            ToolChoice::Required => "required",
            ToolChoice::None => "none",
        };
        let hosted = hosted.into_iter().map(Tool::Hosted);
        let tools = tools.into_iter().map(|offered| tool(offered, &names)).chain(hosted).collect();
        body.set("tools", Field::Tools(tools));
        if choice != "auto" {
            body.set("tool_choice", choice);
        }
    }
    if let Some(temperature) = request.temperature.filter(|_| tempered) {
        body.set("temperature", temperature);
    }
    if let Some(tokens) = request.max_output_tokens {
        body.set(limit, tokens);
    }
    if let Some(effort) = request.reasoning.filter(|r| r.enabled).and_then(|r| r.effort) {
        body.set("reasoning_effort", effort_word(effort));
    }
    if let Some(form) = form {
        body.set("response_format", json!({ "type": "json_schema", "json_schema": form }));
    }
    // The same switch as on the vendor's newer wire.
    match options.remove("web_search") {
        Some(Value::Bool(true)) => body.set("web_search_options", json!({})),
        Some(settings @ Value::Object(_)) => body.set("web_search_options", settings),
        Some(_) | None => {}
    }
    body.replace(options);
    Encoded { body, names, left_out }
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

/// The vendor's models that think refuse every temperature while they do.
pub(crate) fn takes_temperature(model: &str, reasoning: Option<&Reasoning>) -> bool {
    let off = reasoning.is_some_and(|r| r.enabled && r.effort == Some(ReasoningEffort::None));
    !thinks(model) || off
}

/// The form of the answer, taken out of the request. A schema that the vendor
/// cannot take at all is asked for in words.
pub(crate) fn form(request: &mut Request, left_out: &mut Vec<LeftOut>) -> Option<Map<String, Value>> {
    let output = request.output.take()?;
    let form = match request.holds_to_form(|_| true) {
        Ok(()) => json_schema(&output).map_err(|why| why.to_string()),
        Err(why) => Err(why.to_owned()),
    };
    match form {
        Ok(form) => Some(form),
        Err(why) => {
            left_out.push(request.ask_in_words(output, &why));
            None
        }
    }
}

/// The vendor enforces only schemas that require all their fields; for others
/// it tries its best.
fn json_schema(output: &OutputSchema) -> Result<Map<String, Value>, BadSchema> {
    let OutputSchema { name, schema, strict } = output;
    let closed = if *strict { clean(schema, Rules::Strict).ok() } else { None };
    let strict = closed.is_some();
    let schema = closed.map_or_else(|| clean(schema, Rules::Object), Ok)?;
    let name = Names::new([name.as_str()]).alias(name).to_owned();
    Ok(Map::from_iter([
        ("name".to_owned(), Value::from(name)),
        ("strict".to_owned(), Value::from(strict)),
        ("schema".to_owned(), schema),
    ]))
}

fn tool(OfferedTool { name, description, schema }: OfferedTool, names: &Names) -> Tool {
    let function = Function { name: names.told(name), description, parameters: schema };
    Tool::Offered { kind: "function", function }
}
