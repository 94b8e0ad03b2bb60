//! Which tools somebody wants to be offered.

use serde_json::json;
use toolyard_models::scripted::{Reply, Upstream};
use toolyard_protocol::event::Event;
use toolyard_protocol::message::{Part, Speaker};
use toolyard_protocol::picks::Picks;
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::wait::WaitKind;
use toolyard_runtime::{Answer, AnswerIn, Fresh, PostMessage};
use toolyard_store::spaces;

use crate::yard::{Yard, client_tool, config, static_tool};

async fn pick(yard: &Yard, picks: Picks) {
    let (t, space, ada) = (yard.tenant.clone(), yard.space.clone(), yard.ada.clone());
    let write = yard
        .rt
        .store()
        .write(move |tx| Box::pin(async move { spaces::pick(tx, &t, &space, &ada, &picks).await }));
    assert!(write.await.unwrap());
}

#[tokio::test]
async fn h10_a_tool_that_a_user_did_not_pick_is_not_there_for_their_runs() {
    let yard = Yard::new(json!([static_tool("look"), static_tool("smell")])).await;
    pick(&yard, Picks { tools: [("smell".to_owned(), false)].into(), categories: None }).await;
    let run = yard.say("call smell {}").await;
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("Tool: smell not found"));
    assert!(yard.kinds(&run).await.contains(&"ToolsetReplaced"));
    let run = yard.say("call look {}").await;
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("look"));
    // It is Ada's word, not everybody's.
    let run = yard.post(&yard.bob, "call smell {}").await.runs[0].run.clone().unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert!(!yard.answer().await.contains("not found"));
    assert!(!yard.kinds(&run).await.contains(&"ToolsetReplaced"));
}

#[tokio::test]
async fn h10_categories_pick_groups_of_tools_for_one_message() {
    let mut look = static_tool("look");
    look["category"] = json!("senses");
    let mut walk = static_tool("walk");
    walk["category"] = json!("legs");
    let yard = Yard::new(json!([look, walk, static_tool("think")])).await;
    let post = PostMessage {
        trace: None,
        by: yard.secret(),
        space: yard.space.clone(),
        sender: Some(yard.ada.clone()),
        speaker: Speaker::User,
        parts: vec![Part::text("call look {}\ncall walk {}\ncall think {}")],
        metadata: None,
        trigger_agents: true,
        model: None,
        categories: Some(vec!["senses".to_owned()]),
        client_tools: Default::default(),
    };
    let Fresh::Done(posted) = yard.rt.post_message(post, None).await.unwrap() else { panic!("fresh") };
    let run = posted.runs[0].run.clone().unwrap();
    yard.until(&run, RunStatus::Completed).await;
    let failed: Vec<String> = yard
        .events(&run)
        .await
        .into_iter()
        .filter_map(|e| match e {
            Event::ToolReturned(end) if end.error.shown().is_some() => Some(end.tool.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(failed, ["walk"]);
}

#[tokio::test]
async fn h10_a_picked_toolset_survives_the_death_of_the_node() {
    let yard = Yard::new(json!([client_tool("ask"), static_tool("smell")])).await;
    pick(&yard, Picks { tools: [("smell".to_owned(), false)].into(), categories: None }).await;
    let run = yard.say("call ask {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    yard.until_quiet().await;
    // What is picked later is for later runs.
    pick(&yard, Picks { tools: [("ask".to_owned(), false)].into(), categories: None }).await;
    let yard = yard.crash().await;
    let call = yard.open_waits(&run).await[0].wait.call.clone();
    yard.submit(&run, &call, json!("here")).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("here"));
    let replaced = yard.kinds(&run).await.iter().filter(|k| **k == "ToolsetReplaced").count();
    assert_eq!(replaced, 1);
}

#[tokio::test]
async fn an_agent_with_many_tools_gets_a_search_and_what_it_finds() {
    let search = Reply::calling(&[("searchTools", json!({"query": "book a flight"}))]);
    let upstream = Upstream::serve([search, Reply::saying("found")]).await.unwrap();
    let many = (0..30).map(|n| static_tool(&format!("weather_{n}"))).chain([static_tool("book_flight")]);
    let tools = serde_json::Value::Array(many.collect());
    let config = config(tools, json!({"loop": {"searchToolsAbove": 20}}));
    let yard = Yard::with_upstream(config, &upstream).await;
    let run = yard.say("fly me").await;
    yard.until(&run, RunStatus::Completed).await;
    let offered = |n: usize| -> Vec<String> {
        let request = upstream.requests()[n].body.clone();
        let tools = request["tools"].as_array().unwrap().clone();
        tools.iter().map(|t| t["function"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(offered(0), ["searchTools"]);
    assert_eq!(offered(1), ["book_flight", "searchTools"]);
}

#[tokio::test]
async fn g15_request_input_asks_a_person_with_a_form_and_waits_on_disk() {
    let tool = json!({"executionType": "prebuilt", "execution": {"action": "requestInput"}});
    let yard = Yard::new(json!([tool])).await;
    let form = json!({"type": "object", "properties": {"size": {"type": "number"}}, "required": ["size"]});
    let run =
        yard.say(&format!("call requestInput {}", json!({"message": "Which size?", "schema": form}))).await;
    yard.until(&run, RunStatus::WaitingTool).await;
    yard.until_quiet().await;
    let yard = yard.crash().await;
    let wait = yard.open_waits(&run).await.remove(0).wait;
    assert_eq!(wait.kind, WaitKind::Input);
    let give = |value| AnswerIn { answer: Answer::Provide(value), remember: None, args_hash: None };
    let wrong =
        yard.rt.answer(yard.caller_as(&yard.ada), wait.id.clone(), give(json!({"size": "big"}))).await;
    assert!(wrong.unwrap_err().message.contains("size"));
    yard.rt.answer(yard.caller_as(&yard.ada), wait.id, give(json!({"size": 42}))).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("42"));
    let hopeless = json!({"message": "?", "schema": {"type": "object", "properties": {"a": {"$ref": "x"}}}});
    let run = yard.say(&format!("call requestInput {hopeless}")).await;
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("schema"));
}
