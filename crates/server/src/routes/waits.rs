//! The ledger: what runs wait for, who claims it, who answers it.

use std::collections::HashMap;

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_dialects::native::WaitView;

use toolyard_protocol::principal::Actor;
use toolyard_protocol::wait::{WaitKind, may_answer};
use toolyard_protocol::{
    ApiError, ClientId, ErrorCode, Hash, KeyKind, RunId, SpaceId, Timestamp, Viewer, WaitId, limits,
};
use toolyard_runtime::{Answer, AnswerIn, Caller, Remember};
use toolyard_store::waits::{self, WaitRow};
use toolyard_store::{StoreError, runs};

use super::call::Call;
use super::dispatch::run_viewer;
use super::{answer, audit, page, view};
use crate::http::Refusal;

/// Pages that one request looks through.
const PAGES: usize = 25;
/// What a closed position is for. All kinds of waits have one order.
const LIST: &str = "waits";

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WaitList {
    waits: Vec<WaitView>,
    /// There may be more: the `after` of the next page. A page may hold fewer
    /// than it could, or none, when many waits of others lie in between.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClaimWait {
    client_id: ClientId,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Claimed {
    wait_id: WaitId,
    client_id: ClientId,
    claimed_until: Timestamp,
}

/// What an answer decides.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Choice {
    Allow,
    Deny,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Memory {
    /// This call only.
    Once,
    /// This conversation.
    Session,
    /// Until it is taken back.
    Always,
    /// Until it is taken back, for calls with these arguments.
    AlwaysThese,
}

/// An approval gets `decision`; an input or a credential gets `value`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnswerWait {
    #[serde(default)]
    decision: Option<Choice>,
    /// Other arguments than the ones asked for, with `allow`.
    #[serde(default)]
    edited_args: Option<Value>,
    /// Why not, with `deny`.
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    value: Option<Value>,
    #[serde(default)]
    remember: Option<Memory>,
    /// `argsHash` of the question, so that the answer is for what was shown.
    #[serde(default)]
    args_hash: Option<Hash>,
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let kind = page::typed(&call.query, "kind", |t| WaitKind::parse(t).ok_or(()))?;
    list_kind(call, kind).await
}

/// `GET /api/pending-calls`
pub(super) async fn pending_calls(call: Call) -> Result<Response, Refusal> {
    list_kind(call, Some(WaitKind::Client)).await
}

/// `GET /api/approvals`
pub(super) async fn approvals(call: Call) -> Result<Response, Refusal> {
    list_kind(call, Some(WaitKind::Approval)).await
}

/// Open waits that the caller may see: all of the tenant for a backend, those
/// of its spaces that it may answer for a user. One request looks at 5000 of
/// them at most; `next` says where the next one goes on.
async fn list_kind(call: Call, kind: Option<WaitKind>) -> Result<Response, Refusal> {
    page::known(&call.query, &["runId", "smartSpaceId", "kind", "limit", "after"])?;
    let limit = page::limit(&call.query)?;
    let run = page::typed(&call.query, "runId", RunId::parse)?;
    let space = page::typed(&call.query, "smartSpaceId", SpaceId::parse)?;
    let mut after = page::typed(&call.query, "after", |text| behind(&call, text))?;
    let mut seen = Vec::new();
    let mut seats = HashMap::new();
    let mut more = true;
    // A user's own waits may lie behind many of others.
    for _ in 0..PAGES {
        let page = list_page(&call, run.clone(), space.clone(), kind, after.clone()).await?;
        more = page.len() == limits::PAGE_MAX as usize;
        let (mut rows, mut left) = (page.into_iter(), false);
        for row in rows.by_ref() {
            after = Some((row.wait.opened_at, row.wait.id.clone()));
            // All waits of a space, or of a run without one, are seen from one seat.
            let run = row.space.is_none().then(|| row.wait.run.clone());
            let place = (row.space.clone(), run);
            let viewer: Option<Viewer> = match seats.get(&place) {
                Some(known) => Option::clone(known),
                None => {
                    let viewer = seat(&call, &row).await?;
                    seats.insert(place, viewer.clone());
                    viewer
                }
            };
            if let Some(viewer) = viewer.filter(|v| v.sees_all() || may_answer(v, &row.wait.rule)) {
                seen.push((row, viewer));
            }
            if seen.len() == limit as usize {
                left = true;
                break;
            }
        }
        more |= left && rows.len() > 0;
        if left || !more {
            break;
        }
    }
    // Also the last row that was looked at and not shown: its name stays here.
    let next = after.filter(|_| more).map(|(at, id)| {
        let closed = call.app.cursors.close(call.tenant(), LIST, &format!("{}~{id}", at.millis()));
        closed.ok_or_else(|| Refusal::new(ErrorCode::Internal, "Something went wrong inside the gateway."))
    });
    let next = next.transpose()?;
    let tenant = call.tenant().clone();
    let waits: Vec<WaitView> = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let mut views = Vec::with_capacity(seen.len());
                for (row, viewer) in &seen {
                    views.push(view::wait(tx, &tenant, row, viewer).await?);
                }
                Ok(views)
            })
        })
        .await?;
    answer::json(200, &WaitList { waits, next })
}

