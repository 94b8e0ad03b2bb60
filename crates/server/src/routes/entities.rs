//! Entities: humans, agents and systems of a tenant.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_protocol::{AgentName, ApiError, EntityId, ErrorCode, KeyKind, TenantId, Timestamp, limits};
use toolyard_store::entities::{self, Entity, EntityKind};
use toolyard_store::export::{self, Place};
use toolyard_store::{StoreError, Tx, agents, audit, removal};

use super::answer::Change;
use super::call::{Call, Made};
use super::{answer, page};
use crate::http::Refusal;
use crate::sse;

/// What an entity is.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Human,
    Agent,
    System,
}

impl From<Kind> for EntityKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Human => Self::Human,
            Kind::Agent => Self::Agent,
            Kind::System => Self::System,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewEntity {
    #[serde(rename = "type")]
    kind: Kind,
    /// Your own name for it. A JWT's subject is matched to it.
    #[serde(default)]
    external_id: Option<String>,
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    metadata: Option<Value>,
    /// For type `agent`: the agent that it plays, by id or name.
    #[serde(default)]
    agent_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewAgentEntity {
    /// The agent that it plays, by id or name.
    agent_id: String,
    #[serde(default)]
    external_id: Option<String>,
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    metadata: Option<Value>,
}

/// Absent fields stay, `null` clears.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PatchEntity {
    #[serde(default)]
    external_id: Change<String>,
    #[serde(default)]
    display_name: Change<String>,
    #[serde(default)]
    metadata: Change<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntityView {
    id: EntityId,
    #[serde(rename = "type")]
    kind: &'static str,
    external_id: Option<String>,
    display_name: Option<String>,
    agent_name: Option<AgentName>,
    metadata: Option<Value>,
    created_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneEntity {
    entity: EntityView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EntityList {
    entities: Vec<EntityView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

fn view(entity: Entity) -> EntityView {
    EntityView {
        id: entity.id,
        kind: entity.kind.as_str(),
        external_id: entity.external_id,
        display_name: entity.display_name,
        agent_name: entity.agent,
        metadata: entity.metadata,
        created_at: entity.created_at,
    }
}

pub(super) async fn create(call: Call) -> Result<Response, Refusal> {
    let new: NewEntity = call.json()?;
    insert(call, new).await
}

pub(super) async fn create_agent(call: Call) -> Result<Response, Refusal> {
    let NewAgentEntity { agent_id, external_id, display_name, metadata } = call.json()?;
    let new = NewEntity { kind: Kind::Agent, external_id, display_name, metadata, agent_id: Some(agent_id) };
    insert(call, new).await
}

async fn insert(call: Call, new: NewEntity) -> Result<Response, Refusal> {
    let external_id = answer::label("externalId", new.external_id)?;
    let display_name = answer::label("displayName", new.display_name)?;
    let metadata = answer::metadata(new.metadata)?;
    let kind = EntityKind::from(new.kind);
    let agent = match (kind, new.agent_id) {
        (EntityKind::Agent, Some(agent)) => Some(agent),
        (EntityKind::Agent, None) => return Err(ApiError::missing("agentId").into()),
        (EntityKind::Human | EntityKind::System, None) => None,
        (EntityKind::Human | EntityKind::System, Some(_)) => {
            return Err(Refusal::bad_request("agentId: only entities of type agent play an agent"));
        }
    };
    let tenant = call.tenant().clone();
    call.once(move |tx| {
        Box::pin(async move {
            let agent = match agent {
                Some(text) => Some(agent_named(tx, &tenant, &text).await?),
                None => None,
            };
            refuse_taken(tx, &tenant, external_id.as_deref(), None).await?;
            let entity = Entity {
                id: EntityId::mint(),
                kind,
                external_id,
                display_name,
                agent,
                metadata,
                created_at: tx.now().await?,
            };
            entities::insert(tx, &tenant, &entity).await?;
            Ok(Made { status: 201, body: json!(OneEntity { entity: view(entity) }) })
        })
    })
    .await
}

async fn agent_named(tx: &mut Tx<'_>, tenant: &TenantId, text: &str) -> Result<AgentName, Refusal> {
    let found = agents::named(tx, tenant, text).await?;
    found.map(|agent| agent.name).ok_or_else(|| Refusal::not_found("Agent"))
}

async fn refuse_taken(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    external: Option<&str>,
    own: Option<&EntityId>,
) -> Result<(), Refusal> {
    let Some(external) = external else { return Ok(()) };
    match entities::by_external(tx, tenant, external).await? {
        Some(other) if Some(&other.id) != own => {
            Err(Refusal::new(ErrorCode::Conflict, "externalId: an entity with this externalId exists"))
        }
        _ => Ok(()),
    }
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let limit = page::limit(&call.query)?;
    let before = page::typed(&call.query, "before", EntityId::parse)?;
    let kind = page::typed(&call.query, "type", |t| EntityKind::parse(t).ok_or(()))?;
    let external = call.query.get("externalId").cloned();
    let tenant = call.tenant().clone();
    let rows: Vec<Entity> = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let Some(external) = external else {
                    return entities::list(tx, &tenant, kind, before.as_ref(), limit).await;
                };
                let found = entities::by_external(tx, &tenant, &external).await?;
                Ok(found.filter(|entity| kind.is_none_or(|kind| entity.kind == kind)).into_iter().collect())
            })
        })
        .await?;
    let next = page::next(&rows, limit, |entity| entity.id.to_string());
    answer::json(200, &EntityList { entities: rows.into_iter().map(view).collect(), next })
}

pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let id = call.id("entity", "Entity", EntityId::parse)?;
    let tenant = call.tenant().clone();
    let found: Option<Entity> = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { entities::get(tx, &tenant, &id).await }))
        .await?;
    let entity = found.ok_or_else(|| Refusal::not_found("Entity"))?;
    answer::json(200, &OneEntity { entity: view(entity) })
}

pub(super) async fn patch(call: Call) -> Result<Response, Refusal> {
    let id = call.id("entity", "Entity", EntityId::parse)?;
    let patch: PatchEntity = call.json()?;
    let external = patch.external_id.check(|v| answer::label("externalId", v))?;
    let name = patch.display_name.check(|v| answer::label("displayName", v))?;
    let metadata = patch.metadata.check(answer::metadata)?;
    let tenant = call.tenant().clone();
    let changed: Entity = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let found = entities::get(tx, &tenant, &id).await?;
                let mut entity = found.ok_or_else(|| Refusal::not_found("Entity"))?;
                entity.external_id = external.over(entity.external_id);
                entity.display_name = name.over(entity.display_name);
                entity.metadata = metadata.over(entity.metadata);
                refuse_taken(tx, &tenant, entity.external_id.as_deref(), Some(&id)).await?;
                entities::update(tx, &tenant, &entity).await?;
                Ok(entity)
            })
        })
        .await?;
    answer::json(200, &OneEntity { entity: view(changed) })
}

/// Removes an entity and all of it.
pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let id = call.id("entity", "Entity", EntityId::parse)?;
    let (store, tenant, actor) = (call.store().clone(), call.tenant().clone(), call.actor());
    let removing = Box::pin(async move { removal::entity(&store, &tenant, &id, &actor).await });
    let existed = call.to_the_end(removing).await?;
    answer::gone(existed, "Entity")
}

/// `GET …/export`: every stored row of an entity, a line each, as they are
/// read. The last line says how many there were.
pub(super) async fn export(call: Call) -> Result<Response, Refusal> {
    let id = call.id("entity", "Entity", EntityId::parse)?;
    let (store, tenant, actor) = (call.store().clone(), call.tenant().clone(), call.actor());
    let (of, asked) = (tenant.clone(), id.clone());
    let known = store.write::<_, StoreError, _>(move |tx| {
        Box::pin(async move {
            let known = entities::get(tx, &of, &asked).await?.is_some();
            if known {
                audit::write(tx, &of, &actor, "entity.export", asked.as_str(), None).await?;
            }
            Ok(known)
        })
    });
    if !known.await? {
        return Err(Refusal::not_found("Entity"));
    }
    let pages = futures::stream::try_unfold((Some(Place::default()), 0), move |(place, told)| {
        let (store, tenant, id) = (store.clone(), tenant.clone(), id.clone());
        async move {
            let Some(place) = place else { return Ok::<_, StoreError>(None) };
            let (lines, next) = store
                .read::<_, StoreError, _>(move |tx| {
                    Box::pin(async move { export::page(tx, &tenant, &id, place).await })
                })
                .await?;
            let told = told + lines.len();
            let mut text = String::new();
            for line in lines {
                text.push_str(&json!({"table": line.table, "row": line.row}).to_string());
                text.push('\n');
            }
            if next.is_none() {
                text.push_str(&json!({"end": true, "rows": told}).to_string());
                text.push('\n');
            }
            Ok(Some((Bytes::from(text), (next, told))))
        }
    });
    let mut response = Body::from_stream(pages).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    Ok(response)
}

/// `GET …/stream`: everything of the spaces that an entity is in. A space that
/// it joins meanwhile is told from its beginning, one that it leaves no more.
pub(super) async fn stream(call: Call) -> Result<Response, Refusal> {
    let id = call.id("entity", "Entity", EntityId::parse)?;
    let from = sse::Places::wanted(&call)?;
    let spaces = sse::spaces_of(&call, &id).await?.ok_or_else(|| Refusal::not_found("Entity"))?;
    if call.principal.kind == KeyKind::Public && call.principal.entity.as_ref() != Some(&id) {
        return Err(Refusal::forbidden("A user follows only their own spaces"));
    }
    let most = limits::ENTITY_SPACES;
    if spaces.len() > most {
        let text = format!("The entity is in more than {most} spaces. Follow its spaces one by one");
        return Err(ApiError::limit(ErrorCode::BadRequest, most as u64, text).into());
    }
    Ok(sse::open_entity(call, id, from).await)
}
