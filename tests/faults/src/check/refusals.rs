//! D10: clients may be refused while something is away, and for a little while
//! longer.

use super::{Found, Promise, Read};
use crate::history::{History, Record};

/// So long after something is mended it may still be felt.
const GRACE_MS: i64 = 5_000;

pub(super) fn check(history: &History, read: &Read<'_>, found: &mut Found) {
    // Commits that fail by chance are refused at any time.
    if history.0.iter().any(|record| matches!(record, Record::Failed { commits } if *commits > 0)) {
        return;
    }
    let mut away: Vec<(i64, i64)> = read.faults.iter().map(|(from, to)| (*from, to + GRACE_MS)).collect();
    away.sort_unstable();
    for record in &history.0 {
        if let Record::Refused { asked, status, from, to } = record {
            let felt = excused_until(&away, *from);
            found.unless(felt >= *to, Promise::LongRefusal, || {
                let late = to - felt.max(*from);
                format!("{asked} was answered {status} for {} ms, {late} ms too long", to - from)
            });
        }
    }
}

/// How long refusals from a moment on are no wonder, without a gap.
fn excused_until(away: &[(i64, i64)], from: i64) -> i64 {
    let mut until = i64::MIN;
    for (begin, end) in away {
        if *begin <= from.max(until) {
            until = until.max(*end);
        }
    }
    until
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_that_follow_one_another_are_one() {
        let away = [(0, 5), (4, 9), (20, 25)];
        assert_eq!(excused_until(&away, 1), 9);
        assert_eq!(excused_until(&away, 21), 25);
        assert!(excused_until(&away, 12) < 12);
        assert!(excused_until(&[], 12) < 12);
    }
}
