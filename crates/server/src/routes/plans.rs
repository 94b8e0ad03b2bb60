//! Plans, for people: what an agent shall do later, and for whom.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolyard_protocol::{ApiError, EntityId, ErrorCode, KeyKind, PlanId, RunId, SpaceId, Timestamp, limits};
use toolyard_runtime::timing::{self, Timing, Wanted};
use toolyard_store::plans::{self, Plan, PlanStatus};
use toolyard_store::{StoreError, Tx, audit};

use super::call::{Call, Made};
use super::page::{self, Page};
use super::{answer, own};
use crate::http::Refusal;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewPlan {
    /// The agent that shall work.
    agent_entity_id: EntityId,
    /// For whom. A user's own if missing; a backend may leave it out.
    #[serde(default)]
    entity_id: Option<EntityId>,
    /// Where. A backend may leave it out: then the plan gets a space of its own.
    #[serde(default)]
    smart_space_id: Option<SpaceId>,
    #[serde(default)]
    name: Option<String>,
    instruction: String,
    /// Five fields: minute, hour, day of month, month, day of week.
    #[serde(default)]
    cron: Option<String>,
    /// RFC 3339, or a local time of `timezone`.
    #[serde(default)]
    scheduled_at: Option<String>,
    /// IANA name; UTC if missing.
    #[serde(default)]
    timezone: Option<String>,
    /// false with cron: only the next time.
    #[serde(default)]
    is_recurring: Option<bool>,
}

/// Absent fields stay. A new time makes a plan pending again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PatchPlan {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    instruction: Option<String>,
    #[serde(default)]
    cron: Option<String>,
    #[serde(default)]
    scheduled_at: Option<String>,
    #[serde(default)]
    timezone: Option<String>,
    /// `canceled`.
    #[serde(default)]
    status: Option<Canceled>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Canceled {
    Canceled,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanView {
    id: PlanId,
    agent_entity_id: EntityId,
    entity_id: Option<EntityId>,
    smart_space_id: Option<SpaceId>,
    name: String,
    instruction: String,
    is_recurring: bool,
    cron: Option<String>,
    timezone: String,
    scheduled_at: Option<Timestamp>,
    next_run_at: Option<Timestamp>,
    last_run_at: Option<Timestamp>,
    last_run_id: Option<RunId>,
    runs: i64,
    /// `pending`, `completed`, `canceled` or `failed`.
    status: &'static str,
    error: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OnePlan {
    plan: PlanView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PlanList {
    plans: Vec<PlanView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

fn view(plan: Plan) -> PlanView {
    PlanView {
        id: plan.id,
        agent_entity_id: plan.agent,
        entity_id: plan.creator,
        smart_space_id: plan.space,
        name: plan.name,
        instruction: plan.instruction,
        is_recurring: plan.cron.is_some(),
        cron: plan.cron,
        timezone: plan.timezone,
        scheduled_at: plan.scheduled_at,
        next_run_at: plan.next_run_at,
        last_run_at: plan.last_run_at,
        last_run_id: plan.last_run,
        runs: plan.runs,
        status: plan.status.as_str(),
        error: plan.error,
        created_at: plan.created_at,
        updated_at: plan.updated_at,
    }
}

pub(super) async fn create(call: Call) -> Result<Response, Refusal> {
    let new: NewPlan = call.json()?;
    let instruction = answer::words("instruction", &new.instruction, limits::PLAN_CHARS)?;
    let short: String = instruction.chars().take(60).filter(|c| !c.is_control()).collect();
    let name = answer::label("name", new.name.clone())?.unwrap_or(short);
    let user = call.principal.kind == KeyKind::Public;
    let creator = new.entity_id.clone().or_else(|| call.principal.entity.clone());
    if user {
        own::check(&call.principal, creator.as_ref(), "plan")?;
        // A space is made by backends, so a user's plan needs one that is there.
        if new.smart_space_id.is_none() {
            return Err(ApiError::missing("smartSpaceId").into());
        }
    }
    let tenant = call.tenant().clone();
    call.once(move |tx| {
        Box::pin(async move {
            own::agent(tx, &tenant, &new.agent_entity_id).await?;
            if let Some(creator) = &creator {
                own::entity(tx, &tenant, creator).await?;
            }
            if let Some(space) = &new.smart_space_id {
                let members: Vec<&EntityId> =
                    std::iter::once(&new.agent_entity_id).chain(creator.as_ref()).collect();
                own::seat(tx, &tenant, space, &members).await?;
            }
            let now = tx.now().await?;
            let wanted = Wanted {
                cron: new.cron.as_deref(),
                at: new.scheduled_at.as_deref(),
                timezone: new.timezone.as_deref(),
                recurring: new.is_recurring,
            };
            let timing = timing::check(wanted, now).map_err(Refusal::bad_request)?;
            let plan = Plan {
                tenant,
                id: PlanId::mint(),
                agent: new.agent_entity_id,
                creator,
                space: new.smart_space_id,
                name,
                instruction,
                cron: timing.cron,
                timezone: timing.timezone,
                scheduled_at: timing.at,
                next_run_at: Some(timing.next),
                last_run_at: None,
                last_run: None,
                runs: 0,
                status: PlanStatus::Pending,
                error: None,
                created_at: now,
                updated_at: now,
            };
            room(tx, &plan).await?;
            plans::insert(tx, &plan).await?;
            Ok(Made { status: 201, body: json!(OnePlan { plan: view(plan) }) })
        })
    })
    .await
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let page = Page::asked(&call, PlanId::parse)?;
    let status = page::typed(&call.query, "status", |t| PlanStatus::parse(t).ok_or(()))?;
    let creator = own::listed(&call, page::typed(&call.query, "entityId", EntityId::parse)?)?;
    let listed = page.rows(
        &call,
        move |tx, tenant, page: Page<PlanId>| {
            Box::pin(async move {
                plans::list(tx, &tenant, creator.as_ref(), status, page.before.as_ref(), page.limit).await
            })
        },
        |plan: &Plan| &plan.id,
    );
    let (rows, next) = listed.await?;
    answer::json(200, &PlanList { plans: rows.into_iter().map(view).collect(), next })
}

pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let id = call.id("plan", "Plan", PlanId::parse)?;
    let tenant = call.tenant().clone();
    let found: Option<Plan> = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { plans::get(tx, &tenant, &id).await }))
        .await?;
    let plan = found.ok_or_else(|| Refusal::not_found("Plan"))?;
    own::check(&call.principal, plan.creator.as_ref(), "plan")?;
    answer::json(200, &OnePlan { plan: view(plan) })
}

pub(super) async fn patch(call: Call) -> Result<Response, Refusal> {
    let id = call.id("plan", "Plan", PlanId::parse)?;
    let patch: PatchPlan = call.json()?;
    let said = patch.instruction.as_deref();
    let instruction = said.map(|text| answer::words("instruction", text, limits::PLAN_CHARS)).transpose()?;
    let name = answer::label("name", patch.name.clone())?;
    let (tenant, principal) = (call.tenant().clone(), call.principal.clone());
    let changed: Plan = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let found = plans::get(tx, &tenant, &id).await?;
                let plan = found.ok_or_else(|| Refusal::not_found("Plan"))?;
                own::check(&principal, plan.creator.as_ref(), "plan")?;
                let now = tx.now().await?;
                let mut next = Plan { updated_at: now, ..plan.clone() };
                next.name = name.unwrap_or(next.name);
                next.instruction = instruction.unwrap_or(next.instruction);
                if patch.cron.is_some() || patch.scheduled_at.is_some() || patch.timezone.is_some() {
                    retime(&mut next, &patch, now)?;
                }
                if plan.status != PlanStatus::Pending && next.status == PlanStatus::Pending {
                    room(tx, &plan).await?;
                }
                if let Some(Canceled::Canceled) = patch.status {
                    next.status = PlanStatus::Canceled;
                    next.next_run_at = None;
                }
                if !plans::replace(tx, &next, plan.status, plan.next_run_at).await? {
                    let text = "The plan has just started a run. Look at it again";
                    return Err(Refusal::new(ErrorCode::Conflict, text));
                }
                Ok(next)
            })
        })
        .await?;
    answer::json(200, &OnePlan { plan: view(changed) })
}

