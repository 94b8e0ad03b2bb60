//! Connections to PostgreSQL whose callers may walk away at any moment.

use sqlx::pool::PoolConnection;
use sqlx::{Connection as _, PgPool, Postgres, Transaction};

/// A connection of the pool. If its caller is gone while BEGIN is on its way,
/// the library hands the connection back as it is, with the transaction open,
/// and the next caller is inside it: what it wants to write may be refused as in
/// a transaction that only reads. So such a connection is closed instead.
pub(crate) struct Held {
    conn: Option<PoolConnection<Postgres>>,
    /// Whether a transaction is open is not known right now.
    is_unsure: bool,
}

impl Held {
    pub(crate) async fn of(pool: &PgPool) -> Result<Self, sqlx::Error> {
        Ok(Self { conn: Some(pool.acquire().await?), is_unsure: false })
    }

    /// Begins a transaction, by a statement of its own if there is one.
    pub(crate) async fn begin(
        &mut self,
        statement: Option<&'static str>,
    ) -> Result<Transaction<'_, Postgres>, sqlx::Error> {
        let Self { conn, is_unsure } = self;
        let Some(conn) = conn.as_mut() else { return Err(sqlx::Error::PoolClosed) };
        *is_unsure = true;
        let begun = match statement {
            Some(statement) => conn.begin_with(statement).await?,
            None => conn.begin().await?,
        };
        *is_unsure = false;
        Ok(begun)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_unsure
            && let Some(conn) = self.conn.take()
        {
            drop(conn.detach());
        }
    }
}
