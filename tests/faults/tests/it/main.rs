//! The short tier: plays of the simulation, a checker that finds every seeded
//! bug, and a few seconds of storm around real gateways.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod seeded;
mod simulated;
mod storm;
