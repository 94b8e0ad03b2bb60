//! `floor --upstream ADDR [--data FOLDER]`: the bare server as a process.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use toolyard_bench::floor::{Disk, Yard};

/// The product's allocator, so that the two differ in their work only.
#[global_allocator]
static ALLOCATOR: std::alloc::System = std::alloc::System;
use mimalloc as _;

#[derive(Debug, Parser)]
struct Args {
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The model.
    #[arg(long)]
    upstream: SocketAddr,
    /// Folder of the database; without it threads live in memory only.
    #[arg(long)]
    data: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let (disk, left) = match &args.data {
        Some(folder) => Disk::open(&folder.join("floor.db"))?,
        None => (Disk::none(), Vec::new()),
    };
    let yard = Yard::new(args.upstream, disk, left);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(args.listen).await?;
        println!("listening {}", listener.local_addr()?);
        toolyard_bench::floor::serve(listener, yard).await
    })?;
    Ok(())
}
