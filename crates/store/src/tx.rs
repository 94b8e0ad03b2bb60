//! One transaction, on either database. SQL is written once, with `$1, $2, …`
//! in the order of their first use, in the words both databases know; where
//! they differ, [`Sql`] holds both.
//!
//! On SQLite a `Tx` runs on the writer thread (or a reader's) and never
//! really waits; on PostgreSQL it is a pooled connection.

use std::sync::Arc;

use sqlx::Row as _;
use toolyard_protocol::event::Event;
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{RunId, SpaceId, TenantId, Timestamp};

use crate::backend::frame::Frame;
use crate::error::StoreError;

/// A statement in both dialects.
#[derive(Debug, Clone, Copy)]
pub struct Sql {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

impl From<&'static str> for Sql {
    fn from(both: &'static str) -> Self {
        Self { sqlite: both, postgres: both }
    }
}

/// A bound value. Absent values keep their type, because PostgreSQL asks for it.
#[derive(Debug, Clone, Copy)]
pub enum Arg<'a> {
    Text(Option<&'a str>),
    Int(Option<i64>),
    Bytes(&'a [u8]),
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(v: &'a str) -> Self {
        Self::Text(Some(v))
    }
}
impl<'a> From<&'a String> for Arg<'a> {
    fn from(v: &'a String) -> Self {
        Self::Text(Some(v))
    }
}
impl<'a> From<Option<&'a str>> for Arg<'a> {
    fn from(v: Option<&'a str>) -> Self {
        Self::Text(v)
    }
}
impl From<i64> for Arg<'_> {
    fn from(v: i64) -> Self {
        Self::Int(Some(v))
    }
}
impl From<Option<i64>> for Arg<'_> {
    fn from(v: Option<i64>) -> Self {
        Self::Int(v)
    }
}
impl From<bool> for Arg<'_> {
    fn from(v: bool) -> Self {
        Self::Int(Some(i64::from(v)))
    }
}
impl From<Timestamp> for Arg<'_> {
    fn from(v: Timestamp) -> Self {
        Self::Int(Some(v.millis()))
    }
}
impl From<Option<Timestamp>> for Arg<'_> {
    fn from(v: Option<Timestamp>) -> Self {
        Self::Int(v.map(Timestamp::millis))
    }
}
impl<'a> From<&'a [u8]> for Arg<'a> {
    fn from(v: &'a [u8]) -> Self {
        Self::Bytes(v)
    }
}

/// Binds values of several types: `args![tenant.as_str(), 3i64]`.
macro_rules! args {
    ($($value:expr),* $(,)?) => { &[$($crate::tx::Arg::from($value)),*] };
}
pub(crate) use args;

/// A row of an answer.
#[derive(Debug)]
pub enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r sqlx::postgres::PgRow),
}

impl Row<'_> {
    pub fn opt_text(&self, i: usize) -> Result<Option<String>, StoreError> {
        match self {
            Self::Sqlite(row) => Ok(row.get(i)?),
            Self::Postgres(row) => Ok(row.try_get(i)?),
        }
    }
    pub fn text(&self, i: usize) -> Result<String, StoreError> {
        match self {
            Self::Sqlite(row) => Ok(row.get(i)?),
            Self::Postgres(row) => Ok(row.try_get(i)?),
        }
    }
    pub fn opt_int(&self, i: usize) -> Result<Option<i64>, StoreError> {
        match self {
            Self::Sqlite(row) => Ok(row.get(i)?),
            Self::Postgres(row) => Ok(row.try_get(i)?),
        }
    }
    pub fn int(&self, i: usize) -> Result<i64, StoreError> {
        match self {
            Self::Sqlite(row) => Ok(row.get(i)?),
            Self::Postgres(row) => Ok(row.try_get(i)?),
        }
    }
    pub fn bytes(&self, i: usize) -> Result<Vec<u8>, StoreError> {
        match self {
            Self::Sqlite(row) => Ok(row.get(i)?),
            Self::Postgres(row) => Ok(row.try_get(i)?),
        }
    }
    pub fn flag(&self, i: usize) -> Result<bool, StoreError> {
        Ok(self.int(i)? != 0)
    }
    pub fn time(&self, i: usize) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::from_millis(self.int(i)?))
    }
    pub fn opt_time(&self, i: usize) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.opt_int(i)?.map(Timestamp::from_millis))
    }
    /// A typed value out of its text.
    pub fn parsed<T, E: std::fmt::Display>(
        &self,
        i: usize,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        let parsed = match self {
            // Read where it lies: rows are full of ids.
            Self::Sqlite(row) => parse(row.get_ref(i)?.as_str().map_err(|e| not_text(i, &e))?),
            Self::Postgres(row) => parse(row.try_get(i)?),
        };
        parsed.map_err(|e| StoreError::broken(format!("column {i}: {e}")))
    }
    pub fn opt_parsed<T, E: std::fmt::Display>(
        &self,
        i: usize,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, StoreError> {
        let text = match self {
            Self::Sqlite(row) => row.get_ref(i)?.as_str_or_null().map_err(|e| not_text(i, &e))?,
            Self::Postgres(row) => row.try_get(i)?,
        };
        text.map(parse).transpose().map_err(|e| StoreError::broken(format!("column {i}: {e}")))
    }
    /// A JSON column.
    pub fn json(&self, i: usize) -> Result<Option<serde_json::Value>, StoreError> {
        self.opt_parsed(i, |t| serde_json::from_str(t))
    }
}

