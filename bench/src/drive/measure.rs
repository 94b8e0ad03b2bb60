//! The scenarios. Each takes a started server and notes figures.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::DriveError;
use super::api::{Api, Seat};
use super::errand::{Errand, Tool, Watch};
use super::load::{Load, load, seats};
use super::report::Figures;
use super::stats::percentile;
use super::system::{forget_peak, machine_seconds, peak_kb, resident_kb, tree_seconds};
use super::target::{Target, used_bytes};

/// Time for what a server does after its last answer.
const SETTLE: Duration = Duration::from_millis(200);
/// Time after which a server without work is idle.
const REST: Duration = Duration::from_secs(1);

/// Words of a conversation that went on for a while.
const TALK: &str = "This is an earlier message of the conversation; it says nothing that matters now.";

/// A started server and whose time counts.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) target: Target,
    pub(super) api: Arc<Api>,
    /// The server; for `direct` the mock.
    pub(super) pid: u32,
    pub(super) database: Option<PathBuf>,
}

/// How much to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) runs: usize,
    pub(super) paused: usize,
    pub(super) turns: usize,
    pub(super) waves: usize,
}

fn ms(nanos: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "times of a run are far below 2^52 ns")]
    let nanos = nanos as f64;
    nanos / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "counts of a measurement are small")]
fn count(n: usize) -> f64 {
    n as f64
}

/// Processor seconds of the client and all that it started: the whole rig.
pub(super) fn rig_seconds() -> Result<f64, DriveError> {
    tree_seconds(std::process::id())
}

impl Subject {
    /// Runs a load and notes what it took. Gives processor seconds of the server.
    async fn timed(
        &self,
        name: &str,
        seats: &[Seat],
        errand: Errand,
        at_once: usize,
        figures: &mut Figures,
    ) -> Result<(Load, f64), DriveError> {
        tokio::time::sleep(SETTLE).await;
        eprintln!("  {name}");
        let (machine, ours) = (machine_seconds()?, rig_seconds()?);
        let before = tree_seconds(self.pid)?;
        let done = load(&self.api, seats, errand, at_once).await?;
        tokio::time::sleep(SETTLE).await;
        let used = tree_seconds(self.pid)? - before;
        let others = (machine_seconds()? - machine) - (rig_seconds()? - ours);
        let mut note = |figure, value| figures.note(name, self.target, figure, value);
        let runs = count(done.watches.len());
        note("cpu_ms", used * 1e3 / runs);
        note("runs_per_s", runs / done.wall.as_secs_f64());
        note("others_cores", (others / (done.wall + SETTLE).as_secs_f64()).max(0.0));
        if errand.abandon {
            note("to_pause_p50_ms", spread(&done.watches, |w| w.paused, 0.5));
            return Ok((done, used));
        }
        note("ttft_p50_ms", spread(&done.watches, |w| w.first_text, 0.5));
        note("ttft_p99_ms", spread(&done.watches, |w| w.first_text, 0.99));
        note("total_p50_ms", spread(&done.watches, |w| w.ended, 0.5));
        note("total_p99_ms", spread(&done.watches, |w| w.ended, 0.99));
        if errand.tool == Tool::Client {
            note("to_pause_p50_ms", spread(&done.watches, |w| w.paused, 0.5));
            let rest = |w: &Watch| Some(w.ended?.saturating_sub(w.paused?));
            note("after_result_p50_ms", spread(&done.watches, rest, 0.5));
        }
        let live: f64 = done.watches.iter().map(|w| f64::from(w.live)).sum();
        note("live_chunks", live / runs);
        Ok((done, used))
    }

    /// Makes the server do everything once, so that nothing is measured cold.
    pub(super) async fn warm_up(&self) -> Result<(), DriveError> {
        for tool in [Tool::None, Tool::Server, Tool::Client] {
            let seats = seats(&self.api, 40).await?;
            load(&self.api, &seats, Errand::tool(tool, 20), 8).await?;
        }
        Ok(())
    }

    /// S1: text of 100 pieces. `S1-live`: the same when the model thinks for
    /// 30 ms first, as every real one does, so that the client is there for each
    /// piece and none comes in a summary.
    pub(super) async fn text(&self, size: Size, figures: &mut Figures) -> Result<(), DriveError> {
        let errand = Errand::text(100);
        let few = seats(&self.api, (size.runs / 5).max(1)).await?;
        self.timed("S1/c1", &few, errand, 1, figures).await?;
        let many = seats(&self.api, size.runs).await?;
        self.timed("S1/c16", &many, errand, 16, figures).await?;
        let many = seats(&self.api, size.runs).await?;
        self.timed("S1-live/c16", &many, Errand { first_ms: 30, ..errand }, 16, figures).await?;
        Ok(())
    }

