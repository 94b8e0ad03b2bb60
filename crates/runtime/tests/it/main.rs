//! Stories about runs in motion, on a real database with the demo model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod approvals;
mod children;
mod client_tools;
mod endings;
mod hooks;
mod memory;
mod messages;
mod models;
mod outbox;
mod picks;
mod plans;
mod prebuilt;
mod recovery;
mod vendor;
mod yard;
