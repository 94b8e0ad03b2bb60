//! One effect per `Idempotency-Key` (row D9).

use tokio::task::JoinSet;
use toolyard_protocol::{Hash, SpaceId, limits};
use toolyard_store::idempotency::{self, Known, Scope};
use toolyard_store::{Store, StoreError, messages};

use crate::cast;
use crate::home::{Home, tx};
use crate::world::with_space;

fn scope(key: &str, body: &str) -> Scope {
    Scope {
        tenant: cast::tenant(),
        caller: "key_1".to_owned(),
        route: "POST /api/runs",
        key: key.to_owned(),
        body_hash: Hash::of(body.as_bytes()),
    }
}

async fn begin(home: &Home, scope: &Scope) -> Known {
    tx!(home, write, [scope], |tx| idempotency::begin(tx, &scope).await)
}

/// A whole request: reserve, and answer if it is the first.
async fn request(home: &Home, scope: &Scope, answer: &'static str) -> Known {
    tx!(home, write, [scope], |tx| {
        let known = idempotency::begin(tx, &scope).await?;
        if known == Known::Fresh {
            idempotency::finish(tx, &scope, 201, answer).await?;
        }
        Ok(known)
    })
}

fn stored(answer: &str) -> Known {
    Known::Stored { status: 201, response: answer.to_owned() }
}

pub(crate) async fn a_key_is_fresh_once_then_answers_the_same(home: &Home) {
    let first = scope("k", "body");
    assert_eq!(request(home, &first, "one").await, Known::Fresh);
    assert_eq!(request(home, &first, "two").await, stored("one"));
    assert_eq!(request(home, &scope("k", "other body"), "three").await, Known::Mismatch);
    assert_eq!(request(home, &first, "four").await, stored("one"));
}

pub(crate) async fn a_key_belongs_to_its_caller_route_and_tenant(home: &Home) {
    let first = scope("k", "body");
    request(home, &first, "one").await;
    let mut other_caller = first.clone();
    other_caller.caller = "key_2".to_owned();
    let mut other_route = first.clone();
    other_route.route = "POST /api/agents";
    let mut other_tenant = first.clone();
    other_tenant.tenant = cast::other_tenant();
    for other in [other_caller, other_route, other_tenant, scope("another", "body")] {
        assert_eq!(request(home, &other, "mine").await, Known::Fresh, "{other:?}");
        assert_eq!(request(home, &other, "again").await, stored("mine"));
    }
    assert_eq!(request(home, &first, "again").await, stored("one"));
}

pub(crate) async fn a_failed_request_leaves_its_key_fresh(home: &Home) {
    let first = scope("k", "body");
    let failed = tx!(home, try_write, [first], |tx| {
        assert_eq!(idempotency::begin(tx, &first).await?, Known::Fresh);
        Err::<(), _>(StoreError::broken("the work failed"))
    });
    assert!(failed.is_err());
    assert_eq!(begin(home, &first).await, Known::Fresh);
}

/// Fifty at once: one does the work, the others wait for it and hear its answer.
pub(crate) async fn parallel_requests_with_one_key_have_one_effect(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let (store, space) = (home.store.clone(), space.clone());
        tasks.spawn(async move { post(&store, space).await });
    }
    let mut answers = tasks.join_all().await;
    answers.sort();
    answers.dedup();
    let page =
        tx!(home, read, [tenant, space], |tx| messages::page(tx, &tenant, &space, None, None, 100).await);
    assert_eq!(page.len(), 1, "one effect");
    assert_eq!(answers, [page[0].id.as_str().to_owned()], "all hear the same answer");
}

async fn post(store: &Store, space: SpaceId) -> String {
    let answer = store.write(move |tx| {
        Box::pin(async move {
            let scope = scope("k", "body");
            match idempotency::begin(tx, &scope).await? {
                Known::Fresh => {
                    let tenant = &scope.tenant;
                    let posted = messages::insert(tx, tenant, &space, cast::message("hi")).await?;
                    let answer = posted.id.as_str().to_owned();
                    idempotency::finish(tx, &scope, 201, &answer).await?;
                    Ok(answer)
                }
                Known::Stored { status, response } => {
                    assert_eq!(status, 201, "nobody sees an unfinished answer");
                    Ok(response)
                }
                Known::Mismatch => Err(StoreError::broken("the same body")),
            }
        })
    });
    answer.await.map_err(|e: StoreError| e).unwrap()
}

/// Time is SQLite's own here: only its clock can be moved.
pub(crate) async fn an_answer_is_kept_for_a_day(home: &Home) {
    let hours = i64::try_from(limits::IDEMPOTENCY_HOURS).unwrap();
    assert_eq!(hours, 24);
    let first = scope("k", "body");
    request(home, &first, "one").await;
    home.clock.advance(hours * 3_600_000);
    assert_eq!(request(home, &first, "two").await, stored("one"));
    home.clock.advance(1);
    assert_eq!(request(home, &scope("k", "new body"), "three").await, Known::Fresh);
    let rows = tx!(home, read, [], |tx| tx.one("SELECT count(*) FROM idempotency", &[], |r| r.int(0)).await);
    assert_eq!(rows, Some(1), "the old answer is gone from disk too");
}

pub(crate) async fn an_answer_survives_a_restart(home: Home) -> Home {
    let first = scope("k", "body");
    request(&home, &first, "one").await;
    let home = home.reopened().await;
    assert_eq!(request(&home, &first, "two").await, stored("one"));
    home
}
