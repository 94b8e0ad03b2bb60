//! Seeds that once showed something, kept in `tests/faults/seeds`: a test plays
//! each of them again. The simulation alone repeats a seed exactly; the history of
//! a storm is kept as a file instead, and checked again as it is.

use crate::sim::Bug;

/// A play to be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    pub seed: u64,
    pub steps: usize,
    /// What must be built in so that the play breaks a promise; `None` for one
    /// that broke it by itself and is mended.
    pub bug: Bug,
    pub why: String,
}

const FILE: &str = "tests/faults/seeds/simulation.txt";

/// All that are kept.
pub fn kept() -> Result<Vec<Seed>, String> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds/simulation.txt");
    let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|line| read(line).ok_or_else(|| format!("{FILE}: {line:?} is not: seed steps bug why")))
        .collect()
}

fn read(line: &str) -> Option<Seed> {
    let mut words = line.splitn(4, ' ');
    Some(Seed {
        seed: words.next()?.parse().ok()?,
        steps: words.next()?.parse().ok()?,
        bug: Bug::named(words.next()?)?,
        why: words.next()?.to_owned(),
    })
}

/// What to do with a seed that breaks a promise.
pub fn how_to_keep(seed: u64, steps: usize) -> String {
    format!("echo '{seed} {steps} None what it showed' >> {FILE}")
}
