//! The order of a measurement: rounds, each with every server in turn, each
//! server in a fresh process on a fresh folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::DriveError;
use super::fill;
use super::measure::{Size, Subject};
use super::process::Process;
use super::report::{Figures, publish};
use super::system::{resident_kb, tree_seconds};
use super::target::{Programs, Target, used_bytes};

/// In the database of S8 one run in so many waits for a client.
const WAITING_EVERY: usize = 100;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Folder of `upstream` and `floor`.
    pub rig: PathBuf,
    pub toolyard: PathBuf,
    /// Sources of the peers, and the folder that they are installed in.
    pub peers: PathBuf,
    pub installed: PathBuf,
    /// Where data folders are made; a real disk, since commits are measured.
    pub scratch: PathBuf,
    pub results: PathBuf,
    pub targets: Vec<Target>,
    /// Scenarios by their first letters, such as `S1` or `S7`; none means all.
    pub only: Vec<String>,
    pub rounds: usize,
    /// A fifth of the work: a first look, not a result.
    pub quick: bool,
    /// Runs in the database of S8.
    pub stored_runs: usize,
}

impl Plan {
    pub(super) fn wants(&self, scenario: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only.eq_ignore_ascii_case(scenario))
    }

    /// Whether a scenario is asked for and this server can do it. If it cannot,
    /// the report says why.
    fn does(&self, scenario: &'static str, target: Target, figures: &mut Figures) -> bool {
        let why = target.cannot(scenario);
        if let (Some(why), true) = (why, self.wants(scenario) && target.is_peer()) {
            figures.remark(scenario, target, why);
        }
        self.wants(scenario) && why.is_none()
    }

    /// Peers cost so much more that a tenth of the work says as much.
    fn size(&self, target: Target) -> Size {
        match (target.is_peer(), self.quick) {
            (false, false) => Size { runs: 2000, paused: 1000, turns: 100, waves: 2 },
            (false, true) => Size { runs: 400, paused: 400, turns: 25, waves: 1 },
            (true, false) => Size { runs: 200, paused: 200, turns: 10, waves: 1 },
            (true, true) => Size { runs: 64, paused: 64, turns: 4, waves: 1 },
        }
    }

    pub(super) fn programs(&self) -> Programs {
        Programs {
            rig: self.rig.clone(),
            toolyard: self.toolyard.clone(),
            peers: self.peers.clone(),
            installed: self.installed.clone(),
        }
    }

    fn conditions(&self, rounds: usize) -> Value {
        json!({
            "rounds": rounds,
            "quick": self.quick,
            "cores": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
            "storedRuns": self.stored_runs,
        })
    }

    pub(super) fn folder(&self) -> Result<TempDir, DriveError> {
        let failed = |e| DriveError::File(self.scratch.display().to_string(), e);
        std::fs::create_dir_all(&self.scratch).map_err(failed)?;
        tempfile::tempdir_in(&self.scratch).map_err(failed)
    }
}

/// A server, the mock behind it and their folder, for as long as they are used.
pub(super) struct Stage {
    pub(super) subject: Subject,
    _server: Option<Process>,
    _upstream: Process,
    _folder: TempDir,
}

impl Stage {
    pub(super) async fn set(plan: &Plan, target: Target) -> Result<Self, DriveError> {
        let (programs, folder) = (plan.programs(), plan.folder()?);
        let upstream = programs.start_upstream(folder.path()).await?;
        let server = programs.start(target, upstream.address, folder.path()).await?;
        let tested = server.as_ref().unwrap_or(&upstream);
        let subject = Subject {
            target,
            api: Arc::new(target.api(tested.address).await?),
            pid: tested.pid(),
            database: target.database(folder.path()),
        };
        Ok(Self { subject, _server: server, _upstream: upstream, _folder: folder })
    }
}

