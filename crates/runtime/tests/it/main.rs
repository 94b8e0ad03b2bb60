//! Stories about runs in motion, on a real database with the demo model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod approvals;
mod client_tools;
mod endings;
mod memory;
mod messages;
mod recovery;
mod vendor;
mod yard;
