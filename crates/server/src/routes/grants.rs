//! Remembered permissions: what a backend allows or denies ahead of time.
//!
//! A grant binds the tool as it is now: a changed tool voids an allow.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::ToolSpec;
use toolyard_protocol::{AgentName, EntityId, GrantId, Hash, KeyKind, SpaceId, Timestamp, ToolName, limits};
use toolyard_runtime::{Grant, GrantEffect, GrantScope, key_of};
use toolyard_store::grants::{self, GrantRow};
use toolyard_store::{StoreError, agents, audit, entities, spaces};

use super::call::{Call, Made};
use super::{answer, page};
use crate::http::Refusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Effect {
    Allow,
    Deny,
}

impl From<Effect> for GrantEffect {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Allow => Self::Allow,
            Effect::Deny => Self::Deny,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewGrant {
    /// The tool's name, or `<service>:<tool>` for a tool of an MCP server.
    tool: String,
    effect: Effect,
    /// The agent whose tool it is. Needed to allow; a deny holds for every
    /// tool of that name.
    #[serde(default)]
    agent: Option<AgentName>,
    /// Whose runs it is for; missing means all of the tenant.
    #[serde(default)]
    entity_id: Option<EntityId>,
    /// One conversation; missing means until it is taken back.
    #[serde(default)]
    smart_space_id: Option<SpaceId>,
    /// The highest risk that an allow covers.
    #[serde(default)]
    max_risk: Option<Risk>,
    /// Only calls whose arguments have these fields with these values.
    #[serde(default)]
    args: Option<Value>,
    #[serde(default)]
    expires_at: Option<Timestamp>,
}

/// A grant as stored.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct GrantView {
    id: GrantId,
    tool: String,
    entity_id: Option<EntityId>,
    grant: Value,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneGrant {
    grant: GrantView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GrantList {
    grants: Vec<GrantView>,
}

fn view(row: GrantRow) -> GrantView {
    GrantView {
        id: row.id,
        tool: row.tool,
        entity_id: row.entity,
        grant: row.body,
        created_at: row.created_at,
        expires_at: row.expires_at,
    }
}

pub(super) async fn create(call: Call) -> Result<Response, Refusal> {
    let new: NewGrant = call.json()?;
    if new.args.as_ref().is_some_and(|args| !args.is_object()) {
        return Err(Refusal::bad_request("args: must be an object"));
    }
    answer::within("args", new.args.as_ref(), limits::INLINE_VALUE_BYTES)?;
    check_key(&new.tool)?;
    let (tenant, actor) = (call.tenant().clone(), call.actor());
    let (key, fingerprint) = known(&call, &new).await?;
    call.once(move |tx| {
        Box::pin(async move {
            if let Some(entity) = &new.entity_id
                && entities::get(tx, &tenant, entity).await?.is_none()
            {
                return Err(Refusal::not_found("Entity"));
            }
            if let Some(space) = &new.smart_space_id
                && spaces::get(tx, &tenant, space).await?.is_none()
            {
                return Err(Refusal::not_found("SmartSpace"));
            }
            let scope = match new.smart_space_id {
                Some(space) => GrantScope::Session { space },
                None => GrantScope::Stored {},
            };
            let grant = Grant {
                id: GrantId::mint(),
                tool: key,
                effect: new.effect.into(),
                scope,
                fingerprint,
                max_risk: new.max_risk,
                args: new.args,
                exact: false,
                expires_at: new.expires_at,
            };
            let row = GrantRow {
                id: grant.id.clone(),
                entity: new.entity_id,
                tool: grant.tool.clone(),
                body: json!(grant),
                created_at: tx.now().await?,
                expires_at: new.expires_at,
            };
            grants::insert(tx, &tenant, &row).await?;
            audit::write(tx, &tenant, &actor, "grant.create", row.id.as_str(), Some(&row.tool)).await?;
            Ok(Made { status: 201, body: json!(OneGrant { grant: view(row) }) })
        })
    })
    .await
}

/// A name, or two with a colon between them.
fn check_key(text: &str) -> Result<(), Refusal> {
    let fine = match text.split_once(':') {
        None => ToolName::parse(text).is_ok(),
        // A server's own name of its tool may have other letters.
        Some((service, tool)) => {
            ToolName::parse(service).is_ok()
                && !tool.is_empty()
                && tool.chars().count() <= limits::LABEL_CHARS
                && !tool.chars().any(char::is_control)
        }
    };
    let text = "tool: must be the name of a tool, or <service>:<tool>";
    if fine { Ok(()) } else { Err(Refusal::bad_request(text)) }
}

/// The tool's key and what it is now. A deny needs neither: it holds whatever
/// the tool becomes.
async fn known(call: &Call, new: &NewGrant) -> Result<(String, Hash), Refusal> {
    let Some(name) = new.agent.clone() else {
        return match new.effect {
            Effect::Deny => Ok((new.tool.clone(), Hash::of(new.tool.as_bytes()))),
            Effect::Allow => Err(toolyard_protocol::ApiError::missing("agent").into()),
        };
    };
    let (tenant, asked) = (call.tenant().clone(), name.clone());
    let config = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let Some(found) = agents::by_name(tx, &tenant, &asked).await? else { return Ok(None) };
                agents::version(tx, &tenant, &found.hash).await
            })
        })
        .await?;
    // With what the gateway fills in: that is the tool as runs have it.
    let agent = toolyard_runtime::check_agent(&config.ok_or_else(|| Refusal::not_found("Agent"))?)?;
    let is_it = |spec: &&ToolSpec| spec.name.as_str() == new.tool || key_of(spec) == new.tool;
    if let Some(spec) = agent.tools.set.0.iter().find(is_it) {
        return Ok((key_of(spec), spec.fingerprint()));
    }
    // A server's tool, as the server describes it to that user now.
    let servers = agent.config.mcp.as_ref().map(|mcp| mcp.servers.as_slice()).unwrap_or_default();
    let offer = call.app.mcp.offer_to(call.tenant(), new.entity_id.as_ref(), &name, servers).await;
    let spec = offer.tools.iter().find(is_it).ok_or_else(|| Refusal::not_found("Tool"))?;
    Ok((key_of(spec), spec.fingerprint()))
}

