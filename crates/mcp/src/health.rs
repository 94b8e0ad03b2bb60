//! When to try again: longer pauses after each failure, and none at all once
//! a server fails too often. Pure: time and chance come from outside.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::fault::{Fault, FaultKind};

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
/// A server that worked so long starts with a clean slate.
const HEALTHY: Duration = Duration::from_secs(60);
/// So many failures in this time open the circuit.
const MOST: usize = 5;
const WINDOW: Duration = Duration::from_secs(120);
/// An open circuit stays open so long; then the next demand tries once.
pub(crate) const COOL: Duration = Duration::from_secs(60);
/// No server may send us away for longer.
const AWAY: Duration = Duration::from_secs(600);

/// What follows a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    RetryIn(Duration),
    /// No try by ourselves; a demand may try after the time.
    GiveUp(Duration),
    /// Nothing helps but a login.
    Login,
}

#[derive(Debug, Default)]
pub(crate) struct Health {
    failures: VecDeque<Instant>,
    tries: u32,
    up: Option<Instant>,
}

impl Health {
    pub(crate) fn up(&mut self, now: Instant) {
        self.up = Some(now);
    }

    /// `chance` is between 0 and 1 and spreads retries by a quarter each way.
    pub(crate) fn failed(&mut self, now: Instant, fault: &Fault, chance: f64) -> Verdict {
        if self.up.take().is_some_and(|up| now.duration_since(up) >= HEALTHY) {
            self.tries = 0;
            self.failures.clear();
        }
        let after = match &fault.kind {
            FaultKind::Login { .. } => return Verdict::Login,
            FaultKind::Lasting => return Verdict::GiveUp(COOL),
            FaultKind::Passing { after, .. } => *after,
        };
        self.failures.push_back(now);
        self.failures.retain(|at| now.duration_since(*at) < WINDOW);
        if self.failures.len() >= MOST {
            self.failures.clear();
            self.tries = 0;
            return Verdict::GiveUp(COOL);
        }
        let pause = FIRST.saturating_mul(1 << self.tries.min(10)).min(LONGEST);
        self.tries += 1;
        let spread = pause.mul_f64(0.75 + chance.clamp(0.0, 1.0) / 2.0);
        Verdict::RetryIn(after.map_or(spread, |after| after.min(AWAY).max(spread)))
    }

    pub(crate) fn failures(&self) -> usize {
        self.failures.len()
    }
}

/// A number between 0 and 1 that differs between processes and calls.
pub(crate) fn chance() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let bits = std::collections::hash_map::RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passing() -> Fault {
        Fault::passing("x")
    }

    #[test]
    fn pauses_double_and_five_failures_open_the_circuit() {
        let (start, mut health) = (Instant::now(), Health::default());
        let mut pauses = Vec::new();
        for i in 0..4 {
            pauses.push(health.failed(start + Duration::from_secs(i), &passing(), 0.5));
        }
        let expected = [500, 1000, 2000, 4000].map(|ms| Verdict::RetryIn(Duration::from_millis(ms)));
        assert_eq!(pauses, expected);
        assert_eq!(health.failed(start + Duration::from_secs(5), &passing(), 0.5), Verdict::GiveUp(COOL));
    }

    #[test]
    fn a_healthy_minute_forgives_and_old_failures_do_not_count() {
        let (start, mut health) = (Instant::now(), Health::default());
        for i in 0..20 {
            let at = start + Duration::from_secs(61 * i);
            health.up(at);
            let verdict = health.failed(at + Duration::from_secs(60), &passing(), 0.5);
            assert_eq!(verdict, Verdict::RetryIn(FIRST));
        }
    }

    #[test]
    fn the_server_may_ask_for_more_time_and_a_login_is_not_retried() {
        let (now, mut health) = (Instant::now(), Health::default());
        let busy = Fault::status(429, Some(Duration::from_secs(17)), "");
        assert_eq!(health.failed(now, &busy, 0.0), Verdict::RetryIn(Duration::from_secs(17)));
        assert_eq!(health.failed(now, &Fault::login(None), 0.0), Verdict::Login);
        assert_eq!(health.failed(now, &Fault::lasting("no such program"), 0.0), Verdict::GiveUp(COOL));
    }
}
