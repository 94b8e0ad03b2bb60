//! What the owner of a run may append, and when it is refused (invariant 3, D3).

use toolyard_protocol::run::{PauseReason, RunStatus};
use toolyard_protocol::{CallId, Event};
use toolyard_store::log::AppendError;
use toolyard_store::runs::Claimed;
use toolyard_store::{StoreError, log, nodes, runs, spaces};

use crate::cast::{self, owner};
use crate::home::{Home, tx};
use crate::line::{Line, Waking};
use crate::world::with_space;

pub(crate) async fn worker_append_moves_the_log_and_the_row(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    let call = CallId::mint();
    let step =
        vec![cast::replied(&line.run.id, 1, std::slice::from_ref(&call)), cast::requested(&call, None, None)];
    let done = line.append(&node, 1, 2, step.clone(), cast::going_on()).await.unwrap();
    assert_eq!(done.seq, 4);

    let log = line.log().await;
    let events: Vec<Event> = log.iter().map(|l| l.event.clone()).collect();
    let mut expected = vec![cast::created(&line.run), cast::started()];
    expected.extend(step);
    assert_eq!(events, expected);
    assert_eq!(line.kinds().await, ["RunCreated", "RunStarted", "ModelReplied", "ToolCallRequested"]);
    assert_eq!(log[3].at, done.at, "events carry the database's time of their append");
    let row = line.row().await;
    assert_eq!((row.last_seq, row.epoch), (4, 1));
    assert_eq!(row.status, RunStatus::Running);
    assert_eq!(row.owner, Some(node.token()));
    assert_eq!(row.updated_at, done.at);
}

pub(crate) async fn worker_append_that_lets_go_clears_the_owner(home: &Home) {
    let node = owner("a");
    let (line, _) = Line::parked(home, None, &node).await;
    let row = line.row().await;
    assert_eq!(row.owner, None);
    assert_eq!(row.status, RunStatus::WaitingTool);
    assert_eq!(row.reason, Some(PauseReason::Client));
    assert_eq!((row.last_seq, row.epoch), (5, 1));
}

