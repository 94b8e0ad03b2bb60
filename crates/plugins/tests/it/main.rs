//! Bundles and the sandbox over their public boundary, with real keys and real processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tests play many callers at once")]

mod audit;
mod bundles;
mod code;
mod hooks;
mod injections;
mod limits;
mod pages;
mod people;
mod pool;
mod scripted;
mod shipped;
mod sittings;
mod walls;
mod world;
mod x12;
