//! SQLite's database time: it never goes back, whatever the machine's clock
//! does (row D4). PostgreSQL has its own time and uses nothing of this.
//!
//! - A clock that is set back is not followed: time goes on from where it was.
//! - A clock that is set ahead is followed. A machine that slept looks the
//!   same, and what was due meanwhile must not wait as long again.
//! - A new process starts no earlier than the newest moment that something
//!   alive was written. So a queued run is due at once, and no wait lasts
//!   longer than its own length.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use toolyard_protocol::{Timestamp, limits};

use crate::clock::Clock;

/// A step back of less than this is how clocks are: nobody needs to hear of it.
const WORTH_A_WORD_MS: u64 = 2_000;

#[derive(Debug)]
struct Steady {
    clock: Arc<dyn Clock>,
    /// The latest moment and how much time had passed then.
    last: Mutex<(Timestamp, Duration)>,
}

impl Steady {
    fn from(clock: Arc<dyn Clock>, newest: Timestamp) -> Self {
        let last = Mutex::new((newest.max(clock.now()), clock.passed()));
        Self { clock, last }
    }
}

impl Clock for Steady {
    fn now(&self) -> Timestamp {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (wall, passed) = (self.clock.now(), self.clock.passed());
        let (then, at) = *last;
        let since = passed.saturating_sub(at);
        let carried = then.plus_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        if wall > carried {
            // Only here, so that parts of milliseconds are not dropped at every look.
            *last = (wall, passed);
        }
        wall.max(carried)
    }
    fn passed(&self) -> Duration {
        self.clock.passed()
    }
}

/// The time of a database that has just been opened.
pub(crate) fn steady(clock: Arc<dyn Clock>, conn: &Connection) -> rusqlite::Result<Arc<dyn Clock>> {
    let newest = newest(conn)?;
    let behind = newest.since(clock.now());
    if behind > WORTH_A_WORD_MS {
        tracing::warn!(
            behind_ms = behind,
            "the machine's clock is behind what the database holds; the database's time goes on from there"
        );
    }
    Ok(Arc::new(Steady::from(clock, newest)))
}

/// The newest moment at which something was written that is still alive, by
/// indexes that hold little else. What has ended does not care about time.
fn newest(conn: &Connection) -> rusqlite::Result<Timestamp> {
    let claim_ms = i64::try_from(limits::CLAIM_SECONDS * 1000).unwrap_or(0);
    let ms: i64 = conn.query_row(
        "SELECT max( \
           (SELECT coalesce(max(updated_at), 0) FROM runs WHERE wake_at IS NOT NULL), \
           (SELECT coalesce(max(updated_at), 0) FROM runs WHERE owner IS NOT NULL), \
           (SELECT coalesce(max(max(opened_at, coalesce(claim_until - ?1, 0))), 0) FROM waits WHERE ended_seq IS NULL), \
           (SELECT coalesce(max(at), 0) FROM idempotency))",
        [claim_ms],
        |row| row.get(0),
    )?;
    Ok(Timestamp::from_millis(ms))
}
