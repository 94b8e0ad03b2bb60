//! Results of client tools: two doors of the documents, one operation.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use toolyard_protocol::principal::Actor;
use toolyard_protocol::{ApiError, CallId, ClientId, ErrorCode, RunId, ToolOutcome, Viewer};
use toolyard_runtime::{Caller, ResultIn, Submitted};
use toolyard_store::{StoreError, audit, runs};

use super::answer;
use super::call::Call;
use crate::http::Refusal;

/// A tool result. `null` is a result too, so absent and `null` differ.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OneResult {
    /// The call, by either of its documented names.
    #[serde(default, alias = "callId")]
    tool_call_id: Option<CallId>,
    /// What the tool answered.
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    /// Why it has no answer, instead of `result`.
    #[serde(default)]
    error: Option<String>,
}

/// `POST /api/runs/{run}/tool-results`: one result, or a batch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunResults {
    #[serde(flatten)]
    one: OneResult,
    /// Several at once: all are taken, or none.
    #[serde(default)]
    results: Option<Vec<OneResult>>,
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
    results: Vec<Taken>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Taken {
    tool_call_id: CallId,
    /// `accepted`, or `repeated` if the same result came before.
    status: &'static str,
}

fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(d).map(Some)
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
    let results: Vec<ResultIn> =
        list.into_iter().map(|one| outcome(one, id_name)).collect::<Result<_, Refusal>>()?;
    let ids: Vec<CallId> = results.iter().map(|r| r.call.clone()).collect();
    let actor = Actor::caller(&call.principal, given.client_id);
    let caller = Caller { tenant: call.tenant().clone(), viewer, actor };
    let taken = match call.app.runtime.submit(caller, run.clone(), results).await {
        Ok(taken) => taken,
        Err(refused) => {
            if refused.code == ErrorCode::Forbidden {
                note_refusal(&call, &run).await?;
            }
            return Err(refused.into());
        }
    };
    let taken: Vec<Taken> = ids
        .into_iter()
        .zip(taken)
        .map(|(tool_call_id, submitted)| Taken {
            tool_call_id,
            status: match submitted {
                Submitted::Accepted => "accepted",
                Submitted::Repeated => "repeated",
                Submitted::Late => "late",
            },
        })
        .collect();
    answer::json(200, &ResultsTaken { success: true, run_id: run, results: taken })
}

fn outcome(one: OneResult, id_name: &str) -> Result<ResultIn, Refusal> {
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
async fn note_refusal(call: &Call, run: &RunId) -> Result<(), Refusal> {
    let (tenant, actor, run) = (call.tenant().clone(), call.actor(), run.clone());
    call.store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(
                async move { audit::write(tx, &tenant, &actor, "result.refused", run.as_str(), None).await },
            )
        })
        .await?;
    Ok(())
}
