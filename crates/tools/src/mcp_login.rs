//! Users who log in at MCP servers: begin, come back, log out. Who began a
//! login is in the store under a hash of its state, so any node finishes it,
//! once, for the one who began it.

use serde_json::{Value, json};
use toolyard_mcp::{Launch, Owner, ServerSettings};
use toolyard_protocol::agent::McpServer;
use toolyard_protocol::{AgentName, EntityId, Hash, TenantId, Timestamp, limits};
use toolyard_store::mcp_logins::{self, Login};
use toolyard_store::{Store, StoreError};

use crate::Asking;
use crate::mcp::McpTools;

/// A login that has begun.
#[derive(Debug, Clone)]
pub struct Begun {
    /// Where the user goes.
    pub url: String,
    pub expires_at: Timestamp,
}

/// A login that is done.
#[derive(Debug, Clone)]
pub struct LoggedIn {
    pub tenant: TenantId,
    pub entity: EntityId,
    pub server: String,
    /// What waits for it carries this.
    pub account: Hash,
}

/// Why a login does not go on. The texts are for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoLogin {
    #[error("This login is not known, was used before, or is too old. Begin a new one.")]
    Unknown,
    #[error("{0}")]
    Refused(String),
}

/// Which login a server takes, without its address.
pub(crate) fn account(settings: &ServerSettings) -> Option<Hash> {
    let Launch::Http(remote) = &settings.launch else { return None };
    let address = remote.target.exposed();
    Some(Hash::of(address.split(['?', '#']).next().unwrap_or(address).as_bytes()))
}

fn away(_: StoreError) -> NoLogin {
    NoLogin::Refused("Logins cannot be read or kept at the moment.".to_owned())
}

impl McpTools {
    /// Begins a login of a user at a server of an agent, or of the operator.
    pub async fn begin_login(
        &self,
        tenant: &TenantId,
        entity: &EntityId,
        server: &McpServer,
    ) -> Result<Begun, NoLogin> {
        let settings = self.settings(tenant, server).await.map_err(NoLogin::Refused)?;
        let owner = Owner { tenant: tenant.clone(), entity: Some(entity.clone()) };
        let login = self.host.login(&owner, &settings).await.map_err(NoLogin::Refused)?;
        let state = Hash::of(login.state.as_bytes());
        let text = serde_json::to_string(server).map_err(|e| NoLogin::Refused(e.to_string()))?;
        let (tenant, entity) = (tenant.clone(), entity.clone());
        let expires_at = self
            .store
            .write::<_, StoreError, _>(move |tx| {
                Box::pin(async move {
                    let expires_at = tx.now().await?.plus_millis(limits::MCP_LOGIN_MS);
                    let login = Login { tenant, entity, server: text, expires_at };
                    mcp_logins::insert(tx, &state, &login).await?;
                    Ok(expires_at)
                })
            })
            .await
            .map_err(away)?;
        Ok(Begun { url: login.url, expires_at })
    }

    /// Finishes the login that `state` names, with the whole address that the
    /// user came back to.
    pub async fn finish_login(&self, state: &str, callback: &str) -> Result<LoggedIn, NoLogin> {
        let Login { tenant, entity, server, .. } = take(&self.store, state).await?.ok_or(NoLogin::Unknown)?;
        let server: McpServer = serde_json::from_str(&server).map_err(|_| NoLogin::Unknown)?;
        let settings = self.settings(&tenant, &server).await.map_err(NoLogin::Refused)?;
        let owner = Owner { tenant: tenant.clone(), entity: Some(entity.clone()) };
        self.host.finish_login(&owner, &settings, callback).await.map_err(NoLogin::Refused)?;
        let account = account(&settings).ok_or(NoLogin::Unknown)?;
        Ok(LoggedIn { tenant, entity, server: server.name, account })
    }

    /// Forgets a login that the user did not finish.
    pub async fn drop_login(&self, state: &str) -> Result<(), NoLogin> {
        take(&self.store, state).await?.map(|_| ()).ok_or(NoLogin::Unknown)
    }

    pub async fn log_out(
        &self,
        tenant: &TenantId,
        entity: &EntityId,
        server: &McpServer,
    ) -> Result<(), NoLogin> {
        let settings = self.settings(tenant, server).await.map_err(NoLogin::Refused)?;
        let owner = Owner { tenant: tenant.clone(), entity: Some(entity.clone()) };
        self.host.log_out(&owner, &settings).await.map_err(NoLogin::Refused)
    }

    pub async fn is_logged_in(
        &self,
        tenant: &TenantId,
        entity: &EntityId,
        server: &McpServer,
    ) -> Result<bool, NoLogin> {
        let settings = self.settings(tenant, server).await.map_err(NoLogin::Refused)?;
        let owner = Owner { tenant: tenant.clone(), entity: Some(entity.clone()) };
        self.host.is_logged_in(&owner, &settings).await.map_err(NoLogin::Refused)
    }

    /// What a call asks the user for when its server wants a login.
    pub(crate) async fn ask_login(
        &self,
        owner: &Owner,
        agent: &AgentName,
        server: &McpServer,
        settings: &ServerSettings,
        why: &str,
    ) -> Option<Asking> {
        let (entity, account) = (owner.entity.as_ref()?, account(settings)?);
        let mut payload: Value = json!({
            "server": server.name,
            "message": format!("{} wants a login", server.name),
            "why": why,
            "agentId": agent,
            "loginPath": format!("/api/mcp/servers/{}/login", server.name),
        });
        match self.begin_login(&owner.tenant, entity, server).await {
            Ok(begun) => {
                payload["loginUrl"] = json!(begun.url);
                payload["loginExpiresAt"] = json!(begun.expires_at);
            }
            Err(why) => payload["loginError"] = json!(why.to_string()),
        }
        Some(Asking::Credential { payload, state: json!({ "account": account }) })
    }
}

/// A read first: whoever guesses states costs no write.
async fn take(store: &Store, state: &str) -> Result<Option<Login>, NoLogin> {
    let (asked, taken) = (Hash::of(state.as_bytes()), Hash::of(state.as_bytes()));
    let open = store
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { mcp_logins::is_open(tx, &asked).await }))
        .await
        .map_err(away)?;
    if !open {
        return Ok(None);
    }
    store
        .write::<_, StoreError, _>(move |tx| Box::pin(async move { mcp_logins::take(tx, &taken).await }))
        .await
        .map_err(away)
}
