//! Nodes that stop, kindly or not.

use std::time::Duration;

use serde_json::json;
use toolyard_protocol::event::Event;
use toolyard_protocol::run::RunStatus;

use crate::yard::{Yard, client_tool};

#[tokio::test]
async fn a_waiting_run_outlives_the_process() {
    let yard = Yard::new(json!([client_tool("ask")])).await;
    let run = yard.say("call ask {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let yard = yard.crash().await;
    let call = yard.open_waits(&run).await[0].wait.call.clone();
    yard.submit(&run, &call, json!("after the crash")).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("after the crash"));
    assert!(!yard.kinds(&run).await.contains(&"StepRestarted"));
}

#[tokio::test]
async fn a_run_that_was_talking_is_taken_back_and_its_step_starts_over() {
    let yard = Yard::new(json!([])).await;
    let run = yard.say("slow 20").await;
    let mut joined = yard.rt.store().feed().join_run(&run);
    while joined.so_far.is_empty() && joined.deltas.recv().await.is_err() {}
    let yard = yard.crash().await;
    yard.until(&run, RunStatus::Completed).await;
    let restarts: Vec<_> = yard
        .events(&run)
        .await
        .into_iter()
        .filter_map(|e| match e {
            Event::StepRestarted(r) => Some((r.step, r.attempt)),
            _ => None,
        })
        .collect();
    assert_eq!(restarts, [(1, 2)]);
}

#[tokio::test]
async fn d17_a_stop_hands_back_what_does_not_finish() {
    let yard = Yard::new(json!([])).await;
    let run = yard.say("slow 1000").await;
    let mut joined = yard.rt.store().feed().join_run(&run);
    while joined.so_far.is_empty() && joined.deltas.recv().await.is_err() {}
    drop(joined);
    yard.rt.stop(Duration::from_millis(50)).await;
    assert_eq!(yard.status(&run).await, RunStatus::Queued);
    assert!(yard.rt.store().feed().is_empty());
}

#[tokio::test]
async fn a_stop_lets_a_quick_run_finish() {
    let yard = Yard::new(json!([])).await;
    let run = yard.say("slow 5").await;
    yard.rt.stop(Duration::from_secs(10)).await;
    assert_eq!(yard.status(&run).await, RunStatus::Completed);
}

#[tokio::test]
async fn runs_beyond_the_nodes_slots_are_queued_and_each_gets_its_turn() {
    let mut yard = Yard::with_one_slot(json!([client_tool("ask")])).await;
    let mut runs = vec![yard.say("slow 10").await];
    for _ in 0..4 {
        yard.another_space().await;
        runs.push(yard.say("say my turn").await);
    }
    assert_eq!(yard.status(&runs[4]).await, RunStatus::Queued);
    // The scheduler's own rhythm is an hour here: only freed slots wake it.
    for run in &runs {
        yard.until(run, RunStatus::Completed).await;
    }
}

#[tokio::test]
async fn a_result_for_a_full_node_queues_its_run_until_a_slot_is_free() {
    let mut yard = Yard::with_one_slot(json!([client_tool("ask")])).await;
    let waiting = yard.say("call ask {}").await;
    yard.until(&waiting, RunStatus::WaitingTool).await;
    let call = yard.open_waits(&waiting).await[0].wait.call.clone();
    yard.until_quiet().await;
    yard.another_space().await;
    let busy = yard.say("slow 10").await;
    yard.submit(&waiting, &call, json!("late")).await.unwrap();
    yard.until(&busy, RunStatus::Completed).await;
    yard.until(&waiting, RunStatus::Completed).await;
}
