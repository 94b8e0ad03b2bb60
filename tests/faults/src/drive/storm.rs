//! What breaks, and when: the dice say.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Yard, now_ms};
use crate::check::REDIS;
use crate::dice::Dice;
use crate::history::Record;

/// Breaks one thing after the other until the time is over; then all is mended.
pub(super) async fn rage(yard: &Yard, dice: &mut Dice, until: Instant) {
    while Instant::now() < until {
        rest(dice.between(200, 1_500)).await;
        let node = dice.below(yard.nodes.len());
        let from = now_ms();
        if yard.redis.is_some() && dice.chance(25) {
            let what = redis(yard, dice).await;
            yard.note(Record::Fault { what, from, to: now_ms() });
            continue;
        }
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
        if yard.plan.other.is_some() {
            // This release has to end what the other one began.
            node.kill();
            node.becomes(&yard.plan.gateway);
        }
        node.begin();
    }
}

/// Nothing breaks but commits, by the dice of the gateways themselves. One that
/// cannot make its first commit ends, and is started again.
pub(super) async fn drizzle(yard: &Yard, until: Instant) {
    while Instant::now() < until || yard.nodes.iter().any(|node| node.url().is_none()) {
        yard.nodes.iter().for_each(super::nodes::Node::begin);
        rest(50).await;
    }
}

async fn kill(yard: &Yard, node: usize, dice: &mut Dice) -> String {
    yard.nodes[node].kill();
    rest(dice.between(0, 400)).await;
    let mut release = "";
    if let Some(other) = &yard.plan.other {
        let is_other = dice.chance(50) && !yard.plan.onward;
        release = if is_other { ", the other release is next" } else { ", this release is next" };
        yard.nodes[node].becomes(if is_other { other } else { &yard.plan.gateway });
    }
    yard.nodes[node].begin();
    // A process that has not listened yet has done nothing worth killing.
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(10) {
        if is_ready(yard, node).await {
            let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            yard.note(Record::Recovered { ms });
            break;
        }
        rest(5).await;
        yard.nodes[node].begin();
    }
    format!("kill -9 of node {node}{release}")
}

/// It answers that it takes requests: it has its database and its runs again.
async fn is_ready(yard: &Yard, node: usize) -> bool {
    let Some(url) = yard.nodes[node].url() else { return false };
    let asked = yard.http.get(format!("{url}/ready")).timeout(Duration::from_secs(2)).send().await;
    asked.is_ok_and(|answer| answer.status() == 200)
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

/// It keeps nothing, so nobody may feel it: not by an error, not by a loss.
async fn redis(yard: &Yard, dice: &mut Dice) -> String {
    let Some(redis) = &yard.redis else { return String::new() };
    let hangs = dice.chance(40);
    match hangs {
        true => redis.lock().unwrap().signal("STOP"),
        false => redis.lock().unwrap().kill(),
    }
    rest(dice.between(0, 3_000)).await;
    match hangs {
        true => redis.lock().unwrap().signal("CONT"),
        false => redis.lock().unwrap().restart(),
    }
    format!("{REDIS} {}", if hangs { "it stands still" } else { "kill -9" })
}

pub(super) async fn rest(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