pub(crate) async fn worker_append_after_a_fact_conflicts_and_writes_nothing(home: &Home) {
    let (node, (tenant, space)) = (owner("a"), with_space(home).await);
    let line = Line::running(home, Some(&space), &node).await;
    line.fact(vec![cast::news()], Waking::No).await;
    let before = (line.row().await, line.log().await);

    let call = CallId::mint();
    let refused = line.append(&node, 1, 2, vec![cast::client_call(&call)], cast::parked()).await;
    let Err(AppendError::Conflict { expected, actual }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((expected, actual), (2, 3));
    assert_eq!((line.row().await, line.log().await), before);
    assert_eq!(line.waits().await, []);
    let stored = tx!(home, read, [tenant, space], |tx| spaces::get(tx, &tenant, &space).await);
    assert_eq!(stored.unwrap().last_pos, 3, "a refusal takes no position");

    // The worker folds the fact and asks again.
    let done = line.append(&node, 1, 3, vec![cast::client_call(&call)], cast::parked()).await;
    assert_eq!(done.unwrap().seq, 4);
}

pub(crate) async fn worker_append_after_a_takeover_is_fenced(home: &Home) {
    let (old, new) = (owner("a"), owner("b"));
    let line = Line::running(home, None, &old).await;
    let taken = tx!(home, write, [new], |tx| {
        nodes::register(tx, &new, 4000).await?;
        runs::claim(tx, &new, 10).await
    });
    assert_eq!(
        taken,
        [Claimed {
            tenant: line.run.tenant.clone(),
            run: line.run.id.clone(),
            epoch: 2,
            recovered: true,
            recoveries: 1
        }]
    );
    // The stale owner is refused whether its seq is right or wrong.
    for expected in [2, 7] {
        let refused = line.append(&old, 1, expected, vec![cast::news()], cast::going_on()).await;
        assert!(matches!(refused, Err(AppendError::Fenced { held: 2 })), "{refused:?}");
    }
    assert_eq!(line.row().await.last_seq, 2);
    let done = line.append(&new, 2, 2, vec![cast::news()], cast::going_on()).await;
    assert_eq!(done.unwrap().seq, 3);
}

/// The run came back to the same node: only the epoch tells its two workers apart.
pub(crate) async fn worker_append_of_an_earlier_epoch_of_the_same_node_is_fenced(home: &Home) {
    let node = owner("a");
    let (line, call) = Line::parked(home, None, &node).await;
    let result = cast::returned(&call, serde_json::json!("here"));
    line.fact(vec![result], Waking::Start(node.clone())).await;
    let refused = line.append(&node, 1, 6, vec![cast::news()], cast::going_on()).await;
    assert!(matches!(refused, Err(AppendError::Fenced { held: 2 })), "{refused:?}");
    line.append(&node, 2, 6, vec![cast::news()], cast::going_on()).await.unwrap();
}

/// Trap T10: with an unchanged epoch it would look like a conflict for ever.
pub(crate) async fn worker_append_after_its_release_is_fenced(home: &Home) {
    let node = owner("a");
    let (line, _) = Line::parked(home, None, &node).await;
    let refused = line.append(&node, 1, 5, vec![cast::news()], cast::going_on()).await;
    assert!(matches!(refused, Err(AppendError::Fenced { held: 1 })), "{refused:?}");
    assert_eq!(line.log().await.len(), 5);
}

pub(crate) async fn worker_append_after_hand_back_is_fenced(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    assert!(!line.hand_back(2, &node).await, "another epoch hands nothing back");
    assert!(!line.hand_back(1, &owner("b")).await, "nor does another node");
    assert!(line.hand_back(1, &node).await);
    let refused = line.append(&node, 1, 2, vec![cast::news()], cast::going_on()).await;
    assert!(matches!(refused, Err(AppendError::Fenced { held: 1 })), "{refused:?}");
    let row = line.row().await;
    assert_eq!((row.status, row.owner), (RunStatus::Queued, None));
}

/// The worker has nothing to say and lets go: the log does not move.
pub(crate) async fn a_run_is_parked_without_an_event(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    assert!(!line.park(2, &node, 2).await);
    assert!(!line.park(1, &owner("b"), 2).await);
    assert!(!line.park(1, &node, 1).await, "a fact came that this owner has not heard");
    assert!(line.park(1, &node, 2).await);
    assert!(!line.park(1, &node, 2).await, "once");
    let row = line.row().await;
    assert_eq!((row.owner, row.last_seq), (None, 2));
    assert_eq!((row.status, row.reason), (RunStatus::WaitingTool, Some(PauseReason::Client)));
    let refused = line.append(&node, 1, 2, vec![cast::news()], cast::going_on()).await;
    assert!(matches!(refused, Err(AppendError::Fenced { held: 1 })), "{refused:?}");
}

/// A restarted node has the same name: only its incarnation tells it apart.
pub(crate) async fn worker_append_of_an_earlier_life_of_the_node_is_fenced(home: &Home) {
    let (earlier, later) = (cast::life("a", "first"), cast::life("a", "second"));
    let line = Line::running(home, None, &later).await;
    let refused = line.append(&earlier, 1, 2, vec![cast::news()], cast::going_on()).await;
    assert!(matches!(refused, Err(AppendError::Fenced { held: 1 })), "{refused:?}");
}

pub(crate) async fn worker_append_to_an_unknown_run_or_another_tenants_is_gone(home: &Home) {
    let node = owner("a");
    let mut line = Line::running(home, None, &node).await;
    let mut unknown = line.clone();
    unknown.run.id = toolyard_protocol::RunId::mint();
    line.run.tenant = cast::other_tenant();
    for stranger in [unknown, line] {
        let refused = stranger.append(&node, 1, 2, vec![cast::news()], cast::going_on()).await;
        assert!(matches!(refused, Err(AppendError::Gone)), "{refused:?}");
        assert_eq!(stranger.log().await, []);
    }
}

pub(crate) async fn log_is_read_in_pages_and_by_position(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    let news: Vec<Event> = (0..8).map(|_| cast::news()).collect();
    line.append(&node, 1, 2, news.clone(), cast::going_on()).await.unwrap();
    let (tenant, run) = (line.run.tenant.clone(), line.run.id.clone());
    let (page, rest, one, none) = tx!(home, read, [tenant, run], |tx| {
        Ok((
            log::read(tx, &tenant, &run, 2, 5).await?,
            log::read(tx, &tenant, &run, 7, 5).await?,
            log::event(tx, &tenant, &run, 3).await?,
            log::event(tx, &tenant, &run, 11).await?,
        ))
    });
    assert_eq!(page.iter().map(|l| l.seq).collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
    assert_eq!(rest.iter().map(|l| l.seq).collect::<Vec<_>>(), [8, 9, 10]);
    assert_eq!(one.as_ref(), Some(&news[0]));
    assert_eq!(none, None);
}

/// A row of an earlier release holds one event. It reads as the rows of today,
/// from any place, and a row that is missing is no silence.
pub(crate) async fn rows_of_one_event_and_of_several_read_alike(home: &Home) {
    let node = owner("a");
    let (tenant, space) = with_space(home).await;
    let (line, _) = Line::parked(home, Some(&space), &node).await;
    let run = line.run.id.clone();
    let whole = line.log().await;
    let told = tx!(home, read, [tenant, space], |tx| log::read_space(tx, &tenant, &space, 0, 10).await);
    assert_eq!((whole.len(), told.len()), (5, 5));
    let earlier = whole.clone();
    tx!(home, write, [tenant, run], |tx| {
        tx.exec("DELETE FROM events WHERE seq > 2", &[]).await?;
        for old in &earlier[2..] {
            let (body, seq, at) = (old.event.encode(), old.seq, old.at);
            let row =
                [tenant.as_str().into(), run.as_str().into(), seq.into(), at.into(), body.as_str().into()];
            // Nothing else is in the space, so both orders are one.
            tx.exec(
                "INSERT INTO events (tenant, run, seq, at, body, space, pos) \
                 SELECT $1, $2, $3, $4, $5, space, $3 FROM events WHERE seq <= 2 LIMIT 1",
                &row,
            )
            .await?;
        }
        Ok(())
    });
    for after in 0..6 {
        let page = tx!(home, read, [tenant, run], |tx| log::read(tx, &tenant, &run, after, 2).await);
        let from = usize::try_from(after).unwrap().min(5);
        assert_eq!(page, whole[from..(from + 2).min(5)]);
        let heard =
            tx!(home, read, [tenant, space], |tx| log::read_space(tx, &tenant, &space, after, 10).await);
        assert_eq!(heard, told.iter().filter(|e| e.pos > after).cloned().collect::<Vec<_>>());
        let one = tx!(home, read, [tenant, run], |tx| log::event(tx, &tenant, &run, after).await);
        assert_eq!(one, whole.iter().find(|l| l.seq == after).map(|l| l.event.clone()));
    }
    tx!(home, write, [], |tx| tx.exec("DELETE FROM events WHERE seq = 4", &[]).await);
    let gap = tx!(home, try_read, [tenant, run], |tx| log::read(tx, &tenant, &run, 0, 10).await);
    assert!(matches!(gap, Err(StoreError::Undecodable(_))), "{gap:?}");
}
