//! How often one caller may ask: one bucket per user of a public key, one per
//! secret key. In memory, per node.

use std::num::NonZeroU32;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use toolyard_protocol::{KeyKind, Principal};

use super::refusal::Refusal;
use crate::config::Limits;

/// Buckets that are full again are forgotten after so many requests.
const SWEEP_EVERY: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Rates {
    public: Option<Rate>,
    secret: Option<Rate>,
    clock: DefaultClock,
}

#[derive(Debug)]
struct Rate {
    per_second: NonZeroU32,
    buckets: DefaultKeyedRateLimiter<String>,
}

impl Rates {
    pub(crate) fn new(limits: &Limits) -> Self {
        let rate = |per_second| {
            let per_second = NonZeroU32::new(per_second)?;
            let burst = NonZeroU32::new(limits.burst).unwrap_or(per_second);
            let quota = Quota::per_second(per_second).allow_burst(burst);
            Some(Rate { per_second, buckets: RateLimiter::keyed(quota) })
        };
        Self {
            public: rate(limits.public_rate),
            secret: rate(limits.secret_rate),
            clock: DefaultClock::default(),
        }
    }

    /// Takes one from the caller's bucket.
    pub(crate) fn take(&self, principal: &Principal) -> Result<(), Refusal> {
        let rate = match principal.kind {
            KeyKind::Public => &self.public,
            KeyKind::Secret => &self.secret,
        };
        let Some(rate) = rate else { return Ok(()) };
        let user = principal.entity.as_ref().map_or("", |e| e.as_str());
        let bucket = format!("{}/{}/{user}", principal.tenant, principal.key);
        if rate.buckets.len() > SWEEP_EVERY {
            rate.buckets.retain_recent();
        }
        rate.buckets.check_key(&bucket).map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            Refusal::too_many(rate.per_second.get(), wait.as_secs().max(1))
        })
    }
}
