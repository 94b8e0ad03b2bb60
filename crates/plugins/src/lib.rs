//! Plugins: documents of tools and hooks, who signed them, and the sandbox in
//! which their code runs.
//!
//! [`bundle`] decides what may be trusted; [`sandbox`] runs code, trusted or
//! not; [`hooks`] are the points of the loop where a plugin takes part;
//! [`shipped`] are the plugins that come with the gateway; [`scripted`] are the
//! hooks of bundles.

pub mod bundle;
pub mod hooks;
pub mod sandbox;
pub mod scripted;
pub mod shipped;
