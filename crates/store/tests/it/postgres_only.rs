//! What only PostgreSQL has: several nodes, a password, a server that is away.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{ClientId, RunId, WaitId};
use toolyard_store::{
    DatabaseUrl, OpenError, Settings, Store, StoreError, Tx, known_version, log, messages, runs, spaces,
    waits,
};

use crate::cast::{self, owner};
use crate::home::{Home, as_superuser, tell_on_postgres, tx};
use crate::line::{Line, Waking};
use crate::server;
use crate::world::{census, with_space};

/// Longer than any of this takes; only a broken build waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_one_node_is_heard_on_another() {
    tell_on_postgres(async |home: Home| {
        let (tenant, space) = with_space(&home).await;
        let line = Line::running(&home, Some(&space), &owner("a")).await;
        let other = Store::open(&home.settings).await.unwrap();
        let mut of_run = other.feed().join_run(&line.run.id);
        let mut of_space = other.feed().join_space(&space);
        // The other node may still be on its way to the notifications: what
        // it misses then, a reader finds by polling.
        let heard = async {
            loop {
                let done = line.fact(vec![cast::news()], Waking::No).await;
                let news = of_run.committed.changed();
                if let Ok(changed) = timeout(Duration::from_millis(200), news).await {
                    changed.unwrap();
                    break done.seq;
                }
            }
        };
        let seq = timeout(PATIENCE, heard).await.unwrap();
        assert_eq!(of_run.committed.borrow_and_update().seq, seq);
        timeout(PATIENCE, of_space.committed.changed()).await.unwrap().unwrap();
        of_space.committed.mark_unchanged();

        tx!(home, write, [tenant, space], |tx| messages::insert(tx, &tenant, &space, cast::message("hi"))
            .await);
        timeout(PATIENCE, of_space.committed.changed()).await.unwrap().unwrap();
        drop((of_run, of_space));
        other.close().await;
        drop(line);
        home
    })
    .await;
}

/// The reply of a step ends the step so far on every node.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_on_one_node_ends_the_step_so_far_on_another() {
    tell_on_postgres(async |home: Home| {
        let node = owner("a");
        let line = Line::running(&home, None, &node).await;
        let other = Store::open(&home.settings).await.unwrap();
        // The other node streamed this step and was overtaken.
        other.feed().deltas(
            None,
            vec![toolyard_protocol::delta::Delta {
                run: line.run.id.clone(),
                step: 1,
                attempt: 1,
                offset: 0,
                piece: toolyard_protocol::delta::Piece::TextStart { part: 0 },
            }],
        );
        let mut ear = other.feed().watch_run(&line.run.id);
        let mut seq = 2;
        let heard = async {
            loop {
                let reply = vec![cast::replied(&line.run.id, 1, &[])];
                let done = line.append(&node, 1, seq, reply, cast::going_on()).await;
                seq = done.unwrap().seq;
                if let Ok(changed) = timeout(Duration::from_millis(200), ear.committed.changed()).await {
                    changed.unwrap();
                    break;
                }
            }
        };
        timeout(PATIENCE, heard).await.unwrap();
        drop(ear);
        assert!(other.feed().is_empty());
        other.close().await;
        drop(line);
        home
    })
    .await;
}

/// PostgreSQL tells a node of its own commits as well: what a reader knows
/// already must not wake it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_notification_wakes_no_reader_of_the_run() {
    tell_on_postgres(async |home: Home| {
        let line = Line::running(&home, None, &owner("a")).await;
        let mut reader = home.store.feed().join_run(&line.run.id);
        let done = line.fact(vec![cast::news()], Waking::No).await;
        reader.committed.wait_for(|told| told.seq == done.seq).await.unwrap();

        // The same news again, and after it something new for somebody else,
        // which tells that both have come.
        let other = RunId::mint();
        let mut marker = home.store.feed().watch_run(&other);
        let tell = |run: &RunId, seq| format!("SELECT pg_notify('toolyard', 'acme {run} {seq} - -1')");
        let heard = async {
            for n in 1.. {
                let told = format!("{}; {}", tell(&line.run.id, done.seq), tell(&other, n));
                as_superuser(&home.url(), told).await;
                if timeout(Duration::from_millis(200), marker.committed.changed()).await.is_ok() {
                    break;
                }
            }
        };
        timeout(PATIENCE, heard).await.unwrap();
        assert!(!reader.committed.has_changed().unwrap());
        drop((reader, marker, line));
        home
    })
    .await;
}

