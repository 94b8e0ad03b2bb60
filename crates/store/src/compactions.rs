//! Summaries that stand for the older part of a branch, each for one agent: it
//! holds what that agent alone may have seen. The messages stay.

use toolyard_protocol::{BranchId, EntityId, RunId, SpaceId, TenantId};

use crate::branches::{self, Stretch};
use crate::error::StoreError;
use crate::tx::{Tx, args};

/// What a model reads instead of the messages up to a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    pub up_to: i64,
    /// Empty if the messages are left out without a word.
    pub summary: String,
}

/// Whose conversation it is, as the model reads it.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    pub space: &'a SpaceId,
    pub branch: &'a BranchId,
    pub agent: Option<&'a EntityId>,
}

impl Reader<'_> {
    fn agent(&self) -> &str {
        self.agent.map_or("", EntityId::as_str)
    }
}

/// Keeps a summary. Two runs that summarize up to the same place: the first counts.
pub async fn put(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    reader: Reader<'_>,
    run: &RunId,
    compaction: &Compaction,
) -> Result<(), StoreError> {
    tx.exec(
        "INSERT INTO compactions (tenant, space, branch, agent_entity, up_to, summary, run) VALUES ($1, $2, $3, $4, $5, $6, $7) \
         ON CONFLICT (tenant, space, branch, agent_entity, up_to) DO NOTHING",
        args![
            tenant.as_str(),
            reader.space.as_str(),
            reader.branch.as_str(),
            reader.agent(),
            compaction.up_to,
            &compaction.summary,
            run.as_str()
        ],
    )
    .await?;
    Ok(())
}

/// The newest summary that says nothing of what comes after `before`; one of a
/// branch that this one comes from counts as well.
pub async fn latest(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    reader: Reader<'_>,
    before: i64,
) -> Result<Option<Compaction>, StoreError> {
    let chain = branches::chain(tx, tenant, reader.space, reader.branch, before).await?;
    for Stretch { branch, up_to } in chain {
        let found = tx
            .one(
                "SELECT up_to, summary FROM compactions WHERE tenant = $1 AND space = $2 AND branch = $3 AND agent_entity = $4 AND up_to <= $5 ORDER BY up_to DESC LIMIT 1",
                args![tenant.as_str(), reader.space.as_str(), branch.as_str(), reader.agent(), up_to],
                |r| Ok(Compaction { up_to: r.int(0)?, summary: r.text(1)? }),
            )
            .await?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
