//! The order of a measurement: rounds, each with every server in turn, each
//! server in a fresh process on a fresh folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::DriveError;
use super::fill;
use super::measure::{Size, Subject};
use super::process::Process;
use super::report::{Figures, publish};
use super::system::{cpu_seconds, resident_kb};
use super::target::{Programs, Target, used_bytes};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Folder of `upstream` and `floor`.
    pub rig: PathBuf,
    pub toolyard: PathBuf,
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
    fn wants(&self, scenario: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only.eq_ignore_ascii_case(scenario))
    }

    fn size(&self) -> Size {
        if self.quick {
            return Size { runs: 400, paused: 400, turns: 25, waves: 1 };
        }
        Size { runs: 2000, paused: 1000, turns: 100, waves: 2 }
    }

    fn programs(&self) -> Programs {
        Programs { rig: self.rig.clone(), toolyard: self.toolyard.clone() }
    }

    pub(super) fn folder(&self) -> Result<TempDir, DriveError> {
        let failed = |e| DriveError::File(self.scratch.display().to_string(), e);
        std::fs::create_dir_all(&self.scratch).map_err(failed)?;
        tempfile::tempdir_in(&self.scratch).map_err(failed)
    }
}

/// A server, the mock behind it and their folder, for as long as they are used.
struct Stage {
    subject: Subject,
    _server: Option<Process>,
    _upstream: Process,
    _folder: TempDir,
}

impl Stage {
    async fn set(plan: &Plan, target: Target) -> Result<Self, DriveError> {
        let (programs, folder) = (plan.programs(), plan.folder()?);
        let upstream = programs.start_upstream(folder.path()).await?;
        let server = programs.start(target, upstream.address, folder.path()).await?;
        let tested = server.as_ref().unwrap_or(&upstream);
        let subject = Subject {
            target,
            api: Arc::new(target.api(tested.address).await?),
            pid: tested.pid(),
            ours: ours(&upstream, server.as_ref()),
            database: target.database(folder.path()),
        };
        Ok(Self { subject, _server: server, _upstream: upstream, _folder: folder })
    }
}

fn ours(upstream: &Process, server: Option<&Process>) -> Vec<u32> {
    let mut pids = vec![std::process::id(), upstream.pid()];
    pids.extend(server.map(Process::pid));
    pids
}

/// Measures everything the plan asks for and publishes it.
pub async fn measure_all(plan: &Plan) -> Result<(), DriveError> {
    let mut figures = Figures::default();
    for round in 0..plan.rounds {
        let mut order = plan.targets.clone();
        order.rotate_left(round % plan.targets.len().max(1));
        for target in order {
            eprintln!("round {} of {}: {}", round + 1, plan.rounds, target.name());
            measure_one(plan, target, &mut figures).await?;
        }
    }
    if plan.wants("S8") && plan.targets.contains(&Target::Toolyard) {
        eprintln!("filling a database with {} runs", plan.stored_runs);
        stored(plan, &mut figures).await?;
    }
    let conditions = json!({
        "rounds": plan.rounds,
        "quick": plan.quick,
        "cores": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "storedRuns": plan.stored_runs,
    });
    publish(&figures, &conditions, &plan.results)
}

async fn measure_one(plan: &Plan, target: Target, figures: &mut Figures) -> Result<(), DriveError> {
    let size = plan.size();
    if plan.wants("S5") && target != Target::Direct {
        starts(plan, target, figures).await?;
    }
    let stage = Stage::set(plan, target).await?;
    let subject = &stage.subject;
    subject.warm_up().await?;
    if plan.wants("S1") {
        subject.text(size, figures).await?;
    }
    if plan.wants("S2") || plan.wants("S3") {
        subject.tools(size, figures).await?;
    }
    if plan.wants("S4") {
        subject.paced(100, size, figures).await?;
        subject.paced(500, size, figures).await?;
    }
    if plan.wants("S7") {
        for messages in [10, 100, 1000] {
            subject.history(messages, size, figures).await?;
        }
    }
    drop(stage);
    // Memory of waiting runs shows only in a process that did nothing else.
    if plan.wants("S6") && target != Target::Direct {
        let stage = Stage::set(plan, target).await?;
        stage.subject.paused(size, figures).await?;
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
        figures.note("S5", target, "start_cpu_s", cpu_seconds(server.pid())?);
    }
    Ok(())
}

/// S8: how long a start takes on a database that has seen a lot.
async fn stored(plan: &Plan, figures: &mut Figures) -> Result<(), DriveError> {
    let folder = plan.folder()?;
    let programs = plan.programs();
    let upstream = programs.start_upstream(folder.path()).await?;
    fill::fill(&programs, upstream.address, folder.path(), plan.stored_runs).await?;
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
