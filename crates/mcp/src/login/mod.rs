//! Logins at remote servers, one for each user. Any process may finish what
//! another began: all of it is in the store.

mod http;
mod records;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, OAuthClientConfig, StoredCredentials,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use toolyard_egress::Door;

use self::http::DoorOauth;
use self::records::Records;
use crate::settings::{OauthClient, Remote, Share};
use crate::token_store::{Record, TokenStore};
use crate::wire::http::Bearer;

/// A login that has begun. Send the user to the address.
#[derive(Clone)]
pub struct Login {
    pub url: String,
    /// Comes back with the user; keep who began it under this.
    pub state: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Login(…)")
    }
}

/// How logins are done.
#[derive(Clone)]
pub struct Logins {
    pub store: Arc<dyn TokenStore>,
    /// The gateway's own address that users come back to.
    pub redirect_uri: String,
    /// The https address of the gateway's client metadata document, if it has one.
    pub client_metadata_url: Option<String>,
}

impl std::fmt::Debug for Logins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logins").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

/// How the authorization server knows us.
#[derive(Serialize, Deserialize)]
struct Known {
    client_id: String,
    client_secret: Option<String>,
    redirect_uri: String,
    scopes: Vec<String>,
    challenge: Option<String>,
    /// The authorization server that knows us so. Another one must not see it.
    issuer: Option<String>,
}

impl Known {
    fn config(&self) -> OAuthClientConfig {
        let config = OAuthClientConfig::new(&self.client_id, &self.redirect_uri)
            .with_scopes(self.scopes.clone())
            .with_application_type(APPLICATION);
        match &self.client_secret {
            Some(secret) => config.with_client_secret(secret),
            None => config,
        }
    }
}

/// A gateway is reached by a web address.
const APPLICATION: &str = "web";
const CLIENT_NAME: &str = "Toolyard";

/// One user at one server.
pub(crate) struct Account {
    records: Records,
    door: Door,
    address: String,
    client: Option<OauthClient>,
    logins: Logins,
    desk: Mutex<Option<AuthorizationManager>>,
}

fn told(error: AuthError) -> String {
    toolyard_schema::clean(&error.to_string(), 300).text
}

impl Account {
    pub(crate) fn new(logins: &Logins, owner: Share, remote: &Remote, door: Door) -> Self {
        let address = remote.target.exposed();
        let address = address.split(['?', '#']).next().unwrap_or(address).to_owned();
        let records = Records { store: Arc::clone(&logins.store), owner, server: address.clone() };
        let (client, logins) = (remote.client.clone(), logins.clone());
        Self { records, door, address, client, logins, desk: Mutex::default() }
    }

    async fn desk(&self) -> Result<AuthorizationManager, String> {
        let http = Arc::new(DoorOauth { door: self.door.clone() });
        let mut desk =
            AuthorizationManager::new_with_oauth_http_client(&*self.address, http).await.map_err(told)?;
        desk.set_credential_store(self.records.clone());
        desk.set_state_store(self.records.clone());
        Ok(desk)
    }

    /// Begins a login. `challenge` is what the server said with its refusal.
    pub(crate) async fn begin(&self, challenge: Option<String>) -> Result<Login, String> {
        let mut desk = self.desk().await?;
        let found = desk.resolve_metadata_from_challenge(challenge.as_deref()).await.map_err(told)?;
        let by_document = found.metadata.additional_fields.get("client_id_metadata_document_supported")
            == Some(&serde_json::Value::Bool(true));
        let issuer = found.metadata.issuer.clone();
        desk.set_metadata(found.metadata);
        self.forget_foreign(issuer.as_deref()).await?;
        let scopes = self.scopes(&desk).await?;
        let asked: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let redirect_uri = self.logins.redirect_uri.clone();
        // One registration serves until the user logs out: a second one would
        // make the first login's way back useless.
        let before: Option<Known> = self.records.read(Record::Client).await?;
        let before = before.filter(|known| known.redirect_uri == redirect_uri);
        let (client_id, client_secret) = match (&self.client, &self.logins.client_metadata_url, before) {
            (Some(client), _, _) => {
                (client.id.clone(), client.secret.as_ref().map(|s| s.expose_secret().to_owned()))
            }
            (None, Some(url), _) if by_document => (url.clone(), None),
            (None, _, Some(known)) => (known.client_id, known.client_secret),
            (None, _, None) => {
                let made = desk.register_client(CLIENT_NAME, &redirect_uri, &asked).await.map_err(told)?;
                (made.client_id, made.client_secret)
            }
        };
        let known =
            Known { client_id, client_secret, redirect_uri, scopes: scopes.clone(), challenge, issuer };
        self.records.write(Record::Client, &known).await?;
        desk.configure_client(known.config()).map_err(told)?;
        let url = desk.get_authorization_url(&asked).await.map_err(told)?;
        let state = url::Url::parse(&url)
            .ok()
            .and_then(|url| {
                url.query_pairs().find(|(key, _)| key == "state").map(|(_, value)| value.into_owned())
            })
            .ok_or("the authorization server's address cannot be used")?;
        Ok(Login { url, state })
    }

