//! Tool discovery: what an agent can do for somebody now, where each tool runs,
//! and how its calls went. Tools of MCP servers are those that the servers tell
//! at this moment (rows C8 and C9).

use std::collections::{HashMap, HashSet};

use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{Approval, IfAbsent, Place, ToolSpec, Visibility};
use toolyard_protocol::{AgentName, EntityId, KeyKind, Timestamp, ToolName};
use toolyard_runtime::key_of;
use toolyard_store::tool_uses::{self, ToolUse};
use toolyard_store::{StoreError, presences};

use super::call::Call;
use super::{agents, answer, own, page};
use crate::http::Refusal;

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ToolList {
    agent: AgentName,
    tools: Vec<ToolView>,
    /// MCP servers that give no tools now.
    missing: Vec<MissingService>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MissingService {
    service_id: String,
    needs_login: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolView {
    /// What selections and grants call it: `<service>:<tool>`, or its name.
    key: String,
    name: ToolName,
    description: String,
    /// The MCP service that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    service_id: Option<String>,
    /// Of a private tool only for backends.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Value>,
    place: Place,
    /// `server`, `client` or `external`.
    execution_target: &'static str,
    risk_level: Risk,
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

/// `GET /api/tools`: the tools of an agent, by its name or id.
pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let asked = call.query.get("agent").or_else(|| call.query.get("agentId"));
    let asked = asked.unwrap_or(&call.app.config.default_agent).clone();
    let entity = own::listed(&call, page::typed(&call.query, "entityId", EntityId::parse)?)?;
    let tenant = call.tenant().clone();
    let found = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { agents::find(tx, &tenant, &asked).await }))
        .await?;
    let name = found.ok_or_else(|| Refusal::not_found("Agent"))?.name;
    let agent = call.app.runtime.agent_named(call.tenant(), &name).await?;
    let agent = agent.ok_or_else(|| Refusal::not_found("Agent"))?;
    let all = call.principal.kind == KeyKind::Secret;
    let category = call.query.get("category");
    let servers = agent.config.mcp.as_ref().map(|mcp| mcp.servers.as_slice()).unwrap_or_default();
    let offer = call.app.mcp.offer_to(call.tenant(), entity.as_ref(), &name, servers).await;
    let shown: Vec<ToolSpec> = (agent.tools.set.0.iter().cloned().chain(offer.tools))
        .filter(|spec| category.is_none() || spec.category.as_ref() == category)
        .collect();
    let missing = offer.missing.into_iter().map(|missing| MissingService {
        service_id: missing.server.as_str().to_owned(),
        needs_login: missing.needs_login,
    });
    let missing = missing.collect();
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
        let open = all || client || spec.visibility == Visibility::Public;
        let connected = (client && all).then(|| held.contains(&spec.name));
        ToolView {
            key: key_of(&spec),
            service_id: spec.service_id,
            execution_target: spec.place.target(),
            if_absent: client.then_some(spec.if_absent),
            connected,
            name: spec.name,
            description: spec.description,
            input_schema: open.then_some(spec.input_schema),
            place: spec.place,
            risk_level: spec.risk,
            visibility: spec.visibility,
            category: spec.category,
            version: spec.version,
            deprecated: spec.deprecated,
            approval: spec.approval.filter(|_| all),
            uses,
        }
    };
    answer::json(200, &ToolList { agent: name, tools: shown.into_iter().map(view).collect(), missing })
}
