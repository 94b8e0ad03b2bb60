//! Steps that other nodes work on, as far as this node heard of them. Readers
//! never get a piece whose forerunners are missing: the node asks for the step
//! so far, and when it comes they join again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::broadcast;
use toolyard_protocol::RunId;
use toolyard_protocol::delta::Delta;

use super::{BACKLOG, Hub, Streamed};
use crate::so_far::StepSoFar;

/// An answer that does not come is asked for again after this.
const ASK_AGAIN: Duration = Duration::from_secs(1);

impl Hub {
    /// Takes pieces of another node. True if some before them are missing and
    /// it is time to ask.
    pub(super) fn hear(&mut self, from: &str, mut deltas: Vec<Delta>) -> bool {
        let Some(first) = deltas.first() else { return false };
        let (run, key) = (first.run.clone(), (first.step, first.attempt));
        match self.so_far.get(&run) {
            // This node works on the run: another one that also does is fenced.
            Some(known) if known.from.is_none() => return false,
            Some(known) if key < known.key() => return false,
            Some(known) if key == known.key() => {
                let next = known.step.next;
                deltas.retain(|delta| delta.offset >= next);
                if deltas.first().is_some_and(|delta| delta.offset > next) {
                    return self.misses();
                }
            }
            Some(_) | None if first.offset > 0 => {
                self.so_far.remove(&run);
                return self.misses();
            }
            Some(_) | None => {
                let start = Streamed { step: StepSoFar::start(first), from: Some(from.into()) };
                self.so_far.insert(run.clone(), start);
            }
        }
        if let Some(known) = self.so_far.get_mut(&run) {
            deltas.iter().for_each(|delta| known.step.add(delta));
        }
        if let Some(readers) = self.deltas.as_ref().filter(|_| !deltas.is_empty()) {
            // Nobody listening is fine.
            let _ = readers.send(deltas.into());
        }
        false
    }

    fn misses(&mut self) -> bool {
        let asked = self.asked.is_some_and(|at| at.elapsed() < ASK_AGAIN);
        if !asked {
            self.asked = Some(Instant::now());
        }
        !asked
    }

    /// Takes the step so far of another node, if it says more than is known.
    pub(super) fn told(&mut self, from: &str, step: StepSoFar) {
        let new = Streamed { from: Some(Arc::from(from)), step };
        let known = self.so_far.get(&new.step.run);
        let more = known.is_none_or(|known| {
            known.from.is_some() && (known.key(), known.step.next) < (new.key(), new.step.next)
        });
        if more {
            self.asked = None;
            self.so_far.insert(new.step.run.clone(), new);
            // Whoever listens joins again, and gets it.
            self.deltas = self.deltas.take().map(|_| broadcast::Sender::new(BACKLOG));
        }
    }

    /// The worker over there stopped.
    pub(super) fn forgot(&mut self, from: &str, run: &RunId) {
        if self.so_far.get(run).is_some_and(|known| known.from.as_deref() == Some(from)) {
            self.so_far.remove(run);
        }
    }

    /// Forgets the steps of other nodes: what follows is not heard any more.
    pub(super) fn deafen(&mut self) {
        self.asked = None;
        self.so_far.retain(|_, known| known.from.is_none());
    }
}
