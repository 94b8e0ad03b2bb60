//! Results of client tools: two doors of the documents, one operation.

use std::sync::Arc;

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_dialects::native::socket::{CallResult, TakenResult, TakenStatus};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::visible::visible_to;
use toolyard_protocol::{
    ApiError, CallId, ClientId, ErrorCode, Event, OutcomeKind, Principal, RunId, ToolOutcome, Viewer, limits,
};
use toolyard_runtime::{Caller, ResultIn, Submitted};
use toolyard_store::{StoreError, blobs, log, runs};

use super::call::Call;
use super::{answer, audit};
use crate::app::App;
use crate::http::Refusal;

/// `POST /api/runs/{run}/tool-results`: one result, or a batch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunResults {
    #[serde(flatten)]
    one: CallResult,
    /// Several at once: all are taken, or none.
    #[serde(default)]
    results: Option<Vec<CallResult>>,
    /// Which client ran it.
    #[serde(default)]
    client_id: Option<ClientId>,
}

/// `POST /api/smart-spaces/{space}/tool-results`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpaceResults {
    #[serde(default)]
    run_id: Option<RunId>,
    #[serde(flatten)]
    rest: RunResults,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultsTaken {
    success: bool,
    run_id: RunId,
    results: Vec<TakenResult>,
}

pub(super) async fn for_run(call: Call) -> Result<Response, Refusal> {
    let results: RunResults = call.json()?;
    let (run, viewer) = call.run_named()?;
    submit(call, run, viewer, results, "callId").await
}

pub(super) async fn for_space(call: Call) -> Result<Response, Refusal> {
    let SpaceResults { run_id, rest } = call.json()?;
    let run = run_id.ok_or_else(|| ApiError::missing("runId"))?;
    let (space, viewer) = call.space()?;
    let (space, viewer, tenant, asked) =
        (space.id.clone(), viewer.clone(), call.tenant().clone(), run.clone());
    let row = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { runs::get(tx, &tenant, &asked).await }))
        .await?;
    let Some(row) = row else {
        audit::note_refusal(&call.app, &call.principal, "result.refused", run.as_str()).await?;
        return Err(Refusal::not_found("Run"));
    };
    if row.space.as_ref() != Some(&space) {
        return Err(Refusal::bad_request("Run does not belong to this SmartSpace"));
    }
    submit(call, run, viewer, rest, "toolCallId").await
}

/// A piece of a result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Piece {
    call_id: CallId,
    offset: usize,
    /// Of the whole.
    characters: usize,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
}

/// `GET /api/runs/{run}/results/{call}`: the value of a call that has ended,
/// however large it is. Whoever sees it on the stream sees it here.
pub(super) async fn read(call: Call) -> Result<Response, Refusal> {
    let number = |name| super::page::position(&call.query, name);
    let (offset, limit) = (number("offset")?, number("limit")?);
    let id = call.id("call", "Result", CallId::parse)?;
    let (row, viewer) = call.run()?;
    let (tenant, run, asked) = (call.tenant().clone(), row.id.clone(), id.clone());
    let ended = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move { log::result(tx, &tenant, &run, &asked).await })
        })
        .await?;
    let event = Event::ToolReturned(ended.ok_or_else(|| Refusal::not_found("Result"))?);
    let seen = visible_to(viewer, &event);
    let Some(Event::ToolReturned(ended)) = seen.as_deref() else { return Err(Refusal::not_found("Result")) };
    if ended.outcome != OutcomeKind::Ok {
        return Err(Refusal::not_found("Result"));
    }
    let Some(value) = ended.value.shown() else {
        return Err(Refusal::forbidden("The results of this tool are not for users"));
    };
    let whole = match ended.blob.shown() {
        None => value.to_string(),
        Some(blob) => {
            let (tenant, hash) = (call.tenant().clone(), blob.blob.clone());
            let bytes = call
                .store()
                .read::<_, StoreError, _>(move |tx| {
                    Box::pin(async move { blobs::get(tx, &tenant, &hash).await })
                })
                .await?;
            let bytes = bytes.ok_or_else(|| Refusal::not_found("Result"))?;
            String::from_utf8(bytes).map_err(|_| Refusal::not_found("Result"))?
        }
    };
    if offset.is_none() && limit.is_none() {
        return Ok(answer::text(200, whole));
    }
    let offset = usize::try_from(offset.unwrap_or(0)).unwrap_or(usize::MAX);
    let limit = limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(limits::READ_RESULT_CHARS);
    let limit = limit.clamp(1, limits::RESULT_PIECE_CHARS);
    let (characters, end) = (whole.chars().count(), offset.saturating_add(limit));
    let text = whole.chars().skip(offset).take(limit).collect();
    let next_offset = Some(end).filter(|end| *end < characters);
    answer::json(200, &Piece { call_id: id, offset, characters, text, next_offset })
}

async fn submit(
    call: Call,
    run: RunId,
    viewer: Viewer,
    given: RunResults,
    id_name: &str,
) -> Result<Response, Refusal> {
    let list = given.results.unwrap_or_else(|| vec![given.one]);
    let (app, by) = (&call.app, &call.principal);
    let results = take(app, by, viewer, run.clone(), list, given.client_id, id_name).await?;
    answer::json(200, &ResultsTaken { success: true, run_id: run, results })
}

/// Takes results, whatever door they came through.
pub(crate) async fn take(
    app: &Arc<App>,
    by: &Principal,
    viewer: Viewer,
    run: RunId,
    list: Vec<CallResult>,
    client: Option<ClientId>,
    id_name: &str,
) -> Result<Vec<TakenResult>, Refusal> {
    let results: Vec<ResultIn> =
        list.into_iter().map(|one| outcome(one, id_name)).collect::<Result<_, Refusal>>()?;
    let ids: Vec<CallId> = results.iter().map(|r| r.call.clone()).collect();
    let caller = Caller { tenant: by.tenant.clone(), viewer, actor: Actor::caller(by, client) };
    let taken = match app.runtime.submit(caller, run.clone(), results).await {
        Ok(taken) => taken,
        Err(refused) => {
            if refused.code == ErrorCode::Forbidden {
                audit::note_refusal(app, by, "result.refused", run.as_str()).await?;
            }
            return Err(refused.into());
        }
    };
    let status = |submitted| match submitted {
        Submitted::Accepted => TakenStatus::Accepted,
        Submitted::Repeated => TakenStatus::Repeated,
        Submitted::Late => TakenStatus::Late,
    };
    let taken = ids.into_iter().zip(taken);
    Ok(taken.map(|(tool_call_id, one)| TakenResult { tool_call_id, status: status(one) }).collect())
}

fn outcome(one: CallResult, id_name: &str) -> Result<ResultIn, Refusal> {
    let call = one.tool_call_id.ok_or_else(|| ApiError::missing(id_name))?;
    let outcome = match (one.result, one.error) {
        (None, Some(error)) => ToolOutcome::Failed(error),
        (Some(value), None) => value_or_error(value),
        (Some(_), Some(_)) => return Err(Refusal::bad_request("result and error: give one of them")),
        (None, None) => return Err(ApiError::missing("result").into()),
    };
    Ok(ResultIn { call, outcome })
}

/// The documents hand a failure in as `{"error": "text"}` and nothing else.
fn value_or_error(value: Value) -> ToolOutcome {
    match &value {
        Value::Object(fields) if fields.len() == 1 => match fields.get("error") {
            Some(Value::String(text)) => ToolOutcome::Failed(text.clone()),
            _ => ToolOutcome::Ok(value),
        },
        _ => ToolOutcome::Ok(value),
    }
}
