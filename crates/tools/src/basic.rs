//! `basic` tools: static and pass-through answers (row G9). The third mode, no
//! execution, belongs to clients.

use serde_json::{Map, Value};
use toolyard_protocol::agent::execution::{Basic, BasicMode};

/// The answer of a basic tool; none if a client executes it.
pub fn execute(basic: &Basic, args: &Value) -> Option<Value> {
    let mut answer = Map::new();
    answer.insert("success".to_owned(), Value::Bool(true));
    match basic.mode {
        BasicMode::NoExecution => return None,
        BasicMode::Static => {
            for (name, value) in &basic.output {
                let value = if basic.template { fill(value, args) } else { value.clone() };
                answer.insert(name.clone(), value);
            }
        }
        BasicMode::PassThrough => {
            if let Value::Object(given) = args {
                answer.extend(given.clone());
            }
        }
    }
    Some(Value::Object(answer))
}

/// Replaces `{{name}}` in every text of a value. An unknown name stays as written.
fn fill(value: &Value, args: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(fill_text(text, args)),
        Value::Array(items) => Value::Array(items.iter().map(|v| fill(v, args)).collect()),
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), fill(v, args))).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn fill_text(text: &str, args: &Value) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let Some(length) = rest[start..].find("}}") else { break };
        let (before, marked) = rest.split_at(start);
        let (mark, after) = marked.split_at(length + 2);
        out.push_str(before);
        let name = mark.trim_start_matches('{').trim_end_matches('}').trim();
        match args.get(name) {
            Some(Value::String(value)) => out.push_str(value),
            Some(value) => out.push_str(&value.to_string()),
            None => out.push_str(mark),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}