    /// S2 and S3: one tool between two model calls.
    pub(super) async fn tools(&self, size: Size, figures: &mut Figures) -> Result<(), DriveError> {
        for (name, tool) in [("S2/c16", Tool::Server), ("S3/c16", Tool::Client)] {
            let many = seats(&self.api, size.runs).await?;
            self.timed(name, &many, Errand::tool(tool, 20), 16, figures).await?;
        }
        Ok(())
    }

    /// S4: 100 pieces, one every 20 ms, on many streams at once.
    pub(super) async fn paced(
        &self,
        streams: usize,
        size: Size,
        figures: &mut Figures,
    ) -> Result<(), DriveError> {
        let name = format!("S4/{streams}");
        let errand = Errand { first_ms: 20, delay_ms: 20, ..Errand::text(100) };
        let all = seats(&self.api, streams * size.waves).await?;
        forget_peak(self.pid)?;
        let (done, used) = self.timed(&name, &all, errand, streams, figures).await?;
        let delays: Vec<f64> = done.watches.iter().flat_map(|w| w.delays.iter().map(|d| ms(*d))).collect();
        let mut note = |figure, value| figures.note(&name, self.target, figure, value);
        note("cpu_us_per_chunk", used * 1e6 / count(delays.len()));
        note("delay_p50_ms", percentile(&delays, 0.5));
        note("delay_p95_ms", percentile(&delays, 0.95));
        note("delay_p99_ms", percentile(&delays, 0.99));
        note("peak_rss_mb", peak_kb(self.pid)? / 1024.0);
        Ok(())
    }

    /// S6: runs that wait for a client's tool and for nobody else.
    pub(super) async fn paused(&self, size: Size, figures: &mut Figures) -> Result<(), DriveError> {
        let errand = Errand { abandon: true, ..Errand::tool(Tool::Client, 20) };
        // The first ones fill caches and pools; the next ones are counted.
        let (warm, counted) = (size.paused / 2, size.paused);
        let all = seats(&self.api, warm + counted).await?;
        let (first, rest) = all.split_at(warm);
        load(&self.api, first, errand, 16).await?;
        tokio::time::sleep(REST).await;
        let (rss, disk) = (resident_kb(self.pid)?, self.disk()?);
        self.timed("S6", rest, errand, 16, figures).await?;
        tokio::time::sleep(REST).await;
        let mut note = |figure, value| figures.note("S6", self.target, figure, value);
        note("rss_kb_per_run", (resident_kb(self.pid)? - rss) / count(counted));
        if let (Some(before), Some(after)) = (disk, self.disk()?) {
            note("db_kb_per_run", (after - before) / 1024.0 / count(counted));
        }
        Ok(())
    }

    /// S7: a turn of 10 pieces on top of a long conversation.
    pub(super) async fn history(
        &self,
        messages: usize,
        size: Size,
        figures: &mut Figures,
    ) -> Result<(), DriveError> {
        const CLIENTS: usize = 4;
        let name = format!("S7/h{messages}");
        let few = seats(&self.api, CLIENTS).await?;
        let talk: Vec<String> = (0..messages).map(|n| format!("{n}: {TALK}")).collect();
        futures::future::try_join_all(few.iter().map(|seat| self.api.add_history(seat, &talk))).await?;
        // One conversation has one run at a time: each client keeps to its own.
        let disk = self.disk()?;
        let turns: Vec<Seat> = std::iter::repeat_n(few, size.turns).flatten().collect();
        let (done, _) = self.timed(&name, &turns, Errand::text(10), CLIENTS, figures).await?;
        if let (Some(before), Some(after)) = (disk, self.disk()?) {
            let kb = (after - before) / 1024.0 / count(done.watches.len());
            figures.note(&name, self.target, "db_kb_per_turn", kb);
        }
        Ok(())
    }

    fn disk(&self) -> Result<Option<f64>, DriveError> {
        self.database.as_deref().map(used_bytes).transpose()
    }
}

fn spread(watches: &[Watch], of: impl Fn(&Watch) -> Option<u64>, share: f64) -> f64 {
    let values: Vec<f64> = watches.iter().filter_map(of).map(ms).collect();
    percentile(&values, share)
}
