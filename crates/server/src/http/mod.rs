//! The edge: sockets, limits, origins, bodies and errors.
//!
//! What a request may be is decided here, before any route sees it. Nothing
//! here knows what a run is.

pub(crate) mod body;
pub(crate) mod depth;
pub(crate) mod listen;
pub(crate) mod meter;
pub(crate) mod origin;
pub(crate) mod rate;
pub(crate) mod refusal;
pub(crate) mod site;
pub(crate) mod version;

pub(crate) use refusal::Refusal;
