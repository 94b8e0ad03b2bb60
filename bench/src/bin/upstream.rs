//! `upstream --listen ADDR`: the mock model as a process of its own.

use std::net::SocketAddr;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
struct Args {
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

fn main() -> std::io::Result<()> {
    let args = Args::parse();
    // One thread: the mock shares two cores with the server it feeds.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(args.listen).await?;
        println!("listening {}", listener.local_addr()?);
        toolyard_bench::upstream::serve(listener).await
    })
}
