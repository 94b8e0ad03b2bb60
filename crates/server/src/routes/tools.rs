//! Tool discovery: what an agent can do, where each tool runs, and how its
//! calls went.

use std::collections::{HashMap, HashSet};

use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{Approval, IfAbsent, Place, ToolSpec, Visibility};
use toolyard_protocol::{AgentName, KeyKind, Timestamp, ToolName};
use toolyard_store::tool_uses::{self, ToolUse};
use toolyard_store::{StoreError, presences};

use super::answer;
use super::call::Call;
use crate::http::Refusal;

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ToolList {
    agent: AgentName,
    /// Tools of MCP servers are not here: they are known once a run has asked
    /// the servers (`/api/mcp/servers`).
    tools: Vec<ToolView>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolView {
    name: ToolName,
    description: String,
    input_schema: Value,
    place: Place,
    /// `server`, `client` or `external`.
    execution_target: &'static str,
    risk: Risk,
    visibility: Visibility,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// What to use instead, or an empty text.
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Approval>,
    /// Of a client's tool: what happens without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    if_absent: Option<IfAbsent>,
    /// Of a client's tool: a connected program holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    connected: Option<bool>,
    /// For backends.
    #[serde(skip_serializing_if = "Option::is_none")]
    uses: Option<Uses>,
}

/// How the calls of a tool went, over all versions of its agent.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Uses {
    calls: i64,
    /// Calls that ended otherwise than well.
    failures: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    average_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_at: Option<Timestamp>,
}

impl Uses {
    fn of(known: &ToolUse) -> Self {
        Self {
            calls: known.calls,
            failures: known.failures,
            average_ms: known.total_ms.checked_div(known.calls),
            last_at: Some(known.last_at),
        }
    }
}

/// The tools of an agent. A user sees those whose calls it would see.
pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let name = call.query.get("agent").unwrap_or(&call.app.config.default_agent);
    let name = AgentName::parse(name).map_err(|_| Refusal::not_found("Agent"))?;
    let agent = call.app.runtime.agent_named(call.tenant(), &name).await?;
    let agent = agent.ok_or_else(|| Refusal::not_found("Agent"))?;
    let all = call.principal.kind == KeyKind::Secret;
    let category = call.query.get("category");
    let shown: Vec<ToolSpec> = agent
        .tools
        .set
        .0
        .iter()
        .filter(|spec| all || spec.visibility == Visibility::Public)
        .filter(|spec| category.is_none() || spec.category.as_ref() == category)
        .cloned()
        .collect();
    if all {
        call.app.runtime.hand_over_counts().await?;
    }
    let clients: Vec<ToolName> = shown.iter().filter(|s| s.is_client()).map(|s| s.name.clone()).collect();
    let (tenant, of) = (call.tenant().clone(), name.clone());
    let (uses, held): (HashMap<ToolName, ToolUse>, HashSet<ToolName>) = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let uses = tool_uses::of_agent(tx, &tenant, &of).await?;
                let mut held = HashSet::new();
                for tool in clients {
                    if !presences::holders(tx, &tenant, &tool).await?.is_empty() {
                        held.insert(tool);
                    }
                }
                Ok((uses.into_iter().map(|known| (known.tool.clone(), known)).collect(), held))
            })
        })
        .await?;
    let view = |spec: ToolSpec| {
        let uses = all.then(|| uses.get(&spec.name).map_or_else(Uses::default, Uses::of));
        let client = spec.is_client();
        let connected = (client && all).then(|| held.contains(&spec.name));
        ToolView {
            execution_target: spec.place.target(),
            if_absent: client.then_some(spec.if_absent),
            connected,
            name: spec.name,
            description: spec.description,
            input_schema: spec.input_schema,
            place: spec.place,
            risk: spec.risk,
            visibility: spec.visibility,
            category: spec.category,
            version: spec.version,
            deprecated: spec.deprecated,
            approval: spec.approval.filter(|_| all),
            uses,
        }
    };
    answer::json(200, &ToolList { agent: name, tools: shown.into_iter().map(view).collect() })
}
