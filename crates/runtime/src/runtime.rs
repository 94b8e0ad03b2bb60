//! One node's runtime: starts, owns the workers, stops.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use tokio_util::sync::CancellationToken;
use toolyard_models::Registry;
use toolyard_protocol::event::{Event, RunFinished, Undecodable};
use toolyard_protocol::run::{RunEnd, RunStatus};
use toolyard_protocol::{ErrorCode, Guarded, RunId, TenantId, limits};
use toolyard_schema::Schemas;
use toolyard_store::log;
use toolyard_store::runs::{self, After, Claimed, GaveUp, Owner};
use toolyard_store::{Commit, Store, StoreError, Watch, nodes, removal};
use toolyard_tools::{Results, Toolbox};

use crate::agents::Agents;
use crate::earlier::Earlier;
use crate::ending::Ending;
use crate::family;
use crate::knowledge::Library;
use crate::live::{self, Live};
use crate::parked::Parking;
use crate::scheduler::{self, Lonely};
use crate::settings::Settings;
use crate::slots::{Slot, Slots};
use crate::starting::Desk;
use crate::tally::Tally;
use crate::tasks::Tasks;
use crate::worker::{self, Worker};

/// The runtime of one node. Shared by everything that sends it commands.
#[derive(Debug)]
pub struct Runtime {
    pub(crate) store: Arc<Store>,
    pub(crate) registry: Registry,
    pub(crate) toolbox: Toolbox,
    pub(crate) library: Library,
    pub(crate) settings: Settings,
    pub(crate) owner: Owner,
    pub(crate) agents: Agents,
    /// Compiled schemas of tools that requests bring.
    pub(crate) schemas: Schemas,
    pub(crate) slots: Slots,
    /// The connected programs.
    pub(crate) live: Live,
    pub(crate) tally: Tally,
    pub(crate) parking: Parking,
    /// Set once there is a collector.
    pub(crate) traced: std::sync::OnceLock<crate::traces::Traced>,
    tasks: Tasks,
    /// The heartbeat beats until the last worker has ended.
    heart: Tasks,
    /// The runs that have a worker here, by epoch: the worker of an older one
    /// may still be on its way out.
    active: Mutex<HashSet<(RunId, i64)>>,
    /// No new work; what runs may finish.
    pub(crate) draining: CancellationToken,
    /// The time to finish is over: hand back.
    pub(crate) handing_back: CancellationToken,
}

/// A run that this node has just become the owner of.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) tenant: TenantId,
    pub(crate) run: RunId,
    pub(crate) epoch: i64,
    /// Set if a transaction of this node has just made the run, or woken it.
    pub(crate) tail: Option<Tail>,
    pub(crate) recovered: bool,
}

/// The end of a run's log, and an ear that has listened since before its commit.
#[derive(Debug)]
pub(crate) struct Tail {
    pub(crate) commit: Commit,
    pub(crate) watch: Watch,
    /// What was said before the run, if it was at hand.
    pub(crate) earlier: Option<Earlier>,
}

/// How long a run that failed unexpectedly rests before the next try.
const REST_MS: u64 = 1_000;
/// How long a run of a newer release rests: somebody else may know it.
const UNREADABLE_REST_MS: u64 = 30_000;

