//! The tools of a request, and whether the model must or may use them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use toolyard_protocol::agent::ToolChoice;

use crate::names::Names;
use crate::request::{ChatTurn, OfferedTool};

/// What the body says about tools.
pub(super) struct Offer {
    pub(super) tools: Vec<Value>,
    pub(super) choice: Option<Value>,
}

pub(super) fn offer(
    offered: Vec<OfferedTool>,
    hosted: Vec<Value>,
    turns: &[ChatTurn],
    names: &Names,
    choice: ToolChoice,
    thinking: bool,
) -> Offer {
    let none_offered = offered.is_empty() && hosted.is_empty();
    let mut tools: Vec<Value> = offered.into_iter().map(|tool| describe(tool, names)).collect();
    tools.extend(hosted);
    if none_offered {
        // A history with calls needs their tools, even if none may be used.
        tools = past_tools(turns, names);
    }
    let choice = match choice {
        _ if tools.is_empty() => None,
        _ if none_offered => Some("none"),
        ToolChoice::None => Some("none"),
        // A model that thinks cannot be forced to call.
        ToolChoice::Required if !thinking => Some("any"),
        ToolChoice::Required | ToolChoice::Auto => None,
    };
    Offer { tools, choice: choice.map(|kind| json!({ "type": kind })) }
}

fn describe(OfferedTool { name, description, schema }: OfferedTool, names: &Names) -> Value {
    let mut tool = Map::new();
    tool.insert("name".to_owned(), json!(names.alias(&name)));
    if !description.is_empty() {
        tool.insert("description".to_owned(), json!(description));
    }
    tool.insert("input_schema".to_owned(), schema);
    Value::Object(tool)
}

fn past_tools(turns: &[ChatTurn], names: &Names) -> Vec<Value> {
    let mut used = BTreeSet::new();
    for turn in turns {
        if let ChatTurn::Assistant { calls, .. } = turn {
            used.extend(calls.iter().map(|call| names.alias(&call.name)));
        }
    }
    let schema = json!({ "type": "object", "properties": {} });
    used.into_iter().map(|name| json!({ "name": name, "input_schema": schema })).collect()
}
