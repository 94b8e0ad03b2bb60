//! Calls that run elsewhere: the run lies on disk until somebody answers.

use serde_json::json;
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{CallId, ErrorCode, ToolOutcome};
use toolyard_runtime::{ResultIn, Submitted};

use crate::yard::{Yard, client_tool, static_tool};

#[tokio::test]
async fn a_text_run_is_two_appends() {
    let yard = Yard::new(json!([])).await;
    let run = yard.say("say hello there").await;
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(yard.kinds(&run).await, ["RunCreated", "RunStarted", "ModelReplied", "RunFinished"]);
    assert_eq!(yard.answer().await, "hello there");
}

#[tokio::test]
async fn g36_g37_a_client_tool_pauses_the_run_and_its_result_resumes_it() {
    let yard = Yard::new(json!([client_tool("read_screen")])).await;
    let run = yard.say("call read_screen {\"n\":1}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let waits = yard.open_waits(&run).await;
    assert_eq!(waits.len(), 1);
    assert_eq!(waits[0].wait.kind, WaitKind::Client);
    // Nothing of a waiting run is in memory.
    yard.until_quiet().await;
    let done = yard.submit(&run, &waits[0].wait.call, json!({"text": "a page"})).await;
    assert_eq!(done.unwrap(), Submitted::Accepted);
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(
        yard.kinds(&run).await,
        [
            "RunCreated",
            "RunStarted",
            "ModelReplied",
            "ToolCallRequested",
            "RunPaused",
            "ToolReturned",
            "ModelReplied",
            "RunFinished"
        ]
    );
    assert!(yard.answer().await.contains("a page"));
}

#[tokio::test]
async fn row8_first_result_wins_a_repeat_is_fine_and_another_is_a_conflict() {
    let yard = Yard::new(json!([client_tool("ask")])).await;
    let run = yard.say("call ask {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let call = yard.open_waits(&run).await[0].wait.call.clone();
    assert_eq!(yard.submit(&run, &call, json!(null)).await.unwrap(), Submitted::Accepted);
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(yard.submit(&run, &call, json!(null)).await.unwrap(), Submitted::Repeated);
    assert_eq!(yard.submit(&run, &call, json!(1)).await.unwrap_err().code, ErrorCode::RunEnded);
    let unknown = yard.submit(&run, &CallId::mint(), json!(1)).await.unwrap_err();
    assert_eq!(unknown.code, ErrorCode::NotFound);
}

#[tokio::test]
async fn row10_parallel_calls_of_mixed_places_wait_for_the_last_client() {
    let yard = Yard::new(json!([client_tool("left"), client_tool("right"), static_tool("middle")])).await;
    let run = yard.say("call left {}\ncall middle {}\ncall right {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let waits = yard.open_waits(&run).await;
    let call = |tool: &str| waits.iter().find(|w| w.wait.tool.as_str() == tool).unwrap().wait.call.clone();
    yard.submit(&run, &call("right"), json!("R")).await.unwrap();
    assert_eq!(yard.status(&run).await, RunStatus::WaitingTool);
    yard.submit(&run, &call("left"), json!("L")).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    let answer = yard.answer().await;
    let place = |word: &str| answer.find(word).unwrap_or_else(|| panic!("{word} not in {answer}"));
    // Results reach the model in call order, not in the order they came.
    assert!(place("left") < place("middle") && place("middle") < place("right"));
}

#[tokio::test]
async fn a_batch_is_taken_whole_or_not_at_all() {
    let yard = Yard::new(json!([client_tool("left"), client_tool("right")])).await;
    let run = yard.say("call left {}\ncall right {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let calls: Vec<_> = yard.open_waits(&run).await.into_iter().map(|w| w.wait.call).collect();
    let result = |call: &CallId| ResultIn { call: call.clone(), outcome: ToolOutcome::Ok(json!(1)) };
    let bad = vec![result(&calls[0]), result(&CallId::mint())];
    assert_eq!(yard.rt.submit(yard.caller(), run.clone(), bad).await.unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(yard.open_waits(&run).await.len(), 2);
    // The same call twice in one batch is a repeat of itself.
    let good = vec![result(&calls[0]), result(&calls[1]), result(&calls[0])];
    let done = yard.rt.submit(yard.caller(), run.clone(), good).await.unwrap();
    assert_eq!(done, [Submitted::Accepted, Submitted::Accepted, Submitted::Repeated]);
    yard.until(&run, RunStatus::Completed).await;
}

#[tokio::test]
async fn d8_only_the_triggering_entity_may_answer_by_default() {
    let yard = Yard::new(json!([client_tool("ask")])).await;
    let run = yard.say("call ask {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let call = yard.open_waits(&run).await[0].wait.call.clone();
    let result = || vec![ResultIn { call: call.clone(), outcome: ToolOutcome::Ok(json!(1)) }];
    let refused = yard.rt.submit(yard.caller_as(&yard.bob), run.clone(), result()).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Forbidden);
    assert_eq!(yard.open_waits(&run).await.len(), 1);
    yard.rt.submit(yard.caller_as(&yard.ada), run.clone(), result()).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
}

#[tokio::test]
async fn a_large_result_lies_beside_the_log_and_repeats_are_known() {
    let yard = Yard::new(json!([client_tool("ask")])).await;
    let run = yard.say("call ask {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let call = yard.open_waits(&run).await[0].wait.call.clone();
    let large = json!("x".repeat(100_000));
    yard.submit(&run, &call, large.clone()).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(yard.submit(&run, &call, large).await.unwrap(), Submitted::Repeated);
    let other = json!("x".repeat(100_001));
    assert_eq!(yard.submit(&run, &call, other).await.unwrap_err().code, ErrorCode::RunEnded);
    let longest = yard
        .events(&run)
        .await
        .iter()
        .filter(|e| e.kind() == "ToolReturned")
        .map(|e| e.encode().len())
        .max()
        .unwrap();
    assert!(longest < 4000, "{longest} bytes in one event");
}

#[tokio::test]
async fn bad_arguments_and_unknown_tools_are_told_to_the_model() {
    let yard = Yard::new(json!([client_tool("ask")])).await;
    let run = yard.say("call ask {\"n\":\"x\"}\ncall nothing {}").await;
    yard.until(&run, RunStatus::Completed).await;
    let answer = yard.answer().await;
    assert!(answer.contains("Parameter n has wrong type: expected number, got string"), "{answer}");
    assert!(answer.contains("Tool: nothing not found"), "{answer}");
}
