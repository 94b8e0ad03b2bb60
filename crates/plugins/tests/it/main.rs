//! Bundles and the sandbox over their public boundary, with real keys and real processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tests play many callers at once")]

mod audit;
mod bundles;
mod code;
mod limits;
mod people;
mod pool;
mod walls;
mod world;
mod x12;
