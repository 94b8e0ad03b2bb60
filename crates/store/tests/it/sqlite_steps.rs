//! D4: a machine's clock that is set while runs are queued and waits are open.
//! SQLite's time follows it ahead and never back.

use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{CallId, ClientId, Timestamp, WaitId, limits};
use toolyard_store::runs::GaveUp;
use toolyard_store::{nodes, runs, waits};

use crate::cast::{self, owner};
use crate::home::{Home, START_MS, tx};
use crate::line::Line;

const HOUR_MS: i64 = 3_600_000;

async fn now(home: &Home) -> i64 {
    home.write(|tx| Box::pin(async move { tx.now().await })).await.millis()
}

async fn claim(home: &Home) -> usize {
    let heir = owner("heir");
    tx!(home, write, [heir], |tx| runs::claim(tx, &heir, 10).await).len()
}

async fn due(home: &Home) -> usize {
    tx!(home, read, [], |tx| waits::due(tx, 10).await).len()
}

/// A run that waits for a moment in `ms`.
async fn timer(home: &Home, ms: u64) -> Line {
    let (node, call) = (owner("a"), CallId::mint());
    let line = Line::running(home, None, &node).await;
    let moment = Timestamp::from_millis(now(home).await).plus_millis(ms);
    let events = vec![cast::requested(&call, Some(WaitKind::Timer), Some(moment))];
    line.append(&node, 1, 2, events, cast::parked()).await.unwrap();
    line
}

#[tokio::test]
async fn d4_time_goes_on_when_the_clock_is_set_back() {
    let home = Home::on_sqlite().await;
    assert_eq!(now(&home).await, START_MS);
    home.clock.set_by(-HOUR_MS);
    assert_eq!(now(&home).await, START_MS);
    home.clock.advance(5);
    assert_eq!(now(&home).await, START_MS + 5);
    // The clock is mended: nothing is counted twice.
    home.clock.set_by(HOUR_MS);
    assert_eq!(now(&home).await, START_MS + 5);
    home.clock.advance(5);
    assert_eq!(now(&home).await, START_MS + 10);
    home.end().await;
}

#[tokio::test]
async fn d4_a_clock_set_back_strands_no_run_and_no_wait() {
    let home = Home::on_sqlite().await;
    let line = timer(&home, 5_000).await;
    Line::begun(&home, cast::new_run(&cast::tenant(), None), None).await;
    home.clock.set_by(-HOUR_MS);
    assert_eq!(claim(&home).await, 1);
    home.clock.advance(4_999);
    assert_eq!(due(&home).await, 0);
    home.clock.advance(1);
    assert_eq!(due(&home).await, 1);
    drop(line);
    home.end().await;
}

#[tokio::test]
async fn d4_a_clock_set_back_before_a_restart_strands_nothing_either() {
    let home = Home::on_sqlite().await;
    Line::begun(&home, cast::new_run(&cast::tenant(), None), None).await;
    drop(timer(&home, 5_000).await);
    home.clock.set_by(-HOUR_MS);
    let home = home.reopened().await;
    assert_eq!(now(&home).await, START_MS);
    assert_eq!(claim(&home).await, 1);
    home.clock.advance(4_999);
    assert_eq!(due(&home).await, 0);
    home.clock.advance(1);
    assert_eq!(due(&home).await, 1);
    home.end().await;
}

/// The newest of what is alive counts, not the oldest: a run that rests, a
/// run in the middle, a claim.
#[tokio::test]
async fn d4_a_restart_goes_on_from_the_newest_of_what_is_alive() {
    let mut home = Home::on_sqlite().await;
    let node = owner("a");
    tx!(home, write, [node], |tx| nodes::register(tx, &node, 4_000).await);
    let line = Line::running(&home, None, &node).await;
    home.clock.advance(10_000);
    assert!(line.give_up(1, &node, GaveUp::Failed, 1_000).await);
    drop(line);
    home.clock.set_by(-HOUR_MS);
    home = home.reopened().await;
    assert_eq!(now(&home).await, START_MS + 10_000, "a run that rests");

    let (line, call) = Line::parked(&home, None, &node).await;
    home.clock.advance(10_000);
    let (tenant, run) = (line.run.tenant.clone(), line.run.id.clone());
    let (wait, client) = (WaitId::of(WaitKind::Client, &call, 0), ClientId::parse("tab").unwrap());
    tx!(home, write, [tenant, run, wait, client], |tx| {
        let until = tx.now().await?.plus_millis(limits::CLAIM_SECONDS * 1000);
        waits::claim(tx, &tenant, &run, &wait, &client, until).await
    });
    drop(line);
    home.clock.set_by(-HOUR_MS);
    home = home.reopened().await;
    assert_eq!(now(&home).await, START_MS + 20_000, "a claim");

    home.clock.advance(10_000);
    drop(Line::running(&home, None, &node).await);
    home.clock.set_by(-HOUR_MS);
    home = home.reopened().await;
    assert_eq!(now(&home).await, START_MS + 30_000, "a run in the middle");
    home.end().await;
}

/// A machine that slept looks the same, so a jump counts as time that passed:
/// a wait ends early by the jump at most.
#[tokio::test]
async fn d4_a_clock_set_ahead_ends_only_what_that_makes_due() {
    let home = Home::on_sqlite().await;
    let short = timer(&home, 1_800_000).await;
    let long = timer(&home, 7_200_000).await;
    home.clock.set_by(HOUR_MS);
    assert_eq!(now(&home).await, START_MS + HOUR_MS);
    assert_eq!(due(&home).await, 1);
    home.clock.advance(HOUR_MS - 1);
    assert_eq!(due(&home).await, 1);
    home.clock.advance(1);
    assert_eq!(due(&home).await, 2);
    drop((short, long));
    home.end().await;
}