/// The stated order is run, wait, space: a client that claims a wait and then
/// writes to the space must not deadlock with the wait's result.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_with_a_message_and_a_result_do_not_deadlock() {
    tell_on_postgres(async |home: Home| {
        let (tenant, space) = with_space(&home).await;
        let (line, call) = Line::parked(&home, Some(&space), &owner("a")).await;
        let (run, wait) = (line.run.id.clone(), WaitId::of(WaitKind::Client, &call, 0));
        let (claimed, claims) = tokio::sync::oneshot::channel();
        let claiming = async {
            tx!(home, try_write, [tenant, space, run, wait], |tx| {
                let now = tx.now().await?;
                let client = ClientId::parse("tab").unwrap();
                assert!(waits::claim(tx, &tenant, &run, &wait, &client, now).await?);
                claimed.send(()).unwrap();
                // Until the result waits for this transaction.
                until_somebody_waits(tx).await?;
                messages::insert(tx, &tenant, &space, cast::message("mine")).await
            })
        };
        let returning = async {
            claims.await.unwrap();
            tx!(home, try_write, [tenant, run, call], |tx| {
                let row = runs::lock(tx, &tenant, &run).await?.unwrap();
                let result = cast::returned(&call, json!(1));
                log::append_fact(tx, &row, &[result].into(), log::Wake::No).await
            })
        };
        let (message, result) =
            timeout(PATIENCE, Box::pin(async { futures::join!(claiming, returning) })).await.unwrap();
        assert_eq!(message.unwrap().seq, 6);
        assert_eq!(result.unwrap().seq, 6);
        drop(line);
        home
    })
    .await;
}

/// Goes on when another transaction is held up by this one.
async fn until_somebody_waits(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted \
                   AND locktype = 'transactionid' AND transactionid = pg_current_xact_id()::xid";
    while tx.one(waiting, &[], |r| r.int(0)).await? == Some(0) {}
    Ok(())
}

/// A result that holds its run and a deletion of the space wait for each
/// other in one direction only.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_space_and_a_result_do_not_deadlock() {
    tell_on_postgres(async |home: Home| {
        let (tenant, space) = with_space(&home).await;
        let (line, call) = Line::parked(&home, Some(&space), &owner("a")).await;
        let run = line.run.id.clone();
        let (locked, locks) = tokio::sync::oneshot::channel();
        let returning = async {
            tx!(home, try_write, [tenant, run, call], |tx| {
                let row = runs::lock(tx, &tenant, &run).await?.unwrap();
                locked.send(()).unwrap();
                until_somebody_waits(tx).await?;
                let result = cast::returned(&call, json!(1));
                log::append_fact(tx, &row, &[result].into(), log::Wake::No).await
            })
        };
        let deleting = async {
            locks.await.unwrap();
            tx!(home, try_write, [tenant, space], |tx| spaces::delete(tx, &tenant, &space).await)
        };
        let (result, deleted) =
            timeout(PATIENCE, Box::pin(async { futures::join!(returning, deleting) })).await.unwrap();
        assert_eq!(result.unwrap().seq, 6);
        assert!(deleted.unwrap());
        drop(line);
        home
    })
    .await;
}

