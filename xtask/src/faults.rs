//! `faults`: builds the gateway and the fault suite, and starts a storm or the
//! simulation with a seed. The suite itself is `tests/faults`. The name of a row
//! runs the row's tests with its own numbers instead.

use std::process::Command;

/// What to play.
#[derive(Debug, clap::Args)]
pub(crate) struct Faults {
    /// text, client-tool, gateway-tool, approval, timers, plans, prebuilt,
    /// cancel, mixed; or `simulation`; or a row: d3, d5, d7, d14, d17, s2, s3.
    #[arg(long, default_value = "mixed")]
    scenario: String,
    /// sqlite: one gateway. postgres: two, and a server that crashes as well.
    #[arg(long, default_value = "sqlite")]
    database: String,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Clients that work at once.
    #[arg(long, default_value_t = 8)]
    players: u32,
    /// Only commits break: of a thousand so many fail, and as many lose their
    /// answer. The gateway is built with failpoints for it.
    #[arg(long, default_value_t = 0)]
    errors: u64,
    /// A Redis between the nodes (postgres), which is killed and hangs as well.
    #[arg(long)]
    redis: bool,
    /// The most milliseconds that a killed node may need (p99) until it takes
    /// requests again, on a machine that has nothing else to do.
    #[arg(long)]
    recovery: Option<u64>,
    /// How often row d3 stops the owner of its runs.
    #[arg(long)]
    rounds: Option<usize>,
    /// The binary of another release: lives of nodes change between the two.
    #[arg(long)]
    other: Option<std::path::PathBuf>,
    /// An upgrade: all nodes begin as the other release, and each next life is of this one.
    #[arg(long, requires = "other")]
    onward: bool,
    /// Release build of the gateway.
    #[arg(long)]
    release: bool,
    /// Only print the named places where a test build can be broken.
    #[arg(long)]
    list: bool,
}

/// Rows whose tests know the row's own numbers.
const ROWS: [&str; 7] = ["d3", "d5", "d7", "d14", "d17", "s2", "s3"];

pub(crate) fn run(faults: &Faults) -> Result<String, String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if ROWS.contains(&faults.scenario.as_str()) {
        return row(faults, &root);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.current_dir(&root).args(["build", "--quiet", "-p", "toolyard-faults"]);
    if !faults.list && faults.scenario != "simulation" {
        build.args(["-p", "toolyard"]);
    }
    if faults.errors > 0 {
        build.args(["--features", "toolyard/failpoints"]);
    }
    if faults.release {
        build.arg("--release");
    }
    done(build, "the build")?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let built = target.join(if faults.release { "release" } else { "debug" });
    let mut suite = Command::new(built.join("toolyard-faults"));
    suite.current_dir(&root);
    let (seed, minutes) = (faults.seed.to_string(), faults.minutes.to_string());
    match (faults.list, faults.scenario.as_str()) {
        (true, _) => {
            suite.arg("places");
        }
        (false, "simulation") => {
            suite.args(["simulate", "--seed", &seed, "--minutes", &minutes]);
        }
        (false, scenario) => {
            suite.args(["run", "--scenario", scenario, "--seed", &seed, "--minutes", &minutes]);
            suite.args(["--database", &faults.database, "--players", &faults.players.to_string()]);
            suite.args(["--errors", &faults.errors.to_string()]);
            if let Some(other) = &faults.other {
                suite.arg("--other").arg(std::path::absolute(other).map_err(|e| e.to_string())?);
            }
            if faults.onward {
                suite.arg("--onward");
            }
            if faults.redis {
                suite.arg("--redis");
            }
            if let Some(most) = faults.recovery {
                suite.args(["--recovery", &most.to_string()]);
            }
            suite.arg("--gateway").arg(built.join("toolyard"));
            suite.arg("--history").arg(target.join(format!("faults-{}-{seed}.jsonl", faults.database)));
        }
    }
    done(suite, "the suite")?;
    Ok(String::new())
}

/// The tests of a row, as large as the row wants them, with what they print.
fn row(faults: &Faults, root: &std::path::Path) -> Result<String, String> {
    let mut tests = Command::new(root.join("scripts/run-tests"));
    tests.current_dir(root).env("TOOLYARD_CROWD", "full").env("NEXTEST_PROFILE", "full");
    if let Some(rounds) = faults.rounds {
        tests.env("TOOLYARD_ROUNDS", rounds.to_string());
    }
    tests.args(["-p", "toolyard", "--test", "it", "--success-output", "immediate"]);
    if faults.release {
        tests.arg("--release");
    }
    tests.args(["-E", &format!("test(/(^|::){}_/)", faults.scenario)]);
    done(tests, &format!("row {}", faults.scenario.to_uppercase()))?;
    Ok(String::new())
}

fn done(mut command: Command, what: &str) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{what} cannot be started: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{what} failed")) }
}
