//! Notifications, for the people they are for.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_protocol::{AgentName, EntityId, NoticeId, RunId, SpaceId, Timestamp, limits};
use toolyard_store::inbox::{self, Notice};

use super::call::{Call, Made};
use super::page::{self, Page};
use super::{answer, own};
use crate::http::Refusal;

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Level {
    #[default]
    Info,
    Warning,
    Urgent,
}

impl Level {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Urgent => "urgent",
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewNotice {
    entity_id: EntityId,
    title: String,
    message: String,
    #[serde(default)]
    level: Level,
    #[serde(default)]
    data: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct PatchNotice {
    /// Missing means true.
    #[serde(default)]
    read: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NoticeView {
    id: NoticeId,
    entity_id: EntityId,
    title: String,
    message: String,
    /// `info`, `warning` or `urgent`.
    level: String,
    data: Option<Value>,
    agent: Option<AgentName>,
    smart_space_id: Option<SpaceId>,
    run_id: Option<RunId>,
    read_at: Option<Timestamp>,
    created_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneNotice {
    notification: NoticeView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct NoticeList {
    notifications: Vec<NoticeView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

fn view(notice: Notice) -> NoticeView {
    NoticeView {
        id: notice.id,
        entity_id: notice.entity,
        title: notice.title,
        message: notice.body,
        level: notice.level,
        data: notice.data,
        agent: notice.agent,
        smart_space_id: notice.space,
        run_id: notice.run,
        read_at: notice.read_at,
        created_at: notice.created_at,
    }
}

pub(super) async fn create(call: Call) -> Result<Response, Refusal> {
    let new: NewNotice = call.json()?;
    let title = answer::words("title", &new.title, limits::NOTICE_TITLE_CHARS)?;
    let body = answer::words("message", &new.message, limits::NOTICE_CHARS)?;
    answer::within("data", new.data.as_ref(), limits::METADATA_BYTES)?;
    let tenant = call.tenant().clone();
    call.once(move |tx| {
        Box::pin(async move {
            own::entity(tx, &tenant, &new.entity_id).await?;
            let notice = Notice {
                id: NoticeId::mint(),
                entity: new.entity_id,
                title,
                body,
                level: new.level.as_str().to_owned(),
                data: new.data,
                agent: None,
                space: None,
                run: None,
                read_at: None,
                created_at: tx.now().await?,
            };
            inbox::put(tx, &tenant, &notice).await?;
            Ok(Made { status: 201, body: json!(OneNotice { notification: view(notice) }) })
        })
    })
    .await
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let page = Page::asked(&call, NoticeId::parse)?;
    let unread = page::typed(&call.query, "unread", str::parse::<bool>)?.unwrap_or(false);
    let entity = own::listed(&call, page::typed(&call.query, "entityId", EntityId::parse)?)?;
    let listed = page.rows(
        &call,
        move |tx, tenant, page: Page<NoticeId>| {
            Box::pin(async move {
                inbox::list(tx, &tenant, entity.as_ref(), unread, page.before.as_ref(), page.limit).await
            })
        },
        |notice: &Notice| &notice.id,
    );
    let (rows, next) = listed.await?;
    answer::json(200, &NoticeList { notifications: rows.into_iter().map(view).collect(), next })
}

/// Marks a notification as read, or as not.
pub(super) async fn patch(call: Call) -> Result<Response, Refusal> {
    let id = call.id("notice", "Notification", NoticeId::parse)?;
    let patch: PatchNotice = call.json()?;
    let (tenant, principal) = (call.tenant().clone(), call.principal.clone());
    let changed: Notice = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let found = inbox::get(tx, &tenant, &id).await?;
                let mut notice = found.ok_or_else(|| Refusal::not_found("Notification"))?;
                own::check(&principal, Some(&notice.entity), "notification")?;
                let now = tx.now().await?;
                notice.read_at = patch.read.unwrap_or(true).then(|| notice.read_at.unwrap_or(now));
                inbox::mark(tx, &tenant, &id, notice.read_at).await?;
                Ok(notice)
            })
        })
        .await?;
    answer::json(200, &OneNotice { notification: view(changed) })
}

pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let id = call.id("notice", "Notification", NoticeId::parse)?;
    let (tenant, principal) = (call.tenant().clone(), call.principal.clone());
    let existed = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let Some(notice) = inbox::get(tx, &tenant, &id).await? else { return Ok(false) };
                own::check(&principal, Some(&notice.entity), "notification")?;
                Ok(inbox::delete(tx, &tenant, &id).await?)
            })
        })
        .await?;
    answer::gone(existed, "Notification")
}
