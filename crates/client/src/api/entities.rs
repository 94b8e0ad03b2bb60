//! People and agents, for a backend with a secret key.

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_protocol::{EntityId, ErrorCode};

use crate::client::Client;
use crate::error::ClientError;
use crate::wire::Repeat;

/// A human, an agent or a system.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entity {
    pub id: EntityId,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub external_id: Option<String>,
    #[serde(default)]
    pub display_name: Option<String>,
    /// The agent that it plays.
    #[serde(default)]
    pub agent_name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct One {
    entity: Entity,
}

#[derive(Debug, Deserialize)]
struct Page {
    entities: Vec<Entity>,
}

#[derive(Debug, Clone, Copy)]
pub struct Entities<'a>(pub(super) &'a Client);

impl Entities<'_> {
    pub async fn get(&self, id: &EntityId) -> Result<Entity, ClientError> {
        let one: One = self.0.get(self.0.below(&format!("/api/entities/{id}"))).await?;
        Ok(one.entity)
    }

    /// The entity that your own name stands for.
    pub async fn by_external_id(&self, external_id: &str) -> Result<Option<Entity>, ClientError> {
        let target = self.0.below("/api/entities").asking("externalId", external_id);
        let page: Page = self.0.get(target).await?;
        Ok(page.entities.into_iter().find(|entity| entity.external_id.as_deref() == Some(external_id)))
    }

    /// A person by your own name for it, made if there is none.
    pub async fn person(&self, external_id: &str, name: &str) -> Result<Entity, ClientError> {
        let body = json!({ "type": "human", "externalId": external_id, "displayName": name });
        self.find_or_make(external_id, "/api/entities", &body).await
    }

    /// An entity that plays an agent, made if there is none.
    pub async fn agent(&self, external_id: &str, agent: &str) -> Result<Entity, ClientError> {
        let body = json!({ "agentId": agent, "externalId": external_id, "displayName": agent });
        self.find_or_make(external_id, "/api/entities/agent", &body).await
    }

    async fn find_or_make(&self, external_id: &str, path: &str, body: &Value) -> Result<Entity, ClientError> {
        if let Some(found) = self.by_external_id(external_id).await? {
            return Ok(found);
        }
        match self.0.post::<One>(path, body, Repeat::Keyed).await {
            Ok(made) => Ok(made.entity),
            // Somebody else made it in between.
            Err(error) if error.is(ErrorCode::Conflict) => {
                self.by_external_id(external_id).await?.ok_or(error)
            }
            Err(error) => Err(error),
        }
    }
}
