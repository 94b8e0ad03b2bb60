//! An agent with more tools than a model reads well gets a tool to search
//! them. What a search finds is offered from the next step on.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolyard_engine::Run;
use toolyard_models::OfferedTool;
use toolyard_protocol::agent::execution::{Execution, Prebuilt};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{IfAbsent, Place, ToolSpec, Toolset, Visibility};
use toolyard_protocol::{ToolName, ToolOutcome};

use crate::agents::LoadedTools;

/// Its name, and the action behind it.
pub(crate) const SEARCH: &str = "searchTools";
/// Tools that one search answers.
const FOUND: usize = 10;

/// Adds the search to a set that is too large to be read whole.
pub(super) fn with_search(mut set: Toolset, above: usize) -> Toolset {
    let known = set.find(SEARCH).is_some();
    if set.0.len() <= above || known {
        return set;
    }
    let Ok(name) = ToolName::parse(SEARCH) else { return set };
    set.0.push(ToolSpec {
        name,
        description: "Search for tools by what they do. You see only some of your tools; those that a search finds can be called afterwards.".to_owned(),
        input_schema: json!({"type": "object", "properties": {
            "query": {"type": "string", "minLength": 1, "description": "What the tool should do, in a few words."}},
            "required": ["query"]}),
        execution: Execution::Prebuilt(Prebuilt { action: SEARCH.to_owned(), channels: None }),
        place: Place::Gateway,
        risk: Risk::Low,
        visibility: Visibility::Private,
        approval: None,
        answerers: None,
        timeout_ms: None,
        expires_ms: None,
        if_absent: IfAbsent::default(),
        idempotent: true,
        trusted: true,
        service_id: None,
        deprecated: None,
        category: None,
        version: None,
        brought: None,
    });
    set
}

/// The tools whose words fit best.
pub(super) fn search(set: &Toolset, args: &Value) -> Value {
    let query = words(args.get("query").and_then(Value::as_str).unwrap_or_default());
    let mut fitting: Vec<(usize, &ToolSpec)> = set
        .0
        .iter()
        .filter(|spec| spec.name.as_str() != SEARCH)
        .map(|spec| {
            let name = words(spec.name.as_str());
            let said = words(&spec.description);
            let hits = query
                .iter()
                .map(|word| 3 * usize::from(name.contains(word)) + usize::from(said.contains(word)));
            (hits.sum(), spec)
        })
        .filter(|(hits, _)| *hits > 0)
        .collect();
    // Stable: equals stay in the agent's order.
    fitting.sort_by_key(|(hits, _)| std::cmp::Reverse(*hits));
    let found: Vec<Value> = fitting
        .iter()
        .take(FOUND)
        .map(|(_, spec)| json!({ "name": spec.name, "description": spec.description }))
        .collect();
    json!({ "success": true, "tools": found, "total": fitting.len() })
}

/// What the model is shown of a set that has the search in it: the agent's own
/// tools if they are few, what a search found, and what was called before.
pub(super) fn offered(tools: &LoadedTools, own: &Toolset, run: &Run, above: usize) -> Vec<OfferedTool> {
    if tools.set.find(SEARCH).is_none() {
        return tools.offered.clone();
    }
    let mut shown: HashSet<String> = HashSet::from([SEARCH.to_owned()]);
    if own.0.len() <= above {
        shown.extend(own.0.iter().map(|spec| spec.name.to_string()));
    }
    for step in run.turns().iter().flat_map(|turn| &turn.steps) {
        for (call, result) in step.reply.calls.iter().zip(&step.results) {
            shown.insert(call.tool.to_string());
            let Some(ToolOutcome::Ok(value)) = result.as_ref().map(|r| &r.outcome) else { continue };
            if call.tool.as_str() == SEARCH {
                let names = value["tools"].as_array().into_iter().flatten();
                shown.extend(names.filter_map(|tool| Some(tool["name"].as_str()?.to_owned())));
            }
        }
    }
    tools.offered.iter().filter(|tool| shown.contains(&tool.name)).cloned().collect()
}

/// Words in lower case, split where names are written together.
fn words(text: &str) -> HashSet<String> {
    let mut spaced = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            spaced.push(' ');
        }
        spaced.push(c);
        before = c;
    }
    let all = spaced.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 1);
    all.map(str::to_lowercase).collect()
}
