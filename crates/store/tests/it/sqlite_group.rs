//! SQLite's group commit: many writes in one transaction, each taken back alone.
//! Proves T3 (a full disk ends the whole transaction), T13 and row D12.

use futures::future::{BoxFuture, join_all};
use futures::poll;
use serde_json::json;
use toolyard_protocol::{CallId, Hash};
use toolyard_store::log::AppendError;
use toolyard_store::{StoreError, Tx, blobs, messages, outbox};

use crate::cast::{self, owner};
use crate::failures::notes;
use crate::home::{Home, tx};
use crate::line::Line;
use crate::world::with_space;

/// Queues all writes while the writer is held up, so that they are one group,
/// in this order.
async fn in_one_group<T>(home: &Home, writes: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let (entered, enters) = tokio::sync::oneshot::channel();
    let (leave, left) = std::sync::mpsc::sync_channel::<()>(1);
    let mut holding = Box::pin(home.write(move |_| {
        Box::pin(async move {
            entered.send(()).unwrap();
            left.recv().unwrap();
            Ok(())
        })
    }));
    assert!(poll!(&mut holding).is_pending());
    enters.await.unwrap();
    let mut writes = Box::pin(join_all(writes));
    assert!(poll!(&mut writes).is_pending());
    leave.send(()).unwrap();
    holding.await;
    writes.await
}

async fn note(tx: &mut Tx<'_>, id: &str) -> Result<(), StoreError> {
    outbox::put(tx, &cast::tenant(), id, "note", &json!(null)).await
}

/// Forbids the database file to grow, or allows it again.
async fn set_room(home: &Home, room: bool) {
    home.write(move |tx| {
        Box::pin(async move {
            // Never below the present size, so 1 means: no page more.
            let sql = if room { "PRAGMA max_page_count = 1000000000" } else { "PRAGMA max_page_count = 1" };
            tx.one(sql, &[], |r| r.int(0)).await
        })
    })
    .await;
}

fn noting<'h>(home: &'h Home, id: &'static str) -> BoxFuture<'h, Result<(), StoreError>> {
    Box::pin(home.try_write(move |tx| Box::pin(async move { note(tx, id).await })))
}

/// More than fits into the pages there are.
fn filling(home: &Home) -> BoxFuture<'_, Result<(), StoreError>> {
    Box::pin(home.try_write(|tx| {
        Box::pin(async move {
            note(tx, "filling").await?;
            let bytes = vec![7; 1 << 20];
            blobs::put(tx, &cast::tenant(), &Hash::of(&bytes), &bytes).await
        })
    }))
}

fn failing<'h>(home: &'h Home, id: &'static str) -> BoxFuture<'h, Result<(), StoreError>> {
    Box::pin(home.try_write(move |tx| {
        Box::pin(async move {
            note(tx, id).await?;
            Err(StoreError::broken("refused"))
        })
    }))
}

fn panicking<'h>(home: &'h Home, id: &'static str) -> BoxFuture<'h, Result<(), StoreError>> {
    Box::pin(home.try_write(move |tx| {
        Box::pin(async move {
            note(tx, id).await?;
            panic!("{id} panics")
        })
    }))
}

#[tokio::test]
async fn a_failure_or_a_panic_in_a_group_fails_only_itself() {
    let home = Home::on_sqlite().await;
    let answers = in_one_group(
        &home,
        vec![
            noting(&home, "1"),
            failing(&home, "2"),
            noting(&home, "3"),
            panicking(&home, "4"),
            noting(&home, "5"),
            failing(&home, "6"),
            panicking(&home, "7"),
        ],
    )
    .await;
    let heard: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(heard, [true, false, true, false, true, false, false]);
    let broken = answers.into_iter().filter_map(Result::err);
    for error in broken {
        assert!(matches!(error, StoreError::Broken(_)), "{error:?}");
    }
    assert_eq!(notes(&home).await, ["1", "3", "5"]);
    home.end().await;
}

/// Says that nothing is left to refuse, and fails all the same.
fn settled<'h>(home: &'h Home, id: &'static str, changes: bool) -> BoxFuture<'h, Result<(), StoreError>> {
    Box::pin(home.try_write(move |tx| {
        Box::pin(async move {
            tx.settle();
            if changes {
                note(tx, id).await?;
            }
            Err(StoreError::broken("failed"))
        })
    }))
}

#[tokio::test]
async fn a_settled_write_that_is_refused_before_it_changes_anything_fails_only_itself() {
    let home = Home::on_sqlite().await;
    let writes = vec![noting(&home, "1"), settled(&home, "2", false), noting(&home, "3")];
    let answers = in_one_group(&home, writes).await;
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(notes(&home).await, ["1", "3"]);
    home.end().await;
}

/// It cannot be taken back alone. Its neighbours are to try again; it hears its
/// own failure, so that it does not.
#[tokio::test]
async fn a_settled_write_that_fails_takes_its_group_along() {
    let home = Home::on_sqlite().await;
    let writes = vec![noting(&home, "1"), settled(&home, "2", true), noting(&home, "3")];
    let answers = in_one_group(&home, writes).await;
    assert!(matches!(answers[0], Err(StoreError::Unavailable(_))), "{:?}", answers[0]);
    assert!(matches!(answers[1], Err(StoreError::Broken(_))), "{:?}", answers[1]);
    assert!(answers[2].is_ok(), "it did not run in the lost group: {:?}", answers[2]);
    assert_eq!(notes(&home).await, ["3"]);
    home.end().await;
}

