//! What a failed operation leaves behind: nothing (T13, invariant 2).

use serde_json::json;
use tokio::task::JoinSet;
use toolyard_protocol::TenantId;
use toolyard_protocol::event::Undecodable;
use toolyard_store::{Store, StoreError, Tx, log, messages, outbox, spaces};

use crate::cast::{self, owner};
use crate::home::{Home, tx};
use crate::line::Line;
use crate::world::with_space;

async fn note(tx: &mut Tx<'_>, tenant: &TenantId, id: &str) -> Result<(), StoreError> {
    outbox::put(tx, tenant, id, "note", &json!(null)).await
}

/// The ids of all notes.
pub(crate) async fn notes(home: &Home) -> Vec<String> {
    home.read(|tx| {
        Box::pin(async move { tx.all("SELECT id FROM outbox ORDER BY id", &[], |r| r.text(0)).await })
    })
    .await
}

/// Fifty at once: every third fails after it has written, every seventh
/// panics. The others are untouched.
pub(crate) async fn failed_operations_leave_nothing_and_spare_their_neighbours(home: &Home) {
    let fate = |n: usize| match n {
        n if n % 7 == 0 => "panics",
        n if n % 3 == 0 => "fails",
        _ => "works",
    };
    let mut tasks = JoinSet::new();
    for n in 0..50 {
        tasks.spawn(one_of_many(home.store.clone(), n, fate(n)));
    }
    let mut worked: Vec<String> = Vec::new();
    while let Some(answer) = tasks.join_next().await {
        // PostgreSQL's operations run on the caller's task: a panic is its own.
        if let Ok(Ok(id)) = answer {
            worked.push(id);
        }
    }
    worked.sort();
    let mut expected: Vec<String> =
        (0..50).filter(|n| fate(*n) == "works").map(|n| format!("{n:02}")).collect();
    expected.sort();
    assert_eq!(expected.len(), 28);
    assert_eq!(worked, expected, "each caller hears what became of its own");
    assert_eq!(notes(home).await, expected, "and the rows agree");
    // The writer lives.
    tx!(home, write, [], |tx| note(tx, &cast::tenant(), "after").await);
    assert_eq!(notes(home).await.len(), 29);
}

async fn one_of_many(
    store: std::sync::Arc<Store>,
    n: usize,
    fate: &'static str,
) -> Result<String, StoreError> {
    store
        .write(move |tx| {
            Box::pin(async move {
                let id = format!("{n:02}");
                note(tx, &cast::tenant(), &id).await?;
                note(tx, &cast::tenant(), &format!("{id} again")).await?;
                outbox::delivered(tx, &cast::tenant(), &format!("{id} again")).await?;
                match fate {
                    "panics" => panic!("operation {n} panics"),
                    "fails" => Err(StoreError::broken("refused")),
                    _ => Ok(id),
                }
            })
        })
        .await
}

/// Success means durable. A statement that failed took the transaction with
/// it on PostgreSQL, so an operation that goes on regardless is told so, and
/// on SQLite it must not learn a habit that breaks elsewhere.
pub(crate) async fn an_operation_that_swallows_a_refusal_does_not_succeed(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let swallowed = tx!(home, try_write, [tenant, space], |tx| {
        note(tx, &tenant, "before").await?;
        let again = spaces::insert(tx, &tenant, &cast::space(&space)).await;
        assert!(matches!(again, Err(StoreError::Exists(_))), "{again:?}");
        Ok(())
    });
    assert!(swallowed.is_err(), "nothing was stored, so nothing succeeded");
    let went_on = tx!(home, try_write, [tenant, space], |tx| {
        let _ = spaces::insert(tx, &tenant, &cast::space(&space)).await;
        note(tx, &tenant, "after").await
    });
    assert!(went_on.is_err());
    assert_eq!(notes(home).await, Vec::<String>::new());
}

/// Readers hear of a commit only: a failed operation tells nobody.
pub(crate) async fn a_failed_operation_tells_no_reader(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let ear = home.store.feed().join_space(&space);
    let failed = tx!(home, try_write, [tenant, space], |tx| {
        messages::insert(tx, &tenant, &space, cast::message("never")).await?;
        Err::<(), _>(StoreError::broken("changed my mind"))
    });
    assert!(failed.is_err());
    assert!(!ear.committed.has_changed().unwrap());
}

/// A log of a later release, or a damaged one, is reported and never skipped.
pub(crate) async fn an_undecodable_event_surfaces_as_such(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let line = Line::running(home, Some(&space), &owner("a")).await;
    let run = line.run.id.clone();
    let cases = [
        (r#"{"v":1,"type":"RunPostponed"}"#, Undecodable::Unknown { kind: "RunPostponed".to_owned(), v: 1 }),
        (r#"{"v":2,"type":"RunStarted"}"#, Undecodable::Unknown { kind: "RunStarted".to_owned(), v: 2 }),
    ];
    for (second, expected) in cases {
        let body = format!("{}\n{second}", cast::created(&line.run).encode());
        tx!(home, write, [body], |tx| {
            tx.exec("UPDATE events SET body = $1 WHERE seq = 2", &[body.as_str().into()]).await
        });
        let whole = tx!(home, try_read, [tenant, run], |tx| log::read(tx, &tenant, &run, 0, 10).await);
        let one = tx!(home, try_read, [tenant, run], |tx| log::event(tx, &tenant, &run, 2).await);
        let of_space =
            tx!(home, try_read, [tenant, space], |tx| log::read_space(tx, &tenant, &space, 0, 10).await);
        for heard in [whole.err(), one.err(), of_space.err()] {
            let Some(StoreError::Undecodable(why)) = heard else {
                panic!("{heard:?}");
            };
            assert_eq!(why, expected);
        }
        // What comes before it is still readable.
        let page = tx!(home, read, [tenant, run], |tx| log::read(tx, &tenant, &run, 0, 1).await);
        assert_eq!(page.len(), 1);
    }
    tx!(home, write, [], |tx| tx.exec("UPDATE events SET body = 'not json' WHERE seq = 2", &[]).await);
    let broken = tx!(home, try_read, [tenant, run], |tx| log::event(tx, &tenant, &run, 2).await);
    assert!(matches!(broken, Err(StoreError::Undecodable(Undecodable::Broken { .. }))), "{broken:?}");
}
