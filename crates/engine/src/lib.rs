//! The run as a pure state machine, and the pure permission decision.
//!
//! [`Run`] folds events and says what follows ([`Run::next`]) and what is to
//! be done ([`Run::due`]). [`facts`] makes the events that other nodes write
//! without a lease. [`permission`] says whether a call may run.
//!
//! Nothing here waits, reads a clock, does IO, logs or rolls dice: the same
//! log and the same input give the same events on every node.

mod call;
mod effect;
pub mod facts;
mod input;
pub mod permission;
mod run;
mod state;
mod turn;

pub use call::{Call, CallState, Calls};
pub use effect::{Effect, EffectId};
pub use input::{AskKind, Input, Note, ParkKind, Reply, RoutedCall, Verdict};
pub use run::{ChildWait, QueuedMessage, Run};
pub use state::{State, Tools};
pub use turn::{Returned, Step, Turn};
