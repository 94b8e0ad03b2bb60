//! Runs that were parked here a moment ago, as they were folded.
//!
//! Only a shortcut: the log is the truth, and a run that is not here is folded
//! from it. What is here is a prefix of the log, which never changes, so it
//! cannot be wrong, only old. The number is small, so a run that waits for days
//! costs no memory.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use toolyard_engine::Run;
use toolyard_protocol::event::RunCreated;
use toolyard_protocol::{RunId, TenantId};

/// Runs that are kept at most; a client that answers at once finds its own.
const KEPT: usize = 64;

/// A run, and the last event that was folded into it.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) tenant: TenantId,
    pub(crate) id: RunId,
    pub(crate) seq: i64,
    pub(crate) run: Run,
}

#[derive(Debug, Default)]
pub(crate) struct Parking(Mutex<VecDeque<Parked>>);

impl Parking {
    /// Keeps a run, instead of the one that is here longest.
    pub(crate) fn put(&self, parked: Parked) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|old| old.id != parked.id);
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(parked);
    }

    /// How a run that is here began.
    pub(crate) fn created(&self, tenant: &TenantId, id: &RunId) -> Option<RunCreated> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parked = kept.iter().rev().find(|parked| parked.id == *id && parked.tenant == *tenant)?;
        parked.run.created().cloned()
    }

    /// Gives a run out, if it is here.
    pub(crate) fn take(&self, tenant: &TenantId, id: &RunId) -> Option<Parked> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|parked| parked.id == *id && parked.tenant == *tenant)?;
        kept.remove(place)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parked(id: &RunId, seq: i64) -> Parked {
        Parked { tenant: TenantId::default_tenant(), id: id.clone(), seq, run: Run::new(id.clone()) }
    }

    #[test]
    fn the_newest_are_kept_and_each_is_given_once() {
        let (parking, tenant) = (Parking::default(), TenantId::default_tenant());
        let ids: Vec<RunId> = (0..KEPT + 10).map(|_| RunId::mint()).collect();
        ids.iter().for_each(|id| parking.put(parked(id, 1)));
        parking.put(parked(&ids[20], 2));
        assert!(parking.take(&tenant, &ids[9]).is_none());
        assert_eq!(parking.take(&tenant, &ids[20]).map(|p| p.seq), Some(2));
        assert!(parking.take(&tenant, &ids[20]).is_none());
        let other = TenantId::parse("other").unwrap();
        assert!(parking.take(&other, &ids[30]).is_none());
    }
}
