//! What a write in SQLite's group takes back when it is refused.
//!
//! A savepoint costs a copy of every page that the write touches, so it is set
//! only where something may have to be taken back: not for the first write of a
//! group, not before the first change, and not for a write that has said that
//! nothing is left to refuse.

use rusqlite::{CachedStatement, Connection};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The transaction: nothing else is in it yet. Also a reading.
    Whole,
    /// Nothing: it has changed nothing. Its first change sets a savepoint.
    Unchanged,
    /// All since its savepoint.
    Savepoint,
    /// The whole group, should it fail all the same after its first change. The
    /// count of changes is the connection's when it settled.
    Settled { changes: u64 },
}

impl Frame {
    /// Before a statement runs.
    pub(crate) fn before(
        &mut self,
        conn: &Connection,
        statement: &CachedStatement<'_>,
    ) -> rusqlite::Result<()> {
        if *self == Self::Unchanged && !statement.readonly() {
            run(conn, "SAVEPOINT job")?;
            *self = Self::Savepoint;
        }
        Ok(())
    }

    /// Nothing will be refused behind the next change.
    pub(crate) fn settle(&mut self, conn: &Connection) {
        if *self == Self::Unchanged {
            *self = Self::Settled { changes: conn.total_changes() };
        }
    }

    pub(crate) fn keep(self, conn: &Connection) -> rusqlite::Result<()> {
        match self {
            Self::Savepoint => run(conn, "RELEASE job"),
            Self::Whole | Self::Unchanged | Self::Settled { .. } => Ok(()),
        }
    }

    /// True if the whole group went with it: what cannot be taken back alone must
    /// not be committed with the others.
    pub(crate) fn take_back(self, conn: &Connection) -> bool {
        // A full disk ends the whole transaction: nothing is left to take back.
        if conn.is_autocommit() {
            return false;
        }
        let alone = match self {
            Self::Whole => run(conn, "ROLLBACK").and_then(|()| run(conn, "BEGIN IMMEDIATE")).is_ok(),
            Self::Savepoint => run(conn, "ROLLBACK TO job").and_then(|()| run(conn, "RELEASE job")).is_ok(),
            Self::Unchanged => true,
            Self::Settled { changes } => conn.total_changes() == changes,
        };
        if !alone {
            let _ = run(conn, "ROLLBACK");
        }
        !alone
    }
}

/// Runs one of the few statements that frame others, compiled once.
pub(crate) fn run(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.raw_execute().map(drop)
}
