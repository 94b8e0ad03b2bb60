//! The one door to the network.
//!
//! Everything that leaves the gateway over HTTP passes a [`Door`]. Its policy
//! decides which addresses it opens to: [`Door::operator`] opens to addresses
//! that the operator wrote into the settings, so it checks their form and
//! nothing else. Addresses from anybody else must never reach it.
//!
//! This crate never reads settings, never retries and never looks inside a
//! body. No other crate builds an HTTP client.

mod answer;
mod door;
mod error;
mod header;
mod target;

pub use answer::{Answer, Body};
pub use door::{Door, Letter, Patience, Verb};
pub use error::EgressError;
pub use header::Header;
pub use target::Target;
