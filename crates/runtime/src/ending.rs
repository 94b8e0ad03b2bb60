//! Ends of runs that their workers do not write: a run that cannot be read any
//! more, and one whose conversation went another way.

use std::sync::Arc;

use toolyard_protocol::event::Event;
use toolyard_store::log::{self, Append, AppendError};
use toolyard_store::runs::{After, Owner, RunRow};
use toolyard_store::{Tx, waits};

use crate::family::{End, Member};
use crate::outbox::announce::{Of, announce};
use crate::starting::Desk;

/// A run's last append, by its owner in this transaction.
pub(crate) struct Ending<'a> {
    pub(crate) row: RunRow,
    pub(crate) above: Vec<RunRow>,
    pub(crate) owner: &'a Owner,
    pub(crate) epoch: i64,
    pub(crate) events: Arc<[Event]>,
    pub(crate) after: After,
    /// Somebody follows the run right now.
    pub(crate) watched: bool,
}

impl Ending<'_> {
    /// Writes it, with what it means for the runs above and below.
    pub(crate) async fn write(self, tx: &mut Tx<'_>, end: End, desk: &mut Desk) -> Result<(), AppendError> {
        let Self { row, above, owner, epoch, events, after, watched } = self;
        let append = Append {
            tenant: &row.tenant,
            run: &row.id,
            root: &row.root,
            space: row.space.as_ref(),
            child: row.parent.is_some(),
            epoch,
            owner,
            expected: row.last_seq,
            events: &events,
            after: &after,
            speaks: 0,
        };
        waits::close_all(tx, &row).await?;
        let done = log::append(tx, &append).await?;
        let of = Of {
            tenant: &row.tenant,
            run: &row.id,
            root: &row.root,
            space: row.space.as_ref(),
            agent: Some(&row.agent),
            trigger: row.triggered_by.as_ref(),
            watched,
        };
        announce(tx, of, &events, done.seq, done.at).await?;
        let (tenant, run, root, after) = (&row.tenant, &row.id, &row.root, row.last_seq);
        let member = Member { tenant, run, root, above, after, events: &events };
        Ok(member.carry(tx, Some(end), desk).await?)
    }
}
