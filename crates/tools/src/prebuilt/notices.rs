//! `sendNotification` (row G27): the gateway's inbox, and parcels for e-mail
//! and webhooks. Everything is written here and delivered after the commit.

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_protocol::agent::execution::Channel;
use toolyard_protocol::{EntityId, NoticeId, limits};
use toolyard_store::inbox::{self, Notice};
use toolyard_store::webhooks::{self, Fact};
use toolyard_store::{Tx, entities, outbox, spaces};

use super::{Action, Given, Refused, Way, seat, text};
use crate::CallContext;

pub(super) const SEND: Action = Action {
    name: "sendNotification",
    alias: None,
    description: "Tell the user something outside of this conversation. Without entityId it is for the person you work for; otherwise for a member of this space.",
    schema,
    way: Way::Act(|tx, caller, given| Box::pin(send(tx, caller, given))),
};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "message": {"type": "string"},
            "level": {"type": "string", "enum": ["info", "warning", "urgent"]},
            "entityId": {"type": "string", "description": "A member of this space."},
            "channels": {"type": "array", "items": {"type": "string", "enum": ["inbox", "email", "webhook"]}, "description": "Some of the channels that this tool has. All of them if missing."}
        },
        "required": ["title", "message"]
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendNotification {
    title: String,
    message: String,
    #[serde(default)]
    level: Option<String>,
    #[serde(default)]
    entity_id: Option<String>,
    #[serde(default)]
    channels: Option<Vec<Channel>>,
}

const LEVELS: [&str; 3] = ["info", "warning", "urgent"];

async fn send(tx: &mut Tx<'_>, caller: &CallContext, given: &Given) -> Result<Value, Refused> {
    let input: SendNotification = given.input()?;
    let title = text("title", &input.title, limits::NOTICE_TITLE_CHARS)?;
    let message = text("message", &input.message, limits::NOTICE_CHARS)?;
    let level = input.level.as_deref().unwrap_or("info");
    if !LEVELS.contains(&level) {
        return Err(Refused::tell(format!("level must be one of {}", LEVELS.join(", "))));
    }
    let had = given.options.channels.clone().unwrap_or_else(|| vec![Channel::Inbox]);
    let channels = input.channels.unwrap_or_else(|| had.clone());
    if let Some(other) = channels.iter().find(|channel| !had.contains(channel)) {
        return Err(Refused::tell(format!("This tool has no channel {}", other.as_str())));
    }
    let to = recipient(tx, caller, input.entity_id.as_deref()).await?;
    let notice = Notice {
        id: NoticeId::of_call(&caller.call),
        entity: to.clone(),
        title: title.to_owned(),
        body: message.to_owned(),
        level: level.to_owned(),
        data: None,
        agent: Some(caller.agent.clone()),
        space: caller.space.clone(),
        run: Some(caller.run.clone()),
        read_at: None,
        created_at: tx.now().await?,
    };
    let mut sent = Vec::new();
    for channel in channels {
        match channel {
            Channel::Inbox => inbox::put(tx, &caller.tenant, &notice).await?,
            Channel::Email => email(tx, caller, &notice).await?,
            Channel::Webhook => webhook(tx, caller, &notice).await?,
        }
        sent.push(channel.as_str());
    }
    Ok(json!({"success": true, "id": notice.id, "entityId": to, "channels": sent}))
}

/// Whom it is for: the one the run works for, or a member of its space.
async fn recipient(tx: &mut Tx<'_>, caller: &CallContext, named: Option<&str>) -> Result<EntityId, Refused> {
    let missing = |id: &str| Refused::tell(format!("Entity {id} is not a member of this space"));
    match (named, &caller.trigger) {
        (None, Some(user)) => Ok(user.clone()),
        (None, None) => Err(Refused::tell("This run works for nobody: name an entityId")),
        (Some(id), Some(user)) if user.as_str() == id => Ok(user.clone()),
        (Some(id), _) => {
            let entity = EntityId::parse(id).map_err(|_| missing(id))?;
            let space = seat(tx, caller).await?.ok_or_else(|| missing(id))?;
            let role = spaces::role(tx, &caller.tenant, &space, &entity).await?;
            role.map(|_| entity).ok_or_else(|| missing(id))
        }
    }
}

async fn email(tx: &mut Tx<'_>, caller: &CallContext, notice: &Notice) -> Result<(), Refused> {
    let entity = entities::get(tx, &caller.tenant, &notice.entity).await?;
    let metadata = entity.and_then(|e| e.metadata).unwrap_or_default();
    let address = metadata.get("email").and_then(Value::as_str).map(str::to_owned);
    let address = address.filter(|a| a.contains('@') && !a.contains(['\r', '\n']));
    let address = address.ok_or_else(|| {
        Refused::tell(format!("Entity {} has no e-mail address (metadata.email)", notice.entity))
    })?;
    let payload = json!({"to": address, "subject": notice.title, "text": notice.body});
    outbox::put(tx, &caller.tenant, &format!("{}.email", notice.id), "email", &payload).await?;
    Ok(())
}

async fn webhook(tx: &mut Tx<'_>, caller: &CallContext, notice: &Notice) -> Result<(), Refused> {
    let payload = json!({
        "type": "notification",
        "createdAt": notice.created_at,
        "data": {
            "id": notice.id,
            "entityId": notice.entity,
            "title": notice.title,
            "message": notice.body,
            "level": notice.level,
            "agent": caller.agent,
            "runId": caller.run,
            "smartSpaceId": caller.space,
        },
    });
    Ok(webhooks::announce(tx, &caller.tenant, Fact::Notification, notice.id.as_str(), &payload).await?)
}
