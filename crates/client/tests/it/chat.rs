//! One message and everything that follows, with tools of this program.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use serde_json::{Value, json};
use toolyard_client::{
    CallContext, ChatEvent, ChatResponse, ClientEvent, ErrorCode, Failure, Handled, Tool, ToolCall, kit,
    plugin, tool,
};

use crate::gateway::{Gateway, Yard, client_tool};
use crate::upstream;

fn counting(name: &str) -> (Arc<dyn Tool>, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = ran.clone();
    let made = tool(name).describe("Counts.").run(move |args: Value, _: CallContext| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, Failure>(json!({ "got": args })) }
    });
    (made, ran)
}

fn answer(value: Value) -> Option<Handled> {
    Some(Box::pin(async move { Ok(value) }))
}

async fn say(yard: &Yard, text: &str) -> ChatResponse {
    yard.client.chat(&yard.space, text).from(&yard.person).response().await.unwrap()
}

/// A yard whose model calls `tool` so often before it is done.
async fn calling(tool: &'static str, calls: usize) -> (Yard, Arc<Mutex<Vec<upstream::Heard>>>) {
    let (config, heard) = upstream::caller(tool, calls).await;
    let model = json!({"provider": "fake", "name": "m"});
    (Yard::on(Gateway::with(&config), model, json!([])).await, heard)
}

#[tokio::test]
async fn h41_h40_the_full_loop_with_a_time_plugin() {
    let yard = Yard::new(json!([])).await;
    yard.client.register(kit::time()).await.unwrap();
    let response = say(&yard, "call get_time {\"timezone\": \"Asia/Tokyo\"}").await;
    assert_eq!((response.status.as_str(), response.finish_reason.as_deref()), ("completed", Some("stop")));
    let (call, outcome) = &response.tool_results[0];
    assert_eq!(
        (call.name.as_str(), outcome.as_ref().unwrap()["timezone"].as_str()),
        ("get_time", Some("Asia/Tokyo"))
    );
    assert!(response.text.contains("+09:00"), "{}", response.text);
    // In the same space, with the history of the first.
    assert_eq!(say(&yard, "say bye").await.text, "bye");
}

