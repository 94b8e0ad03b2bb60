//! The engine's facts: stories, the transition table, all orders of eight
//! results, and random interleavings with crashes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod audit;
mod call_order;
mod chat;
mod facts;
mod fixture;
mod halting;
mod interleavings;
mod permission;
mod recovery;
mod table;
mod waits;
mod world;
