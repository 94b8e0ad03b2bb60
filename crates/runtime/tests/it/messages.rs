//! Messages that reach a run in the middle.

use serde_json::json;
use toolyard_protocol::event::Event;
use toolyard_protocol::outcome::SUPERSEDED_TEXT;
use toolyard_protocol::run::RunStatus;
use toolyard_runtime::Disposition;

use crate::yard::{Yard, client_tool, config};

#[tokio::test]
async fn row11_a_new_message_of_the_same_person_supersedes_the_open_call() {
    let yard = Yard::new(json!([client_tool("ask")])).await;
    let run = yard.say("call ask {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let (same, disposition) = yard.say_again("say never mind").await;
    assert_eq!((&same, disposition), (&run, Disposition::Superseded));
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(yard.answer().await, "never mind");
    let ended = yard.events(&run).await.into_iter().find_map(|e| match e {
        Event::ToolReturned(r) => r.error.into_shown(),
        _ => None,
    });
    assert_eq!(ended.as_deref(), Some(SUPERSEDED_TEXT));
    // The first turn's message holds the call and how it ended.
    let messages = yard.messages().await;
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[1].parts.len(), 2);
}

#[tokio::test]
async fn a_message_of_somebody_else_waits_for_the_end() {
    let yard = Yard::new(json!([client_tool("ask")])).await;
    let run = yard.say("call ask {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let reached = yard.post(&yard.bob, "say hello Bob").await.runs.remove(0);
    assert_eq!((reached.run.as_ref(), reached.disposition), (Some(&run), Disposition::Added));
    assert_eq!(yard.status(&run).await, RunStatus::WaitingTool);
    let call = yard.open_waits(&run).await[0].wait.call.clone();
    yard.submit(&run, &call, json!("x")).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(yard.answer().await, "hello Bob");
}

#[tokio::test]
async fn an_interrupting_message_stops_the_model_and_keeps_what_was_shown() {
    let agent = config(json!([]), json!({"loop": {"onMessage": "interrupt"}}));
    let yard = Yard::with(agent).await;
    let run = yard.say("slow 500").await;
    let mut joined = yard.rt.store().feed().join_run(&run);
    while joined.so_far.is_empty() && joined.deltas.recv().await.is_err() {}
    let (same, disposition) = yard.say_again("say stop that").await;
    assert_eq!((&same, disposition), (&run, Disposition::Interrupted));
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(yard.answer().await, "stop that");
    let partial =
        yard.events(&run).await.into_iter().any(|e| matches!(e, Event::ModelReplied(r) if r.partial));
    assert!(partial);
}

#[tokio::test]
async fn a_queued_message_is_taken_when_the_run_would_finish() {
    let yard = Yard::new(json!([])).await;
    let run = yard.say("slow 8").await;
    let (same, disposition) = yard.say_again("say second").await;
    assert_eq!((&same, disposition), (&run, Disposition::Added));
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(yard.answer().await, "second");
    let kinds = yard.kinds(&run).await;
    assert_eq!(kinds.iter().filter(|k| **k == "ModelReplied").count(), 2);
}

#[tokio::test]
async fn a_rejecting_agent_takes_no_message_while_it_works() {
    let agent = config(json!([client_tool("ask")]), json!({"loop": {"onMessage": "reject"}}));
    let yard = Yard::with(agent).await;
    let run = yard.say("call ask {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let reached = yard.post(&yard.bob, "say me too").await.runs.remove(0);
    assert_eq!(reached.disposition, Disposition::Rejected);
}

#[tokio::test]
async fn the_next_run_reads_calls_and_results_of_the_last() {
    let yard = Yard::new(json!([client_tool("ask")])).await;
    let run = yard.say("call ask {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let call = yard.open_waits(&run).await[0].wait.call.clone();
    yard.submit(&run, &call, json!("forty-two")).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    let next = yard.say("say and now").await;
    assert_ne!(next, run);
    yard.until(&next, RunStatus::Completed).await;
    assert_eq!(yard.answer().await, "and now");
}

/// What a run brings along of its conversation is not read by the commit that
/// starts it: a message is stored, whatever was stored before it.
#[tokio::test]
async fn a_message_that_cannot_be_read_is_no_reason_to_refuse_the_next_one() {
    let yard = Yard::new(json!([])).await;
    let run = yard.say("say hello").await;
    yard.until(&run, RunStatus::Completed).await;
    let spoilt = yard.rt.store().write::<_, toolyard_store::StoreError, _>(|tx| {
        Box::pin(
            async move { tx.exec("UPDATE messages SET parts = 'nothing' WHERE run IS NOT NULL", &[]).await },
        )
    });
    assert_eq!(spoilt.await.unwrap(), 1);
    let next = yard.say("say more").await;
    assert_eq!(yard.kinds(&next).await[..2], ["RunCreated", "RunStarted"]);
}
