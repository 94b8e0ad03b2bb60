//! Where tokens live. The gateway keeps them encrypted, each for one user and
//! one server; this crate sees them only while it needs them.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::SecretString;

use crate::settings::Share;

/// One record of one user at one server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenKey {
    pub owner: Share,
    /// The server's address, without query.
    pub server: String,
    pub record: Record,
}

/// What a record holds. All are opaque JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Record {
    /// The tokens.
    Tokens,
    /// How this gateway is known at the authorization server.
    Client,
    /// A login that has begun, by its state. Keep it for ten minutes.
    Login(String),
}

/// Holds records. Every value is a secret.
pub trait TokenStore: Send + Sync {
    fn load<'a>(&'a self, key: &'a TokenKey) -> BoxFuture<'a, Result<Option<SecretString>, String>>;
    fn save<'a>(&'a self, key: &'a TokenKey, value: SecretString) -> BoxFuture<'a, Result<(), String>>;
    fn remove<'a>(&'a self, key: &'a TokenKey) -> BoxFuture<'a, Result<(), String>>;
    /// Held while a token is refreshed, on every node: a refresh token may be
    /// used only once. Dropping what is returned lets go.
    fn lock<'a>(&'a self, _key: &'a TokenKey) -> BoxFuture<'a, Result<Option<Box<dyn Any + Send>>, String>> {
        async { Ok(None) }.boxed()
    }
}

/// Keeps records in this process alone: for tests and programs without a store.
#[derive(Debug, Default)]
pub struct MemoryTokens {
    records: Mutex<HashMap<TokenKey, SecretString>>,
}

impl TokenStore for MemoryTokens {
    fn load<'a>(&'a self, key: &'a TokenKey) -> BoxFuture<'a, Result<Option<SecretString>, String>> {
        let found = self.records.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        async { Ok(found) }.boxed()
    }
    fn save<'a>(&'a self, key: &'a TokenKey, value: SecretString) -> BoxFuture<'a, Result<(), String>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), value);
        async { Ok(()) }.boxed()
    }
    fn remove<'a>(&'a self, key: &'a TokenKey) -> BoxFuture<'a, Result<(), String>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        async { Ok(()) }.boxed()
    }
}
