//! The gateway under load: many readers, many streams, slow readers, many
//! waiting runs, a long conversation. What it takes, and what goes wrong.
//!
//! Unlike the scenarios side by side, an error is counted here and does not end
//! the measurement. Every part is bounded in count and in time.

mod answers;
mod meter;
mod readers;
mod slow;
mod streams;
mod talk;

use serde_json::json;

use super::DriveError;
use super::report::{Figures, publish_load};
use super::rounds::Plan;

/// How much of everything.
#[derive(Debug, Clone, Copy)]
pub struct Amounts {
    pub readers: usize,
    pub idle_seconds: u64,
    pub streams: usize,
    pub waves: usize,
    pub slow: usize,
    pub waiting: usize,
    pub answered: usize,
    pub messages: usize,
}

impl Amounts {
    /// What the promises are about.
    pub const WHOLE: Self = Self {
        readers: 10_000,
        idle_seconds: 60,
        streams: 500,
        waves: 10,
        slow: 500,
        waiting: 100_000,
        answered: 100_000,
        messages: 10_000,
    };
    /// A first look.
    pub const QUICK: Self = Self {
        readers: 1_000,
        idle_seconds: 10,
        streams: 100,
        waves: 2,
        slow: 50,
        waiting: 2_000,
        answered: 500,
        messages: 1_000,
    };
}

/// Loads the gateway in every way that the plan asks for (`L1` to `L5`).
pub async fn load_all(plan: &Plan, amounts: Amounts) -> Result<(), DriveError> {
    let mut figures = Figures::default();
    if plan.wants("L1") {
        eprintln!("L1: {} idle readers", amounts.readers);
        readers::idle(plan, amounts, &mut figures).await?;
    }
    if plan.wants("L2") {
        eprintln!("L2: {} streams at once", amounts.streams);
        streams::paced(plan, amounts, &mut figures).await?;
    }
    if plan.wants("L3") {
        eprintln!("L3: {} slow readers", amounts.slow);
        slow::slow(plan, amounts, &mut figures).await?;
    }
    if plan.wants("L4") {
        eprintln!("L4: {} waiting runs, {} answered", amounts.waiting, amounts.answered);
        answers::random(plan, amounts, &mut figures).await?;
    }
    if plan.wants("L5") {
        eprintln!("L5: a space with {} messages", amounts.messages);
        talk::long(plan, amounts, &mut figures).await?;
    }
    let conditions = json!({
        "cores": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "readers": amounts.readers,
        "idleSeconds": amounts.idle_seconds,
        "streams": amounts.streams,
        "waves": amounts.waves,
        "slow": amounts.slow,
        "waiting": amounts.waiting,
        "answered": amounts.answered,
        "messages": amounts.messages,
    });
    publish_load(&figures, &conditions, &plan.results)
}
