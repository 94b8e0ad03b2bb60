//! Messages of a space: read a page, post one.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_dialects::native::{self, MessageView};
use toolyard_protocol::message::{Message, Part, Speaker};
use toolyard_protocol::{ApiError, BranchId, EntityId, FileId, KeyKind, RunId, Viewer, limits};
use toolyard_runtime::{Disposition, Fresh, Once, PostMessage, Posted};
use toolyard_schema::NameRule;
use toolyard_store::branches::{self, Stretch};
use toolyard_store::{StoreError, blobs, messages, runs};

use super::call::Call;
use super::{answer, page};
use crate::http::{Refusal, version};
use crate::sse;

/// A message to post. `content` is text, or `parts` says more.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewMessage {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    parts: Option<Vec<NewPart>>,
    /// Who speaks: only with a secret key; a user always speaks for themselves.
    #[serde(default)]
    entity_id: Option<EntityId>,
    #[serde(default)]
    metadata: Option<Value>,
    /// With a secret key also `assistant` or `system`.
    #[serde(default)]
    role: Option<Speaker>,
    #[serde(default = "yes")]
    trigger_agents: bool,
    /// The model for the runs that it starts, instead of the agents' own: an
    /// id of `GET /api/models`, or `provider/model`.
    #[serde(default)]
    model: Option<String>,
    /// Only tools of these categories, and those that have none.
    #[serde(default)]
    selected_tool_categories: Option<Vec<String>>,
    /// Tools that the sender's program executes, for the runs that it starts:
    /// `{name, description, parameters}`.
    #[serde(default)]
    client_tools: Option<Vec<Value>>,
}

fn yes() -> bool {
    true
}

/// A piece of a message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum NewPart {
    Text {
        text: String,
    },
    /// An uploaded file, or one that is elsewhere.
    #[serde(rename_all = "camelCase")]
    File {
        media_type: String,
        #[serde(default)]
        file_id: Option<FileId>,
        #[serde(default)]
        url: Option<String>,
        #[serde(default)]
        name: Option<String>,
    },
    Data {
        name: String,
        value: Value,
    },
}

impl From<NewPart> for Part {
    fn from(part: NewPart) -> Self {
        match part {
            NewPart::Text { text } => Self::Text { text },
            NewPart::File { media_type, file_id, url, name } => {
                Self::File { media_type, file: file_id, url, name }
            }
            NewPart::Data { name, value } => Self::Data { name, value },
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reached {
    run_id: Option<RunId>,
    agent_entity_id: EntityId,
    /// `started`, `queued`, `added`, `interrupted`, `superseded`, `rejected` or `agent_missing`.
    disposition: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MessagePosted {
    message: MessageView,
    runs: Vec<Reached>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MessageList {
    messages: Vec<MessageView>,
    /// What the space goes on with, oldest first: messages of each branch up to
    /// where the next one forked off.
    line: Vec<StretchView>,
}

/// Messages of a branch up to a position.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StretchView {
    branch_id: BranchId,
    /// Missing for the newest: it is not left.
    #[serde(skip_serializing_if = "Option::is_none")]
    up_to: Option<i64>,
}

impl From<Stretch> for StretchView {
    fn from(Stretch { branch, up_to }: Stretch) -> Self {
        Self { branch_id: branch, up_to: (up_to < i64::MAX).then_some(up_to) }
    }
}

/// `GET …/messages`: in the space's order, filtered for the key.
pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let limit = page::limit(&call.query)?;
    let current = page::typed(&call.query, "branch", |text| (text == "current").then_some(()).ok_or(()))?;
    let after = page::position(&call.query, "afterSeq")?;
    let before = page::position(&call.query, "beforeSeq")?;
    let (space, viewer) = call.space()?;
    let (tenant, space, branch) = (call.tenant().clone(), space.id.clone(), space.branch.clone());
    let whole = !call.query.contains_key("limit") && before.is_none();
    let (rows, line): (Vec<Message>, Vec<Stretch>) = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let rows = match current {
                    Some(()) if whole => messages::of_branch(tx, &tenant, &space, &branch).await?,
                    Some(()) => messages::branch_page(tx, &tenant, &space, &branch, before, limit).await?,
                    None => messages::page(tx, &tenant, &space, after, before, limit).await?,
                };
                Ok((rows, branches::chain(tx, &tenant, &space, &branch, i64::MAX).await?))
            })
        })
        .await?;
    let messages = rows.iter().map(|message| native::message_view(message, viewer)).collect();
    answer::json(
        200,
        &MessageList { messages, line: line.into_iter().rev().map(StretchView::from).collect() },
    )
}

/// `POST …/messages`: one transaction with the runs that it starts or feeds.
/// Who accepts a stream gets the run that answers, if it is one.
pub(super) async fn post(call: Call) -> Result<Response, Refusal> {
    let new: NewMessage = call.json()?;
    let follows = sse::wanted(&call)?;
    let (place, viewer) = call.space_named()?;
    let speaker = speaker(&call, new.role)?;
    let brought = call.app.runtime.accept_client_tools(
        &call.principal,
        NameRule::Chat,
        new.client_tools.as_deref().unwrap_or_default(),
    )?;
    check_files(&call, new.parts.as_deref().unwrap_or_default()).await?;
    let post = PostMessage {
        by: call.principal.clone(),
        space: place.clone(),
        sender: sender(&call, new.entity_id, speaker)?,
        speaker,
        parts: parts(new.content, new.parts)?,
        metadata: answer::metadata(new.metadata)?,
        trigger_agents: new.trigger_agents,
        model: super::models::named(&call, new.model)?,
        categories: categories(new.selected_tool_categories)?,
        client_tools: brought,
        trace: call.trace(),
    };
    let warnings = post.client_tools.warnings().to_vec();
    let seen = viewer.clone();
    let once = call.scope()?.map(|scope| Once {
        scope,
        respond: Box::new(move |posted: &Posted| (201, posted_body(posted, &seen))),
    });
    let posted = call.app.runtime.post_message(post, once).await?;
    let run = match follows {
        Some(_) => run_to_follow(&call, &posted).await?,
        None => None,
    };
    let mut answered = match (follows.zip(run), posted) {
        (Some((from, run)), _) => sse::follow(call, run, place, from).await,
        (None, Fresh::Done(posted)) => answer::text(201, posted_body(&posted, &viewer)),
        (None, Fresh::Before { status, response }) => answer::text(status, response),
    };
    for warning in &warnings {
        version::warn(answered.headers_mut(), warning);
    }
    Ok(answered)
}

