//! How the MCP servers are, for people.

use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use toolyard_mcp::{Owner, ServerStatus};
use toolyard_protocol::TenantId;

use super::answer;
use super::call::Call;
use crate::http::Refusal;

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ServerList {
    servers: Vec<ServerStatus>,
}

/// `GET /api/mcp/servers`: every connection of this node that the caller's
/// tenant uses, and for the operator's tenant those that are shared.
pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let tenant = call.tenant();
    let operator = *tenant == TenantId::default_tenant();
    let ours = |status: &ServerStatus| status.owner.tenant.as_ref().map_or(operator, |owner| owner == tenant);
    let mut servers = call.app.mcp.host.status();
    servers.retain(ours);
    answer::json(200, &ServerList { servers })
}

/// `POST /api/mcp/servers/{server}/refresh`: reads the tools of an operator's
/// server again, or tries one that failed at once.
pub(super) async fn refresh(call: Call) -> Result<Response, Refusal> {
    let name = call.params.get("server").map(String::as_str).unwrap_or_default();
    let mut known = call.app.mcp.operator.iter().filter(|settings| settings.tenants.has(call.tenant()));
    let settings = known.find(|settings| settings.name.as_str() == name);
    let settings = settings.ok_or_else(|| Refusal::not_found("MCP server"))?;
    let owner = Owner { tenant: call.tenant().clone(), entity: None };
    call.app.mcp.host.refresh(&owner, settings);
    list(call).await
}
