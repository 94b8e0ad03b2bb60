//! The gateway's cost beside the least possible server's, in one run on one
//! machine. Absolute times move from machine to machine: only ratios count.
//!
//! Three programs: [`upstream`] plays the model, [`floor`] is the bare server,
//! [`drive`] is the load client that starts the others and writes the report.
//! Nothing here is part of the product, and the product uses nothing of it.

#![allow(
    clippy::disallowed_methods,
    reason = "a measuring rig: it opens its own database, spawns its own tasks and needs no guarded clock"
)]

pub mod chart;
pub mod clock;
pub mod drive;
pub mod floor;
pub mod frames;
pub mod http;
pub mod marker;
pub mod upstream;