/// T3: nothing of the group is there, everybody in it hears `Full`, and what
/// had not run yet is tried in the next group.
#[tokio::test]
async fn a_full_disk_fails_its_group_whole_and_leaves_nothing_of_it() {
    let home = Home::on_sqlite().await;
    noting(&home, "0").await.unwrap();
    set_room(&home, false).await;
    let answers =
        in_one_group(&home, vec![noting(&home, "before"), filling(&home), noting(&home, "after")]).await;
    let [before, filling, after] = &answers[..] else {
        panic!("three answers");
    };
    assert!(matches!(before, Err(StoreError::Full(_))), "{before:?}");
    assert!(matches!(filling, Err(StoreError::Full(_))), "{filling:?}");
    assert!(after.is_ok(), "it did not run in the lost group: {after:?}");
    assert_eq!(notes(&home).await, ["0", "after"]);
    home.end().await;
}

/// A refusal that rests on a neighbour's write is void when that write is
/// lost: the caller must not believe that it was overtaken.
#[tokio::test]
async fn a_refusal_inside_a_lost_group_is_not_believed() {
    let home = Home::on_sqlite().await;
    let node = owner("a");
    let line = Line::running(&home, None, &node).await;
    set_room(&home, false).await;
    let append = || async {
        let done = line.append(&node, 1, 2, vec![cast::news()], cast::going_on());
        done.await.map(|_| ())
    };
    let fill = async { filling(&home).await.map_err(AppendError::from) };
    let answers = in_one_group(&home, vec![Box::pin(append()), Box::pin(append()), Box::pin(fill)]).await;
    for answer in answers {
        assert!(matches!(answer, Err(AppendError::Store(StoreError::Full(_)))), "{answer:?}");
    }
    assert_eq!(line.row().await.last_seq, 2);
    append().await.unwrap();
    drop(line);
    home.end().await;
}

/// An operation that ignores the error and goes on must not write by itself:
/// the transaction around it is gone.
#[tokio::test]
async fn an_operation_that_ignores_a_full_disk_writes_nothing() {
    let home = Home::on_sqlite().await;
    noting(&home, "0").await.unwrap();
    set_room(&home, false).await;
    let ignoring = home
        .try_write(|tx| {
            Box::pin(async move {
                let bytes = vec![7; 1 << 20];
                let _ = blobs::put(tx, &cast::tenant(), &Hash::of(&bytes), &bytes).await;
                note(tx, "stray").await
            })
        })
        .await;
    assert!(ignoring.is_err());
    assert_eq!(notes(&home).await, ["0"]);
    home.end().await;
}

/// Row D12: while the disk is full reads go on and writes are refused; when
/// there is room again writes go on, without a restart.
#[tokio::test]
async fn writing_goes_on_when_there_is_room_again() {
    let home = Home::on_sqlite().await;
    let (node, (tenant, space)) = (owner("a"), with_space(&home).await);
    let line = Line::running(&home, Some(&space), &node).await;
    set_room(&home, false).await;

    // Messages until the disk is full: what was acknowledged is there.
    let post = async |n: usize| {
        let text = format!("{n} {}", "x".repeat(2000));
        tx!(home, try_write, [tenant, space], |tx| messages::insert(
            tx,
            &tenant,
            &space,
            cast::message(&text)
        )
        .await)
    };
    let mut acknowledged = Vec::new();
    let refused = loop {
        match post(acknowledged.len()).await {
            Ok(message) => acknowledged.push(message),
            Err(e) => break e,
        }
        assert!(acknowledged.len() < 1000, "the disk never filled up");
    };
    assert!(matches!(refused, StoreError::Full(_)), "{refused:?}");
    let call = CallId::mint();
    let step = vec![
        cast::replied(&line.run.id, 1, std::slice::from_ref(&call)),
        cast::client_call(&call),
        cast::paused(&call),
    ];
    let before = (line.row().await, line.log().await);
    let big = step.iter().cycle().take(60).cloned().collect();
    let torn = line.append(&node, 1, 2, big, cast::parked()).await;
    assert!(torn.is_err(), "{torn:?}");
    assert_eq!((line.row().await, line.log().await), before);
    assert_eq!(line.waits().await, []);
    let page =
        tx!(home, read, [tenant, space], |tx| messages::page(tx, &tenant, &space, None, None, 1000).await);
    assert_eq!(page, acknowledged);

    set_room(&home, true).await;
    let done = line.append(&node, 1, 2, step, cast::parked()).await.unwrap();
    assert_eq!(done.seq, 5);
    assert_eq!(line.open_waits().await.len(), 1);
    let next = post(0).await.unwrap();
    let sound = tx!(home, read, [], |tx| tx.all("PRAGMA integrity_check", &[], |r| r.text(0)).await);
    assert_eq!(sound, ["ok"]);
    let last = i64::try_from(acknowledged.len()).unwrap() + 2 + 3;
    assert_eq!(next.seq, last + 1, "no position was lost");
    drop(line);
    home.end().await;
}

#[tokio::test]
async fn an_operation_that_waits_for_the_outside_is_refused() {
    let home = Home::on_sqlite().await;
    let refused = home
        .try_write(|tx| {
            Box::pin(async move {
                note(tx, "half").await?;
                tokio::task::yield_now().await;
                note(tx, "whole").await
            })
        })
        .await;
    assert!(matches!(refused, Err(StoreError::Broken(_))), "{refused:?}");
    assert_eq!(notes(&home).await, Vec::<String>::new());
    home.end().await;
}

#[tokio::test]
async fn a_panic_while_reading_spares_the_other_readers() {
    let home = Home::on_sqlite().await;
    noting(&home, "1").await.unwrap();
    for _ in 0..4 {
        let lost: Result<(), _> =
            home.try_read(|_| Box::pin(async move { panic!("a reading panics") })).await;
        assert!(lost.is_err());
    }
    for _ in 0..4 {
        assert_eq!(notes(&home).await, ["1"]);
    }
    home.end().await;
}