fn not_text(i: usize, e: &rusqlite::types::FromSqlError) -> StoreError {
    StoreError::broken(format!("column {i}: {e}"))
}

/// What a commit changed, told to readers once it is durable.
#[derive(Debug, Clone, PartialEq)]
pub struct Touched {
    pub tenant: TenantId,
    pub run: Option<RunId>,
    pub seq: i64,
    pub space: Option<SpaceId>,
    /// The step whose whole reply is in this commit.
    pub replied: Option<u32>,
    /// A step begins anew: what was streamed of it is void.
    pub restarted: bool,
    /// What it did to client calls.
    pub calls: CallNews,
    /// The events themselves, if this node wrote them.
    pub commit: Option<Arc<Commit>>,
}

/// What a commit did to calls that programs elsewhere execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallNews {
    /// A call waits for a client from now on.
    pub parked: bool,
    /// A call ended.
    pub ended: bool,
}

impl CallNews {
    pub(crate) fn of(events: &[Event]) -> Self {
        let mut news = Self::default();
        for event in events {
            match event {
                Event::ToolCallRequested(call) => {
                    news.parked |= call.wait.as_ref().is_some_and(|wait| wait.kind == WaitKind::Client);
                }
                Event::ToolReturned(_) | Event::RunFinished(_) => news.ended = true,
                _ => {}
            }
        }
        news
    }
    /// One digit, for the news that nodes send each other.
    pub(crate) fn digit(self) -> u8 {
        u8::from(self.parked) + 2 * u8::from(self.ended)
    }
    pub(crate) fn from_digit(digit: u8) -> Self {
        Self { parked: digit & 1 != 0, ended: digit & 2 != 0 }
    }
}

/// The events that one transaction added to a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// The epoch of the run's owner once they are there.
    pub epoch: i64,
    /// The seq before the first of them.
    pub after: i64,
    pub at: Timestamp,
    pub events: Arc<[Event]>,
}

#[derive(Debug)]
pub(crate) enum Conn<'c> {
    Sqlite(&'c mut rusqlite::Connection, Frame),
    Postgres(&'c mut sqlx::PgConnection),
}

/// An open transaction.
#[derive(Debug)]
pub struct Tx<'c> {
    pub(crate) conn: Conn<'c>,
    pub(crate) now: Option<Timestamp>,
    pub(crate) touched: Vec<Touched>,
    /// A statement failed.
    lost: bool,
}

impl<'c> Tx<'c> {
    pub(crate) fn sqlite(conn: &'c mut rusqlite::Connection, now: Timestamp, frame: Frame) -> Self {
        Self { conn: Conn::Sqlite(conn, frame), now: Some(now), touched: Vec::new(), lost: false }
    }
    pub(crate) fn postgres(conn: &'c mut sqlx::PgConnection) -> Self {
        Self { conn: Conn::Postgres(conn), now: None, touched: Vec::new(), lost: false }
    }

    /// Says that nothing will be refused behind the next change: then only the database
    /// itself can fail. On SQLite such a write needs no savepoint. Should it fail all the
    /// same, the writes that were to be committed with it hear "unavailable".
    pub fn settle(&mut self) {
        if let Conn::Sqlite(conn, frame) = &mut self.conn {
            frame.settle(conn);
        }
    }

    /// What it leaves behind, on SQLite.
    pub(crate) fn end(self) -> (Frame, Vec<Touched>) {
        match self.conn {
            Conn::Sqlite(_, frame) => (frame, self.touched),
            Conn::Postgres(_) => (Frame::Whole, self.touched),
        }
    }