/// The run that reads a message, if it is one. What an earlier request made may
/// be gone.
async fn run_to_follow(call: &Call, posted: &Fresh<Posted>) -> Result<Option<RunId>, Refusal> {
    match posted {
        Fresh::Done(Posted { runs, .. }) => Ok(match runs.as_slice() {
            [reached] if reached.disposition != Disposition::Rejected => reached.run.clone(),
            _ => None,
        }),
        Fresh::Before { response, .. } => {
            let runs = serde_json::from_str(response).map(|body: PostedBefore| body.runs).unwrap_or_default();
            let [ReachedBefore { run_id: Some(run), disposition }] = runs.as_slice() else { return Ok(None) };
            let (tenant, asked) = (call.tenant().clone(), run.clone());
            let found = call.store().read::<_, StoreError, _>(move |tx| {
                Box::pin(async move { runs::get(tx, &tenant, &asked).await })
            });
            let there = found.await?.is_some();
            Ok((there && disposition != Disposition::Rejected.as_str()).then(|| run.clone()))
        }
    }
}

/// What an earlier answer says of the runs.
#[derive(Debug, Deserialize)]
struct PostedBefore {
    runs: Vec<ReachedBefore>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReachedBefore {
    run_id: Option<RunId>,
    disposition: String,
}

fn categories(given: Option<Vec<String>>) -> Result<Option<Vec<String>>, Refusal> {
    answer::within("selectedToolCategories", Some(&json!(given)), limits::METADATA_BYTES)?;
    Ok(given)
}

/// What a user attaches is read for the model with the gateway's own means: it
/// must be theirs, or open to everybody.
async fn check_files(call: &Call, parts: &[NewPart]) -> Result<(), Refusal> {
    if call.principal.kind == KeyKind::Secret {
        return Ok(());
    }
    for part in parts {
        let NewPart::File { file_id, url, .. } = part else { continue };
        if url.as_deref().is_some_and(|url| !url.starts_with("https://") && !url.starts_with("data:")) {
            return Err(Refusal::bad_request("The url of a file must start with https:// or data:"));
        }
        let Some(id) = file_id.clone() else { continue };
        let tenant = call.tenant().clone();
        let found = call
            .store()
            .read::<_, StoreError, _>(move |tx| Box::pin(async move { blobs::file(tx, &tenant, &id).await }));
        let file = found.await?.ok_or_else(|| Refusal::not_found("File"))?;
        if file.entity.is_none() || file.entity != call.principal.entity {
            return Err(Refusal::forbidden("This file is somebody else's"));
        }
    }
    Ok(())
}

fn posted_body(posted: &Posted, viewer: &Viewer) -> String {
    let runs: Vec<Reached> = posted
        .runs
        .iter()
        .map(|reached| Reached {
            run_id: reached.run.clone(),
            agent_entity_id: reached.agent_entity.clone(),
            disposition: reached.disposition.as_str(),
        })
        .collect();
    let message = native::message_view(&posted.message, viewer);
    json!(MessagePosted { message, runs }).to_string()
}

/// A public key speaks as a user only.
fn speaker(call: &Call, asked: Option<Speaker>) -> Result<Speaker, Refusal> {
    match (call.principal.kind, asked) {
        (_, None | Some(Speaker::User)) => Ok(Speaker::User),
        (KeyKind::Secret, Some(other)) => Ok(other),
        (KeyKind::Public, Some(_)) => Err(Refusal::forbidden("role: a public key speaks as user")),
    }
}

/// With a token the sender is its user, whatever the body says.
fn sender(call: &Call, asked: Option<EntityId>, speaker: Speaker) -> Result<Option<EntityId>, Refusal> {
    match (call.principal.kind, &call.principal.entity, asked) {
        (KeyKind::Public, Some(own), _) => Ok(Some(own.clone())),
        (KeyKind::Public, None, _) => Err(Refusal::forbidden("No entity found for this user")),
        (KeyKind::Secret, _, Some(entity)) => Ok(Some(entity)),
        (KeyKind::Secret, _, None) if speaker == Speaker::System => Ok(None),
        (KeyKind::Secret, _, None) => Err(ApiError::missing("entityId").into()),
    }
}

fn parts(content: Option<String>, parts: Option<Vec<NewPart>>) -> Result<Vec<Part>, Refusal> {
    let parts: Vec<Part> = match (content, parts) {
        (_, Some(parts)) => parts.into_iter().map(Part::from).collect(),
        (Some(text), None) => vec![Part::text(text)],
        (None, None) => return Err(ApiError::missing("content").into()),
    };
    if parts.is_empty() {
        return Err(Refusal::bad_request("parts: must not be empty"));
    }
    Ok(parts)
}
