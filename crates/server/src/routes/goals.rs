//! Goals, for people: what an agent or a person wants to reach.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_protocol::{EntityId, GoalId, Timestamp, limits};
use toolyard_store::goals::{self, Goal};
use toolyard_store::{StoreError, audit};

use super::answer::Change;
use super::call::{Call, Made};
use super::page::{self, Page};
use super::{answer, own};
use crate::http::Refusal;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewGoal {
    /// Whose goal it is. A user's own if missing.
    #[serde(default)]
    entity_id: Option<EntityId>,
    description: String,
    #[serde(default)]
    priority: i64,
    #[serde(default)]
    is_long_term: bool,
    #[serde(default)]
    is_completed: bool,
    #[serde(default)]
    metadata: Option<Value>,
}

/// Absent fields stay.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PatchGoal {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    priority: Option<i64>,
    #[serde(default)]
    is_long_term: Option<bool>,
    #[serde(default)]
    is_completed: Option<bool>,
    #[serde(default)]
    metadata: Change<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct GoalView {
    id: GoalId,
    entity_id: EntityId,
    description: String,
    priority: i64,
    is_long_term: bool,
    is_completed: bool,
    metadata: Option<Value>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneGoal {
    goal: GoalView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GoalList {
    goals: Vec<GoalView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

fn view(goal: Goal) -> GoalView {
    GoalView {
        id: goal.id,
        entity_id: goal.entity,
        description: goal.description,
        priority: goal.priority,
        is_long_term: goal.long_term,
        is_completed: goal.completed,
        metadata: goal.metadata,
        created_at: goal.created_at,
        updated_at: goal.updated_at,
    }
}

pub(super) async fn create(call: Call) -> Result<Response, Refusal> {
    let new: NewGoal = call.json()?;
    let description = answer::words("description", &new.description, limits::GOAL_CHARS)?;
    let metadata = answer::metadata(new.metadata)?;
    let entity = new.entity_id.or_else(|| call.principal.entity.clone());
    let entity = entity.ok_or_else(|| toolyard_protocol::ApiError::missing("entityId"))?;
    own::check(&call.principal, Some(&entity), "goal")?;
    let tenant = call.tenant().clone();
    call.once(move |tx| {
        Box::pin(async move {
            own::entity(tx, &tenant, &entity).await?;
            if goals::of_entity(tx, &tenant, &entity).await?.len() >= limits::GOALS {
                return Err(answer::too_many("goals", limits::GOALS));
            }
            let now = tx.now().await?;
            let goal = Goal {
                id: GoalId::mint(),
                entity,
                description,
                priority: new.priority,
                long_term: new.is_long_term,
                completed: new.is_completed,
                metadata,
                created_at: now,
                updated_at: now,
            };
            goals::insert(tx, &tenant, &goal).await?;
            Ok(Made { status: 201, body: json!(OneGoal { goal: view(goal) }) })
        })
    })
    .await
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let page = Page::asked(&call, GoalId::parse)?;
    let entity = own::listed(&call, page::typed(&call.query, "entityId", EntityId::parse)?)?;
    let listed = page.rows(
        &call,
        move |tx, tenant, page: Page<GoalId>| {
            Box::pin(async move {
                goals::list(tx, &tenant, entity.as_ref(), page.before.as_ref(), page.limit).await
            })
        },
        |goal: &Goal| &goal.id,
    );
    let (rows, next) = listed.await?;
    answer::json(200, &GoalList { goals: rows.into_iter().map(view).collect(), next })
}

pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let id = call.id("goal", "Goal", GoalId::parse)?;
    let tenant = call.tenant().clone();
    let found: Option<Goal> = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { goals::get(tx, &tenant, &id).await }))
        .await?;
    let goal = found.ok_or_else(|| Refusal::not_found("Goal"))?;
    own::check(&call.principal, Some(&goal.entity), "goal")?;
    answer::json(200, &OneGoal { goal: view(goal) })
}

pub(super) async fn patch(call: Call) -> Result<Response, Refusal> {
    let id = call.id("goal", "Goal", GoalId::parse)?;
    let patch: PatchGoal = call.json()?;
    let said = patch.description.as_deref();
    let description = said.map(|text| answer::words("description", text, limits::GOAL_CHARS)).transpose()?;
    let metadata = patch.metadata.check(answer::metadata)?;
    let (tenant, principal) = (call.tenant().clone(), call.principal.clone());
    let changed: Goal = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let found = goals::get(tx, &tenant, &id).await?;
                let mut goal = found.ok_or_else(|| Refusal::not_found("Goal"))?;
                own::check(&principal, Some(&goal.entity), "goal")?;
                goal.description = description.unwrap_or(goal.description);
                goal.priority = patch.priority.unwrap_or(goal.priority);
                goal.long_term = patch.is_long_term.unwrap_or(goal.long_term);
                goal.completed = patch.is_completed.unwrap_or(goal.completed);
                goal.metadata = metadata.over(goal.metadata);
                goal.updated_at = tx.now().await?;
                goals::update(tx, &tenant, &goal).await?;
                Ok(goal)
            })
        })
        .await?;
    answer::json(200, &OneGoal { goal: view(changed) })
}

pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let id = call.id("goal", "Goal", GoalId::parse)?;
    let (tenant, principal, actor) = (call.tenant().clone(), call.principal.clone(), call.actor());
    let existed = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let Some(goal) = goals::get(tx, &tenant, &id).await? else { return Ok(false) };
                own::check(&principal, Some(&goal.entity), "goal")?;
                audit::write(tx, &tenant, &actor, "goal.delete", id.as_str(), None).await?;
                Ok(goals::delete(tx, &tenant, &id).await?)
            })
        })
        .await?;
    answer::gone(existed, "Goal")
}
