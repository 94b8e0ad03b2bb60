//! How runs end: by themselves, by a limit, by somebody, by time.

use serde_json::json;
use toolyard_protocol::event::Event;
use toolyard_protocol::run::{FinishReason, RunStatus};
use toolyard_protocol::{ErrorCode, OutcomeKind};

use crate::yard::{Yard, client_tool, static_tool};

#[tokio::test]
async fn row12_an_unanswered_call_expires_and_the_run_goes_on() {
    let mut tool = client_tool("ask");
    tool["expiresMs"] = json!(40);
    let yard = Yard::new(json!([tool])).await;
    let run = yard.say("call ask {}").await;
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("Expired: nobody answered within "));
    let outcome = yard.events(&run).await.into_iter().find_map(|e| match e {
        Event::ToolReturned(r) => Some(r.outcome),
        _ => None,
    });
    assert_eq!(outcome, Some(OutcomeKind::Expired));
}

#[tokio::test]
async fn g13_a_waiting_tool_is_a_timer_on_disk() {
    let tool =
        json!({"name": "nap", "executionType": "waiting", "execution": {"duration": 60, "reason": "tea"}});
    let yard = Yard::new(json!([tool])).await;
    let run = yard.say("call nap {}").await;
    yard.until(&run, RunStatus::Completed).await;
    let value = yard.events(&run).await.into_iter().find_map(|e| match e {
        Event::ToolReturned(r) => r.value.into_shown(),
        _ => None,
    });
    let value = value.unwrap();
    assert_eq!(
        (&value["success"], &value["waited"], &value["reason"]),
        (&json!(true), &json!(60), &json!("tea"))
    );
    assert!(yard.kinds(&run).await.contains(&"RunPaused"));
}

#[tokio::test]
async fn a_cancel_while_waiting_ends_the_call_and_the_run() {
    let yard = Yard::new(json!([client_tool("ask")])).await;
    let run = yard.say("call ask {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let call = yard.open_waits(&run).await[0].wait.call.clone();
    yard.rt.cancel(yard.caller(), run.clone(), Some("enough".to_owned())).await.unwrap();
    yard.until(&run, RunStatus::Canceled).await;
    assert!(yard.open_waits(&run).await.is_empty());
    // D6: a late result changes nothing.
    let before = yard.kinds(&run).await;
    assert_eq!(yard.submit(&run, &call, json!(1)).await.unwrap_err().code, ErrorCode::RunEnded);
    assert_eq!(yard.kinds(&run).await, before);
    let again = yard.rt.cancel(yard.caller(), run.clone(), None).await.unwrap_err();
    assert_eq!(again.code, ErrorCode::RunEnded);
}

#[tokio::test]
async fn a_run_is_asked_to_stop_once_however_often_somebody_asks() {
    let yard = Yard::new(json!([])).await;
    let run = yard.say("slow 500").await;
    let ask = || yard.rt.cancel(yard.caller(), run.clone(), None);
    let asked = tokio::join!(ask(), ask(), ask(), ask(), ask(), ask());
    let asked: [Result<(), _>; 6] = asked.into();
    assert!(asked.iter().any(Result::is_ok), "{asked:?}");
    let late = asked.into_iter().filter_map(Result::err);
    assert!(late.map(|e| e.code).all(|code| code == ErrorCode::RunEnded));
    yard.until(&run, RunStatus::Canceled).await;
    let requests = yard.kinds(&run).await.into_iter().filter(|kind| *kind == "CancelRequested");
    assert_eq!(requests.count(), 1);
}

#[tokio::test]
async fn a_cancel_in_the_middle_of_a_stream_keeps_what_was_shown() {
    let yard = Yard::new(json!([])).await;
    let run = yard.say("slow 500").await;
    let mut joined = yard.rt.store().feed().join_run(&run);
    while joined.so_far.is_empty() && joined.deltas.recv().await.is_err() {}
    yard.rt.cancel(yard.caller(), run.clone(), None).await.unwrap();
    yard.until(&run, RunStatus::Canceled).await;
    let partial = yard.events(&run).await.into_iter().find_map(|e| match e {
        Event::ModelReplied(r) if r.partial => Some(r.finish),
        _ => None,
    });
    assert_eq!(partial, Some(FinishReason::Stopped));
}

#[tokio::test]
async fn three_failures_in_a_row_stop_the_run() {
    let yard = Yard::new(json!([static_tool("x")])).await;
    // Three unknown tools in one reply are three failures.
    let run = yard.say("call a {}\ncall b {}\ncall c {}").await;
    yard.until(&run, RunStatus::Failed).await;
    let end = yard.events(&run).await.pop();
    let Some(Event::RunFinished(end)) = end else { panic!("{end:?}") };
    assert_eq!(end.error, Some(ErrorCode::ToolFailures));
    assert_eq!(end.message.as_deref(), Some("Stopped after 3 consecutive tool failures"));
}

#[tokio::test]
async fn a_failing_model_fails_the_run_with_its_code() {
    let yard = Yard::new(json!([static_tool("x")])).await;
    let run = yard.say("fail").await;
    yard.until(&run, RunStatus::Failed).await;
    let Some(Event::RunFinished(end)) = yard.events(&run).await.pop() else { panic!() };
    assert_eq!(end.error, Some(ErrorCode::ModelRequestRefused));
}

#[tokio::test]
async fn a_late_result_after_expiry_is_a_conflict() {
    let mut tool = client_tool("ask");
    tool["expiresMs"] = json!(30);
    let yard = Yard::new(json!([tool, client_tool("other")])).await;
    let run = yard.say("call ask {}\ncall other {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let waits = yard.open_waits(&run).await;
    let call = waits.iter().find(|w| w.wait.tool.as_str() == "ask").unwrap().wait.call.clone();
    let mut watch = yard.rt.store().feed().watch_run(&run);
    while yard.open_waits(&run).await.len() > 1 {
        let _ = tokio::time::timeout(std::time::Duration::from_millis(50), watch.committed.changed()).await;
    }
    assert_eq!(yard.submit(&run, &call, json!(1)).await.unwrap_err().code, ErrorCode::ResultConflict);
}

#[tokio::test]
async fn g9_a_basic_call_ends_in_the_commit_that_asks_for_it() {
    let yard = Yard::new(json!([static_tool("look"), client_tool("ask")])).await;
    // A space hears of its message, of the run's birth, and of each commit behind it.
    let joined = yard.rt.store().feed().join_space(&yard.space);
    let heard = || joined.committed.borrow().seq;
    let run = yard.say("hello").await;
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(heard(), 3, "a text run answers in one commit");
    let run = yard.say("call look {}").await;
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(heard(), 3 + 4, "the reply, its call and the result are one commit");
    let expected = ["RunCreated", "RunStarted", "ModelReplied", "ToolCallRequested", "ToolReturned"];
    assert_eq!(yard.kinds(&run).await[..5], expected);
    // Beside a client's call it ends at once too, and the run pauses in the same commit.
    let run = yard.say("call look {}\ncall ask {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    assert_eq!(heard(), 3 + 4 + 3);
    assert_eq!(yard.kinds(&run).await.last(), Some(&"RunPaused"));
}
