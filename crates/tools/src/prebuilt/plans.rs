//! `createPlan`, `getPlan` and `cancelPlan` (row G25): runs that start later.
//! The scheduler starts them; here they are written and read.

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_protocol::{PlanId, limits};
use toolyard_store::Tx;
use toolyard_store::plans::{self, Plan, PlanStatus};

use super::{Action, Given, Refused, Way, agent, seat, text};
use crate::CallContext;
use crate::timing::{self, Wanted};

pub(super) const CREATE: Action = Action {
    name: "createPlan",
    alias: Some("setPlans"),
    description: "Plan work for later: at a time (scheduledAt) or again and again (cron, five fields: minute hour day month weekday). When it is due you get the instruction in this space and start to work.",
    schema: create_schema,
    way: Way::Act(|tx, caller, given| Box::pin(create(tx, caller, given))),
};

pub(super) const GET: Action = Action {
    name: "getPlan",
    alias: Some("getPreviousPlans"),
    description: "Read your plans for this person and this space: one by its id, or all, the next to run first.",
    schema: get_schema,
    way: Way::Act(|tx, caller, given| Box::pin(get(tx, caller, given))),
};

pub(super) const CANCEL: Action = Action {
    name: "cancelPlan",
    alias: None,
    description: "Cancel a plan that you made for this person.",
    schema: cancel_schema,
    way: Way::Act(|tx, caller, given| Box::pin(cancel(tx, caller, given))),
};

fn create_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "A short name."},
            "instruction": {"type": "string", "description": "What you shall do then, as you want to read it."},
            "cron": {"type": "string", "description": "Five fields: minute hour day-of-month month day-of-week."},
            "scheduledAt": {"type": "string", "description": "A time, as 2027-01-31T09:00:00Z; without Z it is local time of timezone."},
            "timezone": {"type": "string", "description": "IANA name, as Europe/Berlin. UTC if missing."},
            "isRecurring": {"type": "boolean", "description": "false with cron: only the next time."}
        },
        "required": ["instruction"]
    })
}

fn get_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "status": {"type": "string", "enum": ["pending", "completed", "canceled", "failed"]}
        }
    })
}

fn cancel_schema() -> Value {
    json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]})
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreatePlan {
    #[serde(default)]
    name: Option<String>,
    instruction: String,
    #[serde(default)]
    cron: Option<String>,
    #[serde(default)]
    scheduled_at: Option<String>,
    #[serde(default)]
    timezone: Option<String>,
    #[serde(default)]
    is_recurring: Option<bool>,
}

async fn create(tx: &mut Tx<'_>, caller: &CallContext, given: &Given) -> Result<Value, Refused> {
    let input: CreatePlan = given.input()?;
    let agent = agent(caller)?;
    let instruction = text("instruction", &input.instruction, limits::PLAN_CHARS)?;
    let name = match &input.name {
        Some(name) => text("name", name, limits::LABEL_CHARS)?.to_owned(),
        None => instruction.chars().take(60).collect(),
    };
    let now = tx.now().await?;
    let wanted = Wanted {
        cron: input.cron.as_deref(),
        at: input.scheduled_at.as_deref(),
        timezone: input.timezone.as_deref(),
        recurring: input.is_recurring,
    };
    let timing = timing::check(wanted, now).map_err(Refused::tell)?;
    // A plan that makes a plan that is due at once would never rest.
    let soonest = limits::PLAN_SOONEST_SECONDS;
    if timing.next.since(now) < soonest * 1000 {
        return Err(Refused::tell(format!(
            "A plan starts at least {soonest} seconds from now; now it is {now}"
        )));
    }
    let count = plans::count_pending(tx, &caller.tenant, agent, caller.trigger.as_ref()).await?;
    if usize::try_from(count).unwrap_or(usize::MAX) >= limits::PLANS {
        return Err(Refused::tell(format!(
            "The limit is {} pending plans: cancel some first",
            limits::PLANS
        )));
    }
    let plan = Plan {
        tenant: caller.tenant.clone(),
        id: PlanId::mint(),
        agent: agent.clone(),
        creator: caller.trigger.clone(),
        space: seat(tx, caller).await?,
        name,
        instruction: instruction.to_owned(),
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
    plans::insert(tx, &plan).await?;
    Ok(json!({"success": true, "plan": shown(&plan)}))
}

async fn get(tx: &mut Tx<'_>, caller: &CallContext, given: &Given) -> Result<Value, Refused> {
    let (id, status) =
        (given.args.get("id").and_then(Value::as_str), given.args.get("status").and_then(Value::as_str));
    let mut found = readable(tx, caller).await?;
    if let Some(id) = id {
        let plan = found.into_iter().find(|plan| plan.id.as_str() == id);
        let plan = plan.ok_or_else(|| Refused::tell(format!("Plan {id} not found")))?;
        return Ok(json!({"success": true, "plan": shown(&plan)}));
    }
    found.retain(|plan| status.is_none_or(|wanted| plan.status.as_str() == wanted));
    Ok(json!({
        "success": true,
        "plans": found.iter().map(shown).collect::<Vec<_>>(),
        "total": found.len(),
    }))
}

async fn cancel(tx: &mut Tx<'_>, caller: &CallContext, given: &Given) -> Result<Value, Refused> {
    let id = given.args.get("id").and_then(Value::as_str).unwrap_or_default();
    let missing = || Refused::tell(format!("Plan {id} not found"));
    let found = readable(tx, caller).await?;
    let plan = found.into_iter().find(|plan| plan.id.as_str() == id).ok_or_else(missing)?;
    // Others in the space may know of a plan; only whom it works for ends it.
    if plan.creator != caller.trigger {
        return Err(Refused::tell(format!("Plan {id} was made for somebody else, who alone may cancel it")));
    }
    if plan.status != PlanStatus::Pending {
        return Err(Refused::tell(format!("Plan {id} is {} already", plan.status.as_str())));
    }
    let before = plan.next_run_at;
    let canceled =
        Plan { status: PlanStatus::Canceled, next_run_at: None, updated_at: tx.now().await?, ..plan };
    if !plans::replace(tx, &canceled, PlanStatus::Pending, before).await? {
        return Err(Refused::tell(format!("Plan {id} has just started a run. Look at it again")));
    }
    Ok(json!({"success": true, "plan": shown(&canceled)}))
}

async fn readable(tx: &mut Tx<'_>, caller: &CallContext) -> Result<Vec<Plan>, Refused> {
    let (user, space) = (caller.trigger.as_ref(), seat(tx, caller).await?);
    let (tenant, agent) = (&caller.tenant, agent(caller)?);
    Ok(plans::readable(tx, tenant, agent, user, space.as_ref(), limits::PLAN_PAGE).await?)
}

fn shown(plan: &Plan) -> Value {
    json!({
        "id": plan.id,
        "name": plan.name,
        "instruction": plan.instruction,
        "isRecurring": plan.cron.is_some(),
        "cron": plan.cron,
        "timezone": plan.timezone,
        "scheduledAt": plan.scheduled_at,
        "nextRunAt": plan.next_run_at,
        "lastRunAt": plan.last_run_at,
        "status": plan.status.as_str(),
        "error": plan.error,
    })
}
