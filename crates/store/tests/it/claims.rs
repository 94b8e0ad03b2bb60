//! Who works on a run: the queue, dead nodes, restarts (D3, D4, D16).

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;
use toolyard_protocol::RunId;
use toolyard_protocol::run::RunStatus;
use toolyard_store::log::AppendError;
use toolyard_store::runs::{Claimed, GaveUp, Owner};
use toolyard_store::{Store, StoreError, nodes, runs};

use crate::cast::{self, life, owner};
use crate::home::{Home, tx};
use crate::line::{Line, Waking};

const LIVE_MS: u64 = 4000;

async fn claim(home: &Home, node: &Owner, limit: u32) -> Vec<Claimed> {
    tx!(home, write, [node], |tx| runs::claim(tx, &node, limit).await)
}

async fn register(home: &Home, node: &Owner, valid_ms: u64) {
    tx!(home, write, [node], |tx| nodes::register(tx, &node, valid_ms).await);
}

async fn queued(home: &Home) -> Line {
    Line::begun(home, cast::new_run(&cast::tenant(), None), None).await
}

fn ids(claimed: &[Claimed]) -> Vec<RunId> {
    claimed.iter().map(|c| c.run.clone()).collect()
}

pub(crate) async fn claim_takes_the_queue_first_then_orphans(home: &Home) {
    let orphan = Line::running(home, None, &owner("dead")).await;
    let waiting = queued(home).await;
    let (parked, _) = Line::parked(home, None, &owner("dead")).await;
    let node = owner("a");

    let first = claim(home, &node, 1).await;
    assert_eq!(ids(&first), std::slice::from_ref(&waiting.run.id));
    assert_eq!((first[0].epoch, first[0].recovered), (2, false));
    assert_eq!(first[0].recoveries, 0);
    let row = waiting.row().await;
    assert_eq!((row.status, row.epoch), (RunStatus::Running, 2));
    assert_eq!(row.owner, Some(node.token()));

    register(home, &node, LIVE_MS).await;
    let second = claim(home, &node, 10).await;
    assert_eq!(ids(&second), std::slice::from_ref(&orphan.run.id));
    assert_eq!((second[0].epoch, second[0].recovered), (2, true));
    assert_eq!(second[0].recoveries, 1);
    assert_eq!(orphan.row().await.owner, Some(node.token()));

    assert_eq!(claim(home, &node, 10).await, [], "nothing is left");
    assert_eq!(parked.row().await.owner, None, "a parked run is nobody's");
    let owned = tx!(home, read, [node], |tx| runs::owned(tx, &node).await);
    assert_eq!(owned, 2);
}

pub(crate) async fn claim_never_takes_a_run_of_a_live_node(home: &Home) {
    let (live, thief) = (owner("live"), owner("thief"));
    register(home, &live, LIVE_MS).await;
    let line = Line::running(home, None, &live).await;
    assert_eq!(claim(home, &thief, 10).await, []);
    assert_eq!(claim(home, &live, 10).await, [], "not even its own");
    assert_eq!(line.row().await.epoch, 1);
    let names = tx!(home, read, [], |tx| nodes::live(tx).await);
    assert_eq!(names, ["live"]);

    // Its heartbeat has run out: valid until now is not valid.
    register(home, &live, 0).await;
    assert_eq!(tx!(home, read, [], |tx| nodes::live(tx).await), Vec::<String>::new());
    assert_eq!(ids(&claim(home, &thief, 10).await), [line.run.id]);
}

pub(crate) async fn a_node_that_leaves_gives_its_runs_away_at_once(home: &Home) {
    let (leaving, next) = (owner("leaving"), owner("next"));
    register(home, &leaving, LIVE_MS).await;
    let line = Line::running(home, None, &leaving).await;
    assert_eq!(claim(home, &next, 10).await, []);
    tx!(home, write, [leaving], |tx| nodes::leave(tx, &leaving).await);
    assert_eq!(ids(&claim(home, &next, 10).await), [line.run.id]);
}

