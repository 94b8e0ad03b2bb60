//! What was said before a run, read by the transaction that starts it.
//!
//! A run that begins or wakes asks its model at once, and the model reads the
//! conversation. SQLite's writer has just had those pages in hand; a reader
//! would fetch them again. So where the conversation is short, whoever starts
//! the run brings it along.

use std::time::{Duration, Instant};

use toolyard_protocol::TenantId;
use toolyard_protocol::event::RunCreated;
use toolyard_protocol::message::Part;
use toolyard_store::compactions::{self, Compaction, Reader};
use toolyard_store::messages::{self, Said};
use toolyard_store::{StoreError, Tx};

/// Positions of a space that are read on the way. The writer must not wait long.
const SHORT: i64 = 64;
/// What was said may be removed: nobody reads it much later than it was read here.
const FRESH: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Earlier {
    pub(crate) compaction: Option<Compaction>,
    pub(crate) said: Vec<Said>,
    read: Instant,
}

impl Earlier {
    pub(crate) async fn read(
        tx: &mut Tx<'_>,
        tenant: &TenantId,
        created: &RunCreated,
    ) -> Result<Self, StoreError> {
        let mut earlier = Self { compaction: None, said: Vec::new(), read: Instant::now() };
        if let Some(space) = &created.space {
            let (branch, to) = (&created.branch, created.history_to);
            let reader = Reader { space, branch, agent: created.agent_entity.as_ref() };
            earlier.compaction = compactions::latest(tx, tenant, reader, to).await?;
            let after = earlier.compaction.as_ref().map_or(0, |c| c.up_to);
            earlier.said = messages::history(tx, tenant, space, branch, after, to).await?;
        }
        Ok(earlier)
    }

    /// As [`Self::read`], if it is short and has no files, which lie elsewhere.
    pub(crate) async fn read_if_short(
        tx: &mut Tx<'_>,
        tenant: &TenantId,
        created: &RunCreated,
    ) -> Result<Option<Self>, StoreError> {
        if created.history_to > SHORT {
            return Ok(None);
        }
        let earlier = Self::read(tx, tenant, created).await?;
        let mut parts = earlier.said.iter().flat_map(|said| &said.parts);
        Ok((!parts.any(|part| matches!(part, Part::File { .. }))).then_some(earlier))
    }

    pub(crate) fn is_fresh(&self) -> bool {
        self.read.elapsed() < FRESH
    }
}
