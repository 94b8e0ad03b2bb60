//! News of client tools that take long (row H66).

use axum::response::Response;
use toolyard_dialects::native::socket::{CallProgress, ProgressAccepted};
use toolyard_protocol::principal::Actor;
use toolyard_runtime::{Caller, ProgressIn, Worked};

use super::answer;
use super::call::Call;
use crate::http::Refusal;

/// `POST /api/runs/{run}/tool-progress`
pub(super) async fn for_run(call: Call) -> Result<Response, Refusal> {
    let given: CallProgress = call.json()?;
    let (row, viewer) = call.run()?;
    let (run, viewer) = (row.id.clone(), viewer.clone());
    let actor = Actor::caller(&call.principal, given.client_id.clone());
    let caller = Caller { tenant: call.tenant().clone(), viewer, actor };
    let by = given.client_id.map(|client| Worked { client, connection: None });
    let progress =
        ProgressIn { fraction: given.fraction, message: given.message, preliminary: given.preliminary };
    let id = given.tool_call_id;
    let taken = call.app.runtime.progress(caller, run.clone(), id.clone(), progress, by).await?;
    let accepted = ProgressAccepted {
        run_id: run,
        tool_call_id: id,
        left: taken.left,
        claimed_until: taken.claimed_until,
    };
    answer::json(200, &accepted)
}
