//! What the product may cost. The first rows are promises: ratios to the bare
//! durable server, which hold on any machine. The others are times of the
//! machine that the goals were written on; elsewhere they only give a scale.

use super::report::Figures;
use super::target::Target::{self, Direct, FloorDb, Toolyard};

/// A goal and what was found.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) what: &'static str,
    pub(super) measured: Option<f64>,
    pub(super) bound: f64,
    at_least: bool,
}

impl Judged {
    pub(super) fn holds(&self) -> Option<bool> {
        self.measured.map(|m| if self.at_least { m >= self.bound } else { m <= self.bound })
    }
    pub(super) fn sign(&self) -> &'static str {
        if self.at_least { ">=" } else { "<=" }
    }
}

fn most(what: &'static str, measured: Option<f64>, bound: f64) -> Judged {
    Judged { what, measured, bound, at_least: false }
}

fn least(what: &'static str, measured: Option<f64>, bound: f64) -> Judged {
    Judged { what, measured, bound, at_least: true }
}

pub(super) fn judge(figures: &Figures) -> Vec<Judged> {
    let mut goals = promises(figures);
    goals.extend(aims(figures));
    goals
}

fn promises(f: &Figures) -> Vec<Judged> {
    let own = |scenario, figure| f.get(scenario, Toolyard, figure);
    let ratio = |scenario, figure| Some(own(scenario, figure)? / f.get(scenario, FloorDb, figure)?);
    vec![
        most("S3 client-tool run: CPU, times floor-db", ratio("S3/c16", "cpu_ms"), 2.5),
        most("S1 text run at c16: CPU, times floor-db", ratio("S1/c16", "cpu_ms"), 2.0),
        most(
            "S1-live text run at c16, every piece streamed: CPU, times floor-db",
            ratio("S1-live/c16", "cpu_ms"),
            2.0,
        ),
        most("S5 idle memory, MB", own("S5", "idle_rss_mb"), 40.0),
        most("S6 memory of a waiting run, kB", own("S6", "rss_kb_per_run"), 0.5),
        most("S6 disk of a waiting run, kB", own("S6", "db_kb_per_run"), 4.0),
        most("S8 ready on a database of 100,000 runs, s", own("S8", "ready_s"), 1.0),
    ]
}

fn aims(f: &Figures) -> Vec<Judged> {
    let own = |scenario, figure| f.get(scenario, Toolyard, figure);
    let added = |scenario, figure| added(f, scenario, figure);
    let growth = || Some(own("S7/h1000", "cpu_ms")? / own("S7/h10", "cpu_ms")?);
    vec![
        most("S1 c16: CPU ms per run", own("S1/c16", "cpu_ms"), 2.5),
        least("S1 c16: runs per s", own("S1/c16", "runs_per_s"), 400.0),
        most("S1 c1: added time to first text, p50 ms", added("S1/c1", "ttft_p50_ms"), 1.0),
        most("S1 c1: added time to first text, p99 ms", added("S1/c1", "ttft_p99_ms"), 5.0),
        most("S2: CPU ms per run", own("S2/c16", "cpu_ms"), 1.0),
        most("S3: CPU ms per run", own("S3/c16", "cpu_ms"), 1.1),
        most("S3: request to pause, p50 ms", own("S3/c16", "to_pause_p50_ms"), 8.0),
        most("S4 100 streams: CPU us per piece", own("S4/100", "cpu_us_per_chunk"), 120.0),
        most("S4 500 streams: CPU us per piece", own("S4/500", "cpu_us_per_chunk"), 70.0),
        most("S4 100 streams: added delay of a piece, p50 ms", added("S4/100", "delay_p50_ms"), 0.6),
        most("S4 100 streams: added delay of a piece, p99 ms", added("S4/100", "delay_p99_ms"), 5.0),
        most("S5 start-up, s", own("S5", "ready_s"), 0.2),
        most("S5 idle memory, MB", own("S5", "idle_rss_mb"), 25.0),
        most("S7 1,000 messages: CPU ms per turn", own("S7/h1000", "cpu_ms"), 2.0),
        most("S7 1,000 messages: CPU, times 10 messages", growth(), 3.0),
        most("S7 1,000 messages: disk per turn, kB", own("S7/h1000", "db_kb_per_turn"), 4.0),
    ]
}

/// What the product adds to talking with the model directly.
fn added(f: &Figures, scenario: &str, figure: &str) -> Option<f64> {
    let of = |target: Target| f.get(scenario, target, figure);
    Some(of(Toolyard)? - of(Direct)?)
}
