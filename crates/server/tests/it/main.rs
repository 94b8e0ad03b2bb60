//! The real binary on a free port with its own data folder.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tests play the outside world")]

mod access;
mod cli;
mod edge;
mod files;
mod gateway;
mod idempotency;
mod keys;
mod life;
mod rest;
mod runs;
mod secrets;
mod site;
mod streams;
mod tokens;
mod yard;
