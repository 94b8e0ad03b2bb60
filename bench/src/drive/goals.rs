//! What the product may cost, besides the ratios to other servers. The first
//! rows are promises. The others are times of the machine that the goals were
//! written on; elsewhere they only give a scale.

use super::report::Figures;
use super::target::Target::{self, Direct, Toolyard};

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

/// Less than this is nothing: an allocator takes its pages in bigger steps.
const NOTHING_KB: f64 = 0.1;

fn promises(f: &Figures) -> Vec<Judged> {
    let own = |scenario, figure| f.get(scenario, Toolyard, figure);
    let growth = |figure: &'static str| f.growth(Toolyard, "S7/h1000", "S7/h10", figure);
    vec![
        most("S5 start-up, s", own("S5", "ready_s"), 0.1),
        most("S5 idle memory, MB", own("S5", "idle_rss_mb"), 25.0),
        most("S6 memory of a waiting run, kB", own("S6", "rss_kb_per_run"), NOTHING_KB),
        most("S6 disk of a waiting run, kB", own("S6", "db_kb_per_run"), 2.0),
        most("S7 CPU of a turn at 1,000 messages, times a turn at 10", growth("cpu_ms"), 2.0),
        most("S7 disk of a turn at 1,000 messages, times a turn at 10", growth("db_kb_per_turn"), 1.5),
        most("S8 ready on a database of 100,000 runs, s", own("S8", "ready_s"), 1.0),
    ]
}

fn aims(f: &Figures) -> Vec<Judged> {
    let own = |scenario, figure| f.get(scenario, Toolyard, figure);
    let added = |scenario, figure| added(f, scenario, figure);
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
        most("S7 1,000 messages: CPU ms per turn", own("S7/h1000", "cpu_ms"), 2.0),
        most("S7 1,000 messages: disk per turn, kB", own("S7/h1000", "db_kb_per_turn"), 4.0),
    ]
}

/// What the product adds to talking with the model directly.
fn added(f: &Figures, scenario: &str, figure: &str) -> Option<f64> {
    let of = |target: Target| f.get(scenario, target, figure);
    Some(of(Toolyard)? - of(Direct)?)
}
