//! Writes for one run: a snapshot of what the worker knows, which drafts an
//! append and carries it into a transaction.

use std::sync::Arc;

use toolyard_engine::{Effect, Input, Run};
use toolyard_protocol::agent::execution::Execution;
use toolyard_protocol::event::{BlobRef, Event, RunCreated};
use toolyard_protocol::message::{Part, Speaker};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{AgentName, BranchId, CallId, MessageId, RunId, TenantId, Timestamp, ToolOutcome};
use toolyard_store::compactions::{self, Compaction, Reader};
use toolyard_store::log::{self, Append, AppendError, Appended};
use toolyard_store::messages::{self, NewMessage};
use toolyard_store::runs::{self, After, Owner};
use toolyard_store::usage::{self, Used};
use toolyard_store::{Tx, blobs, spaces};
use toolyard_tools::basic;

use crate::agents::{LoadedAgent, LoadedTools};
use crate::blob::fit;
use crate::family::{self, End, Member};
use crate::outbox::announce::{Of, announce};
use crate::starting::Desk;

/// What the worker knows before an append.
#[derive(Debug, Clone)]
pub(super) struct Scribe {
    pub(super) tenant: TenantId,
    pub(super) id: RunId,
    pub(super) owner: Owner,
    pub(super) epoch: i64,
    /// The last event that was folded.
    pub(super) seq: i64,
    pub(super) now: Timestamp,
    pub(super) run: Run,
    /// None if it cannot run here.
    pub(super) agent: Option<Arc<LoadedAgent>>,
    /// Turns before this one are stored as they stay.
    pub(super) first_open_turn: u32,
    /// Somebody on this node follows the run.
    pub(super) watched: bool,
    /// The space knows that its words are tainted.
    pub(super) taint_told: bool,
    /// The run's tools, unless a plugin looks at results.
    pub(super) tools: Option<Arc<LoadedTools>>,
}

/// All that one append writes.
pub(super) struct Draft {
    pub(super) events: Arc<[Event]>,
    after: After,
    /// Of turns that begin to speak.
    new: Vec<NewMessage>,
    /// Of turns that speak on.
    grown: Vec<NewMessage>,
    blobs: Vec<(BlobRef, Vec<u8>)>,
    /// What counts against the agent's own budget.
    used: Option<(AgentName, Used)>,
    /// How a child ended.
    end: Option<End>,
    /// From here on later runs of the space begin tainted.
    taints: bool,
}

impl Scribe {
    /// What follows from an input, and the run as it is then. None if nothing does.
    pub(super) fn draft(&self, input: Input, blobs: Vec<(BlobRef, Vec<u8>)>) -> Option<(Run, Draft)> {
        let mut events = self.run.next(self.now, input);
        if events.is_empty() {
            return None;
        }
        let mut next = self.run.clone();
        events.iter().for_each(|e| next.fold(e));
        for call in asked_for(&events) {
            let Some(end) = self.ends_at_once(&next, &call) else { continue };
            let more = next.next(self.now, end);
            more.iter().for_each(|e| next.fold(e));
            events.extend(more);
        }
        let after = after(&next);
        let speaks = events.iter().any(|e| matches!(e, Event::ModelReplied(_) | Event::RunFinished(_)));
        let said = if speaks { self.turn_messages(&next) } else { Vec::new() };
        // A turn's message is stored with its first step.
        let stored: Vec<&MessageId> =
            self.run.turns().iter().filter(|t| !t.steps.is_empty()).map(|t| &t.message).collect();
        let (grown, new) = said.into_iter().partition(|m| stored.contains(&&m.id));
        let used = self.used(&events);
        let end = next.finished().map(|finished| family::end_of(&next, finished));
        let taints = next.tainted() && !self.taint_told;
        Some((next, Draft { events: events.into(), after, new, grown, blobs, used, end, taints }))
    }

    /// The end of a call that needs nothing but its arguments. It has no effect,
    /// so it stands in the commit that asks for it.
    fn ends_at_once(&self, run: &Run, asked: &CallId) -> Option<Input> {
        let tools = self.tools.as_ref().filter(|tools| run.toolset() == Some(&tools.hash))?;
        run.due().into_iter().find_map(|effect| {
            let Effect::RunTool { call, tool, args, untrusted, .. } = effect else { return None };
            if call != *asked {
                return None;
            }
            let Execution::Basic(basic) = &tools.set.find(tool.as_str())?.execution else { return None };
            let fitted = fit(ToolOutcome::Ok(basic::execute(basic, &args)?));
            // A large value lies beside the log, as those of other tools do.
            if fitted.blob.is_some() {
                return None;
            }
            let (outcome, blob, notes) = (fitted.outcome, None, Vec::new());
            Some(Input::ToolEnded { call, outcome, blob, untrusted, notes })
        })
    }

