//! Documents for agents to search: uploaded whole, indexed in the background.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolyard_protocol::{
    ApiError, DocumentId, EntityId, ErrorCode, KeyKind, Principal, SpaceId, TenantId, Timestamp, limits,
};
use toolyard_runtime::Form;
use toolyard_store::knowledge::{self, Document, DocumentStatus};
use toolyard_store::{Tx, audit, spaces};

use super::call::{Call, Made};
use super::page::{self, Page};
use super::{answer, extract, own};
use crate::http::Refusal;

/// A document as JSON. Any other media type is the document itself, with
/// `title` and `smartSpaceId` in the query.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewDocument {
    #[serde(default)]
    title: Option<String>,
    content: String,
    /// `text/plain` if missing.
    #[serde(default)]
    media_type: Option<String>,
    /// Only for agents in this space. Missing means all agents of the tenant.
    #[serde(default)]
    smart_space_id: Option<SpaceId>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DocumentView {
    id: DocumentId,
    smart_space_id: Option<SpaceId>,
    entity_id: Option<EntityId>,
    title: String,
    media_type: String,
    /// Of its text.
    bytes: i64,
    /// `indexing`, `embedding` or `ready`. What is indexed can be found.
    status: &'static str,
    /// How much is indexed, from 0 to 1.
    progress: f64,
    chunks: i64,
    /// Pieces that can be found by meaning.
    embedded_chunks: i64,
    error: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneDocument {
    document: DocumentView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DocumentList {
    documents: Vec<DocumentView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

fn view(document: Document) -> DocumentView {
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    let progress = document.done_bytes as f64 / document.bytes.max(1) as f64;
    DocumentView {
        id: document.id,
        smart_space_id: document.space,
        entity_id: document.entity,
        title: document.title,
        media_type: document.media_type,
        bytes: document.bytes,
        status: document.status.as_str(),
        progress: progress.clamp(0.0, 1.0),
        chunks: document.chunks,
        embedded_chunks: document.embedded,
        error: document.error,
        created_at: document.created_at,
        updated_at: document.updated_at,
    }
}

/// What was uploaded, in whichever way.
struct Upload {
    title: Option<String>,
    media_type: String,
    space: Option<SpaceId>,
    bytes: Vec<u8>,
}

fn upload(call: &Call) -> Result<Upload, Refusal> {
    let header = |name: &str| call.headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let media_type = header("content-type").unwrap_or_else(|| "text/plain".to_owned());
    if media_type.starts_with("application/json") {
        let new: NewDocument = call.json()?;
        return Ok(Upload {
            title: new.title,
            media_type: new.media_type.unwrap_or_else(|| "text/plain".to_owned()),
            space: new.smart_space_id,
            bytes: new.content.into_bytes(),
        });
    }
    let title = call.query.get("title").cloned().or_else(|| header("x-filename"));
    let space = page::typed(&call.query, "smartSpaceId", SpaceId::parse)?;
    Ok(Upload { title, media_type, space, bytes: call.body.to_vec() })
}

pub(super) async fn create(call: Call) -> Result<Response, Refusal> {
    let Upload { title, media_type, space, bytes } = upload(&call)?;
    let title = answer::label("title", title)?.unwrap_or_else(|| "Untitled".to_owned());
    let form = Form::of(&media_type).ok_or_else(|| {
        let text = "The document must be text, Markdown, HTML or PDF (content-type)";
        Refusal::new(ErrorCode::UnsupportedMedia, text)
    })?;
    if call.principal.kind == KeyKind::Public && space.is_none() {
        // What all agents of a tenant read is the backend's to say.
        return Err(ApiError::missing("smartSpaceId").into());
    }
    let media_type = answer::label("mediaType", Some(media_type))?.unwrap_or_default();
    let (tenant, entity) = (call.tenant().clone(), call.principal.entity.clone());
    // Nobody has us read what they may not store.
    if let Some(space) = space.clone() {
        let (tenant, entity) = (tenant.clone(), entity.clone());
        call.store()
            .read::<_, Refusal, _>(move |tx| {
                Box::pin(async move {
                    let members: Vec<&EntityId> = entity.iter().collect();
                    own::seat(tx, &tenant, &space, &members).await
                })
            })
            .await?;
    }
    let text = extract::text_of(form, bytes).await?;
    let answered = call
        .once(move |tx| {
            Box::pin(async move {
                if let Some(space) = &space {
                    let members: Vec<&EntityId> = entity.iter().collect();
                    own::seat(tx, &tenant, space, &members).await?;
                }
                let all = (None, limits::DOCUMENTS);
                let own = entity.as_ref().map(|entity| (Some(entity), limits::USER_DOCUMENTS));
                for (of, most) in std::iter::once(all).chain(own) {
                    let count = knowledge::count(tx, &tenant, of).await?;
                    if usize::try_from(count).unwrap_or(usize::MAX) >= most {
                        return Err(answer::too_many("documents", most));
                    }
                }
                let now = tx.now().await?;
                let document = Document {
                    id: DocumentId::mint(),
                    space,
                    entity,
                    title,
                    media_type,
                    bytes: i64::try_from(text.len()).unwrap_or(i64::MAX),
                    status: DocumentStatus::Indexing,
                    done_bytes: 0,
                    chunks: 0,
                    embedded: 0,
                    model: None,
                    error: None,
                    created_at: now,
                    updated_at: now,
                };
                knowledge::insert(tx, &tenant, &document, &text).await?;
                Ok(Made { status: 201, body: json!(OneDocument { document: view(document) }) })
            })
        })
        .await?;
    call.app.runtime.document_stored();
    Ok(answered)
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let page = Page::asked(&call, DocumentId::parse)?;
    let space = page::typed(&call.query, "smartSpaceId", SpaceId::parse)?;
    // Users see what is in their spaces.
    let member = own::listed(&call, None)?;
    let listed = page.rows(
        &call,
        move |tx, tenant, page: Page<DocumentId>| {
            Box::pin(async move {
                knowledge::list(
                    tx,
                    &tenant,
                    space.as_ref(),
                    member.as_ref(),
                    page.before.as_ref(),
                    page.limit,
                )
                .await
            })
        },
        |document: &Document| &document.id,
    );
    let (rows, next) = listed.await?;
    answer::json(200, &DocumentList { documents: rows.into_iter().map(view).collect(), next })
}

/// A user reads what is in a space of theirs.
pub(super) async fn readable(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    principal: &Principal,
    id: &DocumentId,
) -> Result<Document, Refusal> {
    let found = knowledge::get(tx, tenant, id).await?;
    let document = found.ok_or_else(|| Refusal::not_found("Document"))?;
    if principal.kind == KeyKind::Secret {
        return Ok(document);
    }
    let role = match (&document.space, &principal.entity) {
        (Some(space), Some(entity)) => spaces::role(tx, tenant, space, entity).await?,
        _ => None,
    };
    role.map(|_| document).ok_or_else(|| Refusal::forbidden("Entity is not a member of this SmartSpace"))
}

pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let id = call.id("document", "Document", DocumentId::parse)?;
    let (tenant, principal) = (call.tenant().clone(), call.principal.clone());
    let document: Document = call
        .store()
        .read::<_, Refusal, _>(move |tx| {
            Box::pin(async move { readable(tx, &tenant, &principal, &id).await })
        })
        .await?;
    answer::json(200, &OneDocument { document: view(document) })
}

/// A user removes what they uploaded.
pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let id = call.id("document", "Document", DocumentId::parse)?;
    let (tenant, principal, actor) = (call.tenant().clone(), call.principal.clone(), call.actor());
    let existed = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let document = readable(tx, &tenant, &principal, &id).await?;
                own::check(&principal, document.entity.as_ref(), "document")?;
                audit::write(tx, &tenant, &actor, "document.delete", id.as_str(), None).await?;
                Ok(knowledge::delete(tx, &tenant, &id).await?)
            })
        })
        .await?;
    answer::gone(existed, "Document")
}
