//! The binary `toolyard`: HTTP edge, keys, configuration and command line.
//!
//! This crate turns requests into commands and events into frames. It never
//! calls a model or a tool, and holds no SQL. Start at [`routes`] for what can
//! be asked, at [`serve`] for how the gateway starts and stops.

mod app;
mod auth;
mod config;
mod http;
mod routes;
mod serve;
mod sse;
mod tasks;

fn main() {}
