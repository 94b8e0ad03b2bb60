//! One node: its workers and what they have in flight. The same path as the
//! gateway's worker: fold, `due`, append, act.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolyard_engine::{Effect, EffectId, Input, Run};
use toolyard_protocol::{Event, NodeId, RunId, ToolOutcome};
use toolyard_store::log::{self, Append, AppendError, Appended};
use toolyard_store::runs::{self, Owner};
use toolyard_store::{Store, StoreError};

use super::cast;
use crate::dice::Dice;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: &'static str,
    pub(super) life: u32,
    /// It stands still: a paused process, which notices nothing.
    pub(super) frozen: bool,
    pub(super) workers: BTreeMap<RunId, Worker>,
}

impl Node {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, life: 1, frozen: false, workers: BTreeMap::new() }
    }
    pub(super) fn owner(&self) -> Owner {
        Owner { node: NodeId::parse(self.name).unwrap(), incarnation: format!("life-{}", self.life) }
    }
}

/// What a tool in flight has come to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Flight {
    Begun,
    /// It happened; its outcome is not in the log yet.
    Done(ToolOutcome),
}

#[derive(Debug)]
pub(super) struct Worker {
    pub(super) run: Run,
    pub(super) seq: i64,
    pub(super) epoch: i64,
    owner: Owner,
    /// It has not said yet that it claims; true: after a death.
    pub(super) claim: Option<bool>,
    pub(super) in_flight: BTreeMap<EffectId, (Effect, Flight)>,
}

/// The run is not this worker's any more.
#[derive(Debug)]
pub(super) struct Lost;

/// How an append may go wrong without anybody's death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Luck {
    Fine,
    Refused,
    ReplyLost,
}

/// What a worker works with.
pub(super) struct Tools<'w> {
    pub(super) store: &'w Store,
    pub(super) dice: &'w mut Dice,
    pub(super) now: toolyard_protocol::Timestamp,
    /// The bug: nobody asks whose run it is.
    pub(super) unfenced: bool,
    /// Faults that the database had, to be noted.
    pub(super) trouble: usize,
}

impl Worker {
    pub(super) fn new(run: &RunId, epoch: i64, owner: Owner, claim: Option<bool>) -> Self {
        Self { run: Run::new(run.clone()), seq: 0, epoch, owner, claim, in_flight: BTreeMap::new() }
    }

    /// Folds what is new, if the run is still this worker's.
    pub(super) async fn catch_up(&mut self, tools: &mut Tools<'_>) -> Result<bool, Lost> {
        let (tenant, run, owner) = (cast::tenant(), self.run.id().clone(), self.owner.clone());
        let (epoch, seq, unfenced) = (self.epoch, self.seq, tools.unfenced);
        let news: Option<Vec<log::Logged>> = tools
            .store
            .read(move |tx| {
                Box::pin(async move {
                    if !unfenced && !runs::holds(tx, &tenant, &run, epoch, &owner).await? {
                        return Ok::<_, StoreError>(None);
                    }
                    log::read(tx, &tenant, &run, seq, 1_000).await.map(Some)
                })
            })
            .await
            .expect("the store reads");
        let news = news.ok_or(Lost)?;
        for logged in &news {
            self.run.fold(&logged.event);
            self.seq = logged.seq;
        }
        Ok(!news.is_empty())
    }

