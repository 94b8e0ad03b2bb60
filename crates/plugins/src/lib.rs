//! Plugins: manifest, canonical form, signatures, keyring, the sandbox for
//! their code, hooks, and citations.
//!
//! Today only [`sandbox`] is built.

pub mod sandbox;
