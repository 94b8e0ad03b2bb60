//! Due plans: each becomes a run, once, whichever node is quicker.
//!
//! One transaction moves the plan on, says its instruction in its space and
//! makes the run. Occurrences that were missed while no gateway ran are one:
//! the next moment is counted from now. One that comes while the run of the
//! last one is still live is skipped.
//!
//! Lock order: the live run, then the space, then the plan.

use std::sync::Arc;

use serde_json::json;
use toolyard_protocol::event::{Event, MessageQueued, Trigger};
use toolyard_protocol::message::{Part, Speaker};
use toolyard_protocol::picks::Picks;
use toolyard_protocol::principal::Role;
use toolyard_protocol::{ApiError, BranchId, KeyId, KeyKind, MessageId, Principal, SpaceId, Timestamp};
use toolyard_store::entities::{self, EntityKind};
use toolyard_store::messages::{self, NewMessage};
use toolyard_store::plans::{self, Plan, PlanStatus};
use toolyard_store::spaces::{self, Space};
use toolyard_store::{StoreError, Tx, failpoint, runs, waits};
use toolyard_tools::timing;

use crate::agents::LoadedAgent;
use crate::create::Birth;
use crate::refused::Refused;
use crate::runtime::Runtime;
use crate::starting::Desk;

/// Plans started in one round of the scheduler.
const DUE: u32 = 32;

impl Runtime {
    /// Starts what is due. True if there may be more.
    pub(crate) async fn start_due_plans(self: &Arc<Self>) -> Result<bool, StoreError> {
        let due: Vec<Plan> = self.store.read(|tx| Box::pin(async move { plans::due(tx, DUE).await })).await?;
        let full = due.len() == usize::try_from(DUE).unwrap_or(usize::MAX);
        let mut moved = 0;
        for plan in due {
            let id = plan.id.clone();
            match self.start_plan(plan).await {
                Ok(()) => moved += 1,
                // One that fails must not keep the others waiting.
                Err(e) => tracing::error!(plan = %id, error = %e, "a due plan cannot be started"),
            }
        }
        Ok(full && moved > 0)
    }

    async fn start_plan(self: &Arc<Self>, due: Plan) -> Result<(), ApiError> {
        let due = Arc::new(due);
        self.starting(1, move |rt, mut desk| {
            let due = due.clone();
            Box::new(move |tx| {
                Box::pin(async move {
                    rt.fire(tx, &due, &mut desk).await?;
                    failpoint::pass("start.before_commit")?;
                    Ok(((), desk.starts))
                })
            })
        })
        .await
    }

    async fn fire(&self, tx: &mut Tx<'_>, due: &Plan, desk: &mut Desk) -> Result<(), Refused> {
        let now = tx.now().await?;
        let Some(plan) = plans::get(tx, &due.tenant, &due.id).await? else { return Ok(()) };
        let still = plan.status == PlanStatus::Pending && plan.next_run_at == due.next_run_at;
        if !still || plan.next_run_at.is_none_or(|at| at > now) {
            return Ok(());
        }
        let mut next = moved_on(&plan, now);
        let agent = match self.obstacle(tx, &plan).await? {
            Ok(agent) => agent,
            Err(why) => {
                if plan.cron.is_none() {
                    next.status = PlanStatus::Failed;
                }
                next.error = Some(why);
                plans::replace(tx, &next, PlanStatus::Pending, plan.next_run_at).await?;
                return Ok(());
            }
        };
        let live = match &plan.space {
            Some(space) => {
                let live = runs::lock_live(tx, &plan.tenant, space, &plan.agent).await?;
                if !spaces::lock(tx, &plan.tenant, space).await? {
                    return Ok(());
                }
                live
            }
            None => None,
        };
        // One that is not done with the last occurrence, or has not even heard
        // of it, is not told again.
        if let Some(live) = live.as_ref().filter(|live| plan.last_run.as_ref() == Some(&live.id)) {
            next.error = Some(format!("Skipped: its run {} has not ended", live.id));
            plans::replace(tx, &next, PlanStatus::Pending, plan.next_run_at).await?;
            return Ok(());
        }
        let space = plan.space.clone().unwrap_or_else(SpaceId::mint);
        next.space = Some(space.clone());
        next.last_run_at = Some(now);
        next.runs += 1;
        next.error = None;
        if !plans::replace(tx, &next, PlanStatus::Pending, plan.next_run_at).await? {
            return Ok(());
        }
        let space = place(tx, &plan, &space, now).await?;
        let said = messages::insert(tx, &plan.tenant, &space.id, instruction(&plan, &space)).await?;
        let run = if let Some(live) = live {
            // The agent is at work here: it takes the instruction when it is done.
            let foreign = plan.creator.is_none() || plan.creator != live.triggered_by;
            let event = MessageQueued { message: said.id, interrupt: false, foreign };
            let open = waits::open_of_run(tx, &live.tenant, &live.id).await?.len();
            desk.wake(tx, &live, vec![Event::from(event)], open).await?;
            live.id
        } else {
            let by = principal(&plan)?;
            let trigger =
                plan.creator.clone().map(|entity| Trigger { entity, message: Some(said.id.clone()) });
            let birth = Birth {
                by: &by,
                space: &space,
                agent_entity: &plan.agent,
                agent: &agent,
                triggered_by: plan.creator.as_ref(),
                trigger,
                history_to: said.seq,
                metadata: Some(json!({"planId": plan.id})),
                model: None,
                picks: self.picks_of(tx, &plan, &space.id).await?,
                output: None,
                tools: None,
                tainted: false,
                trace: None,
                positions: None,
            };
            self.give_birth(tx, birth, desk).await?.0
        };
        plans::name_run(tx, &plan.tenant, &plan.id, &run).await?;
        Ok(())
    }

