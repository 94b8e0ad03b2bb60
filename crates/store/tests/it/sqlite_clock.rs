//! Time that moves. SQLite's database time is the process's clock, so these
//! stories set it by hand; PostgreSQL keeps its own.

use serde_json::json;
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{CallId, ClientId, RunId, WaitId, limits};
use toolyard_store::runs::GaveUp;
use toolyard_store::{nodes, outbox, runs, waits};

use crate::cast::{self, owner};
use crate::home::{Home, tx};
use crate::line::{Line, Waking};

#[tokio::test]
async fn a_claim_of_a_wait_lapses_after_sixty_seconds() {
    let home = Home::on_sqlite().await;
    let (line, call) = Line::parked(&home, None, &owner("a")).await;
    let (tenant, run) = (line.run.tenant.clone(), line.run.id.clone());
    let wait = WaitId::of(WaitKind::Client, &call, 0);
    let claim = async |client: &str| {
        let client = ClientId::parse(client).unwrap();
        tx!(home, write, [tenant, run, wait, client], |tx| {
            let until = tx.now().await?.plus_millis(limits::CLAIM_SECONDS * 1000);
            waits::claim(tx, &tenant, &run, &wait, &client, until).await
        })
    };
    assert!(claim("tab").await);
    home.clock.advance(59_999);
    assert!(!claim("robot").await);
    home.clock.advance(1);
    assert!(claim("robot").await);
    drop(line);
    home.end().await;
}

#[tokio::test]
async fn a_node_is_dead_when_its_heartbeat_runs_out() {
    let home = Home::on_sqlite().await;
    let (node, heir) = (owner("a"), owner("heir"));
    let claim = async || tx!(home, write, [heir], |tx| runs::claim(tx, &heir, 10).await);
    tx!(home, write, [node], |tx| nodes::register(tx, &node, 4000).await);
    let line = Line::running(&home, None, &node).await;
    home.clock.advance(3999);
    assert_eq!(claim().await, []);
    tx!(home, write, [node], |tx| nodes::beat(tx, &node, 4000).await);
    home.clock.advance(3999);
    assert_eq!(claim().await, []);
    home.clock.advance(1);
    assert_eq!(claim().await.len(), 1);
    drop(line);
    home.end().await;
}

/// One process holds the folder's lock, so every other node is of the past.
#[tokio::test]
async fn a_new_node_voids_all_others() {
    let home = Home::on_sqlite().await;
    let (old, new) = (owner("old"), owner("new"));
    tx!(home, write, [old], |tx| nodes::register(tx, &old, 4000).await);
    let line = Line::running(&home, None, &old).await;
    let taken = tx!(home, write, [new], |tx| {
        nodes::register(tx, &new, 4000).await?;
        runs::claim(tx, &new, 10).await
    });
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].run, line.run.id);
    drop(line);
    home.end().await;
}

#[tokio::test]
async fn the_queue_is_first_come_first_served() {
    let home = Home::on_sqlite().await;
    let mut born: Vec<RunId> = Vec::new();
    for _ in 0..5 {
        home.clock.advance(1);
        let run = cast::new_run(&cast::tenant(), None);
        born.push(Line::begun(&home, run, None).await.run.id);
    }
    let node = owner("a");
    let mut served = Vec::new();
    for _ in 0..5 {
        let taken = tx!(home, write, [node], |tx| runs::claim(tx, &node, 1).await);
        served.extend(taken.into_iter().map(|c| c.run));
    }
    assert_eq!(served, born);
    home.end().await;
}

#[tokio::test]
async fn a_run_that_is_given_up_rests_until_its_next_try() {
    let home = Home::on_sqlite().await;
    let (node, heir) = (owner("a"), owner("heir"));
    let line = Line::running(&home, None, &node).await;
    assert!(line.give_up(1, &node, GaveUp::Failed, 5000).await);
    let claim = async || tx!(home, write, [heir], |tx| runs::claim(tx, &heir, 10).await).len();
    home.clock.advance(4999);
    assert_eq!(claim().await, 0);
    line.fact(vec![cast::news()], Waking::No).await;
    assert_eq!(claim().await, 0);
    home.clock.advance(1);
    assert_eq!(claim().await, 1);
    drop(line);
    home.end().await;
}

#[tokio::test]
async fn a_wait_is_due_in_its_moment_and_not_before() {
    let home = Home::on_sqlite().await;
    let (node, call) = (owner("a"), CallId::mint());
    let line = Line::running(&home, None, &node).await;
    let moment = line.row().await.created_at.plus_millis(5000);
    let events = vec![cast::requested(&call, Some(WaitKind::Timer), Some(moment))];
    line.append(&node, 1, 2, events, cast::parked()).await.unwrap();
    let due = async || tx!(home, read, [], |tx| waits::due(tx, 10).await).len();
    home.clock.advance(4999);
    assert_eq!(due().await, 0);
    home.clock.advance(1);
    assert_eq!(due().await, 1);
    line.fact(vec![cast::returned(&call, json!(null))], Waking::No).await;
    assert_eq!(due().await, 0);
    drop(line);
    home.end().await;
}

#[tokio::test]
async fn a_parcel_is_retried_in_its_moment() {
    let home = Home::on_sqlite().await;
    tx!(home, write, [], |tx| outbox::put(tx, &cast::tenant(), "one", "mail", &json!(1)).await);
    let take = async || {
        let taken = tx!(home, write, [], |tx| {
            let again = tx.now().await?.plus_millis(30_000);
            cast::take(tx, again, 10).await
        });
        taken.into_iter().map(|p| p.attempts).collect::<Vec<_>>()
    };
    assert_eq!(take().await, [1]);
    home.clock.advance(29_999);
    assert_eq!(take().await, Vec::<i64>::new());
    home.clock.advance(1);
    assert_eq!(take().await, [2]);
    home.end().await;
}
