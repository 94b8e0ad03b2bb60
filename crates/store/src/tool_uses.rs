//! How often tools were called, and how that went. Nodes count in memory and
//! add up here now and then: a number that is lost with a process is no harm.

use toolyard_protocol::{AgentName, TenantId, Timestamp, ToolName, limits};

use crate::error::StoreError;
use crate::tx::{Tx, args};

/// What is known of one tool of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    pub tool: ToolName,
    pub calls: i64,
    pub failures: i64,
    /// All calls together.
    pub total_ms: i64,
    pub last_at: Timestamp,
}

/// Adds to what is known. Requests name tools as they like, so an agent has a
/// limited number of rows; further tools are not counted. Callers add in the order of their keys, so that two
/// nodes never wait for each other.
pub async fn add(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    agent: &AgentName,
    more: &ToolUse,
) -> Result<(), StoreError> {
    tx.exec(
        "INSERT INTO tool_uses (tenant, agent, tool, calls, failures, total_ms, last_at) SELECT $1, $2, $3, $4, $5, $6, $7 \
         WHERE (SELECT count(*) FROM tool_uses WHERE tenant = $1 AND agent = $2) < $8 OR EXISTS (SELECT 1 FROM tool_uses WHERE tenant = $1 AND agent = $2 AND tool = $3) \
         ON CONFLICT (tenant, agent, tool) DO UPDATE SET calls = tool_uses.calls + excluded.calls, failures = tool_uses.failures + excluded.failures, \
         total_ms = tool_uses.total_ms + excluded.total_ms, last_at = CASE WHEN excluded.last_at > tool_uses.last_at THEN excluded.last_at ELSE tool_uses.last_at END",
        args![
            tenant.as_str(),
            agent.as_str(),
            more.tool.as_str(),
            more.calls,
            more.failures,
            more.total_ms,
            more.last_at,
            limits::COUNTED_TOOLS
        ],
    )
    .await?;
    Ok(())
}

/// The tools of an agent that were ever called.
pub async fn of_agent(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    agent: &AgentName,
) -> Result<Vec<ToolUse>, StoreError> {
    tx.all(
        "SELECT tool, calls, failures, total_ms, last_at FROM tool_uses WHERE tenant = $1 AND agent = $2 ORDER BY tool",
        args![tenant.as_str(), agent.as_str()],
        |r| {
            Ok(ToolUse {
                tool: r.parsed(0, ToolName::parse)?,
                calls: r.int(1)?,
                failures: r.int(2)?,
                total_ms: r.int(3)?,
                last_at: r.time(4)?,
            })
        },
    )
    .await
}
