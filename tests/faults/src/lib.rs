//! Faults by dice, and a checker that knows nothing of the dice.
//!
//! [`drive`] runs real gateways, real clients and a far side in processes of
//! their own, and breaks things by a seed. [`sim`] does the same in one thread
//! with the engine and the store, in a time of its own. Both write a
//! [`history`]: what was asked, what was answered, the logs, the far side's
//! list of effects. [`check`] reads histories, also old ones from a file, and
//! says which promises they break. It never talks to a gateway.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "it plays the outside world")]

pub mod check;
pub mod dice;
pub mod drive;
pub mod history;
pub mod seeds;
pub mod sim;
