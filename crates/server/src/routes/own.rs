//! What people may see and change of what agents keep: a backend all of its
//! tenant, a user only their own.

use toolyard_protocol::{EntityId, KeyKind, Principal, SpaceId, TenantId};
use toolyard_store::entities::{self, EntityKind};
use toolyard_store::{Tx, spaces};

use super::call::Call;
use crate::http::Refusal;

/// Whose rows a list shows: a backend names somebody, or nobody for all.
pub(super) fn listed(call: &Call, named: Option<EntityId>) -> Result<Option<EntityId>, Refusal> {
    match (call.principal.kind, &call.principal.entity) {
        (KeyKind::Secret, _) => Ok(named),
        (KeyKind::Public, Some(own)) if named.as_ref().is_none_or(|named| named == own) => {
            Ok(Some(own.clone()))
        }
        (KeyKind::Public, _) => Err(Refusal::forbidden("A user sees only their own")),
    }
}

/// Refuses a user who is not the owner.
pub(super) fn check(principal: &Principal, owner: Option<&EntityId>, what: &str) -> Result<(), Refusal> {
    let own = principal.entity.is_some() && principal.entity.as_ref() == owner;
    if own || principal.kind == KeyKind::Secret {
        return Ok(());
    }
    Err(Refusal::forbidden(format!("This {what} belongs to another entity")))
}

/// An entity of the tenant that a body names.
pub(super) async fn entity(tx: &mut Tx<'_>, tenant: &TenantId, id: &EntityId) -> Result<(), Refusal> {
    let found = entities::get(tx, tenant, id).await?;
    found.map(drop).ok_or_else(|| Refusal::not_found("Entity"))
}

/// An entity that plays an agent.
pub(super) async fn agent(tx: &mut Tx<'_>, tenant: &TenantId, id: &EntityId) -> Result<(), Refusal> {
    let found = entities::get(tx, tenant, id).await?;
    let found = found.filter(|entity| entity.kind == EntityKind::Agent);
    found.map(drop).ok_or_else(|| Refusal::not_found("Agent entity"))
}

/// Refuses who has no seat in a space, and a space that is not there.
pub(super) async fn seat(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    entities: &[&EntityId],
) -> Result<(), Refusal> {
    if spaces::get(tx, tenant, space).await?.is_none() {
        return Err(Refusal::not_found("SmartSpace"));
    }
    for entity in entities {
        if spaces::role(tx, tenant, space, entity).await?.is_none() {
            return Err(Refusal::forbidden("Entity is not a member of this SmartSpace"));
        }
    }
    Ok(())
}
