//! The request in the vendor's words.

use serde_json::{Map, Value, json};

use super::options::Options;
use super::thinking::{FORMS_SINCE, Thinking, takes_form, takes_temperature, version};
use super::{WIRE, talk, tools};
use crate::clean::{Rules, clean, take_tools};
use crate::names::Names;
use crate::pairs::paired;
use crate::request::{ChatTurn, Request};
use crate::wire::{Encoded, LeftOut};

/// Tokens of a reply if nobody says how many. The vendor wants a number.
const MAX_TOKENS: u32 = 16_000;
/// The same for models of the third generation.
const MAX_TOKENS_OLD: u32 = 4096;

/// The body of a streamed message. `provider_options.anthropic` is merged
/// last: its fields replace ours, and a `null` removes one.
pub fn encode(mut request: Request) -> Encoded {
    let names = Names::of(&request);
    let options = Options::take(&mut request);
    let hosted: Vec<Value> = options.web_search.into_iter().chain(request.take_hosted(WIRE)).collect();
    let (offered, mut left_out) = take_tools(&mut request, Rules::Object);
    let form = form(&mut request, &mut left_out);
    let (system, turns) = system_and_turns(request.system, paired(request.turns));
    let mut thinking = Thinking::of(&request.model, request.reasoning.as_ref());
    let tools::Offer { mut tools, choice } =
        tools::offer(offered, hosted, &turns, &names, request.tool_choice, thinking.is_on());
    let mut messages = talk::messages(turns, &names);
    if thinking.budget.is_some() && !may_think(&messages) {
        thinking = Thinking::default();
    }
    let mut system: Vec<Value> =
        system.into_iter().map(|text| json!({ "type": "text", "text": text })).collect();
    if let Some(mark) = &options.cache {
        mark_last(&mut system, mark);
        mark_last(&mut tools, mark);
        if let Some(content) = messages.last_mut().and_then(|last| last["content"].as_array_mut()) {
            mark_last(content, mark);
        }
    }

    let tempered = takes_temperature(&request.model);
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
    put("max_tokens", json!(max_tokens(&request.model, request.max_output_tokens, thinking.budget)));
    put("model", json!(request.model));
    put("messages", Value::Array(messages));
    put("stream", json!(true));
    if !system.is_empty() {
        put("system", Value::Array(system));
    }
    if !tools.is_empty() {
        put("tools", Value::Array(tools));
    }
    if let Some(choice) = choice {
        put("tool_choice", choice);
    }
    // The vendor refuses another temperature than its own while thinking.
    if let Some(temperature) = request.temperature.filter(|_| tempered && !thinking.is_on()) {
        put("temperature", json!(temperature));
    }
    if let Some(config) = output_config(form, thinking.effort) {
        put("output_config", config);
    }
    if let Some(config) = thinking.config {
        put("thinking", config);
    }
    for (name, value) in options.rest {
        match value {
            Value::Null => body.remove(&name),
            value => body.insert(name, value),
        };
    }
    Encoded { body: Value::Object(body), names, left_out }
}

/// Words of the gateway before anybody spoke belong to the system text.
fn system_and_turns(system: Option<String>, mut turns: Vec<ChatTurn>) -> (Vec<String>, Vec<ChatTurn>) {
    let opening = turns.iter().take_while(|turn| matches!(turn, ChatTurn::System(_))).count();
    let early = turns.drain(..opening).filter_map(|turn| match turn {
        ChatTurn::System(text) => Some(text),
        ChatTurn::User { .. } | ChatTurn::Assistant { .. } | ChatTurn::ToolResults(_) => None,
    });
    let texts = system.into_iter().chain(early).filter(|text| !text.trim().is_empty()).collect();
    (texts, turns)
}

/// Everything up to the last block is kept by the vendor for the next call.
/// Thinking cannot carry the mark.
fn mark_last(blocks: &mut [Value], mark: &Value) {
    let thought = |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    if let Some(last) = blocks.iter_mut().rev().find(|block| !thought(block)) {
        last["cache_control"] = mark.clone();
    }
}

/// In the middle of calls the vendor wants to see the thinking that led to
/// them. If another vendor made them there is none, and this reply goes
/// without.
fn may_think(messages: &[Value]) -> bool {
    let [.., reply, results] = messages else { return true };
    let in_calls = results["content"][0]["type"] == "tool_result";
    !in_calls || matches!(reply["content"][0]["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

fn max_tokens(model: &str, asked: Option<u32>, budget: Option<u32>) -> u32 {
    let old = version(model).is_some_and(|version| version < (3, 7));
    let most = asked.unwrap_or(if old { MAX_TOKENS_OLD } else { MAX_TOKENS });
    match budget {
        // The budget counts as part of the reply, and must leave room for it.
        Some(budget) if budget >= most => most.saturating_add(budget),
        _ => most,
    }
}

/// The form of the answer, taken out of the request. Older models cannot be
/// held to one; they are asked in words.
fn form(request: &mut Request, left_out: &mut Vec<LeftOut>) -> Option<Value> {
    let output = request.output.take()?;
    let cleaned = match request.holds_to_form(|model| takes_form(model, FORMS_SINCE)) {
        Ok(()) => clean(&output.schema, Rules::Output).map_err(|why| why.to_string()),
        Err(why) => Err(why.to_owned()),
    };
    cleaned.map_err(|why| left_out.push(request.ask_in_words(output, &why))).ok()
}

fn output_config(form: Option<Value>, effort: Option<&str>) -> Option<Value> {
    let mut config = Map::new();
    if let Some(effort) = effort {
        config.insert("effort".to_owned(), json!(effort));
    }
    if let Some(schema) = form {
        config.insert("format".to_owned(), json!({ "type": "json_schema", "schema": schema }));
    }
    (!config.is_empty()).then_some(Value::Object(config))
}