    /// Tells the engine and appends what follows; again after a conflict, a
    /// refused commit or a lost answer.
    pub(super) async fn tell(&mut self, input: Input, tools: &mut Tools<'_>) -> Result<(), Lost> {
        for _ in 0..20 {
            let events = self.run.next(tools.now, input.clone());
            if events.is_empty() {
                return Ok(());
            }
            let luck = match tools.dice.below(40) {
                0 => Luck::Refused,
                1 => Luck::ReplyLost,
                _ => Luck::Fine,
            };
            tools.trouble += usize::from(luck != Luck::Fine);
            if luck == Luck::Refused {
                continue;
            }
            let done = self.append(&events, tools).await;
            match done {
                Ok(done) if luck == Luck::Fine => {
                    events.iter().for_each(|event| self.run.fold(event));
                    self.seq = done.seq;
                    return Ok(());
                }
                Ok(_) | Err(AppendError::Conflict { .. }) => {
                    self.catch_up(tools).await?;
                }
                Err(AppendError::Fenced { .. } | AppendError::Gone) => return Err(Lost),
                Err(AppendError::Store(e)) => panic!("the store is broken: {e}"),
            }
        }
        panic!("an append is refused without end");
    }

    async fn append(&self, events: &[Event], tools: &Tools<'_>) -> Result<Appended, AppendError> {
        let mut next = self.run.clone();
        events.iter().for_each(|event| next.fold(event));
        let (tenant, run) = (cast::tenant(), self.run.id().clone());
        let (epoch, owner, expected, unfenced) = (self.epoch, self.owner.clone(), self.seq, tools.unfenced);
        let (events, after): (Arc<[Event]>, _) = (events.to_vec().into(), cast::after(&next));
        tools
            .store
            .write(move |tx| {
                Box::pin(async move {
                    let (mut epoch, mut owner) = (epoch, owner);
                    if unfenced && let Some(row) = runs::lock(tx, &tenant, &run).await? {
                        epoch = row.epoch;
                        owner = row.owner.as_deref().and_then(owner_of).unwrap_or(owner);
                    }
                    let append = Append {
                        tenant: &tenant,
                        run: &run,
                        root: &run,
                        space: None,
                        child: false,
                        epoch,
                        owner: &owner,
                        expected,
                        events: &events,
                        after: &after,
                        speaks: 0,
                    };
                    log::append(tx, &append).await
                })
            })
            .await
    }

    /// Starts what is due and not in flight, forgets what is in flight and no
    /// longer due. Answers what was forgotten, and whether the run lies on disk.
    pub(super) async fn align(&mut self, tools: &mut Tools<'_>) -> Result<(Vec<Effect>, bool), Lost> {
        let due: BTreeMap<EffectId, Effect> = self.run.due().into_iter().map(|e| (e.id(), e)).collect();
        let over: Vec<EffectId> = self.in_flight.keys().filter(|id| !due.contains_key(id)).cloned().collect();
        let over = over.iter().filter_map(|id| self.in_flight.remove(id));
        let forgotten =
            over.filter(|(_, flight)| *flight == Flight::Begun).map(|(effect, _)| effect).collect();
        for (id, effect) in due {
            self.in_flight.entry(id).or_insert((effect, Flight::Begun));
        }
        let lies = self.run.is_finished() || self.run.is_parked();
        if lies && !self.park(tools).await {
            self.catch_up(tools).await?;
            return Ok((forgotten, false));
        }
        Ok((forgotten, lies))
    }

    /// Lets go of a run that its log leaves as it is. False if there is more in
    /// the log. A run that was let go with its last append is fine.
    async fn park(&self, tools: &Tools<'_>) -> bool {
        let (tenant, run, owner) = (cast::tenant(), self.run.id().clone(), self.owner.clone());
        let (epoch, seen, after) = (self.epoch, self.seq, cast::after(&self.run));
        let done = tools.store.write(move |tx| {
            Box::pin(async move {
                if !runs::holds(tx, &tenant, &run, epoch, &owner).await? {
                    return Ok(true);
                }
                runs::park(tx, &tenant, &run, epoch, &owner, seen, &after).await
            })
        });
        done.await.map_err(|e: StoreError| e).expect("the store parks")
    }
}

fn owner_of(token: &str) -> Option<Owner> {
    let (node, incarnation) = token.split_once('#')?;
    Some(Owner { node: NodeId::parse(node).ok()?, incarnation: incarnation.to_owned() })
}
