//! What users hold at MCP servers, in the database and closed with the master
//! key. Each record opens only in its own place: for its tenant, its user, its
//! server.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::SecretString;
use toolyard_mcp::{Record, TokenKey, TokenStore};
use toolyard_protocol::{Hash, limits};
use toolyard_store::mcp_records::{self, Place};
use toolyard_store::{Store, StoreError};

use crate::sealer::{Purpose, Sealer};

/// How long a node may renew a token before another one may try.
const LEASE_MS: u64 = 30_000;
/// Between two looks at a place that another node holds.
const PAUSE: Duration = Duration::from_millis(100);
/// Looks before a renewal is given up.
const LOOKS: usize = 200;

/// The records of all users. Cheap to clone.
#[derive(Clone)]
pub struct DatabaseTokens {
    store: Arc<Store>,
    sealer: Arc<Sealer>,
}

impl fmt::Debug for DatabaseTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseTokens").field("sealer", &self.sealer).finish_non_exhaustive()
    }
}

/// Internals of the database are not a user's business.
fn away(e: StoreError) -> String {
    tracing::warn!(error = %e, "a login cannot be read or kept");
    "logins cannot be read or kept at the moment".to_owned()
}

/// Only a user has logins: tokens without an owner would serve everybody.
fn place(key: &TokenKey) -> Result<Place, String> {
    let (Some(tenant), Some(entity)) = (key.owner.tenant.clone(), key.owner.entity.clone()) else {
        return Err("a login belongs to one user".to_owned());
    };
    Ok(Place { tenant, entity, server: Hash::of(key.server.as_bytes()).to_string() })
}

/// The state of a login is a secret; its name in the table is a hash of it.
fn name(record: &Record) -> String {
    match record {
        Record::Tokens => "tokens".to_owned(),
        Record::Client => "client".to_owned(),
        Record::Login(state) => format!("login {}", Hash::of(state.as_bytes())),
    }
}

/// What a record is sealed for, beside its tenant.
fn seal_name(place: &Place, record: &str) -> String {
    format!("{}\n{}\n{record}", place.entity, place.server)
}

impl DatabaseTokens {
    pub fn new(store: Arc<Store>, sealer: Arc<Sealer>) -> Self {
        Self { store, sealer }
    }

    async fn read(&self, key: &TokenKey) -> Result<Option<SecretString>, String> {
        let (place, record) = (place(key)?, name(&key.record));
        let (asked, named) = (place.clone(), record.clone());
        let found = self
            .store
            .read::<_, StoreError, _>(move |tx| {
                Box::pin(async move { mcp_records::get(tx, &asked, &named).await })
            })
            .await
            .map_err(away)?;
        let Some(sealed) = found else { return Ok(None) };
        let opened = self.sealer.open(Purpose::Token, &place.tenant, &seal_name(&place, &record), &sealed);
        // What cannot be opened is as good as none: the user logs in again.
        Ok(opened.inspect_err(|why| tracing::warn!(%why, "a user's login cannot be read")).ok())
    }

    async fn write(&self, key: &TokenKey, value: SecretString) -> Result<(), String> {
        let (place, record) = (place(key)?, name(&key.record));
        let sealed = self
            .sealer
            .seal(Purpose::Token, &place.tenant, &seal_name(&place, &record), &value)
            .map_err(|e| e.to_string())?;
        let passing = matches!(key.record, Record::Login(_));
        self.store
            .write::<_, StoreError, _>(move |tx| {
                Box::pin(async move {
                    let expires = match passing {
                        true => Some(tx.now().await?.plus_millis(limits::MCP_LOGIN_MS)),
                        false => None,
                    };
                    mcp_records::put(tx, &place, &record, &sealed, expires).await
                })
            })
            .await
            .map_err(away)
    }

    async fn erase(&self, key: &TokenKey) -> Result<(), String> {
        let (place, record) = (place(key)?, name(&key.record));
        self.store
            .write::<_, StoreError, _>(move |tx| {
                Box::pin(async move { mcp_records::delete(tx, &place, &record).await.map(|_| ()) })
            })
            .await
            .map_err(away)
    }

    async fn hold(&self, key: &TokenKey) -> Result<Held, String> {
        let place = place(key)?;
        let holder = uuid::Uuid::now_v7().simple().to_string();
        for _ in 0..LOOKS {
            let (asked, by) = (place.clone(), holder.clone());
            let taken = self
                .store
                .write::<_, StoreError, _>(move |tx| {
                    Box::pin(async move { mcp_records::lock(tx, &asked, &by, LEASE_MS).await })
                })
                .await
                .map_err(away)?;
            if taken {
                return Ok(Held { store: Arc::clone(&self.store), place, holder });
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err("another node renews this login and does not finish".to_owned())
    }
}

impl TokenStore for DatabaseTokens {
    fn load<'a>(&'a self, key: &'a TokenKey) -> BoxFuture<'a, Result<Option<SecretString>, String>> {
        self.read(key).boxed()
    }
    fn save<'a>(&'a self, key: &'a TokenKey, value: SecretString) -> BoxFuture<'a, Result<(), String>> {
        self.write(key, value).boxed()
    }
    fn remove<'a>(&'a self, key: &'a TokenKey) -> BoxFuture<'a, Result<(), String>> {
        self.erase(key).boxed()
    }
    fn lock<'a>(&'a self, key: &'a TokenKey) -> BoxFuture<'a, Result<Option<Box<dyn Any + Send>>, String>> {
        async move { Ok(Some(Box::new(self.hold(key).await?) as Box<dyn Any + Send>)) }.boxed()
    }
}

/// One node renews a token. Its end lets the next one in; a node that dies is
/// waited for as long as its lease.
struct Held {
    store: Arc<Store>,
    place: Place,
    holder: String,
}

impl Drop for Held {
    fn drop(&mut self) {
        let (store, place, holder) = (Arc::clone(&self.store), self.place.clone(), self.holder.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let unlock = async move {
            let done = store.write::<_, StoreError, _>(move |tx| {
                Box::pin(async move { mcp_records::unlock(tx, &place, &holder).await })
            });
            let _ = done.await;
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "a drop cannot wait; without it the lease ends by itself"
        )]
        runtime.spawn(unlock);
    }
}
