//! How far a client's tool is (row H66). It ends nothing and wakes nobody.

use std::sync::Arc;

use serde_json::Value;
use toolyard_engine::facts::Refusal;
use toolyard_protocol::event::ToolProgressed;
use toolyard_protocol::wait::{WaitKind, may_answer};
use toolyard_protocol::{ApiError, CallId, Guarded, RunId};
use toolyard_store::waits;

use super::results::forbidden;
use super::{Caller, Held};
use crate::runtime::Runtime;

/// What a client says of a call that it works on.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressIn {
    pub call: CallId,
    /// From 0 to 1.
    pub fraction: Option<f64>,
    pub message: Option<String>,
    pub preliminary: Option<Value>,
}

impl Runtime {
    /// Logs the progress of a call that waits for a client, in this run or in
    /// one below it.
    pub async fn progress(
        self: &Arc<Self>,
        caller: Caller,
        run: RunId,
        progress: ProgressIn,
    ) -> Result<(), ApiError> {
        let done = self.fact(move |tx, desk| {
            Box::pin(async move {
                let missing = || ApiError::not_found("Tool call");
                let tenant = &caller.tenant;
                let is_it = |row: &waits::WaitRow| {
                    row.wait.call == progress.call && row.wait.kind == WaitKind::Client
                };
                let own = waits::of_run(tx, tenant, &run).await?;
                let found = match own.into_iter().find(is_it) {
                    Some(found) => found,
                    None => {
                        let below = waits::below(tx, tenant, &run).await?;
                        below.into_iter().find(is_it).ok_or_else(missing)?
                    }
                };
                let held = Held::lock(tx, tenant, &found.wait.run).await?.ok_or_else(missing)?;
                // Read again: it may have ended before the lock was ours.
                let all = waits::of_run(tx, tenant, &found.wait.run).await?;
                let wait = all.iter().find(|row| is_it(row)).ok_or_else(missing)?;
                if !may_answer(&caller.viewer, &wait.wait.rule) {
                    return Err(forbidden().into());
                }
                if wait.ended_seq.is_some() {
                    return Err(Refusal::WaitEnded.into());
                }
                let event = ToolProgressed {
                    call: progress.call.clone(),
                    tool: wait.wait.tool.clone(),
                    visibility: wait.wait.visibility,
                    fraction: progress.fraction,
                    message: progress.message.map_or(Guarded::Hidden, Guarded::Shown),
                    preliminary: progress.preliminary.map_or(Guarded::Hidden, Guarded::Shown),
                };
                let open = all.iter().filter(|row| row.ended_seq.is_none()).count();
                held.append(tx, vec![event.into()], open, false, desk).await?;
                Ok(())
            })
        });
        Ok(done.await?)
    }
}
