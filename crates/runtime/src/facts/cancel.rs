//! Somebody wants a run to stop.

use std::sync::Arc;

use toolyard_engine::facts::Refusal;
use toolyard_protocol::event::{CancelRequested, Event};
use toolyard_protocol::{ApiError, Guarded, RunId};
use toolyard_store::failpoint;

use super::{Caller, Held};
use crate::refused::Refused;
use crate::runtime::Runtime;

impl Runtime {
    /// Asks a run to stop. It ends as soon as its worker has let go of what is
    /// in flight; a parked run is woken for it.
    pub async fn cancel(
        self: &Arc<Self>,
        caller: Caller,
        run: RunId,
        reason: Option<String>,
    ) -> Result<(), ApiError> {
        self.fact(move |tx, desk| {
            Box::pin(async move {
                let held = Held::lock(tx, &caller.tenant, &run).await?;
                let held = held.ok_or_else(|| ApiError::not_found("Run"))?;
                if held.row.status.is_final() {
                    return Err(Refusal::RunEnded.into());
                }
                let event = CancelRequested { reason, by: Guarded::Shown(caller.actor.clone()) };
                held.append(tx, vec![Event::from(event)], 0, true, desk).await?;
                Ok(())
            })
        })
        .await?;
        failpoint::pass("cancel.after_commit").map_err(Refused::from)?;
        Ok(())
    }
}
