//! `setGoals` and `getGoals` (rows G20 to G23): goals belong to the agent's
//! entity and outlive runs and spaces.

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_protocol::{EntityId, GoalId, Timestamp, limits};
use toolyard_store::Tx;
use toolyard_store::goals::{self, Goal};

use super::{Action, Given, Refused, Way, agent, text};
use crate::CallContext;

pub(super) const SET: Action = Action {
    name: "setGoals",
    alias: None,
    description: "Create, update or complete your goals. A goal with an id (or a match phrase that fits exactly one goal) is updated and keeps what you do not mention; one without is created. clearExisting removes every goal that this call does not name. Answers all current goals with their ids.",
    schema: set_schema,
    way: Way::Act(|tx, caller, given| Box::pin(set(tx, caller, given))),
};

pub(super) const GET: Action = Action {
    name: "getGoals",
    alias: None,
    description: "Read your current goals, the most important first.",
    schema: get_schema,
    way: Way::Act(get),
};

fn set_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "goals": {
                "type": "array",
                "maxItems": limits::GOAL_BATCH,
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string", "description": "The goal to update. Leave out to create one."},
                        "match": {"type": "string", "description": "Instead of an id: words of the description of the goal to update."},
                        "description": {"type": "string", "description": "What is to be reached."},
                        "priority": {"type": "integer", "description": "Higher is more important. 0 if missing."},
                        "isLongTerm": {"type": "boolean"},
                        "isCompleted": {"type": "boolean"}
                    },
                    "required": ["description"]
                }
            },
            "clearExisting": {"type": "boolean", "description": "Remove all goals that this call does not name."}
        },
        "required": ["goals"]
    })
}

fn get_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "isCompleted": {"type": "boolean", "description": "Only goals that are completed, or that are not."}
        }
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetGoals {
    goals: Vec<GoalIn>,
    #[serde(default)]
    clear_existing: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoalIn {
    #[serde(default)]
    id: Option<String>,
    #[serde(default, rename = "match")]
    phrase: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    priority: Option<i64>,
    #[serde(default)]
    is_long_term: Option<bool>,
    #[serde(default)]
    is_completed: Option<bool>,
}

/// Which goal an entry of the input means.
enum Meant {
    New,
    /// Its place in the list of goals.
    Goal(usize),
    NotFound(String),
    Ambiguous(Vec<usize>),
}

async fn set(tx: &mut Tx<'_>, caller: &CallContext, given: &Given) -> Result<Value, Refused> {
    let input: SetGoals = given.input()?;
    let (tenant, entity) = (&caller.tenant, agent(caller)?);
    if input.goals.len() > limits::GOAL_BATCH {
        let text = format!("{} goals in one call: the limit is {}", input.goals.len(), limits::GOAL_BATCH);
        return Err(Refused::tell(text));
    }
    // Only the entity's own goals are looked at: another's id is simply not there.
    let known = goals::of_entity(tx, tenant, entity).await?;
    let meant: Vec<Meant> = input.goals.iter().map(|goal| goal.meant(&known)).collect();
    if input.clear_existing {
        for (i, goal) in known.iter().enumerate() {
            let named = meant.iter().any(|m| match m {
                Meant::Goal(at) => *at == i,
                Meant::Ambiguous(all) => all.contains(&i),
                Meant::New | Meant::NotFound(_) => false,
            });
            if !named {
                goals::delete(tx, tenant, &goal.id).await?;
            }
        }
    }
    let now = tx.now().await?;
    let mut modified = Vec::with_capacity(meant.len());
    let mut kept: Vec<Goal> = known;
    for (goal, meant) in input.goals.iter().zip(&meant) {
        let told = |action: &str, goal: &Goal| json!({"action": action, "id": goal.id, "description": goal.description});
        modified.push(match meant {
            Meant::New => {
                let new = goal.create(entity, now)?;
                goals::insert(tx, tenant, &new).await?;
                told("created", &new)
            }
            Meant::Goal(i) => {
                // Two entries may mean one goal: the second sees what the first changed.
                let goal = goal.apply(&kept[*i], now)?;
                goals::update(tx, tenant, &goal).await?;
                kept[*i] = goal;
                told("updated", &kept[*i])
            }
            Meant::NotFound(name) => json!({"action": "not_found", "id": name, "description": goal.description}),
            Meant::Ambiguous(all) => json!({
                "action": "ambiguous",
                "match": goal.phrase,
                "candidates": all.iter().map(|i| json!({"id": kept[*i].id, "description": kept[*i].description})).collect::<Vec<_>>(),
            }),
        });
    }
    let current = goals::of_entity(tx, tenant, entity).await?;
    if current.len() > limits::GOALS {
        let text = format!("That makes {} goals: the limit is {}", current.len(), limits::GOALS);
        return Err(Refused::tell(text));
    }
    let success = meant.iter().all(|m| matches!(m, Meant::New | Meant::Goal(_)));
    Ok(json!({
        "success": success,
        "goalsModified": modified,
        "currentGoals": current.iter().map(shown).collect::<Vec<_>>(),
        "totalGoals": current.len(),
    }))
}

fn get<'t>(
    tx: &'t mut Tx<'_>,
    caller: &'t CallContext,
    given: &'t Given,
) -> BoxFuture<'t, Result<Value, Refused>> {
    Box::pin(async move {
        let mut current = goals::of_entity(tx, &caller.tenant, agent(caller)?).await?;
        if let Some(wanted) = given.args.get("isCompleted").and_then(Value::as_bool) {
            current.retain(|goal| goal.completed == wanted);
        }
        Ok(json!({
            "success": true,
            "currentGoals": current.iter().map(shown).collect::<Vec<_>>(),
            "totalGoals": current.len(),
        }))
    })
}

