//! A run as an A2A task: read from the log, for one viewer.

use serde_json::Value;
use toolyard_dialects::a2a::{Message, TaskSoFar, Taste, history_message};
use toolyard_protocol::event::Event;
use toolyard_protocol::{EntityId, RunId, SpaceId, TenantId, Timestamp, Viewer, limits};
use toolyard_store::runs::RunRow;
use toolyard_store::{StoreError, Tx, log, messages, threads};

/// A task, what was said in it, and when it was read.
#[derive(Debug, Clone)]
pub struct TaskRead {
    pub task: TaskSoFar,
    /// Oldest first.
    pub history: Vec<Message>,
    /// How its client wants it told.
    pub taste: Taste,
}

/// How a task is to be read.
#[derive(Debug, Clone)]
pub struct TaskReader {
    pub tenant: TenantId,
    pub viewer: Viewer,
    pub taste: Taste,
    /// Where the gateway's files lie.
    pub files: String,
    /// Only events up to this one.
    pub until: Option<i64>,
}

/// The member of a run's metadata that says how its client talks.
pub const TASK_METADATA: &str = "a2a";

impl TaskReader {
    pub async fn read(&self, tx: &mut Tx<'_>, row: &RunRow) -> Result<TaskRead, StoreError> {
        let context = context_of(tx, &self.tenant, row.space.as_ref(), &row.id, &self.viewer).await?;
        let mut taste = self.taste;
        let mut task: Option<TaskSoFar> = None;
        let mut after = 0;
        loop {
            let page = log::read(tx, &self.tenant, &row.id, after, limits::LOG_PAGE).await?;
            let full = page.len() >= limits::LOG_PAGE as usize;
            for logged in page {
                after = logged.seq;
                if self.until.is_some_and(|until| logged.seq > until) {
                    break;
                }
                if let Event::RunCreated(created) = &logged.event {
                    taste = stored_taste(taste, created.metadata.shown());
                }
                let task = task.get_or_insert_with(|| self.blank(&row.id, context.clone(), taste));
                task.take(logged.seq, logged.at, &logged.event);
            }
            if !full || self.until.is_some_and(|until| after > until) {
                break;
            }
        }
        let task = task.unwrap_or_else(|| self.blank(&row.id, context.clone(), taste));
        let mut history = Vec::with_capacity(task.said().len());
        for id in task.said() {
            if let Some(message) = messages::get(tx, &self.tenant, id).await? {
                history.push(history_message(&message, &row.id, &context, &self.viewer));
            }
        }
        Ok(TaskRead { task, history, taste })
    }

    /// A task of which nothing was read yet.
    pub fn blank(&self, run: &RunId, context: String, taste: Taste) -> TaskSoFar {
        TaskSoFar::new(run.clone(), context, self.files.clone(), self.viewer.clone(), taste)
    }
}

/// Who began a task with tools of its own knows how their calls look.
fn stored_taste(taste: Taste, metadata: Option<&Value>) -> Taste {
    let own = metadata.and_then(|m| m.get(TASK_METADATA));
    let flag = |name: &str| own.and_then(|own| own.get(name)).and_then(Value::as_bool).unwrap_or(false);
    Taste {
        client_tools: taste.client_tools || flag("clientTools"),
        literal: taste.literal || flag("literal"),
    }
}

/// The conversation's name for this viewer: its owner's own, else the space's.
async fn context_of(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: Option<&SpaceId>,
    run: &RunId,
    viewer: &Viewer,
) -> Result<String, StoreError> {
    let Some(space) = space else { return Ok(run.to_string()) };
    let owner: Option<(EntityId, String)> = threads::owner(tx, tenant, space).await?;
    Ok(match owner {
        Some((owner, name)) if viewer.sees_all() || viewer.entity.as_ref() == Some(&owner) => name,
        _ => space.to_string(),
    })
}

/// A moment that a task was read at, for lists.
pub fn changed_at(row: &RunRow) -> (Timestamp, RunId) {
    (row.updated_at, row.id.clone())
}
