//! Facts from outside: results, answers, cancels, expiries.
//!
//! Each is a short transaction under the run's lock, from any node, without a
//! lease. The one that makes a parked run runnable also makes this node its
//! owner, in the same commit. Who asks has been authenticated by the edge; who
//! may answer is decided by `protocol::wait::may_answer`.

mod answer;
mod cancel;
mod expire;
mod results;

use std::sync::Arc;

use futures::future::BoxFuture;
use toolyard_engine::facts;
use toolyard_protocol::event::Event;
use toolyard_protocol::principal::{Actor, Viewer};
use toolyard_protocol::{RunId, TenantId};
use toolyard_store::log::{self, Wake};
use toolyard_store::runs::{Owner, RunRow};
use toolyard_store::{StoreError, Tx};

pub use answer::{AnswerIn, Remember};
pub use results::{ResultIn, Submitted};

use crate::refused::Refused;
use crate::runtime::{Runtime, Start};

/// Who hands something in.
#[derive(Debug, Clone)]
pub struct Caller {
    pub tenant: TenantId,
    pub viewer: Viewer,
    pub actor: Actor,
}

/// What a fact's transaction leaves to do: a run that this node owns now.
#[derive(Debug)]
pub(crate) struct Woken {
    pub(crate) tenant: TenantId,
    pub(crate) run: RunId,
    pub(crate) epoch: i64,
}

impl Runtime {
    /// Runs a fact's transaction. The commit and the worker that follows it
    /// belong together, so they outlive a caller that hangs up in between.
    pub(crate) async fn fact<T, F>(self: &Arc<Self>, op: F) -> Result<T, Refused>
    where
        F: for<'t, 'c> FnOnce(
                &'t mut Tx<'c>,
                Option<Owner>,
            ) -> BoxFuture<'t, Result<(T, Option<Woken>), Refused>>
            + Send
            + 'static,
        T: Send + 'static,
    {
        let runtime = self.clone();
        let done = self.tasks().detached(async move { runtime.fact_here(op).await }).await;
        done.unwrap_or_else(|| Err(StoreError::broken("a command panicked").into()))
    }

    /// The transaction gets this node as owner only if a slot is free.
    async fn fact_here<T, F>(self: &Arc<Self>, op: F) -> Result<T, Refused>
    where
        F: for<'t, 'c> FnOnce(
                &'t mut Tx<'c>,
                Option<Owner>,
            ) -> BoxFuture<'t, Result<(T, Option<Woken>), Refused>>
            + Send
            + 'static,
        T: Send + 'static,
    {
        let slot = if self.draining.is_cancelled() { None } else { self.slots.take(1).pop() };
        let owner = slot.as_ref().map(|_| self.owner.clone());
        let (value, woken) = self.store.write(move |tx| op(tx, owner)).await?;
        match (woken, slot) {
            (Some(Woken { tenant, run, epoch }), Some(slot)) => {
                self.begin(Start { tenant, run, epoch, born: None, recovered: false }, slot);
            }
            // Without a slot it was queued: somebody with room takes it.
            (_, None) => self.slots.queued(),
            (None, Some(slot)) => drop(slot),
        }
        Ok(value)
    }
}

/// Appends facts to a locked run and wakes it if they make it runnable.
/// `waits_left` counts the run's waits that stay open.
pub(crate) async fn append(
    tx: &mut Tx<'_>,
    row: &RunRow,
    events: Vec<Event>,
    waits_left: usize,
    owner: Option<&Owner>,
) -> Result<Option<Woken>, StoreError> {
    let wake = if facts::wakes(&events, waits_left) { Wake::Yes(owner) } else { Wake::No };
    let done = log::append_fact(tx, row, &Arc::from(events), wake).await?;
    Ok(done.assigned.map(|epoch| Woken { tenant: row.tenant.clone(), run: row.id.clone(), epoch }))
}
