//! rmcp's two stores on top of ours.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, StateStore, StoredAuthorizationState,
    StoredCredentials,
};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::settings::Share;
use crate::token_store::{Record, TokenKey, TokenStore};

/// The records of one user at one server.
#[derive(Clone)]
pub(super) struct Records {
    pub(super) store: Arc<dyn TokenStore>,
    pub(super) owner: Share,
    pub(super) server: String,
}

fn broken(why: String) -> AuthError {
    AuthError::CredentialStoreError(why)
}

impl Records {
    fn key(&self, record: Record) -> TokenKey {
        TokenKey { owner: self.owner.clone(), server: self.server.clone(), record }
    }
    pub(super) async fn read<T: DeserializeOwned>(&self, record: Record) -> Result<Option<T>, String> {
        let text = self.store.load(&self.key(record)).await?;
        // A record that cannot be read is as good as none: the user logs in again.
        Ok(text.and_then(|text| serde_json::from_str(text.expose_secret()).ok()))
    }
    pub(super) async fn write<T: Serialize>(&self, record: Record, value: &T) -> Result<(), String> {
        let text = serde_json::to_string(value).map_err(|e| e.to_string())?;
        self.store.save(&self.key(record), SecretString::from(text)).await
    }
    pub(super) async fn erase(&self, record: Record) -> Result<(), String> {
        self.store.remove(&self.key(record)).await
    }
}

#[async_trait]
impl CredentialStore for Records {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        self.read(Record::Tokens).await.map_err(broken)
    }
    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.write(Record::Tokens, &credentials).await.map_err(broken)
    }
    async fn clear(&self) -> Result<(), AuthError> {
        self.erase(Record::Tokens).await.map_err(broken)
    }
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let guard = self.store.lock(&self.key(Record::Tokens)).await.map_err(broken)?;
        Ok(guard.map(CredentialRefreshGuard::new))
    }
}

#[async_trait]
impl StateStore for Records {
    async fn save(&self, state: &str, value: StoredAuthorizationState) -> Result<(), AuthError> {
        self.write(Record::Login(state.to_owned()), &value).await.map_err(broken)
    }
    async fn load(&self, state: &str) -> Result<Option<StoredAuthorizationState>, AuthError> {
        self.read(Record::Login(state.to_owned())).await.map_err(broken)
    }
    async fn delete(&self, state: &str) -> Result<(), AuthError> {
        self.erase(Record::Login(state.to_owned())).await.map_err(broken)
    }
}
