//! Bundles: a plugin's document, from its bytes to something that may run.
//!
//! ```text
//! bytes ─ read ─▶ Candidate ─ Keyring::admit ─▶ Bundle ─▶ the sandbox
//!                     └─ audit ─▶ Report ─ SigningKey::sign ─▶ bytes
//! ```
//!
//! A [`Candidate`] is well-formed and nothing more. A [`Bundle`] has been
//! admitted by a [`Keyring`]; no other function makes one, and only its
//! content runs: what was verified is what is used. This room reads no clock,
//! no file and no database.

mod admit;
pub mod audit;
mod candidate;
mod canonical;
mod key;
mod keyring;
mod point;
mod refused;
mod signing;
mod strict;

pub use admit::{Bundle, Moment, Policy, Seen, Trust};
pub use candidate::{BadDocument, Candidate};
pub use key::{Algorithm, BadKey, PublicKey, PublicKeyFile};
pub use keyring::{Curator, CuratorKey, Keyring, PluginPattern, Revocation, Revoked};
pub use refused::Refused;
pub use signing::{SigningKey, SigningKeyFile};
