//! Plugins: documents of tools and hooks, who signed them, and the sandbox in
//! which their code runs.
//!
//! [`bundle`] decides what may be trusted; [`sandbox`] runs code, trusted or not.

pub mod bundle;
pub mod sandbox;
