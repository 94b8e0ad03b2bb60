//! The order of a space: one number for events and messages, dense and in
//! commit order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinSet;
use toolyard_protocol::{BranchId, SpaceId, TenantId};
use toolyard_store::log::SpaceEvent;
use toolyard_store::{Store, StoreError, log, messages, spaces};

use crate::cast::{self, owner};
use crate::home::{Home, tx};
use crate::line::{Line, Waking};
use crate::world::with_space;

pub(crate) async fn events_and_messages_share_one_row_of_positions(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let node = owner("a");
    let first =
        tx!(home, write, [tenant, space], |tx| messages::insert(tx, &tenant, &space, cast::message("hello"))
            .await);
    assert_eq!(first.seq, 1);
    let line = Line::running(home, Some(&space), &node).await;
    let second =
        tx!(home, write, [tenant, space], |tx| messages::insert(tx, &tenant, &space, cast::message("more"))
            .await);
    assert_eq!(second.seq, 4);
    line.fact(vec![cast::news()], Waking::No).await;
    // A run elsewhere takes nothing here.
    Line::running(home, None, &node).await;

    let (events, page, history, last) = tx!(home, read, [tenant, space], |tx| {
        Ok((
            log::read_space(tx, &tenant, &space, 0, 100).await?,
            messages::page(tx, &tenant, &space, None, None, 100).await?,
            messages::history(tx, &tenant, &space, &BranchId::main(), 0, 4).await?,
            spaces::get(tx, &tenant, &space).await?.unwrap().last_pos,
        ))
    });
    let placed: Vec<(i64, i64)> = events.iter().map(|e| (e.pos, e.logged.seq)).collect();
    assert_eq!(placed, [(2, 1), (3, 2), (5, 3)]);
    assert!(events.iter().all(|e| e.run == line.run.id));
    let logged: Vec<_> = events.into_iter().map(|e| e.logged).collect();
    assert_eq!(logged, line.log().await);
    assert_eq!(page, [first.clone(), second.clone()]);
    assert_eq!(history, [first.into(), second.into()]);
    assert_eq!(last, 5);
}

/// Writers race; a reader checks all the while that nothing appears below a
/// position it has already seen.
pub(crate) async fn positions_are_dense_and_in_commit_order_under_load(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let mut writers = JoinSet::new();
    for i in 0..6 {
        let line = Line::running(home, Some(&space), &owner("a")).await;
        let (store, tenant, space) = (home.store.clone(), tenant.clone(), space.clone());
        writers.spawn(async move {
            for n in 0..8 {
                let events = (0..=(i + n) % 3).map(|_| cast::news()).collect();
                line.fact(events, Waking::No).await;
                post(&store, &tenant, &space).await;
            }
        });
    }
    let writing = Arc::new(AtomicBool::new(true));
    let reader = {
        let (store, writing) = (home.store.clone(), writing.clone());
        let (tenant, space) = (tenant.clone(), space.clone());
        async move {
            let mut looks = 0;
            while writing.load(Ordering::SeqCst) {
                check_prefix(&store, &tenant, &space).await;
                looks += 1;
                // A read of SQLite is ready at once: let the writers in.
                tokio::task::yield_now().await;
            }
            looks
        }
    };
    let writers = async {
        writers.join_all().await;
        writing.store(false, Ordering::SeqCst);
    };
    let (looks, ()) = futures::join!(reader, writers);
    assert!(looks > 3, "the reader looked only {looks} times");

    let (events, posts) = read_all(&home.store, &tenant, &space).await;
    let mut all: Vec<i64> = events.iter().map(|e| e.pos).chain(posts).collect();
    all.sort_unstable();
    let last =
        tx!(home, read, [tenant, space], |tx| spaces::get(tx, &tenant, &space).await).unwrap().last_pos;
    assert_eq!(all, (1..=last).collect::<Vec<i64>>());
    assert_eq!(last, 6 * (2 + 8) + 6 * 8 + 48, "every writer's work is there");
    for window in events.windows(2) {
        assert!(window[0].pos < window[1].pos);
    }
    // Within a run the space's order is the log's.
    let runs: BTreeSet<_> = events.iter().map(|e| e.run.clone()).collect();
    assert_eq!(runs.len(), 6);
    for run in runs {
        let seqs: Vec<i64> = events.iter().filter(|e| e.run == run).map(|e| e.logged.seq).collect();
        assert_eq!(seqs, (1..).take(seqs.len()).collect::<Vec<i64>>());
    }
    // Paging gives the same in the same order.
    let mut paged: Vec<SpaceEvent> = Vec::new();
    loop {
        let after = paged.last().map_or(0, |e| e.pos);
        let page =
            tx!(home, read, [tenant, space], |tx| log::read_space(tx, &tenant, &space, after, 7).await);
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, events);
}

