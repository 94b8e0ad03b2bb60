//! Keys of tenants. A key is shown once, when it is made; only its hash is kept.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_protocol::{ErrorCode, Hash, KeyId, KeyKind, TenantId, Timestamp};
use toolyard_store::keys::{self, Key};
use toolyard_store::{StoreError, audit, removal};

use super::answer;
use super::call::Call;
use crate::auth::{Auth, new_key};
use crate::http::Refusal;

/// What new keys of a tenant hear that goes.
pub(crate) const BEING_REMOVED: &str = "The tenant is being removed: make it again when that has ended";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewKey {
    /// Only the operator's key may name another tenant than its own.
    #[serde(default)]
    tenant: Option<TenantId>,
    kind: KeyKind,
    #[serde(default)]
    label: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeyView {
    id: KeyId,
    tenant: TenantId,
    kind: KeyKind,
    label: String,
    created_at: Timestamp,
    revoked_at: Option<Timestamp>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct KeyMade {
    /// The key itself. It cannot be shown again.
    key: String,
    #[serde(flatten)]
    view: KeyView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct KeyList {
    keys: Vec<KeyView>,
}

fn view(key: Key) -> KeyView {
    KeyView {
        id: key.id,
        tenant: key.tenant,
        kind: key.kind,
        label: key.label,
        created_at: key.created_at,
        revoked_at: key.revoked_at,
    }
}

/// The tenant that a key speaks for: its own, or any if it is the operator's.
fn tenant(call: &Call, asked: Option<TenantId>) -> Result<TenantId, Refusal> {
    match asked {
        Some(other) if other != *call.tenant() && !Auth::is_operator(&call.principal) => {
            Err(Refusal::not_found("Tenant"))
        }
        Some(asked) => Ok(asked),
        None => Ok(call.tenant().clone()),
    }
}

fn asked_tenant(call: &Call) -> Result<Option<TenantId>, Refusal> {
    super::page::typed(&call.query, "tenant", TenantId::parse)
}

pub(super) async fn create(call: Call) -> Result<Response, Refusal> {
    // The answer to it would have to be stored, and the key is in the answer.
    if call.headers.contains_key("idempotency-key") {
        return Err(Refusal::bad_request(
            "Idempotency-Key: not for keys, because a key is never stored. Make another one and revoke the first",
        ));
    }
    let new: NewKey = call.json()?;
    let label = answer::label("label", new.label)?.unwrap_or_default();
    if label == super::session::LABEL {
        let text = format!("label: {label:?} is for keys of pages, which end by themselves");
        return Err(Refusal::bad_request(text));
    }
    let tenant = tenant(&call, new.tenant)?;
    let key = new_key(new.kind).map_err(|why| Refusal::new(ErrorCode::Internal, why))?;
    let (hash, actor, kind) = (Hash::of(key.as_bytes()), call.actor(), new.kind);
    let made: Key = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                if removal::is_going(tx, &tenant).await? {
                    return Err(Refusal::new(ErrorCode::Conflict, BEING_REMOVED));
                }
                let made = keys::insert(tx, &tenant, kind, &hash, &label).await?;
                audit::write(tx, &tenant, &actor, "key.create", made.id.as_str(), None).await?;
                Ok(made)
            })
        })
        .await?;
    answer::json(201, &KeyMade { key, view: view(made) })
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let asked = asked_tenant(&call)?;
    let all = asked.is_none() && Auth::is_operator(&call.principal);
    let of = if all { None } else { Some(tenant(&call, asked)?) };
    let rows: Vec<Key> = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { keys::list(tx, of.as_ref()).await }))
        .await?;
    answer::json(200, &KeyList { keys: rows.into_iter().map(view).collect() })
}

/// Revokes a key: it is refused within a second.
pub(super) async fn revoke(call: Call) -> Result<Response, Refusal> {
    let id = call.id("key", "Key", KeyId::parse)?;
    let tenant = tenant(&call, asked_tenant(&call)?)?;
    let actor = call.actor();
    let revoked = call
        .store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let revoked = keys::revoke(tx, &tenant, &id).await?;
                if revoked {
                    audit::write(tx, &tenant, &actor, "key.revoke", id.as_str(), None).await?;
                }
                Ok(revoked)
            })
        })
        .await?;
    answer::gone(revoked, "Key")
}

/// `DELETE /api/tenants/{tenant}`: for the operator alone.
pub(super) async fn remove_tenant(call: Call) -> Result<Response, Refusal> {
    let tenant = call.id("tenant", "Tenant", TenantId::parse)?;
    if !Auth::is_operator(&call.principal) {
        return Err(Refusal::not_found("Tenant"));
    }
    if tenant == TenantId::default_tenant() {
        return Err(Refusal::bad_request("tenant: default is the operator's own and stays"));
    }
    let (store, actor) = (call.store().clone(), call.actor());
    let removing = Box::pin(async move { removal::tenant(&store, &tenant, &actor).await });
    let removed = call.to_the_end(removing).await?;
    answer::gone(removed > 0, "Tenant")
}