/// A run that is born while its space is deleted is deleted with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_space_leaves_no_run_that_was_just_born() {
    tell_on_postgres(async |home: Home| {
        let before = census(&home).await;
        let (tenant, space) = with_space(&home).await;
        let new = cast::new_run(&tenant, Some(&space));
        let (born, births) = tokio::sync::oneshot::channel();
        let starting = async {
            tx!(home, try_write, [tenant, space, new], |tx| {
                messages::insert(tx, &tenant, &space, cast::message("go")).await?;
                let row = runs::insert(tx, &new, None).await?;
                log::append_fact(tx, &row, &[cast::created(&new)].into(), log::Wake::No).await?;
                born.send(()).unwrap();
                until_somebody_waits(tx).await
            })
        };
        let deleting = async {
            births.await.unwrap();
            tx!(home, try_write, [tenant, space], |tx| spaces::delete(tx, &tenant, &space).await)
        };
        let (started, deleted) =
            timeout(PATIENCE, Box::pin(async { futures::join!(starting, deleting) })).await.unwrap();
        started.unwrap();
        assert!(deleted.unwrap());
        assert_eq!(census(&home).await, before);
        home
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_may_start_at_once_on_an_empty_database() {
    tell_on_postgres(async |home: Home| {
        as_superuser(&home.url(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public".to_owned()).await;
        let (left, right) = futures::join!(Store::open(&home.settings), Store::open(&home.settings));
        let (left, right) = (left.unwrap(), right.unwrap());
        let versions = left
            .read(|tx| {
                Box::pin(async move { tx.all("SELECT version FROM schema_version", &[], |r| r.int(0)).await })
            })
            .await
            .map_err(|e: StoreError| e)
            .unwrap();
        assert_eq!(versions, (1..=known_version()).collect::<Vec<_>>());
        left.close().await;
        right.close().await;
        home
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_later_release_is_left_alone() {
    tell_on_postgres(async |home: Home| {
        let later = known_version() + 1;
        as_superuser(&home.url(), format!("INSERT INTO schema_version (version) VALUES ({later})")).await;
        let refused = Store::open(&home.settings).await.err();
        let Some(OpenError::TooNew { found, known }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((found, known), (later, known_version()));
        home
    })
    .await;
}

/// An older node would write a table that the step removes, and fail its runs.
#[tokio::test(flavor = "multi_thread")]
async fn d15_a_step_that_older_nodes_cannot_bear_waits_until_they_have_stopped() {
    tell_on_postgres(async |home: Home| {
        let old = "DELETE FROM schema_version WHERE version >= 18; \
                   INSERT INTO nodes (id, incarnation, until) VALUES ('node-b', 'x', 99999999999999), ('node-a', 'y', 1)";
        as_superuser(&home.url(), old.to_owned()).await;
        let refused = Store::open(&home.settings).await.err();
        let Some(OpenError::NodesAlive { nodes }) = &refused else {
            panic!("{refused:?}");
        };
        assert_eq!(nodes, "node-b");
        let again = Store::open(&home.settings).await.err();
        assert!(matches!(again, Some(OpenError::NodesAlive { .. })), "something changed: {again:?}");
        home
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_never_part_of_a_message() {
    let (scheme, rest) = server::url().split_once("://").unwrap();
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let (server, _) = place.rsplit_once('/').unwrap();
    let url = format!("{scheme}://toolyard:hunter2@{server}/no_such_database");
    let settings = Settings::Postgres { url: DatabaseUrl::new(url) };
    let refused = Store::open(&settings).await.err().unwrap();
    assert!(matches!(refused, OpenError::Postgres { .. }), "{refused:?}");
    for told in [refused.to_string(), format!("{refused:?}"), format!("{settings:?}")] {
        assert!(!told.contains("hunter2"), "{told}");
    }
}

/// Row D10 in small: the caller hears that trying again is worth it.
#[tokio::test(flavor = "multi_thread")]
async fn a_cut_connection_is_unavailable_and_the_next_call_works() {
    tell_on_postgres(async |home: Home| {
        let cut = home
            .try_write(|tx| {
                Box::pin(async move {
                    messages_of_nobody(tx).await?;
                    tx.one("SELECT pg_terminate_backend(pg_backend_pid())::int::bigint", &[], |r| r.int(0))
                        .await
                })
            })
            .await;
        assert!(matches!(cut, Err(StoreError::Unavailable(_))), "{cut:?}");
        let (line, _) = Line::parked(&home, None, &owner("a")).await;
        assert_eq!(line.log().await.len(), 5);
        drop(line);
        home
    })
    .await;
}

/// A caller that goes away while its transaction begins must not leave it open
/// for the next one, which would be refused in a transaction that only reads.
#[tokio::test(flavor = "multi_thread")]
async fn d2_a_caller_that_walks_away_leaves_no_transaction_behind() {
    tell_on_postgres(async |home: Home| {
        let mut gone = 0;
        for round in 0..8 {
            // At every moment of a reading: one look more at it than before.
            for looks in 1..8 {
                let store = home.store.clone();
                let reading = store.read(|tx| {
                    Box::pin(async move { tx.one("SELECT count(*) FROM runs", &[], |row| row.int(0)).await })
                });
                let mut reading = std::pin::pin!(reading);
                let mut looked = 0;
                let left = futures::future::poll_fn(|context| {
                    looked += 1;
                    let read: std::task::Poll<Result<Option<i64>, StoreError>> =
                        reading.as_mut().poll(context);
                    match read {
                        std::task::Poll::Ready(_) => std::task::Poll::Ready(false),
                        std::task::Poll::Pending if looked >= looks => std::task::Poll::Ready(true),
                        std::task::Poll::Pending => std::task::Poll::Pending,
                    }
                });
                gone += usize::from(left.await);
            }
            // As many as there are connections.
            let write = || home.try_write(|tx| Box::pin(async move { messages_of_nobody(tx).await }));
            for wrote in futures::future::join_all((0..16).map(|_| write())).await {
                assert!(wrote.is_ok(), "round {round}, after {gone} were gone: {wrote:?}");
            }
        }
        assert!(gone > 20, "only {gone} walked away");
        home
    })
    .await;
}

async fn messages_of_nobody(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    toolyard_store::outbox::put(tx, &cast::tenant(), "lost", "note", &json!(null)).await
}
