//! Summaries that stand for the older part of a branch. The messages stay.

use toolyard_protocol::{BranchId, RunId, SpaceId, TenantId};

use crate::error::StoreError;
use crate::tx::{Tx, args};

/// What a model reads instead of the messages up to a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    pub up_to: i64,
    /// Empty if the messages are left out without a word.
    pub summary: String,
}

/// Keeps a summary. Two runs that summarize up to the same place: the first counts.
pub async fn put(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    branch: &BranchId,
    run: &RunId,
    compaction: &Compaction,
) -> Result<(), StoreError> {
    tx.exec(
        "INSERT INTO compactions (tenant, space, branch, up_to, summary, run) VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (tenant, space, branch, up_to) DO NOTHING",
        args![
            tenant.as_str(),
            space.as_str(),
            branch.as_str(),
            compaction.up_to,
            &compaction.summary,
            run.as_str()
        ],
    )
    .await?;
    Ok(())
}

/// The newest summary that says nothing of what comes after `before`.
pub async fn latest(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    branch: &BranchId,
    before: i64,
) -> Result<Option<Compaction>, StoreError> {
    tx.one(
        "SELECT up_to, summary FROM compactions WHERE tenant = $1 AND space = $2 AND branch = $3 AND up_to <= $4 ORDER BY up_to DESC LIMIT 1",
        args![tenant.as_str(), space.as_str(), branch.as_str(), before],
        |r| Ok(Compaction { up_to: r.int(0)?, summary: r.text(1)? }),
    )
    .await
}
