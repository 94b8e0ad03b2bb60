//! What the runs of an agent used, day by day (UTC), for its budget.

use toolyard_protocol::{AgentName, TenantId};

use crate::error::StoreError;
use crate::tx::{Tx, args};

/// Tokens, and millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    pub tokens: u64,
    pub cost: u64,
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Adds to today, by the database's time.
pub async fn add(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    agent: &AgentName,
    used: Used,
) -> Result<(), StoreError> {
    let day = tx.now().await?.millis().div_euclid(DAY_MS);
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    tx.exec(
        "INSERT INTO agent_usage (tenant, agent, day, tokens, cost) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (tenant, agent, day) DO UPDATE SET tokens = agent_usage.tokens + $4, cost = agent_usage.cost + $5",
        args![tenant.as_str(), agent.as_str(), day, number(used.tokens), number(used.cost)],
    )
    .await?;
    Ok(())
}

/// The time that a budget is for, as the calendar has it (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    Day,
    Month,
}

impl Span {
    /// The first day of the span that holds this day, both counted from 1970.
    fn start(self, day: i64) -> i64 {
        match self {
            Self::Day => day,
            Self::Month => day - (day_of_month(day) - 1),
        }
    }
}

/// The calendar repeats every 400 years. Years begin in March here, so that the
/// odd day of February is their last, and months have a simple rule.
fn day_of_month(day: i64) -> i64 {
    // From the 1st of March of the year 0.
    let day = (day + 719_468).rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    of_year - (153 * month + 2) / 5 + 1
}

/// What was used in the day or month that is now, by the database's time.
pub async fn of(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    agent: &AgentName,
    span: Span,
) -> Result<Used, StoreError> {
    let today = tx.now().await?.millis().div_euclid(DAY_MS);
    let rows = tx
        .all(
            "SELECT tokens, cost FROM agent_usage WHERE tenant = $1 AND agent = $2 AND day >= $3",
            args![tenant.as_str(), agent.as_str(), span.start(today)],
            |r| Ok((r.int(0)?, r.int(1)?)),
        )
        .await?;
    let number = |n: i64| u64::try_from(n).unwrap_or(0);
    Ok(rows.into_iter().fold(Used::default(), |sum, (tokens, cost)| Used {
        tokens: sum.tokens.saturating_add(number(tokens)),
        cost: sum.cost.saturating_add(number(cost)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_begins_on_its_first_day() {
        // 1970-01-01, 1970-01-31, 1970-02-01, 2000-02-29, 2000-03-01, 2026-11-16, 2100-03-01
        let days = [
            (0, 0),
            (30, 0),
            (31, 31),
            (11_016, 10_988),
            (11_017, 11_017),
            (20_773, 20_758),
            (47_541, 47_541),
        ];
        for (day, first) in days {
            assert_eq!(Span::Month.start(day), first, "{day}");
            assert_eq!(Span::Day.start(day), day);
        }
        // Every day of four hundred years lies in the month of the day before, or begins one.
        let mut firsts = 0;
        for day in 0..146_097 {
            let first = Span::Month.start(day);
            assert!(first == day || first == Span::Month.start(day - 1), "{day}");
            firsts += i64::from(first == day);
        }
        assert_eq!(firsts, 400 * 12);
    }
}