/// The row that a page ended with: when it opened, and its id.
fn behind(call: &Call, text: &str) -> Result<(Timestamp, WaitId), ()> {
    let opened = call.app.cursors.open(call.tenant(), LIST, text).ok_or(())?;
    let (at, id) = opened.split_once('~').ok_or(())?;
    let at = at.parse().map_err(|_| ())?;
    Ok((Timestamp::from_millis(at), WaitId::parse(id).map_err(|_| ())?))
}

async fn list_page(
    call: &Call,
    run: Option<RunId>,
    space: Option<SpaceId>,
    kind: Option<WaitKind>,
    after: Option<(Timestamp, WaitId)>,
) -> Result<Vec<WaitRow>, StoreError> {
    let tenant = call.tenant().clone();
    call.store()
        .read(move |tx| {
            Box::pin(async move {
                let (run, space, after) = (run.as_ref(), space.as_ref(), after.as_ref());
                waits::list_open(tx, &tenant, run, space, kind, after, limits::PAGE_MAX).await
            })
        })
        .await
}

/// How the caller looks at a wait's run; none if it has no seat there.
async fn seat(call: &Call, row: &WaitRow) -> Result<Option<Viewer>, Refusal> {
    if row.space.is_some() || call.principal.kind == KeyKind::Secret {
        return super::viewer(&call.app, &call.principal, row.space.as_ref()).await;
    }
    let (tenant, run) = (call.tenant().clone(), row.wait.run.clone());
    let run = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { runs::get(tx, &tenant, &run).await }))
        .await?;
    match run {
        Some(run) => run_viewer(&call.app, &call.principal, &run).await,
        None => Ok(None),
    }
}

/// The wait of the path and the caller's seat at it.
async fn find(call: &Call) -> Result<(WaitId, Viewer), Refusal> {
    let id = call.id("wait", "Wait", WaitId::parse)?;
    let (tenant, asked) = (call.tenant().clone(), id.clone());
    let row = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { waits::find(tx, &tenant, &asked).await }))
        .await?;
    let row = row.ok_or_else(|| Refusal::not_found("Wait"))?;
    let viewer = seat(call, &row).await?;
    let viewer = viewer.ok_or_else(|| Refusal::forbidden("Not a member of this run's SmartSpace"))?;
    Ok((id, viewer))
}

/// `POST /api/waits/{wait}/claim`: says "mine" for a minute.
pub(super) async fn claim(call: Call) -> Result<Response, Refusal> {
    let ClaimWait { client_id } = call.json()?;
    let (wait_id, viewer) = find(&call).await?;
    let actor = Actor::caller(&call.principal, Some(client_id.clone()));
    let caller = Caller { tenant: call.tenant().clone(), viewer, actor };
    let claimed_until = call.app.runtime.claim(caller, wait_id.clone(), client_id.clone()).await?;
    answer::json(200, &Claimed { wait_id, client_id, claimed_until })
}

/// `POST /api/waits/{wait}/answer`
pub(super) async fn answer(call: Call) -> Result<Response, Refusal> {
    let given: AnswerWait = call.json()?;
    let wait = call.id("wait", "Wait", WaitId::parse)?;
    if let Err(refused) = give(&call, wait.clone(), given).await {
        if audit::is_foreign(&refused) {
            audit::note_refusal(&call.app, &call.principal, "answer.refused", wait.as_str()).await?;
        }
        return Err(refused);
    }
    answer::json(200, &Answered { wait_id: wait, answered: true })
}

async fn give(call: &Call, wait: WaitId, given: AnswerWait) -> Result<(), Refusal> {
    let (_, viewer) = find(call).await?;
    let actor = Actor::caller(&call.principal, None);
    let caller = Caller { tenant: call.tenant().clone(), viewer, actor };
    Ok(call.app.runtime.answer(caller, wait, decided(given)?).await?)
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answered {
    wait_id: WaitId,
    answered: bool,
}

fn decided(given: AnswerWait) -> Result<AnswerIn, Refusal> {
    for (field, value) in [("editedArgs", &given.edited_args), ("value", &given.value)] {
        answer::within(field, value.as_ref(), limits::INLINE_VALUE_BYTES)?;
    }
    let answer = match (given.decision, given.value) {
        (Some(Choice::Allow), None) => Answer::Allow { edited: given.edited_args },
        (Some(Choice::Deny), None) => Answer::Deny { message: answer::label("message", given.message)? },
        (None, Some(value)) => Answer::Provide(value),
        (Some(_), Some(_)) => return Err(Refusal::bad_request("decision and value: give one of them")),
        (None, None) => return Err(ApiError::missing("decision").into()),
    };
    let remember = match given.remember {
        None | Some(Memory::Once) => None,
        Some(Memory::Session) => Some(Remember::Session),
        Some(Memory::Always) => Some(Remember::Always),
        Some(Memory::AlwaysThese) => Some(Remember::AlwaysThese),
    };
    Ok(AnswerIn { answer, remember, args_hash: given.args_hash })
}
