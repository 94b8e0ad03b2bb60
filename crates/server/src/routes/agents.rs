//! Agents: stored configurations, kept as versions by hash.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_protocol::{AgentId, AgentName, Hash, Timestamp};
use toolyard_runtime::{check_agent, check_secret_fields};
use toolyard_store::agents::{self, Agent, Upserted};
use toolyard_store::{StoreError, audit};

use super::call::{Call, Made};
use super::{answer, page};
use crate::config::Mode;
use crate::http::Refusal;

/// An agent to store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PutAgent {
    /// Overrides `config.agent.name`.
    #[serde(default)]
    name: Option<String>,
    /// The configuration.
    config: Value,
}

/// What storing did.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentPut {
    agent_id: AgentId,
    config_hash: Hash,
    created: bool,
}

/// A stored agent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentView {
    id: AgentId,
    name: AgentName,
    config_hash: Hash,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<Value>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneAgent {
    agent: AgentView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AgentList {
    agents: Vec<AgentView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

fn view(agent: Agent, config: Option<Value>) -> AgentView {
    AgentView {
        id: agent.id,
        name: agent.name,
        config_hash: agent.hash,
        config,
        created_at: agent.created_at,
        updated_at: agent.updated_at,
    }
}

/// `POST /api/agents`: by name; the same hash changes nothing.
pub(super) async fn put(call: Call) -> Result<Response, Refusal> {
    let PutAgent { name, mut config } = call.json()?;
    if let (Some(name), Some(agent)) = (name, config.pointer_mut("/agent").and_then(Value::as_object_mut)) {
        agent.insert("name".to_owned(), Value::String(name));
    }
    let checked = check_agent(&config)?;
    call.app.runtime.check_agents_model(&checked)?;
    if call.app.config.mode == Mode::Production {
        check_secret_fields(&checked)?;
    }
    let name = checked.config.agent.name;
    let (tenant, actor) = (call.tenant().clone(), call.actor());
    call.once(move |tx| {
        Box::pin(async move {
            let (agent, done) = agents::upsert(tx, &tenant, &name, &config).await?;
            if done != Upserted::Same {
                let hash = Some(agent.hash.as_str());
                audit::write(tx, &tenant, &actor, "agent.put", agent.name.as_str(), hash).await?;
            }
            let created = done == Upserted::Created;
            let answer = AgentPut { agent_id: agent.id, config_hash: agent.hash, created };
            Ok(Made { status: if created { 201 } else { 200 }, body: json!(answer) })
        })
    })
    .await
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let limit = page::limit(&call.query)?;
    let after = page::typed(&call.query, "after", AgentName::parse)?;
    let tenant = call.tenant().clone();
    let rows: Vec<Agent> = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(
                async move { agents::list(tx, &tenant, after.as_ref().map(AgentName::as_str), limit).await },
            )
        })
        .await?;
    let next = page::next(&rows, limit, |agent| agent.name.to_string());
    answer::json(200, &AgentList { agents: rows.into_iter().map(|a| view(a, None)).collect(), next })
}

/// An agent by id or by name.
pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let text = call.params.get("agent").cloned().unwrap_or_default();
    let tenant = call.tenant().clone();
    let found = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let Some(agent) = find(tx, &tenant, &text).await? else { return Ok(None) };
                let config = agents::version(tx, &tenant, &agent.hash).await?;
                Ok(Some((agent, config)))
            })
        })
        .await?;
    let (agent, config) = found.ok_or_else(|| Refusal::not_found("Agent"))?;
    answer::json(200, &OneAgent { agent: view(agent, config) })
}

pub(super) async fn find(
    tx: &mut toolyard_store::Tx<'_>,
    tenant: &toolyard_protocol::TenantId,
    text: &str,
) -> Result<Option<Agent>, StoreError> {
    if let Ok(id) = AgentId::parse(text)
        && let Some(agent) = agents::get(tx, tenant, &id).await?
    {
        return Ok(Some(agent));
    }
    match AgentName::parse(text) {
        Ok(name) => agents::by_name(tx, tenant, &name).await,
        Err(_) => Ok(None),
    }
}

pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let text = call.params.get("agent").cloned().unwrap_or_default();
    let (tenant, actor) = (call.tenant().clone(), call.actor());
    let existed = call
        .store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let Some(agent) = find(tx, &tenant, &text).await? else { return Ok(false) };
                audit::write(tx, &tenant, &actor, "agent.delete", agent.name.as_str(), None).await?;
                agents::delete(tx, &tenant, &agent.id).await
            })
        })
        .await?;
    answer::gone(existed, "Agent")
}
