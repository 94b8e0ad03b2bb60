//! Facts from outside: results, answers, cancels, expiries.
//!
//! Each is a short transaction under the run's lock, from any node, without a
//! lease. The one that makes a parked run runnable also makes this node its
//! owner, in the same commit. Who asks has been authenticated by the edge; who
//! may answer is decided by `protocol::wait::may_answer`.

mod answer;
mod cancel;
mod expire;
mod login;
mod progress;
mod results;

use std::sync::Arc;

use futures::future::BoxFuture;
use toolyard_protocol::event::Event;
use toolyard_protocol::principal::{Actor, Viewer};
use toolyard_protocol::{RunId, TenantId};
use toolyard_store::runs::{self, RunRow};
use toolyard_store::{StoreError, Tx};

pub(crate) use answer::give;
pub use answer::{AnswerIn, Remember};
pub(crate) use cancel::is_canceling;
pub use progress::{ProgressIn, Progressed, Worked};
pub(crate) use results::take_all;
pub use results::{ResultIn, Submitted};

use crate::family::Member;
use crate::refused::Refused;
use crate::runtime::Runtime;
use crate::starting::Desk;

/// Who hands something in.
#[derive(Debug, Clone)]
pub struct Caller {
    pub tenant: TenantId,
    pub viewer: Viewer,
    pub actor: Actor,
}

/// How facts are brought: by a request for each, or along with a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// What does not fit is refused.
    Told,
    /// What does not fit is ignored: the stored outcome stands. The request is
    /// a turn of its own, so steps count anew.
    History,
}

impl Manner {
    /// Marks the facts of a turn.
    pub(crate) fn mark(self, events: &mut [Event]) {
        if self == Self::Told {
            return;
        }
        for event in events {
            match event {
                Event::ToolReturned(end) => end.recount = true,
                Event::Answered(answer) => answer.recount = true,
                _ => {}
            }
        }
    }
}

/// A run that a fact is about, held with the runs above it.
pub(crate) struct Held {
    pub(crate) row: RunRow,
    above: Vec<RunRow>,
}

impl Held {
    /// A run that talks in a space has none above it.
    pub(crate) fn root(row: RunRow) -> Self {
        Self { row, above: Vec::new() }
    }

    pub(crate) async fn lock(
        tx: &mut Tx<'_>,
        tenant: &TenantId,
        run: &RunId,
    ) -> Result<Option<Self>, StoreError> {
        let found = runs::lock_family(tx, tenant, run).await?;
        Ok(found.map(|(row, above)| Self { row, above }))
    }

    /// Appends facts and wakes the run if they make it runnable. `waits_left`
    /// counts the run's waits that stay open; `kin` says that runs below may
    /// be concerned.
    pub(crate) async fn append(
        self,
        tx: &mut Tx<'_>,
        events: Vec<Event>,
        waits_left: usize,
        kin: bool,
        desk: &mut Desk,
    ) -> Result<(), StoreError> {
        let Self { row, above } = self;
        if above.is_empty() && !kin {
            return desk.wake(tx, &row, events, waits_left).await;
        }
        desk.wake(tx, &row, events.clone(), waits_left).await?;
        let (tenant, run, root, after) = (&row.tenant, &row.id, &row.root, row.last_seq);
        Member { tenant, run, root, above, after, events: &events }.carry(tx, None, desk).await
    }
}

impl Runtime {
    /// Runs a fact's transaction. The commit and the worker that follows it
    /// belong together, so they outlive a caller that hangs up in between.
    pub(crate) async fn fact<T, F>(self: &Arc<Self>, op: F) -> Result<T, Refused>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>, &'t mut Desk) -> BoxFuture<'t, Result<T, Refused>>
            + Send
            + 'static,
        T: Send + 'static,
    {
        let runtime = self.clone();
        let done = self.tasks().detached(Box::pin(async move {
            let slots = runtime.slots_for(1);
            let mut desk = Desk::new(runtime.clone(), slots.len());
            let write = runtime.store.write(move |tx| {
                Box::pin(async move {
                    let value = op(tx, &mut desk).await?;
                    Ok::<_, Refused>((value, desk))
                })
            });
            let (value, desk) = write.await?;
            runtime.begin_all(desk.starts, slots);
            runtime.count(desk.ended);
            Ok(value)
        }));
        done.await.unwrap_or_else(|| Err(StoreError::broken("a command panicked").into()))
    }
}
