//! The request in the vendor's words.

use serde_json::{Map, Value, json};
use toolyard_protocol::agent::ToolChoice;

use super::WIRE;
use super::thinking::Thinking;
use super::turns::{History, write_turns};
use crate::anthropic::thinking::takes_form;
use crate::clean::{Rules, clean, take_tools};
use crate::names::Names;
use crate::request::{OfferedTool, Request};
use crate::wire::{Encoded, LeftOut};

/// From here on this vendor holds a Claude to the form of an answer.
const FORMS_SINCE: (u32, u32) = (4, 5);

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
    let mut options = request.take_options(WIRE);
    let form = form(&mut request, &mut left_out);
    let cached = options.remove("cachePoints") == Some(Value::Bool(true));

    let mut body = Map::new();
    // The vendor has no way to forbid tools that it is told of, and refuses
    // calls in the history without them. Then the history tells them in words.
    let history = if tools.is_empty() { History::InWords } else { History::AsCalls };
    let messages = write_turns(request.turns, &names, history, cached, takes_citations(&request.model));
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
    if let Some(form) = form {
        output.insert("textFormat".to_owned(), form);
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

/// The families that cite. Others refuse the block.
fn takes_citations(model: &str) -> bool {
    ["anthropic.", "amazon.nova"].iter().any(|family| model.contains(family))
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

/// The form of the answer, taken out of the request. Families that cannot be
/// held to one are asked in words.
fn form(request: &mut Request, left_out: &mut Vec<LeftOut>) -> Option<Value> {
    let output = request.output.take()?;
    let cleaned = match request.holds_to_form(holds_to_form) {
        Ok(()) => clean(&output.schema, Rules::Output).map_err(|why| why.to_string()),
        Err(why) => Err(why.to_owned()),
    };
    match cleaned {
        Ok(schema) => Some(text_format(&output.name, &schema)),
        Err(why) => {
            left_out.push(request.ask_in_words(output, &why));
            None
        }
    }
}

fn holds_to_form(model: &str) -> bool {
    let without = ["amazon.", "meta.", "cohere.", "ai21."];
    match model.contains("anthropic.claude") {
        true => takes_form(model, FORMS_SINCE),
        false => !without.iter().any(|family| model.contains(family)),
    }
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
