//! Waits whose moment has come.

use std::sync::Arc;

use toolyard_engine::facts;
use toolyard_protocol::wait::WaitKind;
use toolyard_store::StoreError;
use toolyard_store::waits::{self, WaitRow};

use super::Held;
use crate::refused::Refused;
use crate::runtime::Runtime;

impl Runtime {
    /// Ends a due wait, unless somebody was quicker.
    pub(crate) async fn expire(self: &Arc<Self>, due: WaitRow) -> Result<(), StoreError> {
        let done = self
            .fact(move |tx, desk| {
                Box::pin(async move {
                    let (tenant, run) = (&due.tenant, &due.wait.run);
                    let Some(held) = Held::lock(tx, tenant, run).await? else { return Ok(()) };
                    let open = waits::open_of_run(tx, tenant, run).await?;
                    let Some(found) = open.iter().find(|w| w.wait.id == due.wait.id) else {
                        return Ok(());
                    };
                    desk.began(&found.wait.call, found.wait.opened_at);
                    let events = facts::expire(&found.wait, tx.now().await?);
                    if events.is_empty() {
                        return Ok(());
                    }
                    // Other waits of the same call end with it.
                    let left = open.iter().filter(|w| w.wait.call != found.wait.call).count();
                    let kin = found.wait.kind == WaitKind::Child;
                    held.append(tx, events, left, kin, desk).await?;
                    Ok(())
                })
            })
            .await;
        match done {
            Ok(()) => Ok(()),
            Err(Refused::Store(e)) => Err(e),
            Err(Refused::Api(e)) => Err(StoreError::broken(e.to_string())),
        }
    }
}
