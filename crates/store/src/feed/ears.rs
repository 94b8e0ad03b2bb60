//! How surely this node hears of other nodes' commits. Whoever waits for news
//! looks at the database now and then all the same: often while this is in
//! doubt, seldom while the way was tried a moment ago and works.

use std::time::{Duration, Instant};

/// A look costs a query, so a reader that need not look does not.
const SELDOM: Duration = Duration::from_secs(5);
/// How long the word of another node that it may have lost news is minded.
const DOUBT: Duration = Duration::from_secs(3);

/// Since when each way works.
#[derive(Debug, Default)]
pub(super) struct Ears {
    redis: Option<Instant>,
    notifications: Option<Instant>,
    doubt: Option<Instant>,
}

impl Ears {
    pub(super) fn redis(&mut self, works: bool) {
        self.redis = works.then(Instant::now);
    }
    pub(super) fn notifications(&mut self, works: bool) {
        self.notifications = works.then(Instant::now);
    }
    /// Another node says that it neither hears nor reaches Redis.
    pub(super) fn doubt(&mut self) {
        self.doubt = Some(Instant::now() + DOUBT);
    }
    pub(super) fn doubted(&self) -> bool {
        self.doubt.is_some_and(|until| Instant::now() < until)
    }
    /// Since when nothing can have been missed. Redis alone is not enough:
    /// nodes without it use the notifications.
    fn sure(&self) -> Option<Instant> {
        let since = self.redis?.max(self.notifications?);
        match self.doubt {
            Some(until) if Instant::now() < until => None,
            Some(until) => Some(since.max(until)),
            None => Some(since),
        }
    }
    /// May somebody who looked at the database then go on waiting?
    pub(super) fn may_rest(&self, looked: Instant) -> bool {
        self.sure().is_some_and(|since| looked >= since) && looked.elapsed() < SELDOM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looked_before_the_way_worked_looks_again() {
        let mut ears = Ears::default();
        let early = Instant::now();
        assert!(!ears.may_rest(early));
        ears.redis(true);
        assert!(!ears.may_rest(Instant::now()), "the notifications are not there yet");
        ears.notifications(true);
        assert!(!ears.may_rest(early));
        assert!(ears.may_rest(Instant::now()));
    }

    #[test]
    fn a_lost_way_and_a_doubt_are_minded_at_once() {
        let mut ears = Ears::default();
        ears.redis(true);
        ears.notifications(true);
        ears.doubt();
        assert!(ears.doubted() && !ears.may_rest(Instant::now()));
        ears.doubt = None;
        assert!(ears.may_rest(Instant::now()));
        ears.redis(false);
        assert!(!ears.may_rest(Instant::now()));
    }
}
