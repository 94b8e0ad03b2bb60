//! Lines of messages within a space. Every space begins with `main`; an edit
//! or a second try starts another one at a position of the first.

use toolyard_protocol::{BranchId, SpaceId, TenantId};

use crate::error::StoreError;
use crate::tx::{Tx, args};

/// Parents that are followed at most. Whoever forks climbs first, so only
/// edits within edits make a line longer.
const DEPTH: usize = 256;

/// A stretch of a branch: its messages up to a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    pub branch: BranchId,
    pub up_to: i64,
}

/// Where a branch comes from; none for the first.
async fn parent(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    branch: &BranchId,
) -> Result<Option<(BranchId, i64)>, StoreError> {
    // The first branch has no row, and most spaces have no other.
    if *branch == BranchId::main() {
        return Ok(None);
    }
    tx.one(
        "SELECT parent, fork_pos FROM branches WHERE tenant = $1 AND space = $2 AND id = $3",
        args![tenant.as_str(), space.as_str(), branch.as_str()],
        |r| Ok((r.parsed(0, BranchId::parse)?, r.int(1)?)),
    )
    .await
}

/// The stretches that a branch is made of, newest first.
pub async fn chain(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    branch: &BranchId,
    up_to: i64,
) -> Result<Vec<Stretch>, StoreError> {
    let mut chain = vec![Stretch { branch: branch.clone(), up_to }];
    let mut up_to = up_to;
    for _ in 0..DEPTH {
        let Some(last) = chain.last() else { break };
        let Some((branch, fork)) = parent(tx, tenant, space, &last.branch).await? else { break };
        up_to = up_to.min(fork);
        chain.push(Stretch { branch, up_to });
    }
    Ok(chain)
}

/// Starts a branch that has what `from` has up to a position. The space goes
/// on with it.
pub async fn fork(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    from: &BranchId,
    at: i64,
) -> Result<BranchId, StoreError> {
    let now = tx.now().await?;
    // A fork before a fork belongs to the branch below: lines stay short.
    let mut from = from.clone();
    while let Some((below, _)) = parent(tx, tenant, space, &from).await?.filter(|(_, fork)| at <= *fork) {
        from = below;
    }
    let branch = BranchId::mint();
    tx.exec(
        "INSERT INTO branches (tenant, space, id, parent, fork_pos, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
        args![tenant.as_str(), space.as_str(), branch.as_str(), from.as_str(), at, now],
    )
    .await?;
    tx.exec(
        "UPDATE spaces SET branch = $1 WHERE tenant = $2 AND id = $3",
        args![branch.as_str(), tenant.as_str(), space.as_str()],
    )
    .await?;
    Ok(branch)
}
