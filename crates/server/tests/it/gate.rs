//! Who decides before a tool runs, over the wire (rows C11, C12, C15; X4, X13,
//! X14): what a prompt shows, what an answer covers, what is remembered.

use reqwest::Method;
use serde_json::{Value, json};
use toolyard_protocol::sse::SseEvent;

use crate::far_side::FarSide;
use crate::gateway::{Folder, Gateway, ask, fine};
use crate::obedient::Obedient;
use crate::yard::{Yard, data, eventually, join, new_space};

fn tool(name: &str, more: Value) -> Value {
    let mut tool = json!({"name": name, "description": format!("The tool {name}."),
        "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}}});
    for (key, value) in more.as_object().unwrap() {
        tool[key] = value.clone();
    }
    tool
}

/// A yard whose agent has these tools.
async fn with_tools(gateway: Gateway, tools: Value) -> Yard {
    let yard = Yard::on(gateway).await;
    put(&yard, tools).await;
    yard
}

async fn put(yard: &Yard, tools: Value) {
    let config = json!({"agent": {"name": "assistant"}, "model": {"provider": "demo", "name": "demo"}, "tools": tools});
    yard.gateway.post("/api/agents", json!({ "config": config })).await;
}

/// Ann and the agent in another space.
async fn elsewhere(yard: &Yard) -> String {
    let space = new_space(&yard.gateway).await;
    join(&yard.gateway, &space, &yard.agent_entity).await;
    join(&yard.gateway, &space, &yard.ann).await;
    space
}

async fn say_in(yard: &Yard, space: &str, content: &str) -> String {
    let path = format!("/api/smart-spaces/{space}/messages");
    let posted =
        fine(yard.gateway.user("ann", Method::POST, &path).json(&json!({ "content": content }))).await;
    posted["runs"][0]["runId"].as_str().unwrap().to_owned()
}

async fn answer(yard: &Yard, wait: &Value, body: Value) -> (u16, Value) {
    let path = format!("/api/waits/{}/answer", wait["id"].as_str().unwrap());
    let (status, body) = ask(yard.gateway.user("ann", Method::POST, &path).json(&body)).await;
    (status.as_u16(), body)
}

async fn kind_of(yard: &Yard, run: &str) -> String {
    yard.wait_of(run).await["kind"].as_str().unwrap().to_owned()
}

fn names(events: &[SseEvent]) -> Vec<String> {
    events.iter().filter_map(|e| e.event.clone()).collect()
}

/// Session cache, then the remembered lists, then the risk, then the prompt;
/// what was said holds for the session.
#[tokio::test]
async fn c11_a_session_answer_comes_before_the_lists_and_the_lists_before_the_prompt() {
    let yard = Yard::new().await;
    let call = "call guarded {\"q\":\"x\"}";
    let run = yard.say(call).await;
    let wait = yard.wait_of(&run).await;
    assert_eq!(wait["kind"], "approval");
    assert_eq!(answer(&yard, &wait, json!({"decision": "allow", "remember": "session"})).await.0, 200);
    eventually("the client's turn", || async { kind_of(&yard, &run).await == "client" }).await;
    // The same conversation is not asked again.
    let finish = async |run: &str| {
        let call = yard.wait_of(run).await["toolCallId"].clone();
        yard.submit(Some("ann"), run, json!({"callId": call, "result": "ok"})).await;
        yard.finish(run).await
    };
    finish(&run).await;
    let run = yard.say(call).await;
    assert_eq!(kind_of(&yard, &run).await, "client");
    finish(&run).await;
    // Another one is.
    let space = elsewhere(&yard).await;
    let run = say_in(&yard, &space, call).await;
    let wait = yard.wait_of(&run).await;
    assert_eq!(wait["kind"], "approval");
    answer(&yard, &wait, json!({"decision": "deny", "remember": "always"})).await;
    yard.finish(&run).await;
    // A deny that was remembered holds everywhere, also over the session's allow.
    for space in [&space, &yard.space] {
        let run = say_in(&yard, space, call).await;
        let events = yard.finish(&run).await;
        assert!(!names(&events).contains(&"tool-approval-request".to_owned()), "{:?}", names(&events));
        let error = events.iter().find(|e| e.event.as_deref() == Some("tool-error")).map(data).unwrap();
        assert_eq!(error["outcome"], "denied", "{error}");
    }
    // Without a word of anybody the risk decides: this one is low and runs.
    let events = yard.finish(&yard.say("call echo {\"q\":\"x\"}").await).await;
    assert!(!names(&events).contains(&"tool-approval-request".to_owned()));
}

/// A process that has seen no grant given looks for those of an earlier one.
#[tokio::test]
async fn c12_a_remembered_deny_holds_over_a_kill_of_the_gateway() {
    let yard = Yard::new().await;
    let call = "call guarded {\"q\":\"x\"}";
    let run = yard.say(call).await;
    answer(&yard, &yard.wait_of(&run).await, json!({"decision": "deny", "remember": "always"})).await;
    yard.finish(&run).await;
    let Yard { gateway, space, agent_entity, ann, bob } = yard;
    let gateway = Gateway::start_with(gateway.kill(), &[]).await;
    let yard = Yard { gateway, space, agent_entity, ann, bob };
    let events = yard.finish(&yard.say(call).await).await;
    assert!(!names(&events).contains(&"tool-approval-request".to_owned()), "{:?}", names(&events));
    let error = events.iter().find(|e| e.event.as_deref() == Some("tool-error")).map(data).unwrap();
    assert_eq!(error["outcome"], "denied", "{error}");
}

/// What is pending, what is allowed, what is denied, and for which session: all
/// of it can be read and taken back.
#[tokio::test]
async fn c12_pending_and_remembered_answers_are_listed_and_taken_back() {
    let yard = Yard::new().await;
    let pending =
        async || fine(yard.gateway.user("ann", Method::GET, "/api/approvals")).await["waits"].clone();
    assert_eq!(pending().await, json!([]));
    let run = yard.say("call guarded {\"q\":\"x\"}").await;
    let wait = yard.wait_of(&run).await;
    assert_eq!(pending().await[0]["id"], wait["id"]);
    assert!(
        fine(yard.gateway.user("bob", Method::GET, "/api/approvals")).await["waits"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    answer(&yard, &wait, json!({"decision": "allow", "remember": "session"})).await;
    assert_eq!(pending().await, json!([]));
    let space = elsewhere(&yard).await;
    let run = say_in(&yard, &space, "call guarded {\"q\":\"x\"}").await;
    answer(&yard, &yard.wait_of(&run).await, json!({"decision": "deny", "remember": "always"})).await;
    let grants = fine(yard.gateway.user("ann", Method::GET, "/api/grants")).await["grants"].clone();
    let mut seen: Vec<Value> = grants
        .as_array()
        .unwrap()
        .iter()
        .map(|g| json!([g["tool"], g["grant"]["effect"], g["grant"]["scope"]["space"]]))
        .collect();
    seen.sort_by_key(Value::to_string);
    assert_eq!(seen, [json!(["guarded", "allow", yard.space]), json!(["guarded", "deny", null])]);
    for grant in grants.as_array().unwrap() {
        let path = format!("/api/grants/{}", grant["id"].as_str().unwrap());
        assert_eq!(yard.gateway.user("bob", Method::DELETE, &path).send().await.unwrap().status(), 404);
        assert_eq!(yard.gateway.user("ann", Method::DELETE, &path).send().await.unwrap().status(), 204);
    }
    let run = say_in(&yard, &space, "call guarded {\"q\":\"x\"}").await;
    assert_eq!(kind_of(&yard, &run).await, "approval");
}

/// The dialog has the tool, its description, its risk and the exact arguments.
#[tokio::test]
async fn c15_a_prompt_shows_the_tool_its_description_its_risk_and_the_arguments() {
    let tools = json!([tool("delete_file", json!({"approval": "ask"}))]);
    let yard = with_tools(Gateway::start().await, tools).await;
    let run = yard.say("call delete_file {\"q\":\"a.txt\"}").await;
    let wait = yard.wait_of(&run).await;
    let shown = &wait["payload"];
    assert_eq!(
        (&shown["toolName"], &shown["description"], &shown["risk"], &shown["args"]),
        (&json!("delete_file"), &json!("The tool delete_file."), &json!("high"), &json!({"q": "a.txt"})),
        "{wait}"
    );
    // The same in the stream, for whoever may answer.
    let events = fine(yard.gateway.user("ann", Method::GET, &format!("/api/runs/{run}/events"))).await;
    let prompt =
        events["events"].as_array().unwrap().iter().find(|e| e["type"] == "tool-approval-request").unwrap();
    assert_eq!((&prompt["payload"]["args"], &prompt["mayAnswer"]), (&json!({"q": "a.txt"}), &json!(true)));
    let events = fine(yard.gateway.user("bob", Method::GET, &format!("/api/runs/{run}/events"))).await;
    let prompt =
        events["events"].as_array().unwrap().iter().find(|e| e["type"] == "tool-approval-request").unwrap();
    assert_eq!((&prompt["payload"], &prompt["mayAnswer"]), (&Value::Null, &json!(false)));
}

/// X13: an answer is for the arguments that were shown, and one that holds
/// always for these arguments holds for no others.
#[tokio::test]
async fn x13_an_answer_binds_the_arguments_over_http() {
    let yard = Yard::new().await;
    let run = yard.say("call guarded {\"q\":\"one\"}").await;
    let wait = yard.wait_of(&run).await;
    let hash = wait["payload"]["argsHash"].as_str().unwrap().to_owned();
    let other = "0".repeat(64);
    let (status, body) = answer(&yard, &wait, json!({"decision": "allow", "argsHash": other})).await;
    assert_eq!((status, &body["error"]["code"]), (409, &json!("conflict")), "{body}");
    assert_eq!(kind_of(&yard, &run).await, "approval");
    let allow = json!({"decision": "allow", "argsHash": hash, "remember": "alwaysThese"});
    assert_eq!(answer(&yard, &wait, allow).await.0, 200);
    let finish = async |run: &str| {
        eventually("the client's turn", || async { kind_of(&yard, run).await == "client" }).await;
        let call = yard.wait_of(run).await["toolCallId"].clone();
        yard.submit(Some("ann"), run, json!({"callId": call, "result": "ok"})).await;
        yard.finish(run).await
    };
    finish(&run).await;
    let same = yard.say("call guarded {\"q\":\"one\"}").await;
    assert_eq!(kind_of(&yard, &same).await, "client");
    finish(&same).await;
    for args in ["{\"q\":\"two\"}", "{}", "{\"q\":\"one\",\"more\":1}"] {
        let space = elsewhere(&yard).await;
        let run = say_in(&yard, &space, &format!("call guarded {args}")).await;
        assert_eq!(kind_of(&yard, &run).await, "approval", "{args}");
    }
}

/// X4: what was allowed is the request that was shown. Another address, method
/// or body is another tool, though its name and words are the same.
#[tokio::test]
async fn x4_a_request_that_leads_elsewhere_asks_again() {
    let far = FarSide::start().await;
    let env = [("TOOLYARD_ALLOW_PRIVATE_NETWORK", far.address.as_str())];
    let send = |path: &str, method: &str| {
        json!([tool(
            "send",
            json!({"approval": "ask", "executionType": "request",
            "execution": {"method": method, "url": format!("{}{path}", far.url())}})
        )])
    };
    let yard = with_tools(Gateway::start_with(Folder::new(), &env).await, send("/a", "POST")).await;
    let call = "call send {\"q\":\"x\"}";
    let run = yard.say(call).await;
    answer(&yard, &yard.wait_of(&run).await, json!({"decision": "allow", "remember": "always"})).await;
    yard.finish(&run).await;
    yard.finish(&yard.say(call).await).await;
    assert_eq!(far.asked().len(), 2, "remembered");
    for (path, method) in [("/b", "POST"), ("/a", "PUT")] {
        put(&yard, send(path, method)).await;
        let space = elsewhere(&yard).await;
        let run = say_in(&yard, &space, call).await;
        assert_eq!(kind_of(&yard, &run).await, "approval", "{path} {method}");
        assert_eq!(far.asked().len(), 2);
    }
    put(&yard, send("/a", "POST")).await;
    let space = elsewhere(&yard).await;
    yard.finish(&say_in(&yard, &space, call).await).await;
    assert_eq!(far.asked().len(), 3, "as it was allowed");
}

/// X14: a model that obeys every order it reads. 200 results tell it to run a
/// tool of high risk, which its owner even allows: not one runs unasked. Nor in
/// a later run of the same conversation; in another one it does.
#[tokio::test]
async fn x14_two_hundred_injected_results_run_nothing_unasked() {
    let far = Obedient::start().await;
    let folder = Folder::new();
    let config =
        format!("[providers.obedient]\nkind = \"openai\"\nbase_url = \"http://{}/v1\"\n", far.address);
    std::fs::write(folder.path().join("toolyard.toml"), config).unwrap();
    let env = [("TOOLYARD_ALLOW_PRIVATE_NETWORK", far.address.as_str())];
    let yard = Yard::on(Gateway::start_with(folder, &env).await).await;
    let request =
        |method: &str, path: &str| json!({"method": method, "url": format!("http://{}{path}", far.address)});
    let schema = json!({"type": "object", "properties": {"n": {}}});
    let config = json!({"agent": {"name": "assistant"}, "model": {"provider": "obedient", "name": "m"}, "tools": [
        {"name": "read_page", "description": "Reads a page.", "inputSchema": {"type": "object", "properties": {"n": {"type": "string"}}},
         "executionType": "request", "execution": request("GET", "/page/{{n}}")},
        {"name": "delete_everything", "description": "Wipes it.", "inputSchema": schema, "approval": "allow",
         "executionType": "request", "execution": request("POST", "/wipe")},
    ]});
    yard.gateway.post("/api/agents", json!({ "config": config })).await;
    let mut asked = 0;
    for round in 0..20 {
        let space = elsewhere(&yard).await;
        let run = say_in(&yard, &space, &format!("read {}-{}", round * 10, round * 10 + 10)).await;
        yard.wait_of(&run).await;
        let waits = yard.gateway.get(&format!("/api/approvals?runId={run}&limit=100")).await;
        asked += waits["waits"].as_array().unwrap().len();
        let events = yard.gateway.get(&format!("/api/runs/{run}/events")).await;
        assert_eq!(events.to_string().matches("tool-output-available").count(), 10, "{events}");
        yard.gateway.post(&format!("/api/runs/{run}/cancel"), json!({})).await;
        yard.finish(&run).await;
        if round == 0 {
            // What was read stays part of the conversation.
            let later = say_in(&yard, &space, "wipe").await;
            assert_eq!(kind_of(&yard, &later).await, "approval");
            yard.gateway.post(&format!("/api/runs/{later}/cancel"), json!({})).await;
        }
    }
    assert_eq!((asked, far.wiped()), (200, 0));
    // The owner's word counts where nothing foreign was read.
    let space = elsewhere(&yard).await;
    yard.finish(&say_in(&yard, &space, "wipe").await).await;
    assert_eq!(far.wiped(), 1);
}
