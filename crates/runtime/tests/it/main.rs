//! Stories about runs in motion, on a real database with the demo model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod approvals;
mod branches;
mod chat;
mod children;
mod client_tools;
mod endings;
mod hooks;
mod live;
mod locks;
mod memory;
mod messages;
mod model_faults;
mod models;
mod outbox;
mod picks;
mod plans;
mod postgres;
#[path = "../../../store/tests/it/server.rs"]
mod postgres_server;
mod prebuilt;
mod recovery;
mod turns;
mod vendor;
mod yard;