/// All of the tenant for a backend, their own for a user.
pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let limit = page::limit(&call.query)?;
    let tenant = call.tenant().clone();
    let asked = page::typed(&call.query, "entityId", EntityId::parse)?;
    let entity = match call.principal.kind {
        KeyKind::Secret => asked,
        KeyKind::Public => Some(owner(&call)?),
    };
    let rows: Vec<GrantRow> = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move { grants::list(tx, &tenant, entity.as_ref(), limit).await })
        })
        .await?;
    answer::json(200, &GrantList { grants: rows.into_iter().map(view).collect() })
}

pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let id = call.id("grant", "Grant", GrantId::parse)?;
    let (tenant, actor) = (call.tenant().clone(), call.actor());
    let owner = match call.principal.kind {
        KeyKind::Secret => None,
        KeyKind::Public => Some(owner(&call)?),
    };
    let existed = call
        .store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                // Another one's grant is not there for a user.
                let found = grants::get(tx, &tenant, &id).await?;
                let theirs = found.is_some_and(|row| owner.is_none() || row.entity == owner);
                let existed = theirs && grants::delete(tx, &tenant, &id).await?;
                if existed {
                    audit::write(tx, &tenant, &actor, "grant.delete", id.as_str(), None).await?;
                }
                Ok(existed)
            })
        })
        .await?;
    answer::gone(existed, "Grant")
}

/// The user behind a public key.
fn owner(call: &Call) -> Result<EntityId, Refusal> {
    call.principal.entity.clone().ok_or_else(|| Refusal::forbidden("No entity found for this user"))
}