/// Measures everything the plan asks for. The report is written anew after each
/// round, so a measurement that is stopped early has one too.
pub async fn measure_all(plan: &Plan) -> Result<(), DriveError> {
    let mut figures = Figures::default();
    for round in 0..plan.rounds {
        let mut order = plan.targets.clone();
        order.rotate_left(round % plan.targets.len().max(1));
        for target in order {
            eprintln!("round {} of {}: {}", round + 1, plan.rounds, target.name());
            measure_one(plan, target, &mut figures).await?;
        }
        publish(&figures, &plan.conditions(round + 1), &plan.results)?;
    }
    if plan.wants("S8") && plan.targets.contains(&Target::Toolyard) {
        eprintln!("filling a database with {} runs", plan.stored_runs);
        stored(plan, &mut figures).await?;
        publish(&figures, &plan.conditions(plan.rounds), &plan.results)?;
    }
    println!("{}", plan.results.join("latest.md").display());
    Ok(())
}

async fn measure_one(plan: &Plan, target: Target, figures: &mut Figures) -> Result<(), DriveError> {
    let size = plan.size(target);
    if plan.does("S5", target, figures) {
        starts(plan, target, figures).await?;
    }
    let stage = Stage::set(plan, target).await?;
    let subject = &stage.subject;
    subject.warm_up().await?;
    if plan.wants("S1") {
        let done = subject.text(size, figures).await;
        figures.excuse("S1", target, done)?;
    }
    if plan.wants("S2") || plan.wants("S3") {
        let done = subject.tools(size, figures).await;
        figures.excuse("S2, S3", target, done)?;
    }
    if plan.wants("S7") {
        for messages in [10, 100, 1000] {
            let done = subject.history(messages, size, figures).await;
            figures.excuse("S7", target, done)?;
        }
    }
    if plan.wants("S4") {
        for streams in [100, 500] {
            let done = subject.paced(streams, size, figures).await;
            figures.excuse("S4", target, done)?;
        }
    }
    drop(stage);
    // Memory of waiting runs shows only in a process that did nothing else.
    if plan.does("S6", target, figures) {
        let stage = Stage::set(plan, target).await?;
        let done = stage.subject.paused(size, figures).await;
        figures.excuse("S6", target, done)?;
    }
    Ok(())
}

/// S5: a start on a folder that holds an agent, then a second of rest.
async fn starts(plan: &Plan, target: Target, figures: &mut Figures) -> Result<(), DriveError> {
    let (programs, folder) = (plan.programs(), plan.folder()?);
    let upstream = programs.start_upstream(folder.path()).await?;
    let first = programs.start(target, upstream.address, folder.path()).await?;
    if let Some(server) = &first {
        target.api(server.address).await?;
    }
    drop(first);
    for _ in 0..3 {
        let server = programs.start(target, upstream.address, folder.path()).await?;
        let Some(server) = server else { continue };
        figures.note("S5", target, "ready_s", server.ready_after.as_secs_f64());
        tokio::time::sleep(Duration::from_secs(1)).await;
        figures.note("S5", target, "idle_rss_mb", resident_kb(server.pid())? / 1024.0);
        figures.note("S5", target, "start_cpu_s", tree_seconds(server.pid())?);
    }
    Ok(())
}

/// S8: how long a start takes on a database that has seen a lot.
async fn stored(plan: &Plan, figures: &mut Figures) -> Result<(), DriveError> {
    let folder = plan.folder()?;
    let programs = plan.programs();
    let upstream = programs.start_upstream(folder.path()).await?;
    fill::fill(&programs, upstream.address, folder.path(), plan.stored_runs, WAITING_EVERY).await?;
    for _ in 0..3 {
        let server = programs.start(Target::Toolyard, upstream.address, folder.path()).await?;
        let Some(server) = server else { continue };
        figures.note("S8", Target::Toolyard, "ready_s", server.ready_after.as_secs_f64());
        let rss = resident_kb(server.pid())?;
        figures.note("S8", Target::Toolyard, "rss_mb", rss / 1024.0);
    }
    if let Some(database) = Target::Toolyard.database(folder.path()) {
        let bytes = used_bytes(&database)?;
        figures.note("S8", Target::Toolyard, "db_mb", bytes / (1 << 20) as f64);
    }
    Ok(())
}
