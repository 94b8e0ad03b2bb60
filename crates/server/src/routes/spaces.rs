//! Spaces: conversations.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::{BranchId, ErrorCode, KeyKind, SpaceId, Timestamp};
use toolyard_store::spaces::{self, Space};
use toolyard_store::{StoreError, audit, runs};

use super::answer::Change;
use super::call::{Call, Made};
use super::{answer, page};
use crate::http::Refusal;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSpace {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    metadata: Option<Value>,
    /// Public keys see what the model thought.
    #[serde(default)]
    show_agent_reasoning: bool,
}

/// Absent fields stay, `null` clears.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PatchSpace {
    #[serde(default)]
    name: Change<String>,
    #[serde(default)]
    description: Change<String>,
    #[serde(default)]
    metadata: Change<Value>,
    #[serde(default)]
    show_agent_reasoning: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpaceView {
    id: SpaceId,
    name: Option<String>,
    description: Option<String>,
    /// Only a secret key sees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
    show_agent_reasoning: bool,
    /// The newest position: where a stream continues from now on.
    last_seq: i64,
    created_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OneSpace {
    smart_space: SpaceView,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpaceList {
    smart_spaces: Vec<SpaceView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A space as a key of this kind may see it.
fn view(space: Space, kind: KeyKind) -> SpaceView {
    SpaceView {
        id: space.id,
        name: space.name,
        description: space.description,
        metadata: space.metadata.filter(|_| kind == KeyKind::Secret),
        show_agent_reasoning: space.show_reasoning,
        last_seq: space.last_pos,
        created_at: space.created_at,
    }
}

pub(super) async fn create(call: Call) -> Result<Response, Refusal> {
    let new: NewSpace = call.json()?;
    let name = answer::label("name", new.name)?;
    let description = answer::label("description", new.description)?;
    let metadata = answer::metadata(new.metadata)?;
    let tenant = call.tenant().clone();
    call.once(move |tx| {
        Box::pin(async move {
            let space = Space {
                id: SpaceId::mint(),
                name,
                description,
                metadata,
                show_reasoning: new.show_agent_reasoning,
                last_pos: 0,
                branch: BranchId::main(),
                tainted: false,
                created_at: tx.now().await?,
            };
            spaces::insert(tx, &tenant, &space).await?;
            Ok(Made { status: 201, body: json!(OneSpace { smart_space: view(space, KeyKind::Secret) }) })
        })
    })
    .await
}

/// All spaces of the tenant; for a public key, those it is a member of.
pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let limit = page::limit(&call.query)?;
    let before = page::typed(&call.query, "before", SpaceId::parse)?;
    let member = match call.principal.kind {
        KeyKind::Public => call.principal.entity.clone(),
        KeyKind::Secret => page::typed(&call.query, "entityId", toolyard_protocol::EntityId::parse)?,
    };
    if call.principal.kind == KeyKind::Public && member.is_none() {
        return Err(Refusal::forbidden("No entity found for this user"));
    }
    let tenant = call.tenant().clone();
    let rows: Vec<Space> = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move { spaces::list(tx, &tenant, member.as_ref(), before.as_ref(), limit).await })
        })
        .await?;
    let next = page::next(&rows, limit, |space| space.id.to_string());
    let smart_spaces = rows.into_iter().map(|space| view(space, call.principal.kind)).collect();
    answer::json(200, &SpaceList { smart_spaces, next })
}

pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let (space, _) = call.space()?;
    answer::json(200, &OneSpace { smart_space: view(space.clone(), call.principal.kind) })
}

pub(super) async fn patch(call: Call) -> Result<Response, Refusal> {
    let id = call.id("space", "SmartSpace", SpaceId::parse)?;
    let patch: PatchSpace = call.json()?;
    let name = patch.name.check(|v| answer::label("name", v))?;
    let description = patch.description.check(|v| answer::label("description", v))?;
    let metadata = patch.metadata.check(answer::metadata)?;
    let reasoning = patch.show_agent_reasoning;
    let tenant = call.tenant().clone();
    let changed: Space = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let found = spaces::get(tx, &tenant, &id).await?;
                let mut space = found.ok_or_else(|| Refusal::not_found("SmartSpace"))?;
                space.name = name.over(space.name);
                space.description = description.over(space.description);
                space.metadata = metadata.over(space.metadata);
                space.show_reasoning = reasoning.unwrap_or(space.show_reasoning);
                spaces::update(tx, &tenant, &space).await?;
                Ok(space)
            })
        })
        .await?;
    answer::json(200, &OneSpace { smart_space: view(changed, KeyKind::Secret) })
}

/// Removes a space and all of it. Its live runs must be canceled first.
pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let id = call.id("space", "SmartSpace", SpaceId::parse)?;
    let (tenant, actor) = (call.tenant().clone(), call.actor());
    let existed = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                // Held before it is asked: a message cannot start a run in between.
                if !spaces::lock(tx, &tenant, &id).await? {
                    return Ok(false);
                }
                for live in [RunStatus::Queued, RunStatus::Running, RunStatus::WaitingTool] {
                    if !runs::list(tx, &tenant, Some(&id), Some(live), None, 1).await?.is_empty() {
                        return Err(Refusal::new(
                            ErrorCode::RunBusy,
                            "The space has a live run. Cancel it first",
                        ));
                    }
                }
                let existed = spaces::delete(tx, &tenant, &id).await?;
                if existed {
                    audit::write(tx, &tenant, &actor, "space.delete", id.as_str(), None).await?;
                }
                Ok(existed)
            })
        })
        .await?;
    answer::gone(existed, "SmartSpace")
}
