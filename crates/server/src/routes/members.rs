//! Members of a space.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolyard_protocol::principal::Role;
use toolyard_protocol::{EntityId, SpaceId, Timestamp};
use toolyard_store::{StoreError, audit, entities, spaces};

use super::answer;
use super::call::{Call, Made};
use crate::http::Refusal;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewMember {
    entity_id: EntityId,
    #[serde(default)]
    role: Role,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MemberView {
    smart_space_id: SpaceId,
    entity_id: EntityId,
    role: Role,
    /// `human`, `agent` or `system`.
    #[serde(rename = "type")]
    kind: String,
    display_name: Option<String>,
    created_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneMember {
    membership: MemberView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MemberList {
    members: Vec<MemberView>,
}

/// Adds a member, or changes its role.
pub(super) async fn put(call: Call) -> Result<Response, Refusal> {
    let space = call.id("space", "SmartSpace", SpaceId::parse)?;
    let NewMember { entity_id, role } = call.json()?;
    let (tenant, actor) = (call.tenant().clone(), call.actor());
    call.once(move |tx| {
        Box::pin(async move {
            // Held: a space that is deleted meanwhile leaves no member behind.
            if !spaces::lock(tx, &tenant, &space).await? {
                return Err(Refusal::not_found("SmartSpace"));
            }
            let entity = entities::get(tx, &tenant, &entity_id).await?;
            let entity = entity.ok_or_else(|| Refusal::not_found("Entity"))?;
            let since = spaces::put_member(tx, &tenant, &space, &entity_id, role).await?;
            let what = format!("{space} {entity_id}");
            audit::write(tx, &tenant, &actor, "member.put", &what, None).await?;
            let view = MemberView {
                smart_space_id: space,
                entity_id,
                role,
                kind: entity.kind.as_str().to_owned(),
                display_name: entity.display_name,
                created_at: since,
            };
            Ok(Made { status: 201, body: json!(OneMember { membership: view }) })
        })
    })
    .await
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let space = call.space()?.0.id.clone();
    let tenant = call.tenant().clone();
    let members: Vec<MemberView> = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let mut views = Vec::new();
                for member in spaces::members(tx, &tenant, &space).await? {
                    let Some(entity) = entities::get(tx, &tenant, &member.entity).await? else { continue };
                    views.push(MemberView {
                        smart_space_id: space.clone(),
                        entity_id: member.entity,
                        role: member.role,
                        kind: entity.kind.as_str().to_owned(),
                        display_name: entity.display_name,
                        created_at: member.created_at,
                    });
                }
                Ok(views)
            })
        })
        .await?;
    answer::json(200, &MemberList { members })
}

pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let space = call.id("space", "SmartSpace", SpaceId::parse)?;
    let entity = call.id("entity", "Member", EntityId::parse)?;
    let (tenant, actor) = (call.tenant().clone(), call.actor());
    let existed = call
        .store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let existed = spaces::remove_member(tx, &tenant, &space, &entity).await?;
                if existed {
                    let what = format!("{space} {entity}");
                    audit::write(tx, &tenant, &actor, "member.delete", &what, None).await?;
                }
                Ok(existed)
            })
        })
        .await?;
    answer::gone(existed, "Member")
}
