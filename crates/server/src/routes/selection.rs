//! Which of the agents' tools a member wants in a space.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolyard_protocol::picks::Picks;
use toolyard_protocol::{ApiError, EntityId, KeyKind, SpaceId, limits};
use toolyard_store::{StoreError, spaces};

use super::call::Call;
use super::{answer, page};
use crate::http::Refusal;

/// What is picked. A tool that is not named is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSelection {
    /// Whose selection: only with a secret key.
    #[serde(default)]
    entity_id: Option<EntityId>,
    #[serde(flatten)]
    picks: Picks,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SelectionView {
    smart_space_id: SpaceId,
    entity_id: EntityId,
    #[serde(flatten)]
    picks: Picks,
}

/// A user's own; a backend says whose.
fn whose(call: &Call, said: Option<EntityId>) -> Result<EntityId, Refusal> {
    match call.principal.kind {
        KeyKind::Secret => said.ok_or_else(|| ApiError::missing("entityId").into()),
        KeyKind::Public => {
            let own = call.principal.entity.clone();
            own.ok_or_else(|| Refusal::forbidden("No entity found for this user"))
        }
    }
}

/// `GET …/tool-selection`
pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let said = page::typed(&call.query, "entityId", EntityId::parse)?;
    let entity_id = whose(&call, said)?;
    let (space, _) = call.space()?;
    let (tenant, space, asked) = (call.tenant().clone(), space.id.clone(), entity_id.clone());
    let smart_space_id = space.clone();
    let seat = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move { spaces::seat(tx, &tenant, &space, &asked).await })
        })
        .await?;
    let seat = seat.ok_or_else(|| Refusal::not_found("Member"))?;
    let picks = seat.picks.unwrap_or_default();
    answer::json(200, &SelectionView { smart_space_id, entity_id, picks })
}

/// `PUT …/tool-selection`: replaces what was picked. It holds for runs that start from now on.
pub(super) async fn put(call: Call) -> Result<Response, Refusal> {
    let NewSelection { entity_id, picks } = call.json()?;
    answer::within("tools", Some(&json!(picks)), limits::METADATA_BYTES)?;
    let entity_id = whose(&call, entity_id)?;
    let (space, _) = call.space()?;
    let (tenant, space, asked) = (call.tenant().clone(), space.id.clone(), entity_id.clone());
    let (smart_space_id, kept) = (space.clone(), picks.clone());
    let done = call
        .store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move { spaces::pick(tx, &tenant, &space, &asked, &kept).await })
        })
        .await?;
    if !done {
        return Err(Refusal::not_found("Member"));
    }
    answer::json(200, &SelectionView { smart_space_id, entity_id, picks })
}
