//! Plugins: manifest, canonical form, signatures, keyring, the sandbox for
//! their code, hooks, and citations.
//!
//! An empty room: nothing of it is built yet.
