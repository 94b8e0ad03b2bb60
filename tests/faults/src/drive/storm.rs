//! What breaks, and when: the dice say.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Yard, now_ms};
use crate::dice::Dice;
use crate::history::Record;

/// Breaks one thing after the other until the time is over; then all is mended.
pub(super) async fn rage(yard: &Yard, dice: &mut Dice, until: Instant) {
    while Instant::now() < until {
        rest(dice.between(200, 1_500)).await;
        let node = dice.below(yard.nodes.len());
        let from = now_ms();
        let what = match (dice.below(10), &yard.postgres) {
            (0..5, _) => kill(yard, node, dice).await,
            (5..8, _) | (_, None) => stand_still(yard, node, dice).await,
            (8, Some(_)) => database(yard, "crash", dice).await,
            (_, Some(_)) => database(yard, "stop", dice).await,
        };
        yard.note(Record::Fault { what, from, to: now_ms() });
    }
    for node in &yard.nodes {
        node.signal(Signal::CONT);
        node.begin();
    }
}

async fn kill(yard: &Yard, node: usize, dice: &mut Dice) -> String {
    yard.nodes[node].kill();
    rest(dice.between(0, 400)).await;
    yard.nodes[node].begin();
    // A process that has not listened yet has done nothing worth killing.
    let started = Instant::now();
    while yard.nodes[node].url().is_none() && started.elapsed() < Duration::from_secs(10) {
        rest(5).await;
        yard.nodes[node].begin();
    }
    format!("kill -9 of node {node}")
}

/// Up to twice the lease, now and then: then others take its runs.
async fn stand_still(yard: &Yard, node: usize, dice: &mut Dice) -> String {
    let ms = if dice.chance(30) { dice.between(4_500, 9_000) } else { dice.between(50, 1_000) };
    yard.nodes[node].signal(Signal::STOP);
    rest(ms).await;
    yard.nodes[node].signal(Signal::CONT);
    format!("stop of node {node} for {ms} ms")
}

async fn database(yard: &Yard, how: &str, dice: &mut Dice) -> String {
    let Some(postgres) = &yard.postgres else { return String::new() };
    postgres.order(how);
    rest(dice.between(0, 2_000)).await;
    postgres.order("start");
    format!("{how} of the database")
}

pub(super) async fn rest(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
