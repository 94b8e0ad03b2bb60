//! Somebody wants a run to stop.

use std::sync::Arc;

use toolyard_engine::facts::Refusal;
use toolyard_protocol::event::{CancelRequested, Event};
use toolyard_protocol::{ApiError, Guarded, RunId, limits};
use toolyard_store::runs::RunRow;
use toolyard_store::{StoreError, Tx, failpoint, log};

use super::{Caller, Held};
use crate::refused::Refused;
use crate::runtime::Runtime;

impl Runtime {
    /// Asks a run to stop. It ends as soon as its worker has let go of what is
    /// in flight; a parked run is woken for it. Asking again changes nothing.
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
                if is_canceling(tx, &held.row).await? {
                    return Ok(());
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

/// Was this run, which the transaction holds, already asked to stop?
pub(crate) async fn is_canceling(tx: &mut Tx<'_>, row: &RunRow) -> Result<bool, StoreError> {
    let mut after = 0;
    loop {
        let page = log::read(tx, &row.tenant, &row.id, after, limits::LOG_PAGE).await?;
        if page.iter().any(|logged| matches!(logged.event, Event::CancelRequested(_))) {
            return Ok(true);
        }
        let Some(last) = page.last() else { return Ok(false) };
        after = last.seq;
    }
}
