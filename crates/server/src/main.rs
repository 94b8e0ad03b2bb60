//! The binary `toolyard`: HTTP edge, keys, configuration and command line.
//!
//! This crate turns requests into commands and events into frames. It never
//! calls a model or a tool, and holds no SQL. Start at [`routes`] for what can
//! be asked, at [`serve`] for how the gateway starts and stops.

mod app;
mod auth;
mod checkup;
mod cli;
mod config;
mod http;
mod registry;
mod routes;
mod serve;
mod socket;
mod sse;
mod web;

use std::process::ExitCode;

use clap::Parser;

/// The system's `malloc`, which mimalloc takes the place of (feature `override`), for
/// Rust and for C alike. Its own way for Rust asks for an alignment with every piece
/// of memory, which takes longer.
#[global_allocator]
static ALLOCATOR: std::alloc::System = std::alloc::System;
use mimalloc as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    if cli.is_js_worker() {
        // Before there are threads: a sandbox process gives away the right to have any.
        return toolyard_plugins::sandbox::worker::main();
    }
    if let Some(form) = cli.document() {
        return cli::extract::run(form);
    }
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(cli::run(cli)),
        Err(error) => {
            eprintln!("toolyard: threads cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}