pub(crate) async fn a_restarted_node_takes_its_own_runs_back_at_once(home: &Home) {
    let (earlier, later) = (life("a", "first"), life("a", "second"));
    register(home, &earlier, LIVE_MS).await;
    let line = Line::running(home, None, &earlier).await;
    register(home, &later, LIVE_MS).await;
    let taken = claim(home, &later, 10).await;
    assert_eq!(ids(&taken), [line.run.id]);
    assert_eq!((taken[0].epoch, taken[0].recovered), (2, true));
    // A late beat or goodbye of the earlier life does not end the later one.
    tx!(home, write, [earlier], |tx| nodes::beat(tx, &earlier, LIVE_MS).await);
    assert_eq!(claim(home, &owner("b"), 10).await, []);
    tx!(home, write, [earlier], |tx| nodes::leave(tx, &earlier).await);
    assert_eq!(claim(home, &owner("b"), 10).await, []);
}

/// Row D16: a run that kills its node is counted, and progress resets it.
pub(crate) async fn recoveries_are_counted_and_reset_by_an_append(home: &Home) {
    let line = Line::running(home, None, &owner("node-0")).await;
    for n in 1..=5 {
        // The former node never registered, so it is dead.
        let taken = claim(home, &owner(&format!("node-{n}")), 10).await;
        assert_eq!((taken[0].recoveries, taken[0].epoch), (n, n + 1));
    }
    assert_eq!(line.row().await.recoveries, 5);
    line.fact(vec![cast::news()], Waking::No).await;
    assert_eq!(line.row().await.recoveries, 5, "a fact from outside is no progress");
    line.append(&owner("node-5"), 6, 3, vec![cast::news()], cast::going_on()).await.unwrap();
    assert_eq!(line.row().await.recoveries, 5, "nor is an append that only starts over");
    let said = cast::returned(&toolyard_protocol::CallId::mint(), serde_json::json!(1));
    line.append(&owner("node-5"), 6, 4, vec![said], cast::going_on()).await.unwrap();
    assert_eq!(line.row().await.recoveries, 0);
}

pub(crate) async fn a_handed_back_run_is_claimed_without_a_recovery(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    assert!(line.hand_back(1, &node).await);
    let taken = claim(home, &owner("b"), 10).await;
    assert_eq!(ids(&taken), [line.run.id]);
    assert_eq!((taken[0].recovered, taken[0].recoveries), (false, 0));
}

/// Row D16: a try that failed counts like a crash.
pub(crate) async fn a_run_that_is_given_up_is_claimed_as_a_recovery(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    assert!(!line.give_up(2, &node, GaveUp::Failed, 0).await, "another epoch gives nothing up");
    assert!(!line.give_up(1, &owner("b"), GaveUp::Failed, 0).await, "nor does another node");
    assert!(line.give_up(1, &node, GaveUp::Failed, 0).await);
    let refused = line.append(&node, 1, 2, vec![cast::news()], cast::going_on()).await;
    assert!(matches!(refused, Err(AppendError::Fenced { held: 1 })), "{refused:?}");

    // A fact in between must not take the next try away.
    line.fact(vec![cast::news()], Waking::No).await;
    let taken = claim(home, &node, 10).await;
    assert_eq!(ids(&taken), std::slice::from_ref(&line.run.id));
    assert_eq!((taken[0].epoch, taken[0].recovered, taken[0].recoveries), (2, true, 1));
    assert_eq!(line.row().await.status, RunStatus::Running);
    assert_eq!(claim(home, &node, 10).await, [], "it is taken once");
}

/// Row D15: a log of a newer release is no failure of the run.
pub(crate) async fn a_run_that_cannot_be_read_here_is_given_up_without_a_count(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    for epoch in 1..=7 {
        assert!(line.give_up(epoch, &node, GaveUp::Unreadable, 0).await);
        let taken = claim(home, &node, 10).await;
        assert_eq!(ids(&taken), std::slice::from_ref(&line.run.id));
        assert_eq!((taken[0].recovered, taken[0].recoveries), (false, 0));
    }
}

