//! The request in the vendor's words.

use serde_json::{Map, Value, json};
use toolyard_protocol::agent::ToolChoice;

use super::WIRE;
use super::thinking::Thinking;
use super::turns::{History, write_turns};
use crate::clean::{Rules, clean, take_tools};
use crate::names::Names;
use crate::request::{OfferedTool, OutputSchema, Request};
use crate::wire::{Encoded, LeftOut};

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
    let (offered, mut left_out) = take_tools(&mut request, Rules::Object);
    let mut tools: Vec<Value> = match tools_on {
        true => offered.into_iter().map(|tool| spec(tool, &names)).collect(),
        false => Vec::new(),
    };
    tools.extend(request.take_hosted(WIRE));
    let mut options = match request.provider_options.and_then(|mut all| all.remove(WIRE)) {
        Some(Value::Object(options)) => options,
        _ => Map::new(),
    };
    let cached = options.remove("cachePoints") == Some(Value::Bool(true));

    let mut body = Map::new();
    // The vendor has no way to forbid tools that it is told of, and refuses
    // calls in the history without them. Then the history tells them in words.
    let history = if tools.is_empty() { History::InWords } else { History::AsCalls };
    let messages = write_turns(request.turns, &names, history, cached);
    let mut thinking = Thinking::of(&request.model, request.reasoning.as_ref());
    if !thinking.fits(&messages) {
        thinking = Thinking::default();
    }
    body.insert("messages".to_owned(), Value::from(messages));
    if let Some(text) = request.system.filter(|text| !text.trim().is_empty()) {
        body.insert("system".to_owned(), marked(vec![json!({ "text": text })], cached));
    }
    if !tools.is_empty() {
        let mut config = json!({ "tools": marked(tools, cached) });
        // Models that think choose for themselves.
        if request.tool_choice == ToolChoice::Required && !thinking.is_on() {
            config["toolChoice"] = json!({ "any": {} });
        }
        body.insert("toolConfig".to_owned(), config);
    }
    let mut limits = Map::new();
    if let Some(tokens) = thinking.room(request.max_output_tokens) {
        limits.insert("maxTokens".to_owned(), Value::from(tokens));
    }
    if let Some(temperature) = request.temperature.filter(|_| thinking.allows_temperature(&request.model)) {
        limits.insert("temperature".to_owned(), Value::from(temperature));
    }
    if !limits.is_empty() {
        body.insert("inferenceConfig".to_owned(), Value::Object(limits));
    }
    if let Some(fields) = thinking.fields {
        body.insert("additionalModelRequestFields".to_owned(), fields);
    }
    let mut output = Map::new();
    if let Some(effort) = thinking.effort {
        output.insert("effort".to_owned(), Value::from(effort));
    }
    if let Some(OutputSchema { name, schema, strict: _ }) = request.output {
        match clean(&schema, Rules::Output) {
            Ok(schema) => {
                output.insert("textFormat".to_owned(), text_format(&name, &schema));
            }
            Err(why) => left_out.push(LeftOut { name, reason: why.to_string() }),
        }
    }
    if !output.is_empty() {
        body.insert("outputConfig".to_owned(), Value::Object(output));
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

/// The vendor takes the schema as text and always keeps to it.
fn text_format(name: &str, schema: &Value) -> Value {
    let schema = json!({ "name": name, "schema": schema.to_string() });
    json!({ "type": "json_schema", "structure": { "jsonSchema": schema } })
}

fn spec(OfferedTool { name, description, schema }: OfferedTool, names: &Names) -> Value {
    let mut spec = json!({ "name": names.alias(&name), "inputSchema": { "json": schema } });
    if !description.trim().is_empty() {
        spec["description"] = Value::from(description);
    }
    json!({ "toolSpec": spec })
}
