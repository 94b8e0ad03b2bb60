//! Who calls. A request becomes a [`Principal`] here, once, or it is refused
//! with the documented text.
//!
//! Keys are compared by hash. A stored key is looked up at most once a second,
//! so a revocation holds within a second.

mod cursor;
mod first_start;
mod jwks;
mod jwt;
mod master_key;
mod operator;
mod signed;
mod start_code;

use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use moka::sync::Cache;
use toolyard_protocol::{EntityId, ErrorCode, Hash, KeyId, KeyKind, Principal, TenantId};
use toolyard_store::entities::{self, Entity, EntityKind};
use toolyard_store::keys::{self, Key};
use toolyard_store::{Store, StoreError};

pub(crate) use cursor::Cursors;
pub(crate) use first_start::{KeyFileError, Made, ensure_keys, stored_secret, write_private};
pub(crate) use jwt::JwtCheck;
pub(crate) use master_key::ensure_master_key;
pub(crate) use operator::{OperatorKeys, new_key, new_signing_key};
pub(crate) use signed::UrlSigner;
pub(crate) use start_code::StartCode;

use self::jwt::BadToken;
use crate::config::{AuthMode, Config};
use crate::http::Refusal;

/// How long a looked-up key or user is believed.
const BELIEVED: Duration = Duration::from_millis(900);
const REMEMBERED: u64 = 10_000;

/// Where a caller shows a key or a token.
const SHOWN: [HeaderName; 3] =
    [AUTHORIZATION, HeaderName::from_static("x-public-key"), HeaderName::from_static("x-secret-key")];

/// Which keys a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Secret,
    Either,
}

#[derive(Debug)]
pub(crate) struct Auth {
    mode: AuthMode,
    operator: OperatorKeys,
    jwt: JwtCheck,
    auto_entities: bool,
    keys: Cache<Hash, Option<Key>>,
    users: Cache<(TenantId, String), EntityId>,
}

impl Auth {
    pub(crate) fn new(config: &Config, operator: OperatorKeys, jwt: JwtCheck) -> Self {
        Self {
            mode: config.auth,
            operator,
            jwt,
            auto_entities: config.auto_entities(),
            keys: Cache::builder().max_capacity(REMEMBERED).time_to_live(BELIEVED).build(),
            users: Cache::builder().max_capacity(REMEMBERED).time_to_live(BELIEVED).build(),
        }
    }

    /// Keys of the environment and of `auth = "off"` act for the operator: they
    /// may make keys for any tenant.
    pub(crate) fn is_operator(principal: &Principal) -> bool {
        principal.kind == KeyKind::Secret && operator::is_operator(&principal.key)
    }

    /// The headers by which `principal` knows a caller, for whoever asks again
    /// later. They are copies: those of a request keep the whole buffer that it
    /// was read into.
    pub(crate) fn shown(headers: &HeaderMap) -> HeaderMap {
        let mut kept = HeaderMap::with_capacity(SHOWN.len());
        for name in SHOWN {
            let copy = headers.get(&name).and_then(|value| HeaderValue::from_bytes(value.as_bytes()).ok());
            if let Some(mut value) = copy {
                value.set_sensitive(true);
                kept.insert(name, value);
            }
        }
        kept
    }

    pub(crate) async fn principal(
        &self,
        store: &Store,
        headers: &HeaderMap,
        wanted: Wanted,
    ) -> Result<Principal, Refusal> {
        let [bearer, public, secret] =
            SHOWN.map(|name| headers.get(name).map(|v| v.to_str().unwrap_or_default()));
        let bearer = bearer.map(bearer_of);
        let secret = match (secret, public, bearer) {
            (Some(secret), _, _) => Some(secret),
            // A bearer beside a public key is a user's token, never a secret key.
            (None, None, Some(Some(token))) if !jwt::looks_like_one(token) => Some(token),
            (None, _, _) => None,
        };
        if let Some(secret) = secret {
            return self.secret(store, secret).await;
        }
        if self.mode == AuthMode::Off && public.is_none() && bearer.is_none() {
            return Ok(operator::principal(KeyKind::Secret));
        }
        match (wanted, public, bearer) {
            (Wanted::Secret, _, _) => Err(unauthorized("Missing x-secret-key header")),
            (Wanted::Either, None, None) => Err(unauthorized(
                "Authentication required. Provide x-secret-key, or x-public-key + Authorization header.",
            )),
            (Wanted::Either, None, Some(_)) => Err(unauthorized("Missing x-public-key header")),
            (Wanted::Either, Some(key), bearer) => {
                let key = self.public(store, key).await?;
                let Some(token) = bearer.flatten() else {
                    return Err(unauthorized("Missing or invalid Authorization header"));
                };
                self.user(store, key, token).await
            }
        }
    }

