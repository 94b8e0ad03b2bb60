//! The sandbox over its public boundary, with real processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tests play many callers at once")]

mod code;
mod limits;
mod people;
mod pool;
mod walls;
mod world;
