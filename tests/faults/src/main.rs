//! `xtask faults` starts this. See `--help`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use toolyard_faults::check::{Complaint, check};
use toolyard_faults::drive::{self, Database, Plan, Scenario, far_side};
use toolyard_faults::history::{History, Record};
use toolyard_faults::seeds;
use toolyard_faults::sim::{self, Bug};

#[derive(Debug, Parser)]
#[command(name = "toolyard-faults", about = "Breaks gateways by a seed, and checks what is left")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Real gateways in a storm of faults.
    Run {
        /// The gateway's binary.
        #[arg(long)]
        gateway: PathBuf,
        #[arg(long, value_enum, default_value = "mixed")]
        scenario: Scenario,
        #[arg(long, value_enum, default_value = "sqlite")]
        database: Database,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[arg(long, default_value_t = 1.0)]
        minutes: f64,
        #[arg(long, default_value_t = 8)]
        players: usize,
        /// Another release of the gateway; lives of nodes change between the two.
        #[arg(long)]
        other: Option<PathBuf>,
        /// All nodes begin as the other release, and each next life is of this one.
        #[arg(long, requires = "other")]
        onward: bool,
        /// Of a thousand commits so many fail; needs a gateway with failpoints.
        #[arg(long, default_value_t = 0)]
        errors: u64,
        /// A Redis between the nodes, which is killed and hangs as well.
        #[arg(long)]
        redis: bool,
        /// The most milliseconds that a killed node may need (p99) until it takes
        /// requests again. For a machine that has nothing else to do.
        #[arg(long)]
        recovery: Option<u64>,
        /// Where the history is kept.
        #[arg(long, default_value = "target/faults.jsonl")]
        history: PathBuf,
    },
    /// The engine, the store and clients in one thread and a time of their own.
    Simulate {
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[arg(long, default_value_t = 1.0)]
        minutes: f64,
        #[arg(long, default_value_t = 400)]
        steps: usize,
    },
    /// Check a history that was kept.
    Check { file: PathBuf },
    /// Print the named places where a build with failpoints can be broken.
    Places,
    /// The far side of the tools.
    #[command(hide = true)]
    FarSide {
        #[arg(long)]
        file: PathBuf,
        #[arg(long)]
        seed: u64,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run {
            gateway,
            scenario,
            database,
            seed,
            minutes,
            players,
            other,
            onward,
            errors,
            redis,
            recovery,
            history: file,
        } => {
            let gateway = gateway.canonicalize().expect("the gateway");
            let far_side = std::env::current_exe().expect("this program");
            let storm = Duration::from_secs_f64(minutes * 60.0);
            assert!(!redis || database == Database::Postgres, "only several nodes have a Redis between them");
            let with = if redis { " with Redis" } else { "" };
            println!("seed {seed}, {scenario:?} on {database:?}{with}, {storm:.0?} of storm");
            let other = other.map(|path| path.canonicalize().expect("the other release"));
            let plan = Plan {
                gateway,
                other,
                onward,
                errors,
                redis,
                far_side,
                scenario,
                database,
                seed,
                storm,
                players,
            };
            let runtime = tokio::runtime::Runtime::new().expect("threads");
            let history = runtime.block_on(drive::run(plan));
            history.write(&file).expect("the history is kept");
            summary(&history, &file, recovery)
        }
        Command::Simulate { seed, minutes, steps } => simulate(seed, minutes, steps),
        Command::Check { file } => {
            let history = History::read(&file).expect("a history");
            summary(&history, &file, None)
        }
        Command::Places => {
            toolyard_store::failpoint::all().for_each(|name| println!("{name}"));
            ExitCode::SUCCESS
        }
        Command::FarSide { file, seed } => match far_side::serve(&file, seed) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
    }
}

/// Plays one seed after the other until the time is over.
fn simulate(first: u64, minutes: f64, steps: usize) -> ExitCode {
    let (began, limit) = (Instant::now(), Duration::from_secs_f64(minutes * 60.0));
    let (mut seed, mut played, mut events) = (first, 0, 0);
    while began.elapsed() < limit {
        let one = sim::play(seed, steps, Bug::None);
        let complaints = check(&one.history);
        played += one.steps;
        events += one.history.count(|record| matches!(record, Record::Event { .. }));
        if !complaints.is_empty() {
            let file = PathBuf::from(format!("target/simulated-{seed}.jsonl"));
            let kept = one.history.write(&file);
            println!("seed {seed} breaks promises; its history is {file:?} ({kept:?})");
            println!("keep it: {}", seeds::how_to_keep(seed, steps));
            return told(&complaints);
        }
        seed += 1;
    }
    println!("simulated: seeds {first} to {}, {played} steps, {events} events, no complaint", seed - 1);
    ExitCode::SUCCESS
}

fn summary(history: &History, file: &Path, recovery: Option<u64>) -> ExitCode {
    let count = |of: fn(&Record) -> bool| history.count(of);
    let outcome = |wanted: &str| {
        history.count(|record| matches!(record, Record::Event { data, .. } if data["outcome"] == wanted))
    };
    println!(
        "{} runs, {} events, {} effects outside, {} faults; calls: {} ok, {} uncertain, {} denied; {} frames read; history {}",
        history.runs().len(),
        count(|r| matches!(r, Record::Event { .. })),
        count(|r| matches!(r, Record::Effect { repeat: false, .. })),
        count(|r| matches!(r, Record::Fault { .. })),
        outcome("ok"),
        outcome("uncertain"),
        outcome("denied"),
        count(|r| matches!(r, Record::Read { .. })),
        file.display(),
    );
    let times = history.0.iter().filter_map(|record| match record {
        Record::Recovered { ms } => Some(*ms),
        _ => None,
    });
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    let refused = history.0.iter().filter_map(|record| match record {
        Record::Refused { from, to, .. } => Some(to - from),
        _ => None,
    });
    let refused: Vec<i64> = refused.collect();
    if let Some(longest) = refused.iter().max() {
        println!("{} requests heard 5xx, for {longest} ms at most", refused.len());
    }
    let mut late = false;
    if let Some(most) = times.last() {
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        late = recovery.is_some_and(|most| at(99) > most);
        println!(
            "{} restarts took requests again after {} ms (p50), {} ms (p99), {most} ms (most)",
            times.len(),
            at(50),
            at(99)
        );
    }
    for record in &history.0 {
        if let Record::Failed { commits } = record
            && *commits > 0
        {
            println!("{commits} commits failed or lost their answer by chance");
        }
    }
    let told = told(&check(history));
    if late {
        println!("LATE: killed nodes take longer than they may");
        return ExitCode::FAILURE;
    }
    told
}

fn told(complaints: &[Complaint]) -> ExitCode {
    for complaint in complaints {
        println!("BROKEN {complaint}");
    }
    println!("{} broken promises", complaints.len());
    if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
