//! `getSpaceContext` and `updateSpaceMetadata` (rows G28, G29): the space that
//! the run is in, and no other.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_protocol::{SpaceId, limits};
use toolyard_store::spaces::{self, Space};
use toolyard_store::{Tx, entities};

use super::{Action, Given, Refused, Way, agent, seat};
use crate::CallContext;

pub(super) const CONTEXT: Action = Action {
    name: "getSpaceContext",
    alias: None,
    description: "Read the name, description and metadata of this space, and who its members are.",
    schema: none,
    way: Way::Act(|tx, caller, _| Box::pin(context(tx, caller))),
};

pub(super) const UPDATE: Action = Action {
    name: "updateSpaceMetadata",
    alias: None,
    description: "Change the metadata of this space. Fields that you name are set, null removes one, the others stay.",
    schema: update_schema,
    way: Way::Act(|tx, caller, given| Box::pin(update(tx, caller, given))),
};

fn none() -> Value {
    json!({"type": "object", "properties": {}})
}

fn update_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "description": "Fields to set; null removes a field."}
        },
        "required": ["metadata"]
    })
}

#[derive(Deserialize)]
struct UpdateMetadata {
    metadata: Map<String, Value>,
}

/// The space that the caller has a seat in.
async fn own_space(tx: &mut Tx<'_>, caller: &CallContext) -> Result<(SpaceId, Space), Refused> {
    agent(caller)?;
    if caller.space.is_none() {
        return Err(Refused::tell("This run is in no space"));
    }
    let id = seat(tx, caller).await?;
    let id = id.ok_or_else(|| Refused::tell("Entity is not a member of this SmartSpace"))?;
    let space = spaces::get(tx, &caller.tenant, &id).await?;
    space.map(|space| (id, space)).ok_or_else(|| Refused::tell("SmartSpace not found"))
}

async fn context(tx: &mut Tx<'_>, caller: &CallContext) -> Result<Value, Refused> {
    let (id, space) = own_space(tx, caller).await?;
    let mut members = Vec::new();
    for member in spaces::members(tx, &caller.tenant, &id).await? {
        let entity = entities::get(tx, &caller.tenant, &member.entity).await?;
        members.push(json!({
            "entityId": member.entity,
            "type": entity.as_ref().map(|e| e.kind.as_str()),
            "displayName": entity.as_ref().and_then(|e| e.display_name.clone()),
            "role": member.role,
            "isYou": Some(&member.entity) == caller.agent_entity.as_ref(),
            "isUser": Some(&member.entity) == caller.trigger.as_ref(),
        }));
    }
    Ok(json!({
        "success": true,
        "smartSpace": {
            "id": id,
            "name": space.name,
            "description": space.description,
            "metadata": space.metadata.unwrap_or_else(|| json!({})),
        },
        "members": members,
    }))
}

async fn update(tx: &mut Tx<'_>, caller: &CallContext, given: &Given) -> Result<Value, Refused> {
    let input: UpdateMetadata = given.input()?;
    let (id, _) = own_space(tx, caller).await?;
    // Held, so that two changes at once both stay.
    spaces::lock(tx, &caller.tenant, &id).await?;
    let space = spaces::get(tx, &caller.tenant, &id).await?;
    let mut space = space.ok_or_else(|| Refused::tell("SmartSpace not found"))?;
    let mut merged = match space.metadata.take() {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    for (name, value) in input.metadata {
        if value.is_null() {
            merged.remove(&name);
        } else {
            merged.insert(name, value);
        }
    }
    let merged = Value::Object(merged);
    let (bytes, most) = (merged.to_string().len(), limits::METADATA_BYTES);
    if bytes > most {
        return Err(Refused::tell(format!("The metadata would have {bytes} bytes: the limit is {most}")));
    }
    space.metadata = Some(merged.clone());
    spaces::update(tx, &caller.tenant, &space).await?;
    Ok(json!({"success": true, "metadata": merged}))
}
