//! From the engine's word to the log, and the run's own sense of time.

use std::sync::Arc;
use std::time::Instant;

use toolyard_engine::{Input, Run};
use toolyard_protocol::event::{BlobRef, Event};
use toolyard_protocol::message::{Part, Speaker};
use toolyard_protocol::{AgentName, BranchId, MessageId, Timestamp};
use toolyard_store::compactions::{self, Compaction, Reader};
use toolyard_store::log::{self, Append, AppendError};
use toolyard_store::messages::{self, NewMessage};
use toolyard_store::runs::{self, After};
use toolyard_store::usage::{self, Used};
use toolyard_store::{StoreError, blobs, failpoint};

use super::{Stop, Worker};

/// The database's time, carried on by this process between commits.
#[derive(Debug)]
pub(super) struct DatabaseClock {
    seen: Timestamp,
    at: Instant,
}

impl Default for DatabaseClock {
    fn default() -> Self {
        Self { seen: Timestamp::default(), at: Instant::now() }
    }
}

impl DatabaseClock {
    pub(super) fn saw(&mut self, now: Timestamp) {
        if now > self.seen {
            *self = Self { seen: now, at: Instant::now() };
        }
    }
    pub(super) fn now(&self) -> Timestamp {
        self.seen.plus_millis(u64::try_from(self.at.elapsed().as_millis()).unwrap_or(0))
    }
}

/// All that one append writes.
struct Commit {
    events: Arc<[Event]>,
    after: After,
    /// Of turns that begin to speak.
    new: Vec<NewMessage>,
    /// Of turns that speak on.
    grown: Vec<NewMessage>,
    blobs: Vec<(BlobRef, Vec<u8>)>,
    /// What counts against the agent's own budget.
    used: Option<(AgentName, Used)>,
}

impl Worker {
    /// Tells the engine and appends what follows. On a conflict the new facts
    /// are folded and the engine hears the same input again.
    pub(super) async fn tell(&mut self, input: Input) -> Result<(), Stop> {
        self.tell_with(input, Vec::new()).await
    }

    pub(super) async fn tell_with(
        &mut self,
        input: Input,
        blobs: Vec<(BlobRef, Vec<u8>)>,
    ) -> Result<(), Stop> {
        let mut failures = 0;
        loop {
            let events = self.run.next(self.now(), input.clone());
            if events.is_empty() {
                return Ok(());
            }
            let mut next = self.run.clone();
            events.iter().for_each(|e| next.fold(e));
            let commit = self.commit_of(&next, events.into(), blobs.clone());
            match self.append(commit).await {
                Ok((seq, at)) => {
                    self.run = next;
                    self.seq = seq;
                    self.clock.saw(at);
                    self.first_open_turn = self.run.turn();
                    self.released = self.run.is_finished() || self.run.is_parked();
                    return Ok(());
                }
                Err(AppendError::Conflict { .. }) => {
                    self.catch_up().await?;
                }
                Err(AppendError::Fenced { .. } | AppendError::Gone) => return Err(Stop::Lost),
                Err(AppendError::Store(StoreError::Unavailable(_) | StoreError::Full(_))) => {
                    // The answer may be lost and the commit done: then the next try meets a conflict.
                    self.rest(failures).await?;
                    failures += 1;
                    self.catch_up().await?;
                }
                Err(AppendError::Store(e)) => return Err(Stop::Broken(e)),
            }
        }
    }

    fn commit_of(&self, next: &Run, events: Arc<[Event]>, blobs: Vec<(BlobRef, Vec<u8>)>) -> Commit {
        let after = after(next);
        let speaks = events.iter().any(|e| matches!(e, Event::ModelReplied(_) | Event::RunFinished(_)));
        let said = if speaks { self.turn_messages(next) } else { Vec::new() };
        // A turn's message is stored with its first step.
        let stored: Vec<&MessageId> =
            self.run.turns().iter().filter(|t| !t.steps.is_empty()).map(|t| &t.message).collect();
        let (grown, new) = said.into_iter().partition(|m| stored.contains(&&m.id));
        let used = self.used(&events);
        Commit { events, after, new, grown, blobs, used }
    }

    /// What these events used, if the agent has a budget of its own.
    fn used(&self, events: &[Event]) -> Option<(AgentName, Used)> {
        let agent = self.agent.as_ref().ok().filter(|a| a.config.budget.agent.is_some())?;
        let mut sum = Used::default();
        for event in events {
            let (usage, cost) = match event {
                Event::ModelReplied(e) => (e.usage, e.cost),
                Event::HistoryCompacted(e) => (e.usage, e.cost),
                _ => continue,
            };
            sum.tokens = sum.tokens.saturating_add(usage.input_tokens.saturating_add(usage.output_tokens));
            sum.cost = sum.cost.saturating_add(cost.unwrap_or(0));
        }
        (sum != Used::default()).then(|| (agent.config.agent.name.clone(), sum))
    }

    /// The assistant messages of the turns that are not stored as they stay.
    fn turn_messages(&self, run: &Run) -> Vec<NewMessage> {
        let Some(created) = run.created() else { return Vec::new() };
        let open = run.turns().iter().filter(|t| t.number >= self.first_open_turn.max(1));
        open.filter(|turn| !turn.steps.is_empty())
            .map(|turn| NewMessage {
                id: turn.message.clone(),
                speaker: Speaker::Assistant,
                entity: created.agent_entity.clone(),
                run: Some(self.id.clone()),
                branch: created.branch.clone(),
                parts: turn.steps.iter().flat_map(step_parts).collect(),
                show_reasoning: created.show_reasoning,
                metadata: None,
            })
            .collect()
    }

