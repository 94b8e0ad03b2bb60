//! The loop against a vendor's wire format.

use serde_json::{Value, json};
use toolyard_models::scripted::{Reply, Upstream};
use toolyard_protocol::event::Event;
use toolyard_protocol::run::{FinishReason, RunStatus};
use toolyard_protocol::{ErrorCode, limits};

use crate::yard::{Yard, client_tool, config, static_tool};

/// The tool messages of a request, in order.
fn results(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap();
    messages.iter().filter(|m| m["role"] == "tool").map(|m| m["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn g1_g6_calls_with_one_vendor_id_stay_two_calls_and_results_come_back_in_call_order() {
    let twice = Reply::stream()
        .call(0, "same", "first", "{}")
        .call(1, "same", "second", "{}")
        .finish("tool_calls")
        .done();
    let upstream = Upstream::serve([twice, Reply::saying("thanks")]).await.unwrap();
    let agent = config(json!([client_tool("first"), client_tool("second")]), json!({}));
    let yard = Yard::with_upstream(agent, &upstream).await;
    let run = yard.say("go").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let waits = yard.open_waits(&run).await;
    let call = |tool: &str| waits.iter().find(|w| w.wait.tool.as_str() == tool).unwrap().wait.call.clone();
    yard.submit(&run, &call("second"), json!("two")).await.unwrap();
    yard.submit(&run, &call("first"), json!("one")).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(yard.answer().await, "thanks");
    let requests = upstream.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(results(&requests[1].body), ["one", "two"]);
}

#[tokio::test]
async fn g3_at_max_steps_the_model_is_asked_once_more_without_tools() {
    let call = || Reply::calling(&[("look", json!({}))]);
    let upstream = Upstream::serve([call(), call(), Reply::saying("enough")]).await.unwrap();
    let agent = config(json!([static_tool("look")]), json!({"loop": {"maxSteps": 2}}));
    let yard = Yard::with_upstream(agent, &upstream).await;
    let run = yard.say("go").await;
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(yard.answer().await, "enough");
    let offered: Vec<bool> = upstream.requests().iter().map(|r| r.body["tools"].is_array()).collect();
    assert_eq!(offered, [true, true, false]);
}

#[tokio::test]
async fn a_large_result_reaches_the_model_up_to_its_limit() {
    let call = Reply::calling(&[("ask", json!({}))]);
    let upstream = Upstream::serve([call, Reply::saying("read")]).await.unwrap();
    let yard = Yard::with_upstream(config(json!([client_tool("ask")]), json!({})), &upstream).await;
    let run = yard.say("go").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let call = yard.open_waits(&run).await[0].wait.call.clone();
    yard.submit(&run, &call, json!({"text": "x".repeat(150_000)})).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    let requests = upstream.requests();
    let read = results(&requests[1].body)[0];
    assert!(read.starts_with("{\"text\":\"xxx") && read.ends_with("characters]"), "{} bytes", read.len());
    assert!(read.len() > limits::TOOL_RESULT_TOKENS * limits::TOKEN_CHARS);
}

/// What the mark of a cut result, or the answer of `readResult`, says to read next.
fn next_read(read: &str) -> Option<Value> {
    if let Some((_, mark)) = read.split_once(" with callId \"") {
        let (call, rest) = mark.split_once("\" and offset ")?;
        let offset: u64 = rest.split_once(' ')?.0.parse().ok()?;
        return Some(json!({"callId": call, "offset": offset}));
    }
    let answer: Value = serde_json::from_str(read).ok()?;
    Some(json!({"callId": answer["callId"], "offset": answer["nextOffset"].as_u64()?}))
}

#[tokio::test]
async fn a_cut_result_is_read_on_to_its_end_and_no_other_runs() {
    let upstream = Upstream::answer(|seen| {
        let last = seen.body["messages"].as_array().and_then(|all| all.last()).unwrap();
        let said = last["content"].as_str().unwrap_or_default();
        let stolen = json!({"callId": "call_of_another_run"});
        match (last["role"] == "tool", next_read(said)) {
            (true, Some(args)) => Reply::calling(&[("readResult", args)]),
            (true, None) => Reply::saying("read"),
            (false, _) if said == "steal" => Reply::calling(&[("readResult", stolen)]),
            (false, _) => Reply::calling(&[("ask", json!({}))]),
        }
    });
    let upstream = upstream.await.unwrap();
    let reader =
        json!({"executionType": "prebuilt", "execution": {"action": "readResult"}, "visibility": "public"});
    let agent = config(json!([client_tool("ask"), reader]), json!({}));
    let yard = Yard::with_upstream(agent, &upstream).await;
    let run = yard.say("go").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let call = yard.open_waits(&run).await[0].wait.call.clone();
    let value = json!({"text": format!("{}the end", "ä".repeat(113_000))});
    yard.submit(&run, &call, value.clone()).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    let requests = upstream.requests();
    let read = results(&requests.last().unwrap().body);
    assert_eq!(read.len(), 3, "the result and two pieces");
    let piece =
        |text: &str| serde_json::from_str::<Value>(text).unwrap()["text"].as_str().unwrap().to_owned();
    let begun: String = read[0].chars().take(limits::TOOL_RESULT_TOKENS * limits::TOKEN_CHARS).collect();
    assert_eq!(format!("{begun}{}{}", piece(read[1]), piece(read[2])), value.to_string());
    // What a private tool answered never becomes public by reading on.
    let seen = yard.events(&run).await.into_iter().find_map(|event| match event {
        Event::ToolReturned(end) if end.tool.as_str() == "readResult" => Some(end.visibility),
        _ => None,
    });
    assert_eq!(seen, Some(toolyard_protocol::tool::Visibility::Private));

    let other = yard.say("steal").await;
    yard.until(&other, RunStatus::Completed).await;
    let requests = upstream.requests();
    let refused = *results(&requests.last().unwrap().body).last().unwrap();
    assert!(refused.contains("This run has no result of a call"), "{refused}");
}

#[tokio::test]
async fn s7_a_stream_that_is_cut_fails_the_run_and_keeps_what_was_shown() {
    let cut = Reply::stream().text("half a sen").until_close();
    let upstream = Upstream::serve([cut]).await.unwrap();
    let yard = Yard::with_upstream(config(json!([]), json!({})), &upstream).await;
    let run = yard.say("go").await;
    yard.until(&run, RunStatus::Failed).await;
    let events = yard.events(&run).await;
    let Some(Event::RunFinished(end)) = events.last() else { panic!("{events:?}") };
    assert_eq!(end.error, Some(ErrorCode::ModelStreamCut));
    let shown = events
        .iter()
        .any(|e| matches!(e, Event::ModelReplied(r) if r.partial && r.finish == FinishReason::Other));
    assert!(shown);
    // Never a second try after something was shown.
    assert_eq!(upstream.requests().len(), 1);
}