    /// What these events used, if the agent has a budget of its own.
    fn used(&self, events: &[Event]) -> Option<(AgentName, Used)> {
        let agent = self.agent.as_ref().filter(|a| a.config.budget.agent.is_some())?;
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
        // A child's words are its parent's result, not the space's.
        let Some(created) = run.created().filter(|c| c.parent.is_none()) else { return Vec::new() };
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

    /// Holds the run until the transaction ends, if it is still this worker's
    /// and nothing came in between. For what must not happen otherwise.
    pub(super) async fn hold(&self, tx: &mut Tx<'_>) -> Result<(), AppendError> {
        let (row, _) = runs::lock_family(tx, &self.tenant, &self.id).await?.ok_or(AppendError::Gone)?;
        if row.epoch != self.epoch || row.owner.as_deref() != Some(&*self.owner.token()) {
            return Err(AppendError::Fenced { held: row.epoch });
        }
        if row.last_seq != self.seq {
            return Err(AppendError::Conflict { expected: self.seq, actual: row.last_seq });
        }
        Ok(())
    }

    /// The run has a parent, or waits for a child.
    pub(super) fn has_kin(&self) -> bool {
        self.run.created().is_some_and(|c| c.parent.is_some())
            || self.run.open_waits().iter().any(|w| w.kind == WaitKind::Child)
    }

    /// Appends the draft, with everything that belongs to it. `desk` has room
    /// for the runs that wake.
    pub(super) async fn write(
        &self,
        tx: &mut Tx<'_>,
        draft: &Draft,
        desk: &mut Desk,
    ) -> Result<Appended, AppendError> {
        if !self.has_kin() {
            // A conflict is found before anything changes.
            tx.settle();
            return self.write_alone(tx, draft).await;
        }
        let family = runs::lock_family(tx, &self.tenant, &self.id).await?;
        let (row, above) = family.ok_or(AppendError::Gone)?;
        let done = self.write_alone(tx, draft).await?;
        let (tenant, run, root, after) = (&self.tenant, &self.id, &row.root, self.seq);
        let member = Member { tenant, run, root, above, after, events: &draft.events };
        member.carry(tx, draft.end.clone(), desk).await?;
        Ok(done)
    }

    async fn write_alone(&self, tx: &mut Tx<'_>, draft: &Draft) -> Result<Appended, AppendError> {
        let created = self.run.created().or_else(|| draft.events.iter().find_map(created_in));
        let space = created.and_then(|c| c.space.as_ref());
        let append = Append {
            tenant: &self.tenant,
            run: &self.id,
            root: created.map_or(&self.id, |c| &c.root),
            space,
            child: created.is_some_and(|c| c.parent.is_some()),
            epoch: self.epoch,
            owner: &self.owner,
            expected: self.seq,
            events: &draft.events,
            after: &draft.after,
            speaks: draft.new.len(),
        };
        let done = log::append(tx, &append).await?;
        if let (Some(space), Some(free)) = (space, done.free_pos) {
            for (pos, message) in (free..).zip(&draft.new) {
                messages::write(tx, &self.tenant, space, pos, message).await?;
            }
            for message in &draft.grown {
                messages::revise(tx, &self.tenant, &message.id, &message.parts).await?;
            }
        }
        for event in draft.events.iter() {
            // What a child leaves out is not left out of its parent's conversation.
            if let (Event::HistoryCompacted(e), Some(space), false) = (event, space, append.child) {
                let summary = e.summary.shown().cloned().unwrap_or_default();
                let compaction = Compaction { up_to: e.up_to, summary };
                let main = BranchId::main();
                let branch = created.map_or(&main, |c| &c.branch);
                let reader = Reader { space, branch, agent: created.and_then(|c| c.agent_entity.as_ref()) };
                compactions::put(tx, &self.tenant, reader, &self.id, &compaction).await?;
            }
        }
        if let Some((agent, used)) = &draft.used {
            usage::add(tx, &self.tenant, agent, *used).await?;
        }
        if let (Some(space), true, false) = (space, draft.taints, append.child) {
            spaces::taint(tx, &self.tenant, space).await?;
        }
        for (blob, bytes) in &draft.blobs {
            blobs::put_of_run(tx, &self.tenant, &self.id, &blob.blob, bytes).await?;
        }
        let of = Of {
            tenant: &self.tenant,
            run: &self.id,
            root: created.map_or(&self.id, |c| &c.root),
            space,
            agent: created.map(|c| &c.agent),
            trigger: created.and_then(|c| c.trigger.as_ref()).map(|t| &t.entity),
            watched: self.watched,
        };
        announce(tx, of, &draft.events, done.seq, done.at).await?;
        Ok(done)
    }
}

/// The calls that these events ask for.
pub(super) fn asked_for(events: &[Event]) -> Vec<CallId> {
    let asked = events.iter().filter_map(|event| match event {
        Event::ToolCallRequested(call) => Some(call.call.clone()),
        _ => None,
    });
    asked.collect()
}

/// What the run's row says when this state is logged.
pub(super) fn after(run: &Run) -> After {
    After {
        status: run.status(),
        reason: run.pause_reason(),
        release: run.is_finished() || run.is_parked(),
        error: run.finished().and_then(|f| f.error),
    }
}

fn created_in(event: &Event) -> Option<&RunCreated> {
    if let Event::RunCreated(created) = event { Some(created) } else { None }
}

/// The parts of a step: what was said, the calls, the results, in call order.
pub(crate) fn step_parts(step: &Arc<toolyard_engine::Step>) -> Vec<Part> {
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
