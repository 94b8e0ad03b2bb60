//! What can go wrong with a database, by what the caller can do about it.

use toolyard_protocol::event::Undecodable;

/// The cause, for logs only: it never reaches a client.
pub(crate) type Source = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Try again later: the database is down, busy or going away.
    #[error("the database does not answer")]
    Unavailable(#[source] Source),
    /// Free some space, then try again.
    #[error("the database has no room left")]
    Full(#[source] Source),
    /// A row with this key exists.
    #[error("a row with this key exists already")]
    Exists(#[source] Source),
    /// What the operation works on was deleted meanwhile.
    #[error("{0} is gone")]
    Gone(&'static str),
    /// A log that this release cannot read.
    #[error(transparent)]
    Undecodable(#[from] Undecodable),
    /// Something is wrong that a retry does not mend.
    #[error("the database is broken: {0}")]
    Broken(#[source] Source),
}

impl StoreError {
    pub fn broken(why: impl Into<String>) -> Self {
        Self::Broken(why.into().into())
    }
}

/// Why a database could not be opened: a sentence for whoever starts the gateway.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the data folder {folder} is in use by another gateway (its file `lock` is held)")]
    Locked { folder: String },
    #[error("the data folder {folder} cannot be used: {why}")]
    Folder { folder: String, why: String },
    #[error("the database {what} cannot be opened: {why}")]
    Database { what: String, why: String },
    #[error("{file} cannot be written: {why}")]
    Unwritable { file: String, why: std::io::Error },
    #[error("PostgreSQL at {place} {why}. {advice}")]
    Postgres { place: String, why: String, advice: String },
    #[error(
        "the database has schema version {found}; this release knows versions up to {known}. Use the newer release"
    )]
    TooNew { found: i64, known: i64 },
    #[error(
        "nodes of an earlier release still work on this database: {nodes}. Stop all of them, then start this one; \
         a node that was killed counts until its lease ends, in a few seconds"
    )]
    NodesAlive { nodes: String },
    #[error("migration {version} failed: {why}")]
    Migration { version: i64, why: String },
}

impl From<rusqlite::Error> for StoreError {
    fn from(e: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match e.sqlite_error_code() {
            Some(Code::DiskFull) => Self::Full(e.into()),
            Some(Code::ConstraintViolation) => Self::Exists(e.into()),
            Some(
                Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::SystemIoFailure
                | Code::CannotOpen
                | Code::ReadOnly
                | Code::OutOfMemory,
            ) => Self::Unavailable(e.into()),
            _ => Self::Broken(e.into()),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(e: sqlx::Error) -> Self {
        use sqlx::Error as E;
        match &e {
            E::Database(db) => match db.code().as_deref() {
                Some("23505") => Self::Exists(e.into()),
                Some("53100") => Self::Full(e.into()),
                Some(code) if unavailable(code) => Self::Unavailable(e.into()),
                Some(_) | None => Self::Broken(e.into()),
            },
            E::Io(_) | E::Tls(_) | E::PoolTimedOut | E::PoolClosed | E::WorkerCrashed | E::Protocol(_) => {
                Self::Unavailable(e.into())
            }
            _ => Self::Broken(e.into()),
        }
    }
}

/// Connection trouble, shutdown, serialization failure, deadlock, a lock or an
/// open transaction that lasts too long.
fn unavailable(code: &str) -> bool {
    ["08", "57P", "40"].iter().any(|class| code.starts_with(class)) || matches!(code, "55P03" | "25P03")
}
