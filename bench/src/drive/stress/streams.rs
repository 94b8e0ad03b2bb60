//! L2: many runs that stream at a model's pace, wave after wave.

use super::Amounts;
use super::meter::{Meter, count, real, spread};
use crate::drive::DriveError;
use crate::drive::errand::Errand;
use crate::drive::load::{seats, try_load};
use crate::drive::report::Figures;
use crate::drive::rounds::{Plan, Stage};
use crate::drive::target::Target;

const NAME: &str = "L2 streams at 20 ms";

pub(super) async fn paced(plan: &Plan, amounts: Amounts, figures: &mut Figures) -> Result<(), DriveError> {
    let stage = Stage::set(plan, Target::Toolyard).await?;
    let subject = &stage.subject;
    subject.warm_up().await?;
    let all = seats(&subject.api, amounts.streams * amounts.waves).await?;
    let errand = Errand { first_ms: 20, delay_ms: 20, ..Errand::text(100) };
    let meter = Meter::start(NAME, subject.pid)?;
    let (watches, errors) = try_load(&subject.api, &all, errand, amounts.streams).await;
    let used = meter.stop(figures)?;
    let delays: Vec<f64> = watches.iter().flat_map(|w| &w.delays).map(|d| real(*d) / 1e6).collect();
    let first: Vec<f64> = watches.iter().filter_map(|w| w.first_text).map(|t| real(t) / 1e6).collect();
    spread(figures, NAME, ["piece_p50_ms", "piece_p99_ms"], &delays);
    spread(figures, NAME, ["first_text_p50_ms", "first_text_p99_ms"], &first);
    let mut note = |figure, value| figures.note(NAME, Target::Toolyard, figure, value);
    note("cpu_us_per_piece", used * 1e6 / count(delays.len()));
    note("runs", count(watches.len()));
    note("errors", count(errors));
    Ok(())
}
