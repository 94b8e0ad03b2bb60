//! Who did what, without content.

use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use toolyard_protocol::{ErrorCode, Principal, Timestamp};
use toolyard_store::StoreError;
use toolyard_store::audit::{self, Entry};

use super::call::{Call, actor};
use super::{answer, page};
use crate::app::App;
use crate::http::Refusal;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntryView {
    id: String,
    at: Timestamp,
    actor: String,
    action: String,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AuditPage {
    entries: Vec<EntryView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Somebody tried to give a result or an answer for another's call (row D8).
/// The line is the caller's tenant's: of others it learns nothing.
pub(super) async fn note_refusal(
    app: &App,
    by: &Principal,
    action: &'static str,
    target: &str,
) -> Result<(), Refusal> {
    let (tenant, actor, target) = (by.tenant.clone(), actor(by), target.to_owned());
    let noted = app.store.write::<_, StoreError, _>(move |tx| {
        Box::pin(async move { audit::write(tx, &tenant, &actor, action, &target, None).await })
    });
    Ok(noted.await?)
}

/// Is this a refusal that says "not yours"?
pub(super) fn is_foreign(refused: &Refusal) -> bool {
    matches!(refused.error.code, ErrorCode::Forbidden | ErrorCode::NotFound)
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let limit = page::limit(&call.query)?;
    let before = call.query.get("before").cloned();
    let tenant = call.tenant().clone();
    let rows: Vec<Entry> = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move { audit::list(tx, &tenant, before.as_deref(), limit).await })
        })
        .await?;
    let next = page::next(&rows, limit, |entry| entry.id.clone());
    let view = |e: Entry| EntryView {
        id: e.id,
        at: e.at,
        actor: e.actor,
        action: e.action,
        target: e.target,
        detail: e.detail,
    };
    answer::json(200, &AuditPage { entries: rows.into_iter().map(view).collect(), next })
}
