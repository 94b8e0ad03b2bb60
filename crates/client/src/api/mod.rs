//! The gateway's things: spaces, messages, runs, waits, entities. Each struct
//! here borrows the client and turns one route into one function.

mod entities;
mod runs;
mod spaces;
mod waits;

pub use entities::{Entities, Entity};
pub use runs::{Run, Runs, Taken};
pub use spaces::{Member, Message, NewMessage, Posted, Reached, Space, Spaces};
pub use waits::{Answer, Remember, Wait, WaitFilter, Waits};

use crate::client::Client;

impl Client {
    pub fn spaces(&self) -> Spaces<'_> {
        Spaces(self)
    }
    pub fn runs(&self) -> Runs<'_> {
        Runs(self)
    }
    /// The ledger: what runs wait for.
    pub fn waits(&self) -> Waits<'_> {
        Waits(self)
    }
    pub fn entities(&self) -> Entities<'_> {
        Entities(self)
    }
}