    /// The database's time, the same within one transaction.
    pub async fn now(&mut self) -> Result<Timestamp, StoreError> {
        if let Some(now) = self.now {
            return Ok(now);
        }
        const NOW: &str = "SELECT (extract(epoch from statement_timestamp()) * 1000)::bigint";
        let now = self.one(NOW, &[], |r| r.time(0)).await?;
        let now = now.ok_or_else(|| StoreError::broken("the database tells no time"))?;
        self.now = Some(now);
        Ok(now)
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.conn, Conn::Postgres(_))
    }

    /// Passes on what an operation answers, unless a statement of it failed. Success
    /// means stored, and after a failure PostgreSQL stores nothing.
    pub(crate) fn whole<T>(&self, value: T) -> Result<T, StoreError> {
        if self.lost {
            return Err(StoreError::broken("the transaction was lost by a statement that failed"));
        }
        Ok(value)
    }

    /// Runs a statement and answers how many rows it changed. When a statement fails, so
    /// do all that follow it: the operation can only end.
    pub async fn exec(&mut self, sql: impl Into<Sql>, args: &[Arg<'_>]) -> Result<u64, StoreError> {
        self.whole(())?;
        let done = self.conn.exec(sql.into(), args).await;
        self.lost = done.is_err();
        done
    }

    /// The first row, if there is one.
    pub async fn one<T: Send>(
        &mut self,
        sql: impl Into<Sql>,
        args: &[Arg<'_>],
        map: impl Fn(&Row<'_>) -> Result<T, StoreError> + Send,
    ) -> Result<Option<T>, StoreError> {
        self.whole(())?;
        let done = self.conn.one(sql.into(), args, map).await;
        self.lost = done.is_err();
        done
    }

    /// All rows.
    pub async fn all<T: Send>(
        &mut self,
        sql: impl Into<Sql>,
        args: &[Arg<'_>],
        map: impl Fn(&Row<'_>) -> Result<T, StoreError> + Send,
    ) -> Result<Vec<T>, StoreError> {
        self.whole(())?;
        let done = self.conn.all(sql.into(), args, map).await;
        self.lost = done.is_err();
        done
    }
}

impl Conn<'_> {
    async fn exec(&mut self, sql: Sql, args: &[Arg<'_>]) -> Result<u64, StoreError> {
        match self {
            Conn::Sqlite(conn, frame) => {
                let mut statement = conn.prepare_cached(sql.sqlite)?;
                frame.before(conn, &statement)?;
                bind(&mut statement, args)?;
                Ok(u64::try_from(statement.raw_execute()?).unwrap_or(0))
            }
            Conn::Postgres(conn) => {
                // On the heap, as all of PostgreSQL's part (see `Store`).
                let done = Box::pin(pg_query(sql.postgres, args).execute(&mut **conn)).await?;
                Ok(done.rows_affected())
            }
        }
    }

    async fn one<T: Send>(
        &mut self,
        sql: Sql,
        args: &[Arg<'_>],
        map: impl Fn(&Row<'_>) -> Result<T, StoreError> + Send,
    ) -> Result<Option<T>, StoreError> {
        match self {
            Conn::Sqlite(conn, frame) => {
                let mut statement = conn.prepare_cached(sql.sqlite)?;
                frame.before(conn, &statement)?;
                bind(&mut statement, args)?;
                let mut rows = statement.raw_query();
                let Some(row) = rows.next()? else { return Ok(None) };
                let value = map(&Row::Sqlite(row))?;
                // A statement with RETURNING does its work when it is stepped to the end.
                while rows.next()?.is_some() {}
                Ok(Some(value))
            }
            Conn::Postgres(conn) => {
                let row = Box::pin(pg_query(sql.postgres, args).fetch_optional(&mut **conn)).await?;
                row.as_ref().map(|row| map(&Row::Postgres(row))).transpose()
            }
        }
    }

    async fn all<T: Send>(
        &mut self,
        sql: Sql,
        args: &[Arg<'_>],
        map: impl Fn(&Row<'_>) -> Result<T, StoreError> + Send,
    ) -> Result<Vec<T>, StoreError> {
        match self {
            Conn::Sqlite(conn, frame) => {
                let mut statement = conn.prepare_cached(sql.sqlite)?;
                frame.before(conn, &statement)?;
                bind(&mut statement, args)?;
                let mut rows = statement.raw_query();
                let mut out = Vec::new();
                while let Some(row) = rows.next()? {
                    out.push(map(&Row::Sqlite(row))?);
                }
                Ok(out)
            }
            Conn::Postgres(conn) => {
                let rows = Box::pin(pg_query(sql.postgres, args).fetch_all(&mut **conn)).await?;
                rows.iter().map(|row| map(&Row::Postgres(row))).collect()
            }
        }
    }
}

fn bind(statement: &mut rusqlite::CachedStatement<'_>, args: &[Arg<'_>]) -> Result<(), StoreError> {
    for (i, arg) in args.iter().enumerate() {
        // SQLite numbers `$k` by first use: a statement that uses them out of order would bind wrongly.
        debug_assert_eq!(
            statement.parameter_index(&format!("${}", i + 1)).ok().flatten(),
            Some(i + 1),
            "parameter out of order"
        );
        match *arg {
            Arg::Text(v) => statement.raw_bind_parameter(i + 1, v)?,
            Arg::Int(v) => statement.raw_bind_parameter(i + 1, v)?,
            Arg::Bytes(v) => statement.raw_bind_parameter(i + 1, v)?,
        }
    }
    Ok(())
}

type PgQuery<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

fn pg_query<'q>(sql: &'static str, args: &[Arg<'q>]) -> PgQuery<'q> {
    args.iter().fold(sqlx::query(sql), |query, arg| match *arg {
        Arg::Text(v) => query.bind(v),
        Arg::Int(v) => query.bind(v),
        Arg::Bytes(v) => query.bind(v),
    })
}