    /// The operator's scopes, or what the server asks for, and never less than
    /// what the user has granted before.
    async fn scopes(&self, desk: &AuthorizationManager) -> Result<Vec<String>, String> {
        let mut scopes = match &self.client {
            Some(client) if !client.scopes.is_empty() => client.scopes.clone(),
            Some(_) | None => desk.select_initial_scopes(&[]).await,
        };
        let before: Option<StoredCredentials> = self.records.read(Record::Tokens).await?;
        for scope in before.into_iter().flat_map(|tokens| tokens.granted_scopes) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        Ok(scopes)
    }

    /// Finishes a login with the address that the user came back to.
    pub(crate) async fn finish(&self, callback: &str) -> Result<(), String> {
        let callback = AuthorizationCallback::from_redirect_url(callback).map_err(told)?;
        let desk = self.open_desk().await?.ok_or("no login was begun")?;
        desk.exchange_code_for_token_with_issuer(
            &callback.code,
            &callback.csrf_token,
            callback.issuer.as_deref(),
        )
        .await
        .map_err(told)?;
        *self.desk.lock().await = Some(desk);
        Ok(())
    }

    /// A desk that can talk to the authorization server, if we are known there.
    async fn open_desk(&self) -> Result<Option<AuthorizationManager>, String> {
        let Some(known) = self.records.read::<Known>(Record::Client).await? else { return Ok(None) };
        let mut desk = self.desk().await?;
        let found = desk.resolve_metadata_from_challenge(known.challenge.as_deref()).await.map_err(told)?;
        if found.metadata.issuer != known.issuer {
            // The server has moved to another authorization server.
            self.forget_foreign(found.metadata.issuer.as_deref()).await?;
            return Ok(None);
        }
        desk.set_metadata(found.metadata);
        desk.configure_client(known.config()).map_err(told)?;
        Ok(Some(desk))
    }

    /// Forgets what belongs to an authorization server other than `issuer`.
    async fn forget_foreign(&self, issuer: Option<&str>) -> Result<(), String> {
        let known: Option<Known> = self.records.read(Record::Client).await?;
        if known.is_some_and(|known| known.issuer.as_deref() != issuer) {
            self.records.erase(Record::Client).await?;
            self.records.erase(Record::Tokens).await?;
        }
        Ok(())
    }

    /// Forgets the user's tokens, and how we are known there.
    pub(crate) async fn forget(&self) -> Result<(), String> {
        *self.desk.lock().await = None;
        self.records.erase(Record::Tokens).await?;
        self.records.erase(Record::Client).await
    }

    /// Does the user have tokens here?
    pub(crate) async fn is_known(&self) -> Result<bool, String> {
        Ok(self.records.read::<StoredCredentials>(Record::Tokens).await?.is_some())
    }

    async fn current(&self) -> Result<Option<SecretString>, String> {
        if self.records.read::<StoredCredentials>(Record::Tokens).await?.is_none() {
            return Ok(None);
        }
        let mut held = self.desk.lock().await;
        if held.is_none() {
            // Enough as long as the token is fresh: it costs no request.
            match self.desk().await?.get_access_token().await {
                Ok(token) => return Ok(Some(token.into())),
                Err(AuthError::AuthorizationRequired) => return Ok(None),
                Err(_) => *held = self.open_desk().await?,
            }
        }
        let Some(desk) = held.as_ref() else { return Ok(None) };
        match desk.get_access_token().await {
            Ok(token) => Ok(Some(token.into())),
            Err(AuthError::AuthorizationRequired) => Ok(None),
            Err(e) => Err(told(e)),
        }
    }

    async fn refreshed(&self) -> Result<Option<SecretString>, String> {
        let mut held = self.desk.lock().await;
        if held.is_none() {
            *held = self.open_desk().await?;
        }
        let Some(desk) = held.as_ref() else { return Ok(None) };
        if desk.refresh_token().await.is_err() {
            return Ok(None);
        }
        Ok(desk.get_access_token().await.ok().map(SecretString::from))
    }
}

impl Bearer for Account {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, String>> {
        self.current().boxed()
    }
    fn renewed(&self) -> BoxFuture<'_, Result<Option<SecretString>, String>> {
        self.refreshed().boxed()
    }
}
