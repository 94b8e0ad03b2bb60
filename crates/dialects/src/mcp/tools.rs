//! The tools that an agent is to MCP clients.

use serde_json::{Value, json};
use toolyard_protocol::AgentName;
use toolyard_protocol::agent::McpServing;
use toolyard_protocol::agent::execution::Execution;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::ToolSpec;

/// How long a list may be kept. Configurations change by hand.
pub const LISTED: u64 = 60_000;

/// Names of tools that every client takes.
const NAME_CHARS: usize = 64;

/// `ask_<agent>`, in the letters that all models take.
pub fn ask_tool_name(agent: &AgentName) -> String {
    let fine = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    format!("ask_{agent}").chars().map(fine).take(NAME_CHARS).collect()
}

/// The tool that asks the agent.
pub fn ask_tool(agent: &AgentName, description: Option<&str>) -> Value {
    let about = description.map(|text| format!(" {text}")).unwrap_or_default();
    let name = ask_tool_name(agent);
    json!({
        "name": name,
        "title": format!("Ask {agent}"),
        "description": format!(
            "Asks the agent {agent} and waits for its answer.{about} To go on with a conversation, give \
             the session that an answer named. If an answer says that the agent waits for a person, call \
             this again later with the run that it named."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "message": { "type": "string", "description": "What to say to the agent." },
                "session": { "type": "string", "description": "The session of an earlier answer." },
                "run": { "type": "string", "description": "Instead of a message: a run to come back to." },
            },
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "answer": { "type": "string" },
                "status": {
                    "type": "string",
                    "enum": ["completed", "waiting", "failed", "canceled"],
                },
                "run": { "type": "string" },
                "session": { "type": "string" },
                "sources": { "type": "array", "items": { "type": "object" } },
                "waits": { "type": "array", "items": { "type": "object" } },
            },
            "required": ["answer", "status", "run"],
        },
        "annotations": { "title": format!("Ask {agent}"), "readOnlyHint": false, "openWorldHint": true },
    })
}

/// One of the agent's own tools.
pub fn own_tool(spec: &ToolSpec) -> Value {
    let mut schema = spec.input_schema.clone();
    if let Value::Object(fields) = &mut schema {
        // A client needs the kind at the root; some configurations leave it out.
        fields.entry("type").or_insert_with(|| json!("object"));
    }
    unhead(&mut schema);
    let open = !matches!(
        spec.execution,
        Execution::Basic(_) | Execution::Compute(_) | Execution::Prebuilt(_) | Execution::Waiting(_)
    );
    json!({
        "name": spec.name,
        "description": spec.description,
        "inputSchema": schema,
        "annotations": {
            "readOnlyHint": false,
            "destructiveHint": spec.risk >= Risk::High,
            "idempotentHint": spec.idempotent,
            "openWorldHint": open,
        },
    })
}

/// A tool of a server behind the agent may want arguments in headers too. Here
/// they are read from the body alone, so nobody is asked to repeat them.
fn unhead(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|name, value| name != "x-mcp-header" || !value.is_string());
            fields.values_mut().for_each(unhead);
        }
        Value::Array(items) => items.iter_mut().for_each(unhead),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub fn tool_list(tools: Vec<Value>) -> Value {
    json!({ "tools": tools, "ttlMs": LISTED, "cacheScope": "private" })
}

/// A list of what an agent does not have.
pub fn nothing(of: &str) -> Value {
    json!({ of: [], "ttlMs": LISTED, "cacheScope": "private" })
}

/// What the server can do, as it says when a client comes.
pub fn capabilities(serving: Option<&McpServing>) -> Value {
    let mut all = json!({
        "tools": { "listChanged": true },
        "extensions": { "io.modelcontextprotocol/tasks": {} },
    });
    if serving.is_some_and(|serving| !serving.prompts().is_empty()) {
        all["prompts"] = json!({ "listChanged": true });
    }
    if serving.is_some_and(|serving| serving.shows_knowledge()) {
        all["resources"] = json!({});
    }
    all
}

pub fn instructions(agent: &AgentName) -> String {
    format!(
        "{} talks to the agent {agent}. Give it whole questions: it has its own tools.",
        ask_tool_name(agent)
    )
}
