//! Somebody wants a run to stop.

use std::sync::Arc;

use toolyard_engine::facts::Refusal;
use toolyard_protocol::event::{CancelRequested, Event};
use toolyard_protocol::{ApiError, Guarded, RunId};
use toolyard_store::{failpoint, runs};

use super::Caller;
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
        self.fact(move |tx, owner| {
            Box::pin(async move {
                let row = runs::lock(tx, &caller.tenant, &run).await?;
                let row = row.ok_or_else(|| ApiError::not_found("Run"))?;
                if row.status.is_final() {
                    return Err(Refusal::RunEnded.into());
                }
                let event = CancelRequested { reason, by: Guarded::Shown(caller.actor.clone()) };
                let woken = super::append(tx, &row, vec![Event::from(event)], 0, owner.as_ref()).await?;
                Ok(((), woken))
            })
        })
        .await?;
        failpoint::pass("cancel.after_commit").map_err(Refused::from)?;
        Ok(())
    }
}
