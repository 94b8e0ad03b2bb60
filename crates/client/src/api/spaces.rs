//! Conversations: spaces, their members and their messages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolyard_protocol::{EntityId, MessageId, RunId, SpaceId};

use crate::client::Client;
use crate::error::ClientError;
use crate::stream::EventStream;
use crate::wire::Repeat;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Space {
    pub id: SpaceId,
    #[serde(default)]
    pub name: Option<String>,
    /// The newest position: where a stream continues from now on.
    #[serde(default)]
    pub last_seq: i64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    pub entity_id: EntityId,
    /// `human`, `agent` or `system`.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub role: Option<String>,
    #[serde(default)]
    pub display_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub id: MessageId,
    pub seq: i64,
    pub role: String,
    #[serde(default)]
    pub entity_id: Option<EntityId>,
    #[serde(default)]
    pub content: String,
    #[serde(default)]
    pub parts: Vec<Value>,
}

/// A message to post. `more` holds fields of the body that have no name here.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewMessage {
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<Value>>,
    /// Who speaks: needed with a secret key, ignored with a user's token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_id: Option<EntityId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_tool_categories: Option<Vec<String>>,
    /// Tools that the client brings. Missing if it brings none (row H27).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_tools: Option<Vec<Value>>,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl NewMessage {
    pub fn text(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }
}

/// What a message did.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Posted {
    pub message: Message,
    #[serde(default)]
    pub runs: Vec<Reached>,
}

/// An agent that a message reached.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reached {
    #[serde(default)]
    pub run_id: Option<RunId>,
    pub agent_entity_id: EntityId,
    /// `started`, `queued`, `added`, `interrupted`, `superseded`, `rejected`
    /// or `agent_missing`.
    pub disposition: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct One {
    smart_space: Space,
}

#[derive(Debug, Deserialize)]
struct Members {
    members: Vec<Member>,
}

#[derive(Debug, Deserialize)]
struct Messages {
    messages: Vec<Message>,
}

#[derive(Debug, Clone, Copy)]
pub struct Spaces<'a>(pub(super) &'a Client);

impl Spaces<'_> {
    pub async fn create(&self, name: &str) -> Result<Space, ClientError> {
        let one: One = self.0.post("/api/smart-spaces", &json!({ "name": name }), Repeat::Keyed).await?;
        Ok(one.smart_space)
    }

    pub async fn get(&self, id: &SpaceId) -> Result<Space, ClientError> {
        let one: One = self.0.get(self.0.below(&format!("/api/smart-spaces/{id}"))).await?;
        Ok(one.smart_space)
    }

    pub async fn add_member(&self, id: &SpaceId, entity: &EntityId) -> Result<(), ClientError> {
        let path = format!("/api/smart-spaces/{id}/members");
        let _: Value = self.0.post(&path, &json!({ "entityId": entity }), Repeat::Keyed).await?;
        Ok(())
    }

    pub async fn members(&self, id: &SpaceId) -> Result<Vec<Member>, ClientError> {
        let found: Members = self.0.get(self.0.below(&format!("/api/smart-spaces/{id}/members"))).await?;
        Ok(found.members)
    }

    /// The newest messages, at most `limit`, oldest first.
    pub async fn messages(&self, id: &SpaceId, limit: u32) -> Result<Vec<Message>, ClientError> {
        let target = self.0.below(&format!("/api/smart-spaces/{id}/messages"));
        let target = target.asking("limit", &limit.to_string()).asking("beforeSeq", &i64::MAX.to_string());
        let page: Messages = self.0.get(target).await?;
        Ok(page.messages)
    }

    /// Posts a message as it is: no hooks, no tools of plugins. See
    /// [`Client::chat`] for both.
    pub async fn post(&self, id: &SpaceId, message: &NewMessage) -> Result<Posted, ClientError> {
        let body = serde_json::to_value(message).map_err(|e| ClientError::Unreadable(e.to_string()))?;
        self.0.post(&format!("/api/smart-spaces/{id}/messages"), &body, Repeat::Keyed).await
    }

    /// Follows everything in a space after a position. It does not end.
    pub fn stream(&self, id: &SpaceId, after: i64) -> EventStream {
        EventStream::new(self.0.clone(), format!("/api/smart-spaces/{id}/stream"), Some(after))
    }
}
