//! Secrets of a tenant, for `${secret.NAME}` in configurations. Write-only: no
//! route ever answers a value.

use axum::response::Response;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use toolyard_protocol::{ApiError, ErrorCode, SecretName, Timestamp, limits};
use toolyard_runtime::Purpose;
use toolyard_store::secrets::{self, Listed};
use toolyard_store::{StoreError, audit};

use super::call::Call;
use super::{answer, page};
use crate::config::Hidden;
use crate::http::Refusal;

/// A value to keep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PutSecret {
    /// The secret itself. It cannot be read back.
    value: Hidden,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SecretPut {
    name: SecretName,
    /// The name was not there before.
    created: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SecretView {
    name: SecretName,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SecretList {
    secrets: Vec<SecretView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

fn named(call: &Call) -> Result<SecretName, Refusal> {
    let text = call.params.get("secret").map(String::as_str).unwrap_or_default();
    SecretName::parse(text).map_err(|e| Refusal::bad_request(e.to_string()))
}

/// `PUT /api/secrets/{secret}`: the value is sealed before it reaches the store.
pub(super) async fn put(call: Call) -> Result<Response, Refusal> {
    let name = named(&call)?;
    let PutSecret { value } = call.json()?;
    let length = value.expose().len();
    let most = limits::SECRET_BYTES;
    if length == 0 || length > most {
        let message = format!("value: must have 1 to {most} bytes");
        return Err(ApiError::limit(ErrorCode::LimitExceeded, most as u64, message).into());
    }
    let tenant = call.tenant().clone();
    let sealer = call.app.secrets.sealer();
    let sealed = sealer
        .seal(Purpose::Secret, &tenant, name.as_str(), &SecretString::from(value.expose()))
        .map_err(|_| Refusal::new(ErrorCode::Internal, "The secret could not be sealed"))?;
    let (actor, stored) = (call.actor(), name.clone());
    let created = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let created = secrets::put(tx, &tenant, &stored, &sealed).await?;
                let count = secrets::count(tx, &tenant).await?;
                if created && usize::try_from(count).is_ok_and(|count| count > limits::SECRETS) {
                    let most = limits::SECRETS;
                    let message = format!("A tenant has at most {most} secrets");
                    return Err(ApiError::limit(ErrorCode::LimitExceeded, most as u64, message).into());
                }
                audit::write(tx, &tenant, &actor, "secret.put", stored.as_str(), None).await?;
                Ok(created)
            })
        })
        .await?;
    answer::json(200, &SecretPut { name, created })
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let (tenant, limit) = (call.tenant().clone(), page::limit(&call.query)?);
    let after = page::typed(&call.query, "after", SecretName::parse)?;
    let rows: Vec<Listed> = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                secrets::list(tx, &tenant, after.as_ref().map(SecretName::as_str), limit).await
            })
        })
        .await?;
    let next = page::next(&rows, limit, |row| row.name.to_string());
    let view = |l: Listed| SecretView { name: l.name, created_at: l.created_at, updated_at: l.updated_at };
    answer::json(200, &SecretList { secrets: rows.into_iter().map(view).collect(), next })
}

pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let name = named(&call)?;
    let (tenant, actor) = (call.tenant().clone(), call.actor());
    let deleted = call
        .store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let deleted = secrets::delete(tx, &tenant, &name).await?;
                if deleted {
                    audit::write(tx, &tenant, &actor, "secret.delete", name.as_str(), None).await?;
                }
                Ok(deleted)
            })
        })
        .await?;
    answer::gone(deleted, "Secret")
}
