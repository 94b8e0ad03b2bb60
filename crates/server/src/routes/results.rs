//! Results of client tools: two doors of the documents, one operation.

use std::sync::Arc;

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_dialects::native::socket::{CallResult, TakenResult, TakenStatus};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::{ApiError, CallId, ClientId, ErrorCode, Principal, RunId, ToolOutcome, Viewer};
use toolyard_runtime::{Caller, ResultIn, Submitted};
use toolyard_store::{StoreError, audit, runs};

use super::answer;
use super::call::Call;
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
    let (row, viewer) = call.run()?;
    let (run, viewer) = (row.id.clone(), viewer.clone());
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
    let row = row.ok_or_else(|| Refusal::not_found("Run"))?;
    if row.space.as_ref() != Some(&space) {
        return Err(Refusal::bad_request("Run does not belong to this SmartSpace"));
    }
    submit(call, run, viewer, rest, "toolCallId").await
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
                note_refusal(app, by, &run).await?;
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

/// Somebody tried to answer another's call (row D8).
async fn note_refusal(app: &App, by: &Principal, run: &RunId) -> Result<(), Refusal> {
    let (tenant, actor, run) = (by.tenant.clone(), super::call::actor(by), run.clone());
    app.store
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(
                async move { audit::write(tx, &tenant, &actor, "result.refused", run.as_str(), None).await },
            )
        })
        .await?;
    Ok(())
}
