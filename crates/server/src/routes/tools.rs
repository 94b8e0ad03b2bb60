//! Which tools an agent has for somebody now: its own, and those that its MCP
//! servers tell at this moment (rows C8 and C9).

use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{ToolSpec, Visibility};
use toolyard_protocol::{ApiError, EntityId, KeyKind, ToolName};
use toolyard_runtime::{check_agent, key_of};
use toolyard_store::{StoreError, agents as stored};

use super::call::Call;
use super::{agents, answer, own, page};
use crate::http::Refusal;

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
    risk_level: Risk,
    /// `server`, `client` or `external`.
    execution_target: &'static str,
    visibility: Visibility,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    /// Of a private tool only for backends.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Value>,
}

/// A server that gives no tools now.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MissingService {
    service_id: String,
    needs_login: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ToolList {
    tools: Vec<ToolView>,
    missing: Vec<MissingService>,
}

fn view(spec: &ToolSpec, backend: bool) -> ToolView {
    let open = backend || spec.visibility == Visibility::Public || spec.is_client();
    ToolView {
        key: key_of(spec),
        name: spec.name.clone(),
        description: spec.description.clone(),
        service_id: spec.service_id.clone(),
        risk_level: spec.risk,
        execution_target: spec.place.target(),
        visibility: spec.visibility,
        category: spec.category.clone(),
        parameters: open.then(|| spec.input_schema.clone()),
    }
}

/// `GET /api/tools`
pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let agent = call.query.get("agentId").cloned().ok_or_else(|| ApiError::missing("agentId"))?;
    let entity = own::listed(&call, page::typed(&call.query, "entityId", EntityId::parse)?)?;
    let tenant = call.tenant().clone();
    let found = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let Some(agent) = agents::find(tx, &tenant, &agent).await? else { return Ok(None) };
                stored::version(tx, &tenant, &agent.hash).await
            })
        })
        .await?;
    let agent = check_agent(&found.ok_or_else(|| Refusal::not_found("Agent"))?)?;
    let backend = call.principal.kind == KeyKind::Secret;
    let mut tools: Vec<ToolView> = agent.tools.set.0.iter().map(|spec| view(spec, backend)).collect();
    let servers = agent.config.mcp.as_ref().map(|mcp| mcp.servers.as_slice()).unwrap_or_default();
    let name = &agent.config.agent.name;
    let offer = call.app.mcp.offer_to(call.tenant(), entity.as_ref(), name, servers).await;
    tools.extend(offer.tools.iter().map(|spec| view(spec, backend)));
    let missing = offer.missing.into_iter().map(|missing| MissingService {
        service_id: missing.server.as_str().to_owned(),
        needs_login: missing.needs_login,
    });
    answer::json(200, &ToolList { tools, missing: missing.collect() })
}