/// A node whose heartbeat is late still has its runs in hand: they are not
/// given to it a second time, neither the old ones nor those it just took.
pub(crate) async fn a_late_node_is_not_given_its_own_runs_again(home: &Home) {
    let late = owner("late");
    register(home, &late, 0).await;
    let held = Line::running(home, None, &late).await;
    let waiting = queued(home).await;
    let taken = claim(home, &late, 10).await;
    assert_eq!(ids(&taken), [waiting.run.id]);
    assert_eq!(held.row().await.epoch, 1);
    assert_eq!(claim(home, &owner("next"), 10).await.len(), 2, "others may take them");
}

pub(crate) async fn an_idle_node_learns_by_reading_that_nothing_is_there(home: &Home) {
    let node = owner("a");
    register(home, &node, LIVE_MS).await;
    let claimable = async || tx!(home, read, [], |tx| runs::claimable(tx).await);
    let mine = Line::running(home, None, &node).await;
    Line::parked(home, None, &node).await;
    assert!(!claimable().await);
    queued(home).await;
    assert!(claimable().await, "the queue");
    claim(home, &node, 10).await;
    assert!(!claimable().await);
    Line::running(home, None, &owner("dead")).await;
    assert!(claimable().await, "an orphan");
    claim(home, &node, 10).await;
    assert!(mine.give_up(1, &node, GaveUp::Failed, 3_600_000).await);
    assert!(!claimable().await, "a run that rests");
}

/// Row D3: two nodes, 200 runs.
pub(crate) async fn two_nodes_never_claim_the_same_run(home: &Home) {
    // Both alive at once: `register` would not allow that on SQLite, where the
    // folder's lock makes every other node void.
    tx!(home, write, [], |tx| {
        tx.exec(
            "INSERT INTO nodes (id, incarnation, until) VALUES \
             ('left', 'first', 9000000000000), ('right', 'first', 9000000000000)",
            &[],
        )
        .await
    });
    for _ in 0..200 {
        queued(home).await;
    }
    let mut tasks = JoinSet::new();
    for name in ["left", "right"] {
        for _ in 0..4 {
            tasks.spawn(claim_until_none_is_left(home.store.clone(), owner(name)));
        }
    }
    let mut times: BTreeMap<RunId, usize> = BTreeMap::new();
    for taken in tasks.join_all().await.into_iter().flatten() {
        assert_eq!((taken.epoch, taken.recovered), (2, false));
        *times.entry(taken.run).or_default() += 1;
    }
    assert!(times.values().all(|n| *n == 1), "{times:?}");
    assert_eq!(times.len(), 200, "all are taken");
}

pub(crate) async fn two_claims_at_once_never_take_the_same_orphan(home: &Home) {
    let node = owner("a");
    register(home, &node, LIVE_MS).await;
    for _ in 0..60 {
        Line::begun(home, cast::new_run(&cast::tenant(), None), Some(&owner("dead"))).await;
    }
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        tasks.spawn(claim_until_none_is_left(home.store.clone(), node.clone()));
    }
    let taken: Vec<Claimed> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(taken.len(), 60);
    assert!(taken.iter().all(|c| (c.epoch, c.recovered, c.recoveries) == (2, true, 1)));
}

async fn claim_until_none_is_left(store: Arc<Store>, node: Owner) -> Vec<Claimed> {
    let mut mine = Vec::new();
    loop {
        let node = node.clone();
        let taken = store
            .write(move |tx| Box::pin(async move { runs::claim(tx, &node, 7).await }))
            .await
            .map_err(|e: StoreError| e)
            .unwrap();
        if taken.is_empty() {
            return mine;
        }
        assert!(taken.len() <= 7, "the limit holds");
        mine.extend(taken);
    }
}