impl Runtime {
    /// Registers the node and starts the scheduler, which takes back what an
    /// earlier life of this node left.
    pub async fn start(
        store: Arc<Store>,
        registry: Registry,
        toolbox: Toolbox,
        settings: Settings,
    ) -> Result<Arc<Self>, StoreError> {
        let incarnation = uuid::Uuid::now_v7().simple().to_string();
        let owner = Owner { node: settings.node.clone(), incarnation };
        let me = owner.clone();
        let valid = valid_ms(&store, settings.lease);
        store.write(move |tx| Box::pin(async move { nodes::register(tx, &me, valid).await })).await?;
        let library = Library::open(&store, &registry, &settings).await?;
        // Before anybody can begin another one.
        let cut_short = removal::cut_short(&store).await?;
        let results = Results::new(store.clone(), settings.tool_result_tokens);
        let runtime = Arc::new(Self {
            store,
            registry,
            toolbox: toolbox.with_knowledge(library.knowledge().clone()).with_results(results),
            library,
            slots: Slots::new(settings.active_runs),
            settings,
            owner,
            agents: Agents::new(),
            schemas: Schemas::new(),
            live: Live::default(),
            tally: Tally::default(),
            parking: Parking::default(),
            traced: std::sync::OnceLock::new(),
            tasks: Tasks::default(),
            heart: Tasks::default(),
            active: Mutex::default(),
            draining: CancellationToken::new(),
            handing_back: CancellationToken::new(),
        });
        runtime.heart.spawn("heartbeat", scheduler::beat(runtime.clone()));
        runtime.tasks.spawn("scheduler", scheduler::run(runtime.clone()));
        runtime.tasks.spawn("offers", live::run(runtime.clone()));
        runtime.tasks.spawn("knowledge", crate::knowledge::run(runtime.clone()));
        runtime.tasks.spawn("retention", crate::retention::run(runtime.clone(), cut_short));
        Ok(runtime)
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Stops: runs may finish within `drain`, the rest goes back to the queue.
    pub async fn stop(self: &Arc<Self>, drain: Duration) {
        self.draining.cancel();
        let tasks = self.tasks.clone();
        tasks.stop_token().cancel();
        let ended = tasks.stop();
        tokio::pin!(ended);
        if tokio::time::timeout(drain, &mut ended).await.is_err() {
            self.handing_back.cancel();
            ended.await;
        }
        if let Err(e) = self.hand_over_counts().await {
            tracing::warn!(error = %e, "the last counts of tools are lost");
        }
        self.heart.stop().await;
        let me = self.owner.clone();
        let left = self.store.write(move |tx| Box::pin(async move { nodes::leave(tx, &me).await })).await;
        if let Err(e) = left {
            tracing::warn!(error = %e, "could not say goodbye to the database");
        }
    }

    pub(crate) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub(crate) fn heart_stops(&self) -> &CancellationToken {
        self.heart.stop_token()
    }

    fn active(&self) -> MutexGuard<'_, HashSet<(RunId, i64)>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs that this node owns and nobody here works on, as they stay behind
    /// when the answer to a commit is lost.
    pub(crate) async fn adopt(self: &Arc<Self>, lonely: &mut Lonely) -> Result<(), StoreError> {
        let me = self.owner.clone();
        let owned = self.store.read(move |tx| Box::pin(async move { runs::owned_by(tx, &me).await })).await?;
        let alone: Vec<Claimed> =
            owned.into_iter().filter(|c| !self.active().contains(&(c.run.clone(), c.epoch))).collect();
        let still = lonely.again(alone.iter().map(|c| c.run.clone()));
        for claimed in alone.into_iter().filter(|c| still.contains(&c.run)) {
            let Some(slot) = self.slots.take(1).pop() else { return Ok(()) };
            tracing::warn!(run = %claimed.run, "a run of this node had no worker");
            self.begin_claimed(claimed, slot).await;
        }
        Ok(())
    }

    pub(crate) fn stop_token(&self) -> &CancellationToken {
        self.tasks.stop_token()
    }

    /// Works on a run that this node owns now.
    pub(crate) fn begin(self: &Arc<Self>, start: Start, slot: Slot) {
        let runtime = self.clone();
        if !self.active().insert((start.run.clone(), start.epoch)) {
            // It has its worker.
            return;
        }
        self.tasks.spawn("run", async move {
            let (tenant, run, epoch) = (start.tenant.clone(), start.run.clone(), start.epoch);
            let name = run.clone();
            let worker = Worker::new(runtime.clone(), start);
            // A worker is a large thing to carry: it lies on the heap.
            let ended = Box::pin(std::panic::AssertUnwindSafe(worker.drive()).catch_unwind()).await;
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(worker::Stop::Lost)) => metrics::counter!("toolyard_runs_lost_total").increment(1),
                Ok(Err(worker::Stop::Broken(StoreError::Undecodable(e @ Undecodable::Unknown { .. })))) => {
                    tracing::warn!(%run, error = %e, "a newer release wrote this run's log; it is left alone");
                    runtime.give_up(tenant, run, epoch, GaveUp::Unreadable).await;
                }
                Ok(Err(worker::Stop::Broken(e))) => {
                    tracing::error!(%run, error = %e, "a run cannot be advanced; it will be tried again");
                    runtime.give_up(tenant, run, epoch, GaveUp::Failed).await;
                }
                Err(_) => {
                    tracing::error!(%run, "a run's worker panicked; it will be tried again");
                    runtime.give_up(tenant, run, epoch, GaveUp::Failed).await;
                }
            }
            runtime.active().remove(&(name, epoch));
            drop(slot);
        });
    }

    /// Lets go of a run, however long the database is away: while this node
    /// lives nobody else would take it.
    async fn give_up(&self, tenant: TenantId, run: RunId, epoch: i64, why: GaveUp) {
        self.store.feed().forget(&run, None);
        let rest = match why {
            GaveUp::Failed => REST_MS,
            GaveUp::Unreadable => UNREADABLE_REST_MS,
        };
        loop {
            let (tenant, run, me) = (tenant.clone(), run.clone(), self.owner.clone());
            let done = self.store.write(move |tx| {
                Box::pin(async move { runs::give_up(tx, &tenant, &run, epoch, &me, why, rest).await })
            });
            let Err(e) = done.await else { return };
            tracing::error!(error = %e, "could not let go of a run");
            let rest = tokio::time::sleep(Duration::from_millis(REST_MS));
            if self.handing_back.run_until_cancelled(rest).await.is_none() {
                return;
            }
        }
    }

    /// Starts what a claim brought; isolates a run that fails again and again.
    pub(crate) async fn begin_claimed(self: &Arc<Self>, claimed: Claimed, slot: Slot) {
        if claimed.recoveries > i64::from(limits::RECOVERIES) {
            self.isolate(claimed).await;
            return;
        }
        let Claimed { tenant, run, epoch, recovered, .. } = claimed;
        self.begin(Start { tenant, run, epoch, tail: None, recovered }, slot);
    }

    /// Ends a run without reading its log, which is what fails.
    async fn isolate(self: &Arc<Self>, claimed: Claimed) {
        let (me, runtime) = (self.owner.clone(), self.clone());
        let name = claimed.run.clone();
        let done: Result<(), log::AppendError> = self
            .store
            .write(move |tx| {
                Box::pin(async move {
                    let Some((row, above)) = runs::lock_family(tx, &claimed.tenant, &claimed.run).await?
                    else {
                        return Ok(());
                    };
                    let end = RunFinished {
                        status: RunEnd::Failed,
                        usage: Default::default(),
                        cost: None,
                        error: Some(ErrorCode::Poisoned),
                        message: Some(format!(
                            "The run was stopped after {} failed recoveries",
                            limits::RECOVERIES
                        )),
                        detail: Guarded::Hidden,
                    };
                    let after = After {
                        status: RunStatus::Failed,
                        reason: None,
                        release: true,
                        error: Some(ErrorCode::Poisoned),
                    };
                    let ending = Ending {
                        row,
                        above,
                        owner: &me,
                        epoch: claimed.epoch,
                        events: Arc::from([Event::RunFinished(end)]),
                        after,
                        watched: false,
                    };
                    // Whoever wakes by it is queued.
                    let mut desk = Desk::new(runtime, 0);
                    let poisoned = family::End::poisoned(&ending.row.agent);
                    ending.write(tx, poisoned, &mut desk).await?;
                    Ok(())
                })
            })
            .await;
        match done {
            Ok(()) => {
                self.slots.queued();
                tracing::error!(run = %name, "isolated a run that cannot be recovered; see `toolyard doctor`")
            }
            Err(e) => tracing::error!(run = %name, error = %e, "could not isolate a run"),
        }
    }
}

/// SQLite has one process, so its heartbeat never lapses and costs no writes.
pub(crate) fn valid_ms(store: &Store, lease: Duration) -> u64 {
    if store.is_sqlite() {
        return 100 * 365 * 24 * 60 * 60 * 1000;
    }
    u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)
}