    async fn append(&mut self, commit: Commit) -> Result<(i64, Timestamp), AppendError> {
        let kind = Kind::of(&commit);
        kind.before()?;
        let (tenant, run, owner) = (self.tenant.clone(), self.id.clone(), self.rt.owner.clone());
        let (epoch, expected) = (self.epoch, self.seq);
        let created = self.run.created().or_else(|| commit.events.iter().find_map(created_in));
        let root = created.map_or_else(|| run.clone(), |c| c.root.clone());
        let space = created.and_then(|c| c.space.clone());
        let branch = created.map_or_else(BranchId::main, |c| c.branch.clone());
        let agent = created.and_then(|c| c.agent_entity.clone());
        let done = self
            .rt
            .store
            .write(move |tx| {
                Box::pin(async move {
                    let append = Append {
                        tenant: &tenant,
                        run: &run,
                        root: &root,
                        space: space.as_ref(),
                        epoch,
                        owner: &owner,
                        expected,
                        events: &commit.events,
                        after: &commit.after,
                        speaks: commit.new.len(),
                    };
                    let done = log::append(tx, &append).await?;
                    if let (Some(space), Some(free)) = (&space, done.free_pos) {
                        for (pos, message) in (free..).zip(&commit.new) {
                            messages::write(tx, &tenant, space, pos, message).await?;
                        }
                        for message in &commit.grown {
                            messages::revise(tx, &tenant, &message.id, &message.parts).await?;
                        }
                    }
                    for event in commit.events.iter() {
                        if let (Event::HistoryCompacted(e), Some(space)) = (event, &space) {
                            let summary = e.summary.shown().cloned().unwrap_or_default();
                            let compaction = Compaction { up_to: e.up_to, summary };
                            let reader = Reader { space, branch: &branch, agent: agent.as_ref() };
                            compactions::put(tx, &tenant, reader, &run, &compaction).await?;
                        }
                    }
                    if let Some((agent, used)) = &commit.used {
                        usage::add(tx, &tenant, agent, *used).await?;
                    }
                    for (blob, bytes) in &commit.blobs {
                        blobs::put(tx, &tenant, &blob.blob, bytes).await?;
                    }
                    Ok::<_, AppendError>(done)
                })
            })
            .await?;
        kind.after()?;
        Ok((done.seq, done.at))
    }

    /// Lets go of a run that is parked as its log already says.
    pub(super) async fn park(&mut self) -> Result<(), Stop> {
        let after = after(&self.run);
        let (tenant, run) = (self.tenant.clone(), self.id.clone());
        let (epoch, owner) = (self.epoch, self.rt.owner.clone());
        self.rt
            .store
            .write(move |tx| {
                Box::pin(async move { runs::park(tx, &tenant, &run, epoch, &owner, &after).await })
            })
            .await?;
        Ok(())
    }

    /// Puts the run back into the queue, for whoever has room.
    pub(super) async fn release(&mut self) -> Result<(), Stop> {
        let (tenant, run) = (self.tenant.clone(), self.id.clone());
        let (epoch, owner) = (self.epoch, self.rt.owner.clone());
        self.rt
            .store
            .write(move |tx| Box::pin(async move { runs::hand_back(tx, &tenant, &run, epoch, &owner).await }))
            .await?;
        failpoint::pass("release.after_commit")?;
        Ok(())
    }
}

/// What the run's row says when this state is logged.
fn after(run: &Run) -> After {
    After {
        status: run.status(),
        reason: run.pause_reason(),
        release: run.is_finished() || run.is_parked(),
        error: run.finished().and_then(|f| f.error),
    }
}

fn created_in(event: &Event) -> Option<&toolyard_protocol::event::RunCreated> {
    if let Event::RunCreated(created) = event { Some(created) } else { None }
}

/// The parts of a step: what was said, the calls, the results, in call order.
fn step_parts(step: &Arc<toolyard_engine::Step>) -> Vec<Part> {
    let mut parts = step.reply.parts.clone();
    parts.extend(step.reply.calls.iter().map(|call| Part::ToolCall {
        call: call.call.clone(),
        tool: call.tool.clone(),
        visibility: call.visibility,
        args: call.args.clone(),
        metadata: call.metadata.clone(),
    }));
    let results = step.reply.calls.iter().zip(&step.results);
    parts.extend(results.filter_map(|(call, returned)| {
        let outcome = &returned.as_ref()?.outcome;
        Some(Part::tool_result(call.call.clone(), call.tool.clone(), call.visibility, outcome))
    }));
    parts
}

/// What an append means, for the named places where tests break it.
#[derive(Clone, Copy)]
enum Kind {
    Finish,
    Pause,
    Other,
}

impl Kind {
    fn of(commit: &Commit) -> Self {
        match commit.events.last() {
            Some(Event::RunFinished(_)) => Self::Finish,
            Some(Event::RunPaused(_)) => Self::Pause,
            _ => Self::Other,
        }
    }
    fn before(self) -> Result<(), StoreError> {
        failpoint::pass("append.before_commit")?;
        match self {
            Self::Finish => failpoint::pass("finish.before_commit"),
            Self::Pause | Self::Other => Ok(()),
        }
    }
    fn after(self) -> Result<(), StoreError> {
        failpoint::pass("append.after_commit")?;
        match self {
            Self::Finish => failpoint::pass("finish.after_commit"),
            Self::Pause => failpoint::pass("pause.after_commit"),
            Self::Other => Ok(()),
        }
    }
}
