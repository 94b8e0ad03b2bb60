//! Programs that execute tools say who they are.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_protocol::{ClientId, EntityId, ErrorCode, Timestamp, limits};
use toolyard_store::clients::{self, Client};
use toolyard_store::{StoreError, presences};

use super::call::Call;
use super::{answer, page};
use crate::http::Refusal;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewClient {
    /// Its own stable id; missing gets a new one.
    #[serde(default, alias = "clientKey")]
    client_id: Option<ClientId>,
    /// `browser`, `node`, `robot`, …
    #[serde(default)]
    client_type: Option<String>,
    #[serde(default)]
    name: Option<String>,
    /// The tools it can execute, or anything else it wants known.
    #[serde(default)]
    capabilities: Option<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Registered {
    client_id: ClientId,
    last_seen_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientView {
    client_id: ClientId,
    entity_id: Option<EntityId>,
    client_type: String,
    name: Option<String>,
    capabilities: Option<Value>,
    last_seen_at: Timestamp,
    /// Its socket is open, on some node.
    connected: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ClientList {
    clients: Vec<ClientView>,
}

/// Registers a client, or renews it. An id belongs to the entity that took it.
pub(super) async fn register(call: Call) -> Result<Response, Refusal> {
    let new: NewClient = call.json()?;
    let kind = answer::label("clientType", new.client_type)?.unwrap_or_else(|| "unknown".to_owned());
    let name = answer::label("name", new.name)?;
    let capabilities = new.capabilities;
    answer::within("capabilities", capabilities.as_ref(), limits::METADATA_BYTES)?;
    let id = new.client_id.unwrap_or_else(ClientId::mint);
    let (tenant, entity) = (call.tenant().clone(), call.principal.entity.clone());
    let answered = id.clone();
    let seen: Option<Timestamp> = call
        .store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let last_seen = tx.now().await?;
                let client = Client { id, entity, kind, name, capabilities, last_seen };
                Ok(clients::put(tx, &tenant, &client).await?.then_some(last_seen))
            })
        })
        .await?;
    match seen {
        Some(last_seen_at) => answer::json(200, &Registered { client_id: answered, last_seen_at }),
        None => Err(Refusal::new(ErrorCode::Conflict, "clientId: belongs to another entity")),
    }
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let limit = page::limit(&call.query)?;
    let tenant = call.tenant().clone();
    let (rows, live): (Vec<Client>, Vec<ClientId>) = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                Ok((clients::list(tx, &tenant, limit).await?, presences::connected(tx, &tenant).await?))
            })
        })
        .await?;
    let view = |client: Client| ClientView {
        connected: live.contains(&client.id),
        client_id: client.id,
        entity_id: client.entity,
        client_type: client.kind,
        name: client.name,
        capabilities: client.capabilities,
        last_seen_at: client.last_seen,
    };
    answer::json(200, &ClientList { clients: rows.into_iter().map(view).collect() })
}