/// Refuses one pending plan too many.
async fn room(tx: &mut Tx<'_>, plan: &Plan) -> Result<(), Refusal> {
    let count = plans::count_pending(tx, &plan.tenant, &plan.agent, plan.creator.as_ref()).await?;
    if usize::try_from(count).unwrap_or(usize::MAX) >= limits::PLANS {
        return Err(answer::too_many("pending plans", limits::PLANS));
    }
    Ok(())
}

/// A new time. Without a new pattern or moment only the zone changes.
fn retime(plan: &mut Plan, patch: &PatchPlan, now: Timestamp) -> Result<(), Refusal> {
    let same = patch.cron.is_none() && patch.scheduled_at.is_none();
    let at = plan.scheduled_at.filter(|_| same).map(|at| at.to_string());
    let wanted = Wanted {
        cron: if same { plan.cron.as_deref() } else { patch.cron.as_deref() },
        at: if same { at.as_deref() } else { patch.scheduled_at.as_deref() },
        timezone: patch.timezone.as_deref().or(Some(&plan.timezone)),
        recurring: None,
    };
    let Timing { cron, timezone, at, next } = timing::check(wanted, now).map_err(Refusal::bad_request)?;
    (plan.cron, plan.timezone, plan.scheduled_at, plan.next_run_at) = (cron, timezone, at, Some(next));
    (plan.status, plan.error) = (PlanStatus::Pending, None);
    Ok(())
}

pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let id = call.id("plan", "Plan", PlanId::parse)?;
    let (tenant, principal, actor) = (call.tenant().clone(), call.principal.clone(), call.actor());
    let existed = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let Some(plan) = plans::get(tx, &tenant, &id).await? else { return Ok(false) };
                own::check(&principal, plan.creator.as_ref(), "plan")?;
                audit::write(tx, &tenant, &actor, "plan.delete", id.as_str(), None).await?;
                Ok(plans::delete(tx, &tenant, &id).await?)
            })
        })
        .await?;
    answer::gone(existed, "Plan")
}