async fn post(store: &Store, tenant: &TenantId, space: &SpaceId) {
    let (tenant, space) = (tenant.clone(), space.clone());
    store
        .write(move |tx| {
            Box::pin(async move { messages::insert(tx, &tenant, &space, cast::message("hi")).await })
        })
        .await
        .map_err(|e: StoreError| e)
        .unwrap();
}

async fn read_all(store: &Store, tenant: &TenantId, space: &SpaceId) -> (Vec<SpaceEvent>, Vec<i64>) {
    let (tenant, space) = (tenant.clone(), space.clone());
    store
        .read(move |tx| {
            Box::pin(async move {
                let events = log::read_space(tx, &tenant, &space, 0, 10_000).await?;
                let posts = messages::page(tx, &tenant, &space, None, None, 10_000).await?;
                Ok((events, posts.into_iter().map(|m| m.seq).collect()))
            })
        })
        .await
        .map_err(|e: StoreError| e)
        .unwrap()
}

/// Events are read first: whatever was committed before the newest of them is
/// there when the messages are read.
async fn check_prefix(store: &Store, tenant: &TenantId, space: &SpaceId) {
    let (events, posts) = read_all(store, tenant, space).await;
    let newest = events.last().map_or(0, |e| e.pos);
    let there: BTreeSet<i64> = events.iter().map(|e| e.pos).chain(posts).collect();
    let missing: Vec<i64> = (1..=newest).filter(|p| !there.contains(p)).collect();
    assert_eq!(missing, Vec::<i64>::new(), "a later position was visible before these");
}

/// A space that is gone takes no events: the append fails whole.
pub(crate) async fn an_append_into_a_missing_space_fails_whole(home: &Home) {
    let (_, space) = with_space(home).await;
    let node = owner("a");
    let line = Line::running(home, Some(&space), &node).await;
    tx!(home, write, [space], |tx| {
        tx.exec("DELETE FROM spaces WHERE id = $1", &[space.as_str().into()]).await
    });
    let refused = line.append(&node, 1, 2, vec![cast::news()], cast::going_on()).await;
    assert!(refused.is_err());
    assert_eq!(line.log().await.len(), 2);
    assert_eq!(line.row().await.last_seq, 2);
}

/// Events of a removed run are swept later. A new space must not show them.
pub(crate) async fn what_a_space_left_behind_is_in_no_other_space(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let line = Line::parked(home, Some(&space), &owner("a")).await.0;
    let run = line.run.id.clone();
    tx!(home, write, [tenant, run], |tx| {
        tx.exec(
            "DELETE FROM runs WHERE tenant = $1 AND id = $2",
            &[tenant.as_str().into(), run.as_str().into()],
        )
        .await
    });
    let told = tx!(home, read, [tenant, space], |tx| log::read_space(tx, &tenant, &space, 0, 100).await);
    assert_eq!(told, [], "a run that is gone is still told");
    assert_eq!(line.log().await.len(), 5, "it is swept already");
    tx!(home, write, [tenant, space], |tx| spaces::delete(tx, &tenant, &space).await);
    let (tenant, next) = with_space(home).await;
    // Were the number the same, the run of that name would speak here.
    tx!(home, write, [tenant, run], |tx| {
        let again = toolyard_store::runs::NewRun { id: run, ..cast::new_run(&tenant, None) };
        toolyard_store::runs::insert(tx, &again, None).await
    });
    assert_eq!(line.log().await.len(), 5);
    let told = tx!(home, read, [tenant, next], |tx| log::read_space(tx, &tenant, &next, 0, 100).await);
    assert_eq!(told, []);
}
