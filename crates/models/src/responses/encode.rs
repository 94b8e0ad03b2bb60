//! The request in the vendor's words. The vendor keeps nothing for us: every
//! request carries the whole conversation.

use serde_json::{Map, Value, json};
use toolyard_protocol::agent::{Reasoning, ToolChoice};

use super::items::input;
use crate::clean::{Rules, take_tools};
use crate::names::Names;
use crate::openai::encode::{VENDOR, effort_word, form, takes_temperature, thinks};
use crate::request::{OfferedTool, Request};
use crate::wire::Encoded;

/// The body of a streamed response. `provider_options.openai` is merged last:
/// its fields replace ours, and a `null` removes one. Its `web_search` offers
/// the vendor's own search: `true`, or the settings of that tool.
pub fn encode(mut request: Request) -> Encoded {
    let names = Names::of(&request);
    let (tools, mut left_out) = take_tools(&mut request, Rules::Object);
    let hosted = request.take_hosted(VENDOR);
    let mut options = request.take_options(VENDOR);
    let form = form(&mut request, &mut left_out);
    let Request {
        model,
        system,
        turns,
        tools: _,
        tool_choice,
        temperature,
        max_output_tokens,
        reasoning,
        provider_options: _,
        provider_tools: _,
        output: _,
        structured_output: _,
        trace: _,
    } = request;
    let search = options.remove("web_search").and_then(web_search);
    let mut tools: Vec<Value> = tools.into_iter().map(|offered| tool(offered, &names)).collect();
    tools.extend(search);
    tools.extend(hosted);

    let role = reasoning.as_ref().and_then(|r| r.system_message_mode.as_deref());
    let tempered = takes_temperature(&model, reasoning.as_ref());
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
    if may_think(&model, reasoning.as_ref()) {
        put("include", json!(["reasoning.encrypted_content"]));
    }
    put("model", Value::from(model));
    put("input", Value::from(input(turns, &names, role == Some("developer"))));
    put("stream", Value::from(true));
    put("store", Value::from(false));
    if let Some(text) = system.filter(|_| role != Some("remove")) {
        put("instructions", Value::from(text));
    }
    if !tools.is_empty() {
        put("tools", Value::from(tools));
        match tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => drop(put("tool_choice", Value::from("required"))),
            ToolChoice::None => drop(put("tool_choice", Value::from("none"))),
        }
    }
    if let Some(temperature) = temperature.filter(|_| tempered) {
        put("temperature", Value::from(temperature));
    }
    if let Some(tokens) = max_output_tokens {
        put("max_output_tokens", Value::from(tokens));
    }
    if let Some(settings) = reasoning.filter(|r| r.enabled).and_then(thinking) {
        put("reasoning", settings);
    }
    if let Some(mut format) = form {
        format.insert("type".to_owned(), Value::from("json_schema"));
        put("text", json!({ "format": format }));
    }
    for (name, value) in options {
        match value {
            Value::Null => body.remove(&name),
            value => body.insert(name, value),
        };
    }
    Encoded { body: Value::Object(body), names, left_out }
}

fn tool(OfferedTool { name, description, schema }: OfferedTool, names: &Names) -> Value {
    json!({
        "type": "function",
        "name": names.alias(&name),
        "description": description,
        "parameters": schema,
        // The vendor's strict form forbids optional fields.
        "strict": false,
    })
}

fn web_search(setting: Value) -> Option<Value> {
    match setting {
        Value::Bool(true) => Some(json!({ "type": "web_search" })),
        Value::Object(mut settings) => {
            settings.entry("type").or_insert_with(|| Value::from("web_search"));
            Some(Value::Object(settings))
        }
        _ => None,
    }
}

fn thinking(reasoning: Reasoning) -> Option<Value> {
    let mut settings = Map::new();
    if let Some(effort) = reasoning.effort {
        settings.insert("effort".to_owned(), Value::from(effort_word(effort)));
    }
    let summary = match reasoning.include_thoughts {
        Some(false) => None,
        Some(true) => Some(reasoning.summary.unwrap_or_else(|| "auto".to_owned())),
        None => reasoning.summary,
    };
    if let Some(summary) = summary {
        settings.insert("summary".to_owned(), Value::from(summary));
    }
    (!settings.is_empty()).then_some(Value::Object(settings))
}

/// Only models that think take a request for sealed thoughts; the others
/// refuse it.
fn may_think(model: &str, reasoning: Option<&Reasoning>) -> bool {
    thinks(model) || reasoning.is_some_and(|r| r.enabled || r.force_reasoning == Some(true))
}
