//! L5: a space in which a lot was said: pages from anywhere, and turns on top.

use std::time::Instant;

use super::Amounts;
use super::meter::{Meter, count, real, spread};
use super::readers::native;
use crate::drive::DriveError;
use crate::drive::api::Seat;
use crate::drive::errand::Errand;
use crate::drive::load::try_load;
use crate::drive::report::Figures;
use crate::drive::rounds::{Plan, Stage};
use crate::drive::target::Target;

const NAME: &str = "L5 long space";
const PAGES: usize = 500;
const TURNS: usize = 100;
/// Messages of the space that the long one is compared with.
const FEW: usize = 10;
const WRITERS: usize = 8;

pub(super) async fn long(plan: &Plan, amounts: Amounts, figures: &mut Figures) -> Result<(), DriveError> {
    let stage = Stage::set(plan, Target::Toolyard).await?;
    let subject = &stage.subject;
    subject.warm_up().await?;
    let (short, long) = (subject.api.seat().await?, subject.api.seat().await?);
    let say = |n: usize| format!("{n}: This was said a while ago and says nothing that matters now.");
    subject.api.add_history(&short, &(0..FEW).map(say).collect::<Vec<_>>()).await?;
    let filled = Instant::now();
    let shares: Vec<Vec<String>> = (0..WRITERS)
        .map(|writer| (0..amounts.messages).skip(writer).step_by(WRITERS).map(say).collect())
        .collect();
    futures::future::try_join_all(shares.iter().map(|share| subject.api.add_history(&long, share))).await?;
    let rate = count(amounts.messages) / filled.elapsed().as_secs_f64();
    figures.note(NAME, Target::Toolyard, "writes_per_s", rate);
    let meter = Meter::start(NAME, subject.pid)?;
    let mut errors = pages(&subject.api, &long, amounts.messages, figures).await?;
    for (seat, names) in [
        (&short, ["turn_of_10_cpu_ms", "turn_of_10_p50_ms", "turn_of_10_p99_ms"]),
        (&long, ["turn_cpu_ms", "turn_p50_ms", "turn_p99_ms"]),
    ] {
        let part = Meter::start(NAME, subject.pid)?;
        let same: Vec<Seat> = std::iter::repeat_n(seat.clone(), TURNS).collect();
        let (watches, failed) = try_load(&subject.api, &same, Errand::text(10), 1).await;
        let used = part.used()?;
        let times: Vec<f64> = watches.iter().filter_map(|w| w.ended).map(|t| real(t) / 1e6).collect();
        let [cpu, middle, end] = names;
        figures.note(NAME, Target::Toolyard, cpu, used * 1e3 / count(TURNS));
        spread(figures, NAME, [middle, end], &times);
        errors += failed;
    }
    meter.stop(figures)?;
    figures.note(NAME, Target::Toolyard, "errors", count(errors));
    Ok(())
}

/// Pages from places all over the space.
async fn pages(
    api: &std::sync::Arc<crate::drive::api::Api>,
    space: &Seat,
    messages: usize,
    figures: &mut Figures,
) -> Result<usize, DriveError> {
    let (mut times, mut errors) = (Vec::with_capacity(PAGES), 0);
    for n in 0..PAGES {
        // A stride that shares no factor with the length visits places in no order.
        let before = (n * 7_919) % messages + 1;
        let began = Instant::now();
        match native(api)?.page(space, before).await {
            Ok(()) => times.push(began.elapsed().as_secs_f64() * 1e3),
            Err(_) => errors += 1,
        }
    }
    spread(figures, NAME, ["page_p50_ms", "page_p99_ms"], &times);
    Ok(errors)
}
