//! Many callers at once: a call ends exactly once (invariant 4, row D5).

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;
use toolyard_protocol::{CallId, Event, RunId, TenantId};
use toolyard_store::log::{AppendError, FactAppended, Wake};
use toolyard_store::runs::Owner;
use toolyard_store::{Store, StoreError, log, runs, waits};

use crate::cast::{self, owner};
use crate::home::Home;
use crate::line::{Line, Waking};

/// What a submit of a result does: hold the run, look at the wait, append.
/// The end of the last wait makes this node the owner.
async fn submit(
    store: Arc<Store>,
    tenant: TenantId,
    run: RunId,
    call: CallId,
    value: i64,
    node: Owner,
) -> Option<FactAppended> {
    let accepted = store.write(move |tx| {
        Box::pin(async move {
            let row = runs::lock(tx, &tenant, &run).await?.unwrap();
            let open = waits::open_of_run(tx, &tenant, &run).await?;
            if !open.iter().any(|w| w.wait.call == call) {
                return Ok(None);
            }
            let last = open.len() == 1;
            let wake = if last { Wake::Yes(Some(&node)) } else { Wake::No };
            let result = cast::returned(&call, json!(value));
            Ok(Some(log::append_fact(tx, &row, &[result].into(), wake).await?))
        })
    });
    accepted.await.map_err(|e: StoreError| e).unwrap()
}

pub(crate) async fn a_hundred_parallel_results_for_one_call_leave_one_event(home: &Home) {
    let (line, call) = Line::parked(home, None, &owner("a")).await;
    let mut tasks = JoinSet::new();
    for value in 0..100 {
        let node = owner(&format!("node-{}", value % 10));
        tasks.spawn(submit(
            home.store.clone(),
            line.run.tenant.clone(),
            line.run.id.clone(),
            call.clone(),
            value,
            node,
        ));
    }
    let answers = tasks.join_all().await;
    let accepted: Vec<FactAppended> = answers.into_iter().flatten().collect();
    assert_eq!(accepted.len(), 1, "the first result wins");
    assert_eq!((accepted[0].seq, accepted[0].assigned), (6, Some(2)));
    let ends = line.kinds().await;
    assert_eq!(ends.len(), 6);
    assert_eq!(ends.iter().filter(|k| **k == "ToolReturned").count(), 1);
    assert_eq!(line.open_waits().await, []);
}

pub(crate) async fn parallel_results_for_two_calls_both_land_and_one_wakes(home: &Home) {
    for _ in 0..10 {
        let node = owner("a");
        let line = Line::running(home, None, &node).await;
        let calls = [CallId::mint(), CallId::mint()];
        let events = calls.iter().map(cast::client_call).collect();
        line.append(&node, 1, 2, events, cast::parked()).await.unwrap();
        let mut tasks = JoinSet::new();
        for call in &calls {
            tasks.spawn(submit(
                home.store.clone(),
                line.run.tenant.clone(),
                line.run.id.clone(),
                call.clone(),
                1,
                node.clone(),
            ));
        }
        let accepted: Vec<FactAppended> = tasks.join_all().await.into_iter().flatten().collect();
        assert_eq!(accepted.len(), 2);
        let woken: Vec<i64> = accepted.iter().filter_map(|a| a.assigned).collect();
        assert_eq!(woken, [2], "the end of the last wait starts the run once");
        let mut ended: Vec<CallId> = line
            .log()
            .await
            .into_iter()
            .filter_map(|l| match l.event {
                Event::ToolReturned(end) => Some(end.call),
                _ => None,
            })
            .collect();
        ended.sort();
        let mut both = calls.to_vec();
        both.sort();
        assert_eq!(ended, both);
    }
}

/// Inv-C: facts of many callers and a worker's own appends interleave into one
/// dense log, and each appears once.
pub(crate) async fn worker_and_callers_write_one_dense_log(home: &Home) {
    let node = owner("a");
    let line = Line::running(home, None, &node).await;
    let mut callers = JoinSet::new();
    for _ in 0..40 {
        let line = line.clone();
        callers.spawn(async move { line.fact(vec![cast::news()], Waking::No).await.seq });
    }
    let mut seen = 2;
    let mut written = 0;
    while written < 20 {
        let event = cast::requested(&CallId::mint(), None, None);
        match line.append(&node, 1, seen, vec![event], cast::going_on()).await {
            Ok(done) => {
                seen = done.seq;
                written += 1;
            }
            Err(AppendError::Conflict { actual, .. }) => seen = actual,
            Err(other) => panic!("{other:?}"),
        }
    }
    let mut seqs = callers.join_all().await;
    seqs.sort_unstable();
    seqs.dedup();
    assert_eq!(seqs.len(), 40, "no two facts share a seq");
    let kinds = line.kinds().await;
    assert_eq!(kinds.len(), 62);
    assert_eq!(line.row().await.last_seq, 62);
    let count = |kind| kinds.iter().filter(|k| **k == kind).count();
    assert_eq!((count("MessageQueued"), count("ToolCallRequested")), (40, 20));
}
