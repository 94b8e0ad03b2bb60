//! `setMemory` and `getMemory` (row G24). A memory is kept for somebody or for
//! a space, and only runs for them read it (X15): what one person told an
//! agent never steers what it does for another.

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_protocol::{MemoryId, SpaceId, limits};
use toolyard_store::Tx;
use toolyard_store::memories::{self, Asking, Memory, MemoryScope};

use super::{Action, Given, Refused, Way, agent, seat, text};
use crate::CallContext;

pub(super) const SET: Action = Action {
    name: "setMemory",
    alias: None,
    description: "Remember something for later conversations. One topic holds one memory: setting it again replaces what you wrote before. scope \"user\" (the default) keeps it for the person you work for, \"space\" for everybody in this space. forget removes it.",
    schema: set_schema,
    way: Way::Act(|tx, caller, given| Box::pin(set(tx, caller, given))),
};

pub(super) const GET: Action = Action {
    name: "getMemory",
    alias: None,
    description: "Recall what you remember for the person you work for and for this space: by topic, by words, or all of it, the newest first.",
    schema: get_schema,
    way: Way::Act(|tx, caller, given| Box::pin(get(tx, caller, given))),
};

fn set_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "topic": {"type": "string", "description": "A short name for it."},
            "content": {"type": "string", "description": "What to remember."},
            "scope": {"type": "string", "enum": ["user", "space"]},
            "forget": {"type": "boolean", "description": "Remove what you remember under this topic."}
        },
        "required": ["topic"]
    })
}

fn get_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "topic": {"type": "string", "description": "Only topics with these words."},
            "query": {"type": "string", "description": "Only memories with these words."},
            "limit": {"type": "integer", "minimum": 1, "maximum": limits::MEMORY_PAGE}
        }
    })
}

#[derive(Deserialize)]
struct SetMemory {
    topic: String,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    forget: bool,
}

#[derive(Deserialize)]
struct GetMemory {
    #[serde(default)]
    topic: Option<String>,
    #[serde(default)]
    query: Option<String>,
    #[serde(default)]
    limit: Option<u32>,
}

fn asking<'a>(caller: &'a CallContext, space: Option<&'a SpaceId>) -> Result<Asking<'a>, Refused> {
    Ok(Asking { agent: agent(caller)?, user: caller.trigger.as_ref(), space })
}

/// For whom it is kept. Without a person it is kept for the space.
fn scope(given: Option<&str>, asking: Asking<'_>) -> Result<MemoryScope, Refused> {
    match (given, asking.user, asking.space) {
        (None | Some("user"), Some(_), _) => Ok(MemoryScope::User),
        (Some("user"), None, _) => Err(Refused::tell("This run works for nobody: use scope \"space\"")),
        (None | Some("space"), _, Some(_)) => Ok(MemoryScope::Space),
        (Some("space"), _, None) => Err(Refused::tell("This run is in no space: use scope \"user\"")),
        (None, None, None) => Ok(MemoryScope::Agent),
        (Some(other), _, _) => {
            Err(Refused::tell(format!("scope must be \"user\" or \"space\", not {other:?}")))
        }
    }
}

async fn set(tx: &mut Tx<'_>, caller: &CallContext, given: &Given) -> Result<Value, Refused> {
    let input: SetMemory = given.input()?;
    let seat = seat(tx, caller).await?;
    let (tenant, asking) = (&caller.tenant, asking(caller, seat.as_ref())?);
    let topic = text("topic", &input.topic, limits::TOPIC_CHARS)?;
    let scope = scope(input.scope.as_deref(), asking)?;
    let before = memories::own(tx, tenant, asking, scope, topic).await?;
    if input.forget {
        let Some(memory) = before else {
            return Err(Refused::tell(format!("You remember nothing under {topic:?}")));
        };
        memories::delete(tx, tenant, &memory.id).await?;
        return Ok(json!({"success": true, "action": "forgotten", "id": memory.id, "topic": memory.topic}));
    }
    let content = text("content", input.content.as_deref().unwrap_or_default(), limits::MEMORY_CHARS)?;
    let now = tx.now().await?;
    let (action, memory) = match before {
        Some(mut memory) => {
            content.clone_into(&mut memory.content);
            memory.updated_at = now;
            memories::update(tx, tenant, &memory).await?;
            ("updated", memory)
        }
        None => {
            let most = limits::MEMORIES;
            let count = memories::count(tx, tenant, asking.agent, asking.user).await?;
            if usize::try_from(count).unwrap_or(usize::MAX) >= most {
                return Err(Refused::tell(format!("The limit is {most} memories: forget some first")));
            }
            let memory = Memory {
                id: MemoryId::mint(),
                agent: asking.agent.clone(),
                writer: caller.trigger.clone(),
                space: seat.clone(),
                scope,
                topic: topic.to_owned(),
                content: content.to_owned(),
                created_at: now,
                updated_at: now,
            };
            if memories::insert(tx, tenant, &memory).await? {
                ("created", memory)
            } else {
                // Another run was quicker: the last word counts.
                let there = memories::own(tx, tenant, asking, scope, topic).await?;
                let mut there =
                    there.ok_or_else(|| Refused::tell("The memory is being written. Try again"))?;
                there.content = memory.content;
                there.updated_at = now;
                memories::update(tx, tenant, &there).await?;
                ("updated", there)
            }
        }
    };
    Ok(json!({"success": true, "action": action, "memory": shown(&memory)}))
}

async fn get(tx: &mut Tx<'_>, caller: &CallContext, given: &Given) -> Result<Value, Refused> {
    let input: GetMemory = given.input()?;
    let limit = input.limit.unwrap_or(limits::MEMORY_PAGE).clamp(1, limits::MEMORY_PAGE);
    let part =
        |text: &Option<String>| text.as_deref().map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned);
    let (topic, query) = (part(&input.topic), part(&input.query));
    let seat = seat(tx, caller).await?;
    let asking = asking(caller, seat.as_ref())?;
    let found = memories::readable(tx, &caller.tenant, asking, topic.as_deref(), query.as_deref(), limit);
    let found = found.await?;
    Ok(json!({
        "success": true,
        "memories": found.iter().map(shown).collect::<Vec<_>>(),
        "total": found.len(),
    }))
}

/// A memory says who wrote it, so that a reader can judge it.
fn shown(memory: &Memory) -> Value {
    json!({
        "id": memory.id,
        "topic": memory.topic,
        "content": memory.content,
        "scope": memory.scope.as_str(),
        "writtenFor": memory.writer,
        "updatedAt": memory.updated_at,
    })
}
