//! What the gateway took between two moments.

use std::time::Instant;

use crate::drive::DriveError;
use crate::drive::measure::rig_seconds;
use crate::drive::report::Figures;
use crate::drive::stats::percentile;
use crate::drive::system::{forget_peak, machine_seconds, peak_kb, resident_kb, tree_seconds};
use crate::drive::target::Target;

#[derive(Debug)]
pub(super) struct Meter {
    scenario: String,
    pid: u32,
    began: Instant,
    machine: f64,
    rig: f64,
    server: f64,
}

impl Meter {
    pub(super) fn start(scenario: &str, pid: u32) -> Result<Self, DriveError> {
        forget_peak(pid)?;
        Ok(Self {
            scenario: scenario.to_owned(),
            pid,
            began: Instant::now(),
            machine: machine_seconds()?,
            rig: rig_seconds()?,
            server: tree_seconds(pid)?,
        })
    }

    /// The server's processor seconds until now.
    pub(super) fn used(&self) -> Result<f64, DriveError> {
        Ok(tree_seconds(self.pid)? - self.server)
    }

    /// Notes time, processor and memory; gives the server's processor seconds.
    pub(super) fn stop(&self, figures: &mut Figures) -> Result<f64, DriveError> {
        let wall = self.began.elapsed().as_secs_f64();
        let used = self.used()?;
        let others = (machine_seconds()? - self.machine) - (rig_seconds()? - self.rig);
        let mut note = |figure, value| figures.note(&self.scenario, Target::Toolyard, figure, value);
        note("seconds", wall);
        note("server_cores", used / wall);
        note("others_cores", (others / wall).max(0.0));
        note("rss_mb", resident_kb(self.pid)? / 1024.0);
        note("peak_rss_mb", peak_kb(self.pid)? / 1024.0);
        Ok(used)
    }
}

/// The middle and the end of a list of times in ms.
pub(super) fn spread(figures: &mut Figures, scenario: &str, names: [&'static str; 2], ms: &[f64]) {
    if ms.is_empty() {
        return;
    }
    let [middle, end] = names;
    figures.note(scenario, Target::Toolyard, middle, percentile(ms, 0.5));
    figures.note(scenario, Target::Toolyard, end, percentile(ms, 0.99));
}

#[expect(clippy::cast_precision_loss, reason = "counts and times of a measurement are far below 2^52")]
pub(super) fn real(n: u64) -> f64 {
    n as f64
}

pub(super) fn count(n: usize) -> f64 {
    real(u64::try_from(n).unwrap_or(u64::MAX))
}
