//! What agents remember, for the people it is about: a user sees, corrects and
//! removes what was written for them.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolyard_protocol::{EntityId, ErrorCode, KeyKind, MemoryId, SpaceId, Timestamp, limits};
use toolyard_store::memories::{self, Asking, Memory, MemoryScope};
use toolyard_store::{StoreError, audit};

use super::call::{Call, Made};
use super::page::{self, Page};
use super::{answer, own};
use crate::http::Refusal;

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scope {
    /// For runs that work for its writer.
    #[default]
    User,
    /// For every run in the space.
    Space,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewMemory {
    /// The agent that shall remember it.
    agent_entity_id: EntityId,
    /// For whom. A user's own if missing.
    #[serde(default)]
    entity_id: Option<EntityId>,
    /// Where; needed for scope `space`.
    #[serde(default)]
    smart_space_id: Option<SpaceId>,
    #[serde(default)]
    scope: Scope,
    topic: String,
    content: String,
}

/// Absent fields stay.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct PatchMemory {
    #[serde(default)]
    topic: Option<String>,
    #[serde(default)]
    content: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MemoryView {
    id: MemoryId,
    agent_entity_id: EntityId,
    /// For whom it was written.
    entity_id: Option<EntityId>,
    smart_space_id: Option<SpaceId>,
    /// `user`, `space` or `agent`.
    scope: &'static str,
    topic: String,
    content: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneMemory {
    memory: MemoryView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MemoryList {
    memories: Vec<MemoryView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

fn view(memory: Memory) -> MemoryView {
    MemoryView {
        id: memory.id,
        agent_entity_id: memory.agent,
        entity_id: memory.writer,
        smart_space_id: memory.space,
        scope: memory.scope.as_str(),
        topic: memory.topic,
        content: memory.content,
        created_at: memory.created_at,
        updated_at: memory.updated_at,
    }
}

pub(super) async fn create(call: Call) -> Result<Response, Refusal> {
    let new: NewMemory = call.json()?;
    let topic = answer::words("topic", &new.topic, limits::TOPIC_CHARS)?;
    let content = answer::words("content", &new.content, limits::MEMORY_CHARS)?;
    let writer = new.entity_id.clone().or_else(|| call.principal.entity.clone());
    let writer = writer.ok_or_else(|| toolyard_protocol::ApiError::missing("entityId"))?;
    own::check(&call.principal, Some(&writer), "memory")?;
    let scope = match new.scope {
        Scope::User => MemoryScope::User,
        Scope::Space if new.smart_space_id.is_some() => MemoryScope::Space,
        Scope::Space => return Err(toolyard_protocol::ApiError::missing("smartSpaceId").into()),
    };
    let tenant = call.tenant().clone();
    call.once(move |tx| {
        Box::pin(async move {
            own::agent(tx, &tenant, &new.agent_entity_id).await?;
            own::entity(tx, &tenant, &writer).await?;
            if let Some(space) = &new.smart_space_id {
                own::seat(tx, &tenant, space, &[&writer, &new.agent_entity_id]).await?;
            }
            let space = new.smart_space_id.as_ref();
            let asking = Asking { agent: &new.agent_entity_id, user: Some(&writer), space };
            if memories::own(tx, &tenant, asking, scope, &topic).await?.is_some() {
                return Err(taken());
            }
            let count = memories::count(tx, &tenant, &new.agent_entity_id, Some(&writer)).await?;
            if usize::try_from(count).unwrap_or(usize::MAX) >= limits::MEMORIES {
                return Err(answer::too_many("memories", limits::MEMORIES));
            }
            let now = tx.now().await?;
            let memory = Memory {
                id: MemoryId::mint(),
                agent: new.agent_entity_id,
                writer: Some(writer),
                space: new.smart_space_id,
                scope,
                topic,
                content,
                created_at: now,
                updated_at: now,
            };
            // Somebody may have been quicker.
            if !memories::insert(tx, &tenant, &memory).await? {
                return Err(taken());
            }
            Ok(Made { status: 201, body: json!(OneMemory { memory: view(memory) }) })
        })
    })
    .await
}

fn taken() -> Refusal {
    Refusal::new(ErrorCode::Conflict, "topic: there is a memory of this topic; change that one")
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let page = Page::asked(&call, MemoryId::parse)?;
    let agent = page::typed(&call.query, "agentEntityId", EntityId::parse)?;
    let topic = call.query.get("topic").cloned();
    let writer = own::listed(&call, page::typed(&call.query, "entityId", EntityId::parse)?)?;
    let listed = page.rows(
        &call,
        move |tx, tenant, page: Page<MemoryId>| {
            Box::pin(async move {
                let (writer, agent) = (writer.as_ref(), agent.as_ref());
                memories::list(tx, &tenant, writer, agent, topic.as_deref(), page.before.as_ref(), page.limit)
                    .await
            })
        },
        |memory: &Memory| &memory.id,
    );
    let (rows, next) = listed.await?;
    answer::json(200, &MemoryList { memories: rows.into_iter().map(view).collect(), next })
}

pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let id = call.id("memory", "Memory", MemoryId::parse)?;
    let tenant = call.tenant().clone();
    let found: Option<Memory> = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { memories::get(tx, &tenant, &id).await }))
        .await?;
    let memory = found.ok_or_else(|| Refusal::not_found("Memory"))?;
    own::check(&call.principal, memory.writer.as_ref(), "memory")?;
    answer::json(200, &OneMemory { memory: view(memory) })
}

pub(super) async fn patch(call: Call) -> Result<Response, Refusal> {
    let id = call.id("memory", "Memory", MemoryId::parse)?;
    let patch: PatchMemory = call.json()?;
    let topic = patch.topic.map(|text| answer::words("topic", &text, limits::TOPIC_CHARS)).transpose()?;
    let content =
        patch.content.map(|text| answer::words("content", &text, limits::MEMORY_CHARS)).transpose()?;
    let (tenant, principal) = (call.tenant().clone(), call.principal.clone());
    let changed: Memory = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let found = memories::get(tx, &tenant, &id).await?;
                let mut memory = found.ok_or_else(|| Refusal::not_found("Memory"))?;
                own::check(&principal, memory.writer.as_ref(), "memory")?;
                // Who has left a space does not speak there any more.
                if let (KeyKind::Public, MemoryScope::Space, Some(space), Some(writer)) =
                    (principal.kind, memory.scope, &memory.space, &memory.writer)
                {
                    own::seat(tx, &tenant, space, &[writer]).await?;
                }
                if let Some(topic) = &topic {
                    let asking = Asking {
                        agent: &memory.agent,
                        user: memory.writer.as_ref(),
                        space: memory.space.as_ref(),
                    };
                    let there = memories::own(tx, &tenant, asking, memory.scope, topic).await?;
                    if there.is_some_and(|other| other.id != memory.id) {
                        return Err(taken());
                    }
                }
                memory.topic = topic.unwrap_or(memory.topic);
                memory.content = content.unwrap_or(memory.content);
                memory.updated_at = tx.now().await?;
                memories::update(tx, &tenant, &memory).await?;
                Ok(memory)
            })
        })
        .await?;
    answer::json(200, &OneMemory { memory: view(changed) })
}

pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let id = call.id("memory", "Memory", MemoryId::parse)?;
    let (tenant, principal, actor) = (call.tenant().clone(), call.principal.clone(), call.actor());
    let existed = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let Some(memory) = memories::get(tx, &tenant, &id).await? else { return Ok(false) };
                own::check(&principal, memory.writer.as_ref(), "memory")?;
                audit::write(tx, &tenant, &actor, "memory.delete", id.as_str(), None).await?;
                Ok(memories::delete(tx, &tenant, &id).await?)
            })
        })
        .await?;
    answer::gone(existed, "Memory")
}
