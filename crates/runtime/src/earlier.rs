//! What was said before a run, brought along by the transaction that starts it.
//!
//! A run that begins or wakes asks its model at once, and the model reads the
//! conversation. SQLite's writer has just had those pages in hand; a reader
//! would fetch them again. So where the conversation is short, whoever starts
//! the run brings it along, unread: the writer only copies it, and what this
//! release cannot read is no reason to refuse a message.

use std::time::{Duration, Instant};

use toolyard_protocol::TenantId;
use toolyard_protocol::event::RunCreated;
use toolyard_protocol::message::Part;
use toolyard_store::compactions::{self, Compaction, Reader};
use toolyard_store::messages::{self, Said, Unread};
use toolyard_store::{StoreError, Tx};

/// Positions and bytes of a space that are brought along. The writer must not
/// wait long, so no message may be longer than its share of the bytes.
const SHORT: i64 = 64;
const SHORT_BYTES: i64 = 128 << 10;
/// What was said may be removed: nobody reads it much later than it was read here.
const FRESH: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Earlier {
    compaction: Option<Compaction>,
    said: Vec<Unread>,
    read: Instant,
}

impl Earlier {
    /// None if it is long, or a message of it is.
    pub(crate) async fn bring(
        tx: &mut Tx<'_>,
        tenant: &TenantId,
        created: &RunCreated,
    ) -> Result<Option<Self>, StoreError> {
        let (branch, to) = (&created.branch, created.history_to);
        let Some(space) = created.space.as_ref().filter(|_| to <= SHORT) else { return Ok(None) };
        let reader = Reader { space, branch, agent: created.agent_entity.as_ref() };
        let compaction = compactions::latest(tx, tenant, reader, to).await?;
        let after = compaction.as_ref().map_or(0, |c| c.up_to);
        let share = SHORT_BYTES / (to - after).max(1);
        let said = messages::history_unread(tx, tenant, space, branch, (after, to), share).await?;
        Ok(said.map(|said| Self { compaction, said, read: Instant::now() }))
    }

    /// None if it is old, cannot be read, or has files, which lie elsewhere.
    pub(crate) fn open(self) -> Option<(Option<Compaction>, Vec<Said>)> {
        if self.read.elapsed() >= FRESH {
            return None;
        }
        let said: Vec<Said> = self.said.iter().map(Unread::read).collect::<Option<_>>()?;
        let mut parts = said.iter().flat_map(|said| &said.parts);
        (!parts.any(|part| matches!(part, Part::File { .. }))).then_some((self.compaction, said))
    }
}
