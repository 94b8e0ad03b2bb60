//! The request in the vendor's words.

use serde_json::{Map, Value, json};
use toolyard_protocol::agent::{Reasoning, ReasoningEffort, ToolChoice};

use super::WIRE;
use super::contents::contents;
use super::version::Version;
use crate::clean::{Rules, clean, take_tools};
use crate::names::Names;
use crate::request::{OfferedTool, Request};
use crate::wire::{Encoded, LeftOut};

/// The body of a streamed request. `provider_options.gemini` is merged last:
/// its fields replace ours, those of `generationConfig` one by one, and a
/// `null` removes one. Its `google_search` offers the vendor's own search:
/// `true`, or the settings of that tool.
pub fn encode(mut request: Request) -> Encoded {
    let names = Names::lettered(&request);
    let version = Version::of(&request.model);
    let (tools, mut left_out) = take_tools(&mut request, Rules::Gemini);
    let hosted = request.take_hosted(WIRE);
    let mut options = request.take_options(WIRE);
    let form = form(&mut request, version, &mut left_out);
    let search = options.remove("google_search").and_then(google_search);
    let mut offered: Vec<Value> = search.into_iter().chain(hosted).collect();
    let functions: Vec<Value> = tools.into_iter().map(|offered| function(offered, &names)).collect();

    let mut body = Map::new();
    let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
    put("contents", Value::from(contents(request.turns, &names, version)));
    if let Some(text) = request.system.filter(|text| !text.is_empty()) {
        put("systemInstruction", json!({ "parts": [{ "text": text }] }));
    }
    if let Some(settings) = tool_config(&functions, !offered.is_empty(), request.tool_choice, version) {
        put("toolConfig", settings);
    }
    if !functions.is_empty() {
        offered.insert(0, json!({ "functionDeclarations": functions }));
    }
    if !offered.is_empty() {
        put("tools", Value::from(offered));
    }

    let mut config = Map::new();
    if let Some(temperature) = request.temperature {
        config.insert("temperature".to_owned(), Value::from(temperature));
    }
    if let Some(tokens) = request.max_output_tokens {
        config.insert("maxOutputTokens".to_owned(), Value::from(tokens));
    }
    if let Some(reasoning) = request.reasoning.filter(|r| r.enabled) {
        config.insert("thinkingConfig".to_owned(), thinking(&reasoning, version));
    }
    config.extend(form.unwrap_or_default());
    if let Some(Value::Object(theirs)) = options.remove("generationConfig") {
        merge(&mut config, theirs);
    }
    if !config.is_empty() {
        put("generationConfig", Value::Object(config));
    }
    merge(&mut body, options);
    Encoded { body: Value::Object(body), names, left_out }
}

fn merge(ours: &mut Map<String, Value>, theirs: Map<String, Value>) {
    for (name, value) in theirs {
        match value {
            Value::Null => ours.remove(&name),
            value => ours.insert(name, value),
        };
    }
}

fn function(OfferedTool { name, description, schema }: OfferedTool, names: &Names) -> Value {
    let mut function = json!({ "name": names.alias(&name), "description": description });
    // The vendor wants no schema at all for a tool without arguments.
    if schema.get("properties").is_some() {
        function["parameters"] = schema;
    }
    function
}

fn google_search(setting: Value) -> Option<Value> {
    match setting {
        Value::Bool(true) => Some(json!({ "googleSearch": {} })),
        Value::Object(settings) => Some(json!({ "googleSearch": settings })),
        _ => None,
    }
}

fn tool_config(functions: &[Value], search: bool, choice: ToolChoice, version: Version) -> Option<Value> {
    if functions.is_empty() {
        return None;
    }
    let mode = match choice {
        ToolChoice::Auto => None,
        ToolChoice::Required => Some("ANY"),
        ToolChoice::None => Some("NONE"),
    };
    let mut settings = Map::new();
    if let Some(mode) = mode {
        settings.insert("functionCallingConfig".to_owned(), json!({ "mode": mode }));
    }
    // Older models refuse both kinds of tools together in any case.
    if search && version.is_at_least(3, 0) {
        settings.insert("includeServerSideToolInvocations".to_owned(), Value::from(true));
    }
    (!settings.is_empty()).then_some(Value::Object(settings))
}

/// Newer models know levels, older ones a budget of tokens.
fn thinking(reasoning: &Reasoning, version: Version) -> Value {
    let mut settings = json!({ "includeThoughts": reasoning.include_thoughts.unwrap_or(true) });
    match (reasoning.budget_tokens, reasoning.effort) {
        (Some(tokens), _) => settings["thinkingBudget"] = Value::from(tokens),
        (None, Some(effort)) if version.is_at_least(3, 0) => {
            settings["thinkingLevel"] = Value::from(match effort {
                ReasoningEffort::None | ReasoningEffort::Minimal => "minimal",
                ReasoningEffort::Low => "low",
                ReasoningEffort::Medium => "medium",
                ReasoningEffort::High | ReasoningEffort::XHigh => "high",
            });
        }
        (None, Some(effort)) => {
            settings["thinkingBudget"] = Value::from(match effort {
                ReasoningEffort::None => 0,
                ReasoningEffort::Minimal => 512,
                ReasoningEffort::Low => 1024,
                ReasoningEffort::Medium => 8192,
                // The most that every model of that time takes.
                ReasoningEffort::High | ReasoningEffort::XHigh => 24_576,
            });
        }
        (None, None) => {}
    }
    settings
}

/// The form of the answer, taken out of the request. Newer models take JSON
/// Schema, older ones the vendor's own. What neither can say is asked in words.
fn form(request: &mut Request, version: Version, left_out: &mut Vec<LeftOut>) -> Option<Map<String, Value>> {
    let output = request.output.take()?;
    if let Err(why) = request.holds_to_form(|_| true) {
        left_out.push(request.ask_in_words(output, &why));
        return None;
    }
    let (field, rules) = match version.is_at_least(2, 5) {
        true => ("responseJsonSchema", Rules::GeminiOutput),
        false => ("responseSchema", Rules::GeminiOldOutput),
    };
    let cleaned = clean(&output.schema, rules);
    if let Err(why) = &cleaned {
        left_out.push(request.ask_in_words(output, why));
    }
    let mut form = Map::new();
    form.insert("responseMimeType".to_owned(), Value::from("application/json"));
    form.extend(cleaned.ok().map(|schema| (field.to_owned(), schema)));
    Some(form)
}
