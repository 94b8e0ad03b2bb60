//! Row C5: what a vendor wants back comes back, unchanged and in its place,
//! within a run and in the next run of the conversation.

use serde_json::{Value, json};
use toolyard_models::ProviderKind;
use toolyard_models::scripted::{Reply, Upstream};
use toolyard_protocol::message::Part;
use toolyard_protocol::principal::{Role, Viewer};
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::visible::visible_message;

use crate::yard::{Yard, config, static_tool};

/// A reply of these blocks.
fn reply(blocks: &Value, stop: &str) -> Reply {
    Reply::json(&json!({ "type": "message", "content": blocks, "stop_reason": stop }))
}

/// The messages of a request, without the marks that move on with each.
fn messages(request: &Value) -> Vec<Value> {
    let mut messages = request["messages"].as_array().unwrap().clone();
    for message in &mut messages {
        for block in message["content"].as_array_mut().unwrap() {
            block.as_object_mut().unwrap().remove("cache_control");
        }
    }
    messages
}

#[tokio::test]
async fn c5_the_next_run_tells_the_vendor_what_the_last_run_told_it() {
    let citation = json!({ "type": "web_search_result_location", "url": "https://a.example/", "title": "A",
        "encrypted_index": "canary-index", "cited_text": "a" });
    let first = json!([
        { "type": "thinking", "thinking": "Search, ", "signature": "canary-one" },
        { "type": "thinking", "thinking": "then look.", "signature": "canary-two" },
        { "type": "redacted_thinking", "data": "canary-data" },
        { "type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": { "query": "q" } },
        { "type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [] },
        { "type": "text", "text": "They say " },
        { "type": "text", "text": "größer", "citations": [citation] },
        { "type": "tool_use", "id": "t1", "name": "look", "input": { "n": 1 }, "caller": { "type": "direct" } },
        { "type": "text", "text": "And again." },
        { "type": "tool_use", "id": "t2", "name": "look", "input": { "n": 2 } },
    ]);
    let second = json!([{ "type": "tool_use", "id": "t3", "name": "look", "input": {} }]);
    let third = json!([{ "type": "text", "text": "Done." }]);
    let script = [
        reply(&first, "tool_use"),
        reply(&second, "tool_use"),
        reply(&third, "end_turn"),
        reply(&json!([{ "type": "text", "text": "Still." }]), "end_turn"),
    ];
    let upstream = Upstream::serve(script).await.unwrap();
    let model = json!({ "name": "claude-sonnet-4-5", "reasoning": { "enabled": true } });
    let agent = config(json!([static_tool("look")]), json!({ "model": model }));
    let yard = Yard::with_vendor(agent, ProviderKind::Anthropic, &upstream).await;
    let run = yard.say("go").await;
    yard.until(&run, RunStatus::Completed).await;
    let next = yard.say("and now?").await;
    yard.until(&next, RunStatus::Completed).await;

    let requests: Vec<Vec<Value>> = upstream.requests().iter().map(|seen| messages(&seen.body)).collect();
    let [_, after_first, after_second, later] = requests.as_slice() else { panic!("{requests:?}") };
    // Our ids stand for the vendor's in calls.
    let mut told = after_first[1]["content"].as_array().unwrap().clone();
    let ids: Vec<Value> = [7, 9].iter().map(|at| told[*at]["id"].take()).collect();
    (told[7]["id"], told[9]["id"]) = (json!("t1"), json!("t2"));
    assert_eq!(Value::Array(told), first);
    let answered = &after_first[2]["content"];
    assert_eq!([&answered[0]["tool_use_id"], &answered[1]["tool_use_id"]], [&ids[0], &ids[1]]);

    assert!(after_second.starts_with(after_first));
    assert!(later.starts_with(after_second), "{later:#?}");
    assert_eq!(later.len(), after_second.len() + 2);

    // Nobody but the vendor reads it.
    let bystander = Viewer::public(yard.ada.clone(), Role::Member);
    for message in yard.messages().await {
        let seen = visible_message(&bystander, &message);
        assert!(!seen.parts.iter().any(|part| matches!(part, Part::Opaque { .. })));
        assert!(!serde_json::to_string(&seen.parts).unwrap().contains("canary"));
    }
}
