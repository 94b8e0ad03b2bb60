//! Plugins: manifest, canonical form, signatures, keyring, the sandbox for
//! their code, hooks, and citations.
//!
//! [`hooks`] are the points of the loop where a plugin takes part; [`shipped`]
//! are the plugins that come with the gateway; [`sandbox`] runs foreign code.

pub mod hooks;
pub mod sandbox;
pub mod shipped;
