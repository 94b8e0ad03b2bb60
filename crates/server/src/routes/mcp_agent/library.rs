//! Prompts and documents of an agent, for one caller. A document is here for
//! whoever may read it at `/api/knowledge`, if the agent's configuration says so.

use serde_json::{Map, Value, json};
use toolyard_dialects::mcp::{self, ListedDocument};
use toolyard_mcp::server::{Fault, Visit};
use toolyard_protocol::agent::McpServing;
use toolyard_protocol::{DocumentId, ErrorCode, KeyKind, limits};
use toolyard_store::StoreError;
use toolyard_store::knowledge::{self, Document};

use super::desk::{AgentDesk, fault};
use crate::http::Refusal;

/// The older era has a code of its own for what is not there.
const RESOURCE_NOT_FOUND: i32 = -32002;

fn listed(document: &Document) -> ListedDocument {
    ListedDocument {
        id: document.id.clone(),
        title: document.title.clone(),
        media_type: document.media_type.clone(),
        bytes: document.bytes,
        updated_at: document.updated_at,
    }
}

async fn serving(desk: &AgentDesk) -> Result<McpServing, Fault> {
    Ok(desk.load().await?.config.mcp_server.clone().unwrap_or_default())
}

pub(super) async fn prompts(desk: &AgentDesk) -> Result<Value, Fault> {
    Ok(mcp::prompt_list(serving(desk).await?.prompts()))
}

pub(super) async fn prompt(desk: &AgentDesk, name: &str, given: &Map<String, Value>) -> Result<Value, Fault> {
    let serving = serving(desk).await?;
    mcp::prompt(serving.prompts(), name, given).map_err(|e| Fault::new(e.code, e.message))
}

pub(super) async fn documents(desk: &AgentDesk, after: Option<DocumentId>) -> Result<Value, Fault> {
    if !serving(desk).await?.shows_knowledge() {
        return Ok(mcp::nothing("resources"));
    }
    let tenant = desk.principal.tenant.clone();
    // Users see what is in their spaces.
    let member = match desk.principal.kind {
        KeyKind::Secret => None,
        KeyKind::Public => {
            let own = desk.principal.entity.clone();
            Some(own.ok_or_else(|| fault(Refusal::forbidden("A user sees only their own")))?)
        }
    };
    let most = limits::PAGE_MAX;
    let found = desk.app.store.read::<_, StoreError, _>(move |tx| {
        Box::pin(
            async move { knowledge::list(tx, &tenant, None, member.as_ref(), after.as_ref(), most).await },
        )
    });
    let rows = found.await.map_err(fault)?;
    let full = rows.len() >= usize::try_from(most).unwrap_or(usize::MAX);
    let next = rows.last().filter(|_| full).map(|row| row.id.to_string());
    Ok(mcp::resource_list(&rows.iter().map(listed).collect::<Vec<_>>(), next))
}

pub(super) async fn document(desk: &AgentDesk, uri: &str, visit: &Visit) -> Result<Value, Fault> {
    let missing = || {
        let code = if visit.is_modern() { Fault::INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
        let data = Some(json!({ "uri": uri.chars().take(limits::LABEL_CHARS).collect::<String>() }));
        Fault { code, message: "There is no such resource".to_owned(), data }
    };
    if !serving(desk).await?.shows_knowledge() {
        return Err(missing());
    }
    let id = mcp::document_of(uri).ok_or_else(missing)?;
    let (tenant, principal) = (desk.principal.tenant.clone(), desk.principal.clone());
    let found = desk.app.store.read::<_, Refusal, _>(move |tx| {
        Box::pin(async move {
            let document = crate::routes::knowledge::readable(tx, &tenant, &principal, &id).await?;
            let text = knowledge::text(tx, &tenant, &id).await?.unwrap_or_default();
            Ok((document, text))
        })
    });
    match found.await {
        Ok((document, text)) => Ok(mcp::resource(&listed(&document), &text)),
        // What a caller may not read is not there.
        Err(e) if matches!(e.error.code, ErrorCode::NotFound | ErrorCode::Forbidden) => Err(missing()),
        Err(e) => Err(fault(e)),
    }
}