/// A goal as the model reads it (row G21).
fn shown(goal: &Goal) -> Value {
    json!({
        "id": goal.id,
        "description": goal.description,
        "priority": goal.priority,
        "isLongTerm": goal.long_term,
        "isCompleted": goal.completed,
    })
}

impl GoalIn {
    fn meant(&self, known: &[Goal]) -> Meant {
        if let Some(id) = self.id.as_deref().filter(|id| !id.is_empty()) {
            let found = known.iter().position(|goal| goal.id.as_str() == id);
            return found.map_or_else(|| Meant::NotFound(id.to_owned()), Meant::Goal);
        }
        let Some(phrase) = self.phrase.as_deref().filter(|p| !p.trim().is_empty()) else { return Meant::New };
        let wanted = phrase.trim().to_lowercase();
        let fits = |exactly: bool| {
            let found = known.iter().enumerate().filter(|(_, goal)| {
                let description = goal.description.to_lowercase();
                if exactly { description == wanted } else { description.contains(&wanted) }
            });
            found.map(|(i, _)| i).collect::<Vec<_>>()
        };
        let exact = fits(true);
        let found = if exact.len() == 1 { exact } else { fits(false) };
        match found.as_slice() {
            [] => Meant::NotFound(phrase.to_owned()),
            [one] => Meant::Goal(*one),
            _ => Meant::Ambiguous(found),
        }
    }

    fn create(&self, entity: &EntityId, now: Timestamp) -> Result<Goal, Refused> {
        let description = self.description.as_deref().unwrap_or_default();
        Ok(Goal {
            id: GoalId::mint(),
            entity: entity.clone(),
            description: text("description", description, limits::GOAL_CHARS)?.to_owned(),
            priority: self.priority.unwrap_or(0),
            long_term: self.is_long_term.unwrap_or(false),
            completed: self.is_completed.unwrap_or(false),
            metadata: None,
            created_at: now,
            updated_at: now,
        })
    }

    /// What is not said stays as it is.
    fn apply(&self, goal: &Goal, now: Timestamp) -> Result<Goal, Refused> {
        let mut goal = goal.clone();
        if let Some(description) = &self.description {
            goal.description = text("description", description, limits::GOAL_CHARS)?.to_owned();
        }
        goal.priority = self.priority.unwrap_or(goal.priority);
        goal.long_term = self.is_long_term.unwrap_or(goal.long_term);
        goal.completed = self.is_completed.unwrap_or(goal.completed);
        goal.updated_at = now;
        Ok(goal)
    }
}