    /// The tools that the creator has picked in the space.
    async fn picks_of(
        &self,
        tx: &mut Tx<'_>,
        plan: &Plan,
        space: &SpaceId,
    ) -> Result<Option<Picks>, StoreError> {
        let Some(creator) = &plan.creator else { return Ok(None) };
        let seat = spaces::seat(tx, &plan.tenant, space, creator).await?;
        Ok(seat.and_then(|seat| seat.picks))
    }

    /// The agent of a plan, or why it cannot run now.
    async fn obstacle(
        &self,
        tx: &mut Tx<'_>,
        plan: &Plan,
    ) -> Result<Result<Arc<LoadedAgent>, String>, Refused> {
        let entity = entities::get(tx, &plan.tenant, &plan.agent).await?;
        let Some(entity) = entity.filter(|e| e.kind == EntityKind::Agent) else {
            return Ok(Err("Agent entity not found".to_owned()));
        };
        if let Some(space) = &plan.space {
            if spaces::get(tx, &plan.tenant, space).await?.is_none() {
                return Ok(Err("SmartSpace not found".to_owned()));
            }
            // Who has left a space has nothing said there any more.
            for member in std::iter::once(&plan.agent).chain(plan.creator.as_ref()) {
                if spaces::role(tx, &plan.tenant, space, member).await?.is_none() {
                    return Ok(Err(format!("Entity {member} is not a member of this SmartSpace")));
                }
            }
        }
        match self.current_agent(tx, &plan.tenant, entity.agent.as_ref()).await {
            Ok(Some(agent)) => Ok(Ok(agent)),
            Ok(None) => Ok(Err("Agent not found".to_owned())),
            Err(Refused::Api(e)) => Ok(Err(e.message)),
            Err(e) => Err(e),
        }
    }
}

/// The plan behind this occurrence.
fn moved_on(plan: &Plan, now: Timestamp) -> Plan {
    let next = match &plan.cron {
        // It was checked when it was stored; what this release cannot read any more has no next time.
        Some(cron) => timing::next_after(cron, &plan.timezone, now).ok().flatten(),
        None => None,
    };
    let status = if next.is_some() { PlanStatus::Pending } else { PlanStatus::Completed };
    Plan { next_run_at: next, status, updated_at: now, ..plan.clone() }
}

/// The plan's space; one without gets its own.
async fn place(tx: &mut Tx<'_>, plan: &Plan, id: &SpaceId, now: Timestamp) -> Result<Space, Refused> {
    if plan.space.is_some() {
        let found = spaces::get(tx, &plan.tenant, id).await?;
        return found.ok_or_else(|| ApiError::not_found("SmartSpace").into());
    }
    let space = Space {
        id: id.clone(),
        name: Some(plan.name.clone()),
        description: None,
        metadata: Some(json!({"planId": plan.id})),
        show_reasoning: false,
        last_pos: 0,
        branch: BranchId::main(),
        tainted: false,
        created_at: now,
    };
    spaces::insert(tx, &plan.tenant, &space).await?;
    for member in std::iter::once(&plan.agent).chain(plan.creator.as_ref()) {
        spaces::put_member(tx, &plan.tenant, id, member, Role::Member).await?;
    }
    Ok(space)
}

/// What the agent reads. Not a system message: a model wrote it, perhaps after
/// reading something foul, and it has no more weight than what users say.
fn instruction(plan: &Plan, space: &Space) -> NewMessage {
    NewMessage {
        id: MessageId::mint(),
        speaker: Speaker::User,
        entity: None,
        run: None,
        branch: space.branch.clone(),
        parts: vec![Part::text(format!("[Plan that is due: {}]\n{}", plan.name, plan.instruction))],
        show_reasoning: space.show_reasoning,
        metadata: Some(json!({"planId": plan.id})),
    }
}

/// The run works for the plan's creator, with a user's rights.
fn principal(plan: &Plan) -> Result<Principal, StoreError> {
    let kind = if plan.creator.is_some() { KeyKind::Public } else { KeyKind::Secret };
    let key = KeyId::parse("key_plan").map_err(|e| StoreError::broken(e.to_string()))?;
    Ok(Principal { tenant: plan.tenant.clone(), key, kind, entity: plan.creator.clone() })
}
