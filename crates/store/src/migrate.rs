//! Brings a database to this release's schema, one numbered step at a time,
//! each in its own transaction.

use rusqlite::Connection;
use sqlx::{AssertSqlSafe, PgPool, Row as _};

use crate::error::OpenError;

/// The steps, in order. A step never changes once released.
const STEPS: &[&str] = &[
    include_str!("migrations/0001_spine.sql"),
    include_str!("migrations/0002_models.sql"),
    include_str!("migrations/0003_secrets.sql"),
    include_str!("migrations/0004_prebuilt.sql"),
    include_str!("migrations/0005_mcp.sql"),
    include_str!("migrations/0006_turns.sql"),
    include_str!("migrations/0007_live.sql"),
    include_str!("migrations/0008_logins.sql"),
    include_str!("migrations/0009_plugins.sql"),
    include_str!("migrations/0010_push.sql"),
    include_str!("migrations/0012_plugin_switch.sql"),
    include_str!("migrations/0014_belongings.sql"),
    include_str!("migrations/0015_log_rows.sql"),
    include_str!("migrations/0016_retention.sql"),
    include_str!("migrations/0017_removals.sql"),
    include_str!("migrations/0018_rows.sql"),
    include_str!("migrations/0019_more_rows.sql"),
    include_str!("migrations/0020_one_log.sql"),
];

/// From this step on, nodes of earlier builds must have stopped: the table that
/// they write is gone. It is the step 0020.
const ALONE: i64 = 18;

/// The schema version of this release.
pub fn known_version() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// A line behind `--sqlite: ` or `--postgres: ` is for that database alone.
fn dialect(step: &str, words: [(&str, &str); 4]) -> String {
    words.iter().fold(step.to_owned(), |sql, (mark, word)| sql.replace(mark, word))
}

fn for_sqlite(step: &str) -> String {
    let words = [
        ("@ROWLESS_HOT", " WITHOUT ROWID"),
        ("@ROWLESS", " WITHOUT ROWID"),
        ("@BLOB", "BLOB"),
        ("--sqlite: ", ""),
    ];
    dialect(step, words)
}

fn for_postgres(step: &str) -> String {
    // Rows of `runs` change often: room on their page keeps the updates there.
    let words = [
        ("@ROWLESS_HOT", " WITH (fillfactor=70)"),
        ("@ROWLESS", ""),
        ("@BLOB", "BYTEA"),
        ("--postgres: ", ""),
    ];
    dialect(step, words)
}

fn pending(found: i64) -> Result<impl Iterator<Item = (i64, &'static &'static str)>, OpenError> {
    let known = known_version();
    if found > known {
        return Err(OpenError::TooNew { found, known });
    }
    Ok((1..).zip(STEPS).filter(move |(version, _)| *version > found))
}

pub(crate) fn sqlite(conn: &mut Connection) -> Result<(), OpenError> {
    let failed =
        |version: i64| move |e: rusqlite::Error| OpenError::Migration { version, why: e.to_string() };
    let found: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed(0))?;
    for (version, step) in pending(found)? {
        let tx = conn.transaction().map_err(failed(version))?;
        tx.execute_batch(&for_sqlite(step)).map_err(failed(version))?;
        crate::failpoint!("migrate.mid");
        tx.pragma_update(None, "user_version", version).map_err(failed(version))?;
        tx.commit().map_err(failed(version))?;
    }
    Ok(())
}

pub(crate) async fn postgres(pool: &PgPool) -> Result<(), OpenError> {
    let failed = |version: i64| move |e: sqlx::Error| OpenError::Migration { version, why: e.to_string() };
    let mut tx = pool.begin().await.map_err(failed(0))?;
    // Two nodes that start at once migrate one after the other, however long a step takes.
    let patient = "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; \
                   SELECT pg_advisory_xact_lock(814720591); SET LOCAL lock_timeout = '10s'";
    sqlx::raw_sql(patient).execute(&mut *tx).await.map_err(failed(0))?;
    sqlx::query("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
        .execute(&mut *tx)
        .await
        .map_err(failed(0))?;
    let row = sqlx::query("SELECT coalesce(max(version), 0)::bigint FROM schema_version")
        .fetch_one(&mut *tx)
        .await
        .map_err(failed(0))?;
    let found: i64 = row.try_get(0).map_err(failed(0))?;
    let steps = pending(found)?;
    if (1..ALONE).contains(&found) {
        let alive = "SELECT DISTINCT id FROM nodes WHERE until > (extract(epoch from statement_timestamp()) * 1000)::bigint ORDER BY id";
        let alive: Vec<String> =
            sqlx::query_scalar(alive).fetch_all(&mut *tx).await.map_err(failed(found))?;
        if !alive.is_empty() {
            return Err(OpenError::NodesAlive { nodes: alive.join(", ") });
        }
    }
    for (version, step) in steps {
        sqlx::raw_sql(AssertSqlSafe(for_postgres(step))).execute(&mut *tx).await.map_err(failed(version))?;
        crate::failpoint!("migrate.mid");
        sqlx::query("INSERT INTO schema_version (version) VALUES ($1)")
            .bind(version)
            .execute(&mut *tx)
            .await
            .map_err(failed(version))?;
    }
    tx.commit().await.map_err(failed(0))
}