    async fn secret(&self, store: &Store, given: &str) -> Result<Principal, Refusal> {
        let hash = Hash::of(given.as_bytes());
        if self.operator.is_secret(&hash) {
            return Ok(operator::principal(KeyKind::Secret));
        }
        match self.stored(store, hash, KeyKind::Secret).await? {
            Some(key) => {
                Ok(Principal { tenant: key.tenant, key: key.id, kind: KeyKind::Secret, entity: None })
            }
            None => Err(unauthorized("Invalid secret key")),
        }
    }

    async fn public(&self, store: &Store, given: &str) -> Result<(TenantId, KeyId), Refusal> {
        let hash = Hash::of(given.as_bytes());
        if self.operator.is_public(&hash) {
            let operator = operator::principal(KeyKind::Public);
            return Ok((operator.tenant, operator.key));
        }
        let key = self.stored(store, hash, KeyKind::Public).await?;
        key.map(|key| (key.tenant, key.id)).ok_or_else(|| unauthorized("Invalid public key"))
    }

    async fn stored(&self, store: &Store, hash: Hash, kind: KeyKind) -> Result<Option<Key>, StoreError> {
        let found = match self.keys.get(&hash) {
            Some(found) => found,
            None => {
                let asked = hash.clone();
                let found: Option<Key> =
                    store.read(move |tx| Box::pin(async move { keys::by_hash(tx, &asked).await })).await?;
                self.keys.insert(hash, found.clone());
                found
            }
        };
        Ok(found.filter(|key| key.kind == kind && key.revoked_at.is_none()))
    }

    async fn user(
        &self,
        store: &Store,
        (tenant, key): (TenantId, KeyId),
        token: &str,
    ) -> Result<Principal, Refusal> {
        let user = self.jwt.check(token, &tenant).await.map_err(|e| match e {
            BadToken::Invalid | BadToken::MissingClaim(_) => unauthorized(e.to_string()),
            BadToken::IssuerAway => Refusal::new(ErrorCode::IssuerUnavailable, e.to_string()),
        })?;
        let known = (tenant.clone(), user.subject.clone());
        let entity = match self.users.get(&known) {
            Some(entity) => entity,
            None => {
                let entity = self.find_user(store, &tenant, user).await?;
                self.users.insert(known, entity.clone());
                entity
            }
        };
        Ok(Principal { tenant, key, kind: KeyKind::Public, entity: Some(entity) })
    }

    async fn find_user(
        &self,
        store: &Store,
        tenant: &TenantId,
        user: jwt::User,
    ) -> Result<EntityId, Refusal> {
        let subject = user.subject.clone();
        if let Some(entity) = by_subject(store, tenant, subject.clone()).await? {
            return Ok(entity.id);
        }
        if !self.auto_entities {
            return Err(Refusal::forbidden("No entity found for this user"));
        }
        let asked = tenant.clone();
        let made: Result<EntityId, StoreError> = store
            .write(move |tx| {
                Box::pin(async move {
                    let entity = Entity {
                        id: EntityId::mint(),
                        kind: EntityKind::Human,
                        external_id: Some(user.subject),
                        display_name: user.name,
                        agent: None,
                        metadata: None,
                        created_at: tx.now().await?,
                    };
                    entities::insert(tx, &asked, &entity).await?;
                    Ok(entity.id)
                })
            })
            .await;
        match made {
            // Two first requests at once make one entity: the other one was quicker.
            Err(StoreError::Exists(cause)) => match by_subject(store, tenant, subject).await? {
                Some(entity) => Ok(entity.id),
                None => Err(StoreError::Exists(cause).into()),
            },
            made => Ok(made?),
        }
    }
}

async fn by_subject(store: &Store, tenant: &TenantId, subject: String) -> Result<Option<Entity>, StoreError> {
    let tenant = tenant.clone();
    store.read(move |tx| Box::pin(async move { entities::by_external(tx, &tenant, &subject).await })).await
}

fn unauthorized(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::Unauthorized, message)
}

/// The token of `Bearer <token>`.
fn bearer_of(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
