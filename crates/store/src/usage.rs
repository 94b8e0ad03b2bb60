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

/// What was used in the last so many days, today among them.
pub async fn of_days(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    agent: &AgentName,
    days: i64,
) -> Result<Used, StoreError> {
    let today = tx.now().await?.millis().div_euclid(DAY_MS);
    let rows = tx
        .all(
            "SELECT tokens, cost FROM agent_usage WHERE tenant = $1 AND agent = $2 AND day > $3",
            args![tenant.as_str(), agent.as_str(), today - days],
            |r| Ok((r.int(0)?, r.int(1)?)),
        )
        .await?;
    let number = |n: i64| u64::try_from(n).unwrap_or(0);
    Ok(rows.into_iter().fold(Used::default(), |sum, (tokens, cost)| Used {
        tokens: sum.tokens.saturating_add(number(tokens)),
        cost: sum.cost.saturating_add(number(cost)),
    }))
}
