//! The database as the rest of the gateway sees it.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::backend::postgres::Postgres;
use crate::backend::sqlite::Sqlite;
use crate::clock::{Clock, SystemClock};
use crate::error::{OpenError, StoreError};
use crate::feed::{Feed, RedisUrl};
use crate::tx::Tx;

/// Which database, and where.
#[derive(Debug, Clone)]
pub enum Settings {
    /// A folder of this machine; one process at a time.
    Sqlite { folder: PathBuf },
    /// A server that several nodes share. The URL may hold a password.
    Postgres { url: DatabaseUrl },
}

/// A database URL. It may hold a password, so its `Debug` prints nothing of it.
#[derive(Clone)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }
}

impl std::fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DatabaseUrl(…)")
    }
}

#[derive(Debug)]
enum Backend {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// An open database and the feed of its commits.
#[derive(Debug)]
pub struct Store {
    backend: Backend,
    feed: Feed,
}

impl Store {
    pub async fn open(settings: &Settings) -> Result<Self, OpenError> {
        Self::open_with_clock(settings, Arc::new(SystemClock::default())).await
    }

    /// As `open`, with a clock of the caller's. PostgreSQL keeps its own time.
    pub async fn open_with_clock(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let feed = Feed::default();
        let backend = match settings {
            Settings::Sqlite { folder } => {
                let (folder, feed) = (folder.clone(), feed.clone());
                let opened = tokio::task::spawn_blocking(move || Sqlite::open(&folder, clock, feed)).await;
                let broken = |e: tokio::task::JoinError| OpenError::Database {
                    what: "of the data folder".to_owned(),
                    why: e.to_string(),
                };
                Backend::Sqlite(opened.map_err(broken)??)
            }
            Settings::Postgres { url } => Backend::Postgres(Postgres::open(&url.0, feed.clone()).await?),
        };
        Ok(Self { backend, feed })
    }

    /// Nodes tell each other by Redis from now on: commits, and what steps
    /// stream before theirs. As long as it does not answer, PostgreSQL's
    /// notifications do it, without the latter. SQLite has one node only.
    pub async fn go_by_redis(&self, url: RedisUrl) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Sqlite(_) => Ok(()),
            Backend::Postgres(postgres) => postgres.go_by_redis(url).await,
        }
    }

    /// What is new, for readers on this node.
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    pub fn is_sqlite(&self) -> bool {
        matches!(self.backend, Backend::Sqlite(_))
    }

    /// May somebody have been granted something? If not, nobody need look.
    pub fn may_have_grants(&self) -> bool {
        !self.is_sqlite() || crate::grants::may_be_given()
    }

    // PostgreSQL's part is on the heap: it is larger than all around it, and whatever
    // asks the store would be as large, on SQLite too.

    /// Runs a transaction that may write. It is durable when this returns `Ok`;
    /// with `Err` nothing has changed, except that after
    /// [`StoreError::Unavailable`] a remote commit may still have gone through.
    pub async fn write<T, E, F>(&self, op: F) -> Result<T, E>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.write(op).await,
            Backend::Postgres(postgres) => Box::pin(postgres.write(op)).await,
        }
    }

    /// As `write`, for the node's heartbeat: it does not wait behind other work.
    pub async fn beat<T, E, F>(&self, op: F) -> Result<T, E>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.write(op).await,
            Backend::Postgres(postgres) => Box::pin(postgres.beat(op)).await,
        }
    }

    /// Runs statements that only read. Never decide on what a read says:
    /// decisions belong into `write`.
    pub async fn read<T, E, F>(&self, op: F) -> Result<T, E>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.read(op).await,
            Backend::Postgres(postgres) => Box::pin(postgres.read(op)).await,
        }
    }

    /// Finishes what is queued and closes.
    pub async fn close(self) {
        match self.backend {
            Backend::Sqlite(sqlite) => sqlite.close().await,
            Backend::Postgres(postgres) => postgres.close().await,
        }
    }
}