#[tokio::test]
async fn h27_client_tools_are_in_the_request_only_if_there_are_some() {
    let yard = Yard::new(json!([])).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let spy = plugin("spy", "1.0.0").before_request(move |request| {
        let body = serde_json::to_value(&request).unwrap();
        kept.lock().unwrap().push(body.get("clientTools").map(|tools| tools[0]["name"].clone()));
        async move { Ok(request) }
    });
    yard.client.register(spy).await.unwrap();
    say(&yard, "say one").await;
    let (counter, ran) = counting("count");
    yard.client.register_tool(counter).unwrap();
    assert!(say(&yard, "call count {\"n\": 1}").await.text.contains("\"n\":1"));
    assert_eq!(*seen.lock().unwrap(), [None, Some(json!("count"))]);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    // A tool that the agent has itself is a conflict, unless it is not brought.
    yard.gateway
        .post("/api/agents", &json!({"config": {"agent": {"name": "helper"}, "model": {"provider": "demo", "name": "demo"}, "tools": [client_tool("count")]}}))
        .await;
    let refused = yard.client.chat(&yard.space, "hi").from(&yard.person).stream().await.unwrap_err();
    assert!(refused.is(ErrorCode::ToolNameConflict), "{refused}");
    let chat = yard.client.chat(&yard.space, "call count {}").from(&yard.person).without_tools();
    assert_eq!(chat.response().await.unwrap().status, "completed");
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn h33_hooks_run_in_order_and_see_what_the_former_made() {
    let yard = Yard::new(json!([])).await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    for name in ["first", "second"] {
        let kept = heard.clone();
        let hooks = plugin(name, "1.0.0")
            .before_request(move |mut request| {
                request.content = format!("{} {name}", request.content);
                async move { Ok(request) }
            })
            .after_response(move |response| {
                kept.lock().unwrap().push(format!("{name}: {}", response.text));
                async { Ok(()) }
            });
        yard.client.register(hooks).await.unwrap();
    }
    assert_eq!(say(&yard, "say").await.text, "first second");
    assert_eq!(*heard.lock().unwrap(), ["first: first second", "second: first second"]);
    let failing = plugin("third", "1.0.0").before_request(|_| async { Err("not now".into()) });
    yard.client.register(failing).await.unwrap();
    let refused = yard.client.chat(&yard.space, "x").from(&yard.person).response().await.unwrap_err();
    assert_eq!(refused.to_string(), "Plugin \"third\": beforeRequest failed: not now");
}

#[tokio::test]
async fn h35_row18_rounds_are_counted_and_a_tool_never_runs_whose_result_cannot_be_sent() {
    // The model wants seven rounds.
    for (limit, runs, reached) in
        [(None, 5, true), (Some(2), 2, true), (Some(0), 7, false), (Some(7), 7, false)]
    {
        let (yard, heard) = calling("count", 7).await;
        let (counter, ran) = counting("count");
        yard.client.register_tool(counter).unwrap();
        let told = Arc::new(AtomicU32::new(0));
        let kept = told.clone();
        yard.client.on_event(move |event| {
            if let ClientEvent::MaxToolRoundsReached { limit } = event {
                kept.store(*limit, Ordering::SeqCst);
            }
        });
        let chat = yard.client.chat(&yard.space, "go").from(&yard.person);
        let chat = if let Some(limit) = limit { chat.max_tool_rounds(limit) } else { chat };
        let response = chat.response().await.unwrap();
        assert_eq!(
            (ran.load(Ordering::SeqCst), response.max_tool_rounds_reached),
            (runs, reached),
            "{limit:?}"
        );
        assert_eq!(response.tool_results.len(), runs, "every one that ran was sent");
        assert_eq!(heard.lock().unwrap().len(), runs + 1, "requests to the model");
        let status = if reached { "waiting_tool" } else { "completed" };
        assert_eq!(response.status, status);
        assert_eq!(told.load(Ordering::SeqCst), if reached { u32::try_from(runs).unwrap() } else { 0 });
        if reached {
            assert_eq!(response.pending[0].name, "count", "it stays open for others");
        }
    }
}

#[tokio::test]
async fn h36_h42_the_request_s_own_option_goes_first_and_its_recipes_work() {
    let yard = Yard::new(json!([client_tool("mcp_files_read")])).await;
    let (counter, ran) = counting("danger");
    yard.client.register_tool(counter).unwrap();
    let chat = |text: &str| yard.client.chat(&yard.space, text).from(&yard.person);
    // A confirmation dialog that was closed.
    let cancelled = chat("call danger {}").on_tool_call(|_| answer(json!({"cancelled": true})));
    assert!(cancelled.response().await.unwrap().text.contains("{\"cancelled\":true}"));
    // A permission gate: an error for the model, and the loop goes on.
    let denied = chat("call danger {}").on_tool_call(|call| {
        let text = "Permission denied for this tool".to_owned();
        (call.name == "danger").then(|| -> Handled { Box::pin(async move { Err(text) }) })
    });
    let denied = denied.response().await.unwrap();
    assert_eq!(denied.status, "completed");
    assert!(denied.text.contains("Permission denied for this tool"), "{}", denied.text);
    assert_eq!(ran.load(Ordering::SeqCst), 0, "the plugin's own code did not run");
    // Dispatch by prefix, and `None` falls through to the plugin.
    let by_prefix = |call: &ToolCall| match call.name.strip_prefix("mcp_") {
        Some(rest) => answer(json!({"server": rest})),
        None => None,
    };
    let response =
        chat("call mcp_files_read {}\ncall danger {}").on_tool_call(by_prefix).response().await.unwrap();
    assert!(response.text.contains("files_read") && response.text.contains("got"), "{}", response.text);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    // Analytics and a status around the plugin's own executor.
    let (client, steps) = (yard.client.clone(), Arc::new(Mutex::new(Vec::new())));
    let kept = steps.clone();
    let wrapped = chat("call danger {\"n\": 2}").on_tool_call(move |call| {
        let (client, call, kept) = (client.clone(), call.clone(), kept.clone());
        Some(Box::pin(async move {
            kept.lock().unwrap().push(format!("begin {}", call.name));
            let outcome = client.execute(&call).await.unwrap();
            kept.lock().unwrap().push(format!("end {}", outcome.is_ok()));
            outcome
        }))
    });
    assert!(wrapped.response().await.unwrap().text.contains("\"n\":2"));
    assert_eq!(*steps.lock().unwrap(), ["begin danger", "end true"]);
}

#[tokio::test]
async fn h37_only_calls_with_an_executor_run_and_the_others_are_told_and_stay_open() {
    let yard = Yard::new(json!([client_tool("mine"), client_tool("theirs")])).await;
    let (counter, ran) = counting("mine");
    yard.client.register_tool(counter).unwrap();
    let chat = yard.client.chat(&yard.space, "call mine {}\ncall theirs {\"n\": 7}").from(&yard.person);
    let mut stream = chat.without_tools().stream().await.unwrap();
    let run = stream.runs()[0].clone();
    let theirs = loop {
        match stream.next().await.unwrap().unwrap() {
            ChatEvent::Unhandled(calls) => break calls[0].clone(),
            ChatEvent::Finished(_) => panic!("nobody has answered"),
            _ => {}
        }
    };
    assert_eq!((theirs.name.as_str(), &theirs.args), ("theirs", &json!({"n": 7})));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    // Another program answers, and the stream goes on to the end.
    let taken = yard.client.runs().submit(&run, &theirs.id, &Ok(json!("from elsewhere"))).await.unwrap();
    assert_eq!(taken.status, "accepted");
    let response = stream.response().await.unwrap();
    assert!(response.status == "completed" && response.text.contains("from elsewhere"), "{response:?}");
}

#[tokio::test]
async fn h38_h39_row13_each_tool_is_a_result_in_the_stream_and_a_failure_goes_to_the_model() {
    let yard = Yard::new(json!([])).await;
    let failing = |_: Value, _: CallContext| async { Err::<Value, Failure>("no sensors".into()) };
    yard.client.register_tool(tool("broken").describe("d").run(failing)).unwrap();
    let (counter, _) = counting("fine");
    yard.client.register_tool(counter).unwrap();
    let chat = yard.client.chat(&yard.space, "call broken {}\ncall fine {}").from(&yard.person);
    let mut stream = chat.stream().await.unwrap();
    let (mut started, mut results) = (0, Vec::new());
    let response = loop {
        match stream.next().await.unwrap().unwrap() {
            ChatEvent::ToolStart(_) => started += 1,
            ChatEvent::ToolResult { call, outcome } => results.push((call.name, outcome.is_ok())),
            ChatEvent::Finished(response) => break response,
            _ => {}
        }
    };
    results.sort();
    assert_eq!((started, results), (2, vec![("broken".to_owned(), false), ("fine".to_owned(), true)]));
    assert!(
        response.status == "completed" && response.text.contains("{\"error\":\"no sensors\"}"),
        "{response:?}"
    );
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn row1_row2_row3_row4_the_gateway_refuses_definitions_that_break_its_rules() {
    let yard = Yard::new(json!([])).await;
    let plain = json!({"type": "object", "properties": {}});
    let many: Vec<Value> =
        (0..129).map(|n| json!({"name": format!("t{n}"), "description": "d", "parameters": plain})).collect();
    for (tools, why) in [
        (json!([{"name": "my-tool", "description": "d", "parameters": plain}]), "invalid name"),
        (json!(many), "Too many tools: 129 given, at most 128 allowed"),
        (
            json!([{"name": "a", "description": "d", "parameters": {"type": "object", "properties": {"x": {"$ref": "#/$defs/y"}}}}]),
            "$ref",
        ),
    ] {
        let mut message = toolyard_client::NewMessage::text("hi");
        message.entity_id = Some(yard.person.clone());
        message.client_tools = tools.as_array().cloned();
        let refused = yard.client.spaces().post(&yard.space, &message).await.unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    }
    for shape in [
        json!({"name": "a", "description": "d", "inputSchema": plain}),
        json!({"type": "function", "function": {"name": "a", "description": "d", "parameters": plain}}),
    ] {
        let mut message = toolyard_client::NewMessage::text("call a {}");
        message.entity_id = Some(yard.person.clone());
        message.client_tools = Some(vec![shape]);
        let chat = yard.client.chat_with(&yard.space, message).on_tool_call(|_| answer(json!("ok")));
        assert!(chat.response().await.unwrap().text.contains("answered: ok"));
    }
}
