//! Facts come from any node, without a lease (invariant 3).

use toolyard_protocol::CallId;
use toolyard_protocol::run::{PauseReason, RunStatus};
use toolyard_protocol::wait::WaitKind;
use toolyard_store::runs::{self, After};

use crate::cast::{self, owner};
use crate::home::{Home, tx};
use crate::line::{Line, Waking};

pub(crate) async fn fact_takes_the_next_seq_and_leaves_the_owner_alone(home: &Home) {
    let (node, other) = (owner("a"), owner("b"));
    let line = Line::running(home, None, &node).await;
    for (i, waking) in [Waking::No, Waking::Queue, Waking::Start(other)].into_iter().enumerate() {
        let done = line.fact(vec![cast::news(), cast::news()], waking).await;
        assert_eq!(done.seq, 4 + 2 * i64::try_from(i).unwrap());
        assert_eq!(done.assigned, None);
        let row = line.row().await;
        assert_eq!(row.owner, Some(node.token()));
        assert_eq!((row.epoch, row.status), (1, RunStatus::Running));
        assert_eq!(row.last_seq, done.seq);
    }
    assert_eq!(line.kinds().await.len(), 8);
    assert_eq!(claimable(home).await, 0);
}

pub(crate) async fn fact_with_an_owner_starts_a_parked_run_there(home: &Home) {
    let (line, call) = Line::parked(home, None, &owner("a")).await;
    let next = owner("b");
    let result = cast::returned(&call, serde_json::json!("here"));
    let done = line.fact(vec![result], Waking::Start(next.clone())).await;
    assert_eq!((done.seq, done.assigned), (6, Some(2)));
    let row = line.row().await;
    assert_eq!((row.status, row.reason), (RunStatus::Running, None));
    assert_eq!((row.epoch, row.owner), (2, Some(next.token())));
    // The new owner goes on at once, without a claim.
    let step = vec![cast::replied(&line.run.id, 2, &[]), cast::finished()];
    let end = line.append(&next, 2, 6, step, cast::completed()).await.unwrap();
    assert_eq!(end.seq, 8);
    assert_eq!(line.row().await.status, RunStatus::Completed);
}

pub(crate) async fn fact_without_an_owner_queues_a_parked_run(home: &Home) {
    let (line, call) = Line::parked(home, None, &owner("a")).await;
    let result = cast::returned(&call, serde_json::json!("here"));
    let done = line.fact(vec![result], Waking::Queue).await;
    assert_eq!((done.seq, done.assigned), (6, None));
    let row = line.row().await;
    assert_eq!((row.status, row.reason), (RunStatus::Queued, None));
    assert_eq!((row.epoch, row.owner), (1, None));

    let next = owner("b");
    let taken = tx!(home, write, [next], |tx| runs::claim(tx, &next, 10).await);
    assert_eq!(taken.len(), 1);
    assert_eq!((taken[0].epoch, taken[0].recovered), (2, false));
    assert_eq!(line.row().await.status, RunStatus::Running);
}

pub(crate) async fn fact_that_does_not_wake_leaves_a_parked_run_parked(home: &Home) {
    let (line, _) = Line::parked(home, None, &owner("a")).await;
    let done = line.fact(vec![cast::news()], Waking::No).await;
    assert_eq!((done.seq, done.assigned), (6, None));
    let row = line.row().await;
    assert_eq!(row.status, RunStatus::WaitingTool);
    assert_eq!(row.reason, Some(PauseReason::Client));
    assert_eq!((row.owner, row.epoch), (None, 1));
    assert_eq!(claimable(home).await, 0);
}

/// A run that waits for a timer or a child shows `running` without an owner.
pub(crate) async fn fact_wakes_a_run_that_only_a_timer_holds(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    let call = CallId::mint();
    let after =
        After { status: RunStatus::Running, reason: Some(PauseReason::Timer), release: true, error: None };
    let events = vec![cast::requested(&call, Some(WaitKind::Timer), None)];
    line.append(&node, 1, 2, events, after).await.unwrap();
    assert_eq!(claimable(home).await, 0);
    let result = cast::returned(&call, serde_json::json!(null));
    let done = line.fact(vec![result], Waking::Start(node.clone())).await;
    assert_eq!(done.assigned, Some(2));
    assert_eq!(line.row().await.owner, Some(node.token()));
}

pub(crate) async fn fact_keeps_a_queued_run_claimable(home: &Home) {
    let node = owner("a");
    for waking in [Waking::No, Waking::Queue, Waking::Start(owner("b"))] {
        let line = Line::begun(home, cast::new_run(&cast::tenant(), None), None).await;
        let first = vec![cast::created(&line.run)];
        line.fact(first, Waking::No).await;
        let done = line.fact(vec![cast::news()], waking).await;
        assert_eq!((done.seq, done.assigned), (2, None));
        let row = line.row().await;
        assert_eq!((row.status, row.owner), (RunStatus::Queued, None));
        let taken = tx!(home, write, [node], |tx| runs::claim(tx, &node, 10).await);
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0].run, line.run.id);
        let end = line.append(&node, 2, 2, vec![cast::finished()], cast::completed()).await;
        assert_eq!(end.unwrap().seq, 3);
    }
}

pub(crate) async fn fact_never_wakes_a_finished_run(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    line.append(&node, 1, 2, vec![cast::finished()], cast::completed()).await.unwrap();
    for waking in [Waking::Queue, Waking::Start(owner("b"))] {
        let done = line.fact(vec![cast::news()], waking).await;
        assert_eq!(done.assigned, None);
        let row = line.row().await;
        assert_eq!((row.status, row.owner), (RunStatus::Completed, None));
    }
    assert_eq!(claimable(home).await, 0);
}

/// How many runs a stranger could take right now. It takes them.
async fn claimable(home: &Home) -> usize {
    let stranger = owner("stranger");
    // The stories' node is alive, so that only the queue is left.
    tx!(home, write, [stranger], |tx| {
        toolyard_store::nodes::register(tx, &owner("a"), 4000).await?;
        runs::claim(tx, &stranger, 10).await
    })
    .len()
}
