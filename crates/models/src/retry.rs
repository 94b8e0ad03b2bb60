//! When a failed request is sent again, and after how long. Pure.

use std::time::Duration;

/// The longest `Retry-After` that is waited for. A vendor that asks for more
/// gets no second request: the caller is told at once.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(20);
/// The longest pause that we choose ourselves.
const PAUSE_MAX: Duration = Duration::from_secs(8);

/// How often, and how patiently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Requests after the first.
    pub max: u32,
    /// The pause before the first repeat; it doubles.
    pub pause: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max: 2, pause: Duration::from_millis(500) }
    }
}

impl Retry {
    /// The pause before the next request, or `None` to give up. `done` counts
    /// the repeats so far; `noise` spreads callers that failed together.
    pub fn pause(&self, done: u32, asked: Option<Duration>, noise: u64) -> Option<Duration> {
        if done >= self.max {
            return None;
        }
        match asked {
            Some(asked) if asked > RETRY_AFTER_MAX => None,
            Some(asked) => Some(asked),
            None => {
                let doubled = self.pause.saturating_mul(2u32.saturating_pow(done)).min(PAUSE_MAX);
                // Up to a quarter more.
                let share = (noise % 1024) as f64 / 4096.0;
                Some(doubled.mul_f64(1.0 + share))
            }
        }
    }
}

/// A number that differs between callers and calls.
pub(crate) fn noise() -> u64 {
    use std::hash::BuildHasher;
    std::hash::RandomState::new().hash_one(0u8)
}
