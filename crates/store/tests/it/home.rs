//! A database of its own for each story, and the calls that every story makes.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;
use toolyard_protocol::RunId;
use toolyard_store::{DatabaseUrl, ManualClock, Settings, Store, StoreError, Tx};

use crate::server;

/// Where the clocks of SQLite stories stand at first.
pub(crate) const START_MS: i64 = 1_800_000_000_000;

pub(crate) struct Home {
    pub(crate) store: Arc<Store>,
    pub(crate) settings: Settings,
    /// Moves SQLite's time. PostgreSQL keeps its own.
    pub(crate) clock: Arc<ManualClock>,
    kept: Kept,
}

enum Kept {
    Folder(TempDir),
    Database(String),
}

/// Clones the named values into a transaction and runs it:
/// `tx!(home, write, [tenant, run], |tx| runs::get(tx, &tenant, &run).await)`.
macro_rules! tx {
    ($home:expr, $how:ident, [$($name:ident),* $(,)?], |$tx:ident| $body:expr) => {{
        $(let $name = $name.clone();)*
        $home.$how(move |$tx| Box::pin(async move { $body })).await
    }};
}
pub(crate) use tx;

impl Home {
    pub(crate) async fn on_sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::Sqlite { folder: folder.path().join("data") };
        Self::open(settings, Kept::Folder(folder)).await
    }

    pub(crate) async fn on_postgres() -> Self {
        let name = RunId::mint().as_str().replace("run_", "story_");
        as_superuser(server::url(), format!("CREATE DATABASE {name} TEMPLATE template0")).await;
        let settings = Settings::Postgres { url: DatabaseUrl::new(server::url_of(&name)) };
        Self::open(settings, Kept::Database(name)).await
    }

    async fn open(settings: Settings, kept: Kept) -> Self {
        let clock = Arc::new(ManualClock::at(START_MS));
        let store = Store::open_with_clock(&settings, clock.clone()).await.unwrap();
        Self { store: Arc::new(store), settings, clock, kept }
    }

    /// The URL of the PostgreSQL database.
    pub(crate) fn url(&self) -> String {
        match &self.kept {
            Kept::Database(name) => server::url_of(name),
            Kept::Folder(_) => panic!("a folder instead of a database"),
        }
    }

    /// Closes the store and opens it again, as a restart does.
    pub(crate) async fn reopened(self) -> Self {
        let Self { store, settings, clock, kept } = self;
        closed(store).await;
        let store = Store::open_with_clock(&settings, clock.clone()).await.unwrap();
        Self { store: Arc::new(store), settings, clock, kept }
    }

    /// Closes the store and removes the database.
    pub(crate) async fn end(self) {
        closed(self.store).await;
        match self.kept {
            Kept::Folder(folder) => folder.close().unwrap(),
            Kept::Database(name) => remove(&name).await,
        }
    }

    pub(crate) async fn write<T, F>(&self, op: F) -> T
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
        T: Send + 'static,
    {
        self.store.write(op).await.unwrap()
    }

    pub(crate) async fn try_write<T, F>(&self, op: F) -> Result<T, StoreError>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
        T: Send + 'static,
    {
        self.store.write(op).await
    }

    pub(crate) async fn read<T, F>(&self, op: F) -> T
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
        T: Send + 'static,
    {
        self.store.read(op).await.unwrap()
    }

    pub(crate) async fn try_read<T, F>(&self, op: F) -> Result<T, StoreError>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
        T: Send + 'static,
    {
        self.store.read(op).await
    }
}

async fn closed(store: Arc<Store>) {
    Arc::into_inner(store).expect("nobody uses the store any more").close().await;
}

async fn remove(database: &str) {
    as_superuser(server::url(), format!("DROP DATABASE {database} WITH (FORCE)")).await;
}

/// Tells a story on a fresh SQLite folder.
pub(crate) async fn tell_on_sqlite(story: impl AsyncFnOnce(Home) -> Home) {
    let home = Home::on_sqlite().await;
    Box::pin(story(home)).await.end().await;
}

/// Tells a story on a fresh PostgreSQL database, which is removed also when
/// the story fails: the server may be somebody's own.
pub(crate) async fn tell_on_postgres(story: impl AsyncFnOnce(Home) -> Home) {
    let home = Home::on_postgres().await;
    let Kept::Database(name) = &home.kept else {
        panic!("a folder instead of a database");
    };
    let name = name.clone();
    match AssertUnwindSafe(Box::pin(story(home))).catch_unwind().await {
        Ok(home) => home.end().await,
        Err(failure) => {
            remove(&name).await;
            std::panic::resume_unwind(failure);
        }
    }
}

/// Runs statements as the superuser, outside any store.
pub(crate) async fn as_superuser(url: &str, sql: String) {
    let mut admin = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut admin).await.unwrap();
    admin.close().await.unwrap();
}
