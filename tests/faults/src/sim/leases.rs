//! Heartbeats, claims, and what is left behind when the answer to a claim or to
//! a fact is lost.

use toolyard_store::runs::{Claimed, Owner};
use toolyard_store::{StoreError, nodes, runs};

use super::world::{LEASE_MS, World};

/// How a commit may go wrong without anybody's death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Luck {
    Fine,
    /// All of it is rolled back, and its caller hears so.
    Refused,
    /// It is done, and its caller hears nothing.
    ReplyLost,
}

impl Luck {
    /// Nothing of the transaction stays if it is refused.
    pub(super) fn judge<T>(self, done: T) -> Result<T, StoreError> {
        match self {
            Self::Refused => Err(StoreError::Unavailable("by chance".into())),
            Self::Fine | Self::ReplyLost => Ok(done),
        }
    }
}

impl World {
    /// What the database makes of the next commit; trouble is noted.
    pub(super) fn luck(&mut self) -> Luck {
        if !self.stormy {
            return Luck::Fine;
        }
        let luck = match self.dice.below(40) {
            0 => Luck::Refused,
            1 => Luck::ReplyLost,
            _ => Luck::Fine,
        };
        self.troubled(usize::from(luck != Luck::Fine));
        luck
    }

    pub(super) async fn beat(&self, node: usize) {
        let owner = self.nodes[node].owner();
        let beat =
            self.store.write(move |tx| Box::pin(async move { nodes::beat(tx, &owner, LEASE_MS).await }));
        beat.await.map_err(|e: StoreError| e).expect("the store beats");
    }

    pub(super) async fn leave(&self, owner: Owner) {
        let gone = self.store.write(move |tx| Box::pin(async move { nodes::leave(tx, &owner).await }));
        gone.await.map_err(|e: StoreError| e).expect("the store forgets");
    }

    pub(super) async fn claim(&mut self, node: usize) {
        let (owner, luck) = (self.nodes[node].owner(), self.luck());
        let claim = self
            .store
            .write(move |tx| Box::pin(async move { luck.judge(runs::claim(tx, &owner, 4).await?) }));
        let claimed: Result<Vec<Claimed>, StoreError> = claim.await;
        if luck == Luck::Fine {
            for claimed in claimed.expect("the store claims") {
                self.start(node, &claimed.run, claimed.epoch, claimed.recovered);
            }
        }
    }

    /// A node takes up what it owns and nobody there works on.
    pub(super) async fn adopt(&mut self, node: usize) {
        let owner = self.nodes[node].owner();
        let owned = self.store.read(move |tx| Box::pin(async move { runs::owned_by(tx, &owner).await }));
        for one in owned.await.map_err(|e: StoreError| e).expect("the store reads") {
            let works = self.nodes[node].workers.get(&one.run).is_some_and(|w| w.epoch == one.epoch);
            if !works {
                self.start(node, &one.run, one.epoch, one.recovered);
            }
        }
    }
}
