//! PostgreSQL: pooled connections, and LISTEN/NOTIFY to tell other nodes what
//! Redis does not.

use std::time::Duration;

use futures::future::BoxFuture;
use sqlx::postgres::{PgListener, PgPool, PgPoolOptions};
use tokio_util::sync::CancellationToken;

use super::arrival;
use super::held::Held;
use crate::error::{OpenError, StoreError};
use crate::feed::{Feed, RedisUrl, read_news, write_news};
use crate::tx::{Touched, Tx, args};

const CHANNEL: &str = "toolyard";
const LOCK_TIMEOUT: &str = "3s";
const IDLE_TIMEOUT: &str = "10s";
/// What a node says that may have lost news. No news looks like this.
const DEAF: &str = "deaf";
/// How often it says so, until it hears Redis again.
const DEAF_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Postgres {
    pool: PgPool,
    heart: PgPool,
    feed: Feed,
    stop: CancellationToken,
}

impl Postgres {
    #[expect(clippy::disallowed_methods, reason = "the one place that opens PostgreSQL")]
    pub(crate) async fn open(url: &str, feed: Feed) -> Result<Self, OpenError> {
        // The URL holds a password: it is never part of a message.
        let failed =
            |e: sqlx::Error| OpenError::Database { what: "of database_url".to_owned(), why: e.to_string() };
        let options = arrival::options(url)?;
        arrival::wait(&options).await?;
        // Nobody waits for a lock, or holds one, longer than a lease lasts.
        let options = options
            .options([("lock_timeout", LOCK_TIMEOUT), ("idle_in_transaction_session_timeout", IDLE_TIMEOUT)]);
        let pool = PgPoolOptions::new()
            .max_connections(16)
            .acquire_timeout(Duration::from_secs(5))
            .connect_with(options.clone())
            .await
            .map_err(failed)?;
        // The heartbeat never waits behind requests.
        let heart = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(Duration::from_secs(1))
            .connect_lazy_with(options);
        crate::migrate::postgres(&pool).await?;
        let stop = CancellationToken::new();
        let listener = listen(pool.clone(), feed.clone(), stop.clone());
        // tidy: spawn — the listener lives as long as the store and stops by its token.
        tokio::spawn(listener);
        Ok(Self { pool, heart, feed, stop })
    }

    pub(crate) async fn write<T, E, F>(&self, op: F) -> Result<T, E>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, E>> + Send,
        T: Send,
        E: From<StoreError> + Send,
    {
        self.write_on(&self.pool, op).await
    }

    /// As `write`, on the connection that only the heartbeat uses.
    pub(crate) async fn beat<T, E, F>(&self, op: F) -> Result<T, E>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, E>> + Send,
        T: Send,
        E: From<StoreError> + Send,
    {
        self.write_on(&self.heart, op).await
    }

    async fn write_on<T, E, F>(&self, pool: &PgPool, op: F) -> Result<T, E>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, E>> + Send,
        T: Send,
        E: From<StoreError> + Send,
    {
        let mut held = Held::of(pool).await.map_err(StoreError::from)?;
        let mut transaction = held.begin(None).await.map_err(StoreError::from)?;
        let mut tx = Tx::postgres(&mut transaction);
        let value = op(&mut tx).await?;
        let value = tx.whole(value)?;
        let touched = std::mem::take(&mut tx.touched);
        if self.feed.must_notify() {
            for news in &touched {
                notify(&mut tx, news).await?;
            }
        }
        crate::failpoint::pass("group.before_commit")?;
        transaction.commit().await.map_err(StoreError::from)?;
        crate::failpoint::pass("group.after_commit")?;
        self.feed.publish(&touched);
        self.feed.tell(&touched);
        Ok(value)
    }

    pub(crate) async fn read<T, E, F>(&self, op: F) -> Result<T, E>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, E>> + Send,
        E: From<StoreError> + Send,
    {
        // One snapshot for all statements: a reader that looks at two tables sees one moment.
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let mut held = Held::of(&self.pool).await.map_err(StoreError::from)?;
        let mut transaction = held.begin(Some(begin)).await.map_err(StoreError::from)?;
        let mut tx = Tx::postgres(&mut transaction);
        let value = op(&mut tx).await?;
        transaction.commit().await.map_err(StoreError::from)?;
        Ok(value)
    }

    /// Tells other nodes by Redis from now on, as far as it answers.
    #[expect(clippy::disallowed_methods, reason = "tasks that live as long as the store")]
    pub(crate) async fn go_by_redis(&self, url: RedisUrl) -> Result<(), StoreError> {
        let root = self.name_on_redis(&url).await?;
        let Some(task) = self.feed.go_by_redis(url, root, self.stop.clone()) else { return Ok(()) };
        // tidy: spawn — the connection lives as long as the store and stops by its token.
        tokio::spawn(task);
        // tidy: spawn — as above.
        tokio::spawn(confess(self.pool.clone(), self.feed.clone(), self.stop.clone()));
        Ok(())
    }

    /// All nodes on this database, and no others, use this name.
    async fn name_on_redis(&self, url: &RedisUrl) -> Result<String, StoreError> {
        let cluster = sqlx::query_scalar::<_, i64>("SELECT system_identifier FROM pg_control_system()")
            .fetch_one(&self.pool)
            .await
            // Some hosts do not tell; the name of the database must do.
            .unwrap_or(0);
        let database: i64 =
            sqlx::query_scalar("SELECT oid::bigint FROM pg_database WHERE datname = current_database()")
                .fetch_one(&self.pool)
                .await?;
        Ok(format!("toolyard:{cluster}.{database}.{}", url.number()))
    }

    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.heart.close().await;
        self.pool.close().await;
    }
}

async fn notify(tx: &mut Tx<'_>, news: &Touched) -> Result<(), StoreError> {
    let text = write_news(news);
    tx.one("SELECT pg_notify('toolyard', $1) IS NULL", args![&text], |_| Ok(())).await?;
    Ok(())
}

/// Says that this node may have lost news, as long as it may: others then also
/// notify, and look themselves.
async fn confess(pool: PgPool, feed: Feed, stop: CancellationToken) {
    while stop.run_until_cancelled(feed.deaf()).await.is_some() {
        let said = sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(DEAF).execute(&pool).await;
        if let Err(e) = said {
            tracing::debug!(error = %e, "the other nodes cannot be told that Redis is away");
        }
        stop.run_until_cancelled(tokio::time::sleep(DEAF_EVERY)).await;
    }
}

/// Hears other nodes' commits. When the connection is lost readers fall back
/// to polling, so a pause between tries loses nothing.
async fn listen(pool: PgPool, feed: Feed, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let heard = stop.run_until_cancelled(hear(&pool, &feed)).await;
        feed.listens(false);
        if let Some(Err(e)) = heard {
            tracing::warn!(error = %e, "lost the database's notifications; readers poll until they are back");
            stop.run_until_cancelled(tokio::time::sleep(Duration::from_millis(500))).await;
        }
    }
}

async fn hear(pool: &PgPool, feed: &Feed) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    feed.listens(true);
    loop {
        match listener.try_recv().await? {
            Some(note) if note.payload() == DEAF => feed.doubt(),
            Some(note) => {
                if let Some(news) = read_news(note.payload()) {
                    feed.publish(&[news]);
                }
            }
            // The connection was lost and made anew: something may be missing.
            None => feed.listens(true),
        }
    }
}
