//! PostgreSQL: pooled connections, and LISTEN/NOTIFY to tell other nodes.

use std::time::Duration;

use futures::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use tokio_util::sync::CancellationToken;
use toolyard_protocol::{RunId, SpaceId, TenantId};

use crate::error::{OpenError, StoreError};
use crate::feed::Feed;
use crate::tx::{CallNews, Touched, Tx, args};

const CHANNEL: &str = "toolyard";
const LOCK_TIMEOUT: &str = "3s";
const IDLE_TIMEOUT: &str = "10s";

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
        let options: PgConnectOptions = url.parse().map_err(failed)?;
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
        let mut transaction = pool.begin().await.map_err(StoreError::from)?;
        let mut tx = Tx::postgres(&mut transaction);
        let value = op(&mut tx).await?;
        let value = tx.whole(value)?;
        let touched = std::mem::take(&mut tx.touched);
        for news in &touched {
            notify(&mut tx, news).await?;
        }
        crate::failpoint::pass("group.before_commit")?;
        transaction.commit().await.map_err(StoreError::from)?;
        crate::failpoint::pass("group.after_commit")?;
        self.feed.publish(&touched);
        Ok(value)
    }

    pub(crate) async fn read<T, E, F>(&self, op: F) -> Result<T, E>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, E>> + Send,
        E: From<StoreError> + Send,
    {
        // One snapshot for all statements: a reader that looks at two tables sees one moment.
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let mut transaction = self.pool.begin_with(begin).await.map_err(StoreError::from)?;
        let mut tx = Tx::postgres(&mut transaction);
        let value = op(&mut tx).await?;
        transaction.commit().await.map_err(StoreError::from)?;
        Ok(value)
    }

    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.heart.close().await;
        self.pool.close().await;
    }
}

/// News never carries truth, only where to look for it.
async fn notify(tx: &mut Tx<'_>, news: &Touched) -> Result<(), StoreError> {
    let text = format!(
        "{} {} {} {} {} {}",
        news.tenant,
        news.run.as_ref().map_or("-", RunId::as_str),
        news.seq,
        news.space.as_ref().map_or("-", SpaceId::as_str),
        news.replied.map_or(-1, i64::from),
        news.calls.digit(),
    );
    tx.one("SELECT pg_notify('toolyard', $1) IS NULL", args![&text], |_| Ok(())).await?;
    Ok(())
}

fn read_news(text: &str) -> Option<Touched> {
    let mut words = text.split(' ');
    let mut word = || words.next();
    Some(Touched {
        tenant: TenantId::parse(word()?).ok()?,
        run: RunId::parse(word()?).ok().filter(|r| r.as_str() != "-"),
        seq: word()?.parse().ok()?,
        space: SpaceId::parse(word()?).ok().filter(|s| s.as_str() != "-"),
        replied: u32::try_from(word()?.parse::<i64>().ok()?).ok(),
        // A node of an older release says nothing here: look.
        calls: CallNews::from_digit(word().and_then(|w| w.parse().ok()).unwrap_or(3)),
        commit: None,
    })
}

/// Hears other nodes' commits. When the connection is lost readers fall back
/// to polling, so a pause between tries loses nothing.
async fn listen(pool: PgPool, feed: Feed, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let heard = stop.run_until_cancelled(hear(&pool, &feed)).await;
        if let Some(Err(e)) = heard {
            tracing::warn!(error = %e, "lost the database's notifications; readers poll until they are back");
            stop.run_until_cancelled(tokio::time::sleep(Duration::from_millis(500))).await;
        }
    }
}

async fn hear(pool: &PgPool, feed: &Feed) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    loop {
        let note = listener.recv().await?;
        if let Some(news) = read_news(note.payload()) {
            feed.publish(&[news]);
        }
    }
}
