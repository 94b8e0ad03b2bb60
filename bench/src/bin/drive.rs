//! `drive`: measures the servers side by side and writes the report.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use toolyard_bench::chart;
use toolyard_bench::drive::{Amounts, Plan, Target, load_all, measure_all};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What the program shall do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Task {
    /// Measure the servers side by side.
    Compare,
    /// Load the gateway: L1 to L5.
    Load,
    /// Draw the last comparison.
    Chart,
}

#[derive(Debug, Parser)]
struct Args {
    #[arg(value_enum, default_value = "compare")]
    task: Task,
    /// Where the chart goes.
    #[arg(long, default_value = "docs/images")]
    images: PathBuf,
    /// The gateway under test.
    #[arg(long)]
    toolyard: Option<PathBuf>,
    /// Where data folders are made: a real disk, since commits are measured.
    #[arg(long, default_value = "target/bench")]
    scratch: PathBuf,
    /// Where the report goes.
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
    /// Sources of the peers.
    #[arg(long, default_value = "bench/peers")]
    peers: PathBuf,
    /// Where `bench/peers/setup` installed their packages.
    #[arg(long, default_value = "target/bench-peers")]
    installed: PathBuf,
    #[arg(long, value_enum, value_delimiter = ',', default_value = "direct,floor,floor-db,toolyard")]
    targets: Vec<Target>,
    /// Only these scenarios, such as S1,S3.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A fifth of the work: a first look, not a result.
    #[arg(long)]
    quick: bool,
    /// Runs in the database whose start is timed.
    #[arg(long, default_value_t = 100_000)]
    stored_runs: usize,
}

fn main() -> ExitCode {
    match measure(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench: {why}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: Args) -> Result<(), Box<dyn std::error::Error>> {
    if args.task == Task::Chart {
        return chart::draw(&args.results.join("latest.json"), &args.images);
    }
    // The other programs of the rig are built into the same folder.
    let rig = std::env::current_exe()?.parent().map(PathBuf::from).unwrap_or_default();
    let toolyard = args.toolyard.unwrap_or_else(|| rig.join("toolyard"));
    let scratch = std::path::absolute(args.scratch)?;
    let plan = Plan {
        toolyard: std::path::absolute(toolyard)?,
        rig,
        peers: std::path::absolute(args.peers)?,
        installed: std::path::absolute(args.installed)?,
        scratch,
        results: args.results,
        targets: args.targets,
        only: args.only,
        rounds: args.rounds,
        quick: args.quick,
        stored_runs: args.stored_runs,
    };
    // One thread: the client shares two cores with the server it drives.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if args.task == Task::Load {
        let amounts = if plan.quick { Amounts::QUICK } else { Amounts::WHOLE };
        runtime.block_on(load_all(&plan, amounts))?;
        return Ok(());
    }
    runtime.block_on(measure_all(&plan))?;
    Ok(())
}
