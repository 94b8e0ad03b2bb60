//! How long to wait before the next try: longer each time, never at the same
//! moment as everybody else, and never against what the gateway asked for.

use std::time::Duration;

/// The waits between tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Before the second try.
    pub first: Duration,
    /// Never longer than this.
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(200), most: Duration::from_secs(15) }
    }
}

impl Backoff {
    /// The wait after `failures` tries in a row: half of it is fixed, the
    /// other half is chance.
    pub(crate) fn wait(&self, failures: u32, asked: Option<Duration>) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1).min(16)).unwrap_or(u32::MAX);
        let whole = self.first.saturating_mul(doubled).min(self.most);
        let half = whole / 2;
        let own = half + half.mul_f64(chance());
        asked.map_or(own, |asked| asked.min(Duration::from_secs(120)).max(own))
    }
}

/// A number from 0 to 1. Ids are made of chance, so one serves as it.
fn chance() -> f64 {
    let bits = uuid::Uuid::now_v7().as_u128() & 0xffff;
    f64::from(u16::try_from(bits).unwrap_or(0)) / 65535.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_limit_and_heed_what_was_asked() {
        let backoff = Backoff { first: Duration::from_millis(100), most: Duration::from_secs(1) };
        for (failures, low, high) in [(1, 50, 100), (2, 100, 200), (4, 400, 800), (40, 500, 1000)] {
            let wait = backoff.wait(failures, None).as_millis();
            assert!((low..=high).contains(&wait), "{failures}: {wait}");
        }
        assert_eq!(backoff.wait(1, Some(Duration::from_secs(3))), Duration::from_secs(3));
        assert_eq!(backoff.wait(1, Some(Duration::from_secs(9999))), Duration::from_secs(120));
    }
}
