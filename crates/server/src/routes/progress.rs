//! How far a client's tool is.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_protocol::{ApiError, CallId, limits};
use toolyard_runtime::ProgressIn;

use super::call::Call;
use super::{answer, runs};
use crate::http::Refusal;

/// `POST /api/runs/{run}/tool-progress`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewProgress {
    /// The call, by either of its documented names.
    #[serde(default, alias = "callId")]
    tool_call_id: Option<CallId>,
    /// From 0 to 1.
    #[serde(default)]
    fraction: Option<f64>,
    /// What people read.
    #[serde(default)]
    message: Option<String>,
    /// What is known of the result so far.
    #[serde(default)]
    preliminary: Option<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Progressed {
    success: bool,
}

pub(super) async fn for_run(call: Call) -> Result<Response, Refusal> {
    let new: NewProgress = call.json()?;
    let id = new.tool_call_id.ok_or_else(|| ApiError::missing("toolCallId"))?;
    if new.fraction.is_some_and(|fraction| !(0.0..=1.0).contains(&fraction)) {
        return Err(Refusal::bad_request("fraction: must be from 0 to 1"));
    }
    answer::within("preliminary", new.preliminary.as_ref(), limits::INLINE_VALUE_BYTES)?;
    let message = answer::label("message", new.message)?;
    let progress = ProgressIn { call: id, fraction: new.fraction, message, preliminary: new.preliminary };
    let (row, viewer) = call.run()?;
    let caller = runs::caller(&call, viewer);
    call.app.runtime.progress(caller, row.id.clone(), progress).await?;
    answer::json(200, &Progressed { success: true })
}
