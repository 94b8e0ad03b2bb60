//! The one door to the network.
//!
//! Everything that leaves the gateway over HTTP passes a [`Door`]. Its policy
//! decides which addresses it opens to: [`Door::operator`] opens to addresses
//! that the operator wrote into the settings, so it checks their form and
//! nothing else. Addresses from anybody else go through [`Door::guarded`], which
//! opens to the public internet only: it connects to exactly the addresses that
//! it has checked, on every hop of a redirect.
//!
//! Letters go by a [`Mailer`] to the operator's mail server.
//!
//! This crate never reads settings and never looks inside a body. It repeats a
//! request only if the far side has not begun with it. No other crate builds an
//! HTTP client; this one builds on hyper's.

mod address;
mod answer;
mod client;
mod connect;
mod door;
mod error;
mod guard;
mod header;
mod hop;
mod mail;
mod names;
mod target;
mod tls;

pub use answer::{Answer, Body};
pub use door::{Door, Letter, Patience, Verb, Whole};
pub use error::EgressError;
pub use guard::{Only, Opened};
pub use header::Header;
pub use mail::{Mail, MailError, MailServer, MailTls, Mailer};
pub use names::{Found, Names, SystemNames};
pub use target::Target;
