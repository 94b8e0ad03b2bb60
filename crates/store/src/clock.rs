//! Time as a value. SQLite has one process, so its database time comes from
//! this process's clock (see [`crate::steady`]); PostgreSQL answers with its own.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use toolyard_protocol::Timestamp;

/// Where moments come from.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// What the clock says. A machine's clock may be set, also back.
    fn now(&self) -> Timestamp;
    /// Time since some fixed moment of this process. It never goes back.
    fn passed(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(ms.saturating_add(skew_ms()))
    }
    fn passed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A test build's clock is wrong by the milliseconds in the file that
/// `TOOLYARD_CLOCK_SKEW` names. The file may change while the process runs.
#[cfg(feature = "failpoints")]
fn skew_ms() -> i64 {
    static FILE: std::sync::OnceLock<Option<std::ffi::OsString>> = std::sync::OnceLock::new();
    let file = FILE.get_or_init(|| std::env::var_os("TOOLYARD_CLOCK_SKEW"));
    let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[cfg(not(feature = "failpoints"))]
const fn skew_ms() -> i64 {
    0
}

/// A clock that a test moves by hand.
#[derive(Debug)]
pub struct ManualClock {
    wall: AtomicI64,
    passed: AtomicI64,
}

impl ManualClock {
    pub fn at(ms: i64) -> Self {
        Self { wall: AtomicI64::new(ms), passed: AtomicI64::new(0) }
    }
    /// Time passes.
    pub fn advance(&self, ms: i64) {
        self.wall.fetch_add(ms, Ordering::SeqCst);
        self.passed.fetch_add(ms, Ordering::SeqCst);
    }
    /// Somebody sets the clock, ahead or back. No time passes.
    pub fn set_by(&self, ms: i64) {
        self.wall.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.wall.load(Ordering::SeqCst))
    }
    fn passed(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.passed.load(Ordering::SeqCst)).unwrap_or(0))
    }
}
