//! Rows of the specification over the wire that no other story tells: tool
//! input (G8, G47), what agents keep (G20 to G25), picked tools (H10), slow
//! clients (H43), and the edges of what people may keep.

use reqwest::Method;
use serde_json::{Value, json};
use toolyard_protocol::sse::SseEvent;

use crate::gateway::{Gateway, ask, fine, message};
use crate::yard::{Yard, data, eventually, join, new_space, read_all};

async fn yard_with(more: Value) -> Yard {
    let yard = Yard::on(Gateway::start().await).await;
    let mut config = json!({"agent": {"name": "assistant"}, "model": {"provider": "demo", "name": "demo"}});
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    yard.gateway.post("/api/agents", json!({ "config": config })).await;
    yard
}

fn named(events: &[SseEvent], name: &str) -> Option<Value> {
    events.iter().find(|e| e.event.as_deref() == Some(name)).map(data)
}

/// Calls a tool; answers its output, or its error.
async fn call(yard: &Yard, tool: &str, args: Value) -> Result<Value, String> {
    let events = yard.finish(&yard.say(&format!("call {tool} {args}")).await).await;
    match named(&events, "tool-output-available") {
        Some(output) => Ok(output["output"].clone()),
        None => Err(named(&events, "tool-error").unwrap_or_else(|| panic!("{events:?}"))["error"]
            .as_str()
            .unwrap()
            .to_owned()),
    }
}

/// Input is described by JSON Schema: what fits runs, what does not is told to
/// the model with its place and runs nowhere.
#[tokio::test]
async fn g8_tool_input_is_checked_by_its_json_schema() {
    let schema = json!({"type": "object", "required": ["city"], "additionalProperties": false, "properties": {
        "city": {"type": "string", "minLength": 2, "pattern": "^[A-Z]"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "units": {"enum": ["c", "f"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    }});
    let tool = json!({"name": "weather", "description": "Tells it.", "inputSchema": schema, "execution": {"mode": "pass-through"}});
    let yard = yard_with(json!({"tools": [tool], "loop": {"maxToolFailures": 100}})).await;
    let mut fine = json!({"city": "Oslo", "days": 3, "units": "c", "tags": ["a"]});
    let output = call(&yard, "weather", fine.clone()).await;
    fine["success"] = json!(true);
    assert_eq!(output, Ok(fine));
    for (bad, place) in [
        (json!({}), "city"),
        (json!({"city": "oslo"}), "city"),
        (json!({"city": "Oslo", "days": 15}), "days"),
        (json!({"city": "Oslo", "days": "3"}), "days"),
        (json!({"city": "Oslo", "units": "k"}), "units"),
        (json!({"city": "Oslo", "tags": ["a", "b", "c"]}), "tags"),
        (json!({"city": "Oslo", "more": 1}), "more"),
    ] {
        let error = call(&yard, "weather", bad.clone()).await.unwrap_err();
        assert!(error.contains(place), "{bad}: {error}");
    }
    // Code is no schema.
    let code = json!({"name": "odd", "description": "x", "inputSchema": "z.object({})", "execution": {"mode": "pass-through"}});
    let config =
        json!({"agent": {"name": "odd"}, "model": {"provider": "demo", "name": "demo"}, "tools": [code]});
    let (status, body) =
        ask(yard.gateway.secret(Method::POST, "/api/agents").json(&json!({ "config": config }))).await;
    assert_eq!((status.as_u16(), &body["error"]["code"]), (400, &json!("invalid_config")), "{body}");
}

/// A tool's input can be watched while it is written: its start, its pieces and
/// the whole, in this order, and the pieces make the whole.
#[tokio::test]
async fn g47_tool_input_streams_in_pieces() {
    let yard = Yard::new().await;
    let path = format!("/api/smart-spaces/{}/stream", yard.space);
    let response = yard.gateway.secret(Method::GET, &path).send().await.unwrap();
    let mut stream = crate::yard::Stream::new(response);
    yard.say("call echo {\"q\":\"a fairly long question that comes in pieces\"}").await;
    let start = data(&stream.until("tool-input-start").await);
    assert_eq!(start["toolName"], "echo");
    let mut pieces = Vec::new();
    let whole = loop {
        let event = stream.next().await.unwrap();
        let body = data(&event);
        match event.event.as_deref() {
            Some("tool-input-delta") => {
                assert_eq!(body["toolCallId"], start["toolCallId"]);
                pieces.push(body["delta"].as_str().unwrap().to_owned());
            }
            Some("tool-input-available") => break body,
            _ => {}
        }
    };
    assert_eq!(whole["toolCallId"], start["toolCallId"]);
    assert_eq!(whole["input"], json!({"q": "a fairly long question that comes in pieces"}));
    assert!(!pieces.is_empty());
    assert_eq!(serde_json::from_str::<Value>(&pieces.concat()).unwrap(), whole["input"]);
}

/// Goals: created with defaults, updated by id, listed in order, kept over runs
/// and spaces, removed with their entity.
#[tokio::test]
async fn g20_g21_g22_g23_goals_over_http() {
    let yard = yard_with(json!({"prebuilt": "all"})).await;
    let made = call(
        &yard,
        "setGoals",
        json!({"goals": [
        {"description": "small"}, {"description": "big", "priority": 5, "isLongTerm": true}]}),
    )
    .await
    .unwrap();
    assert_eq!((&made["success"], &made["totalGoals"]), (&json!(true), &json!(2)), "{made}");
    let actions: Vec<&Value> =
        made["goalsModified"].as_array().unwrap().iter().map(|g| &g["action"]).collect();
    assert_eq!(actions, ["created", "created"]);
    let goals = made["currentGoals"].as_array().unwrap();
    assert_eq!((&goals[0]["description"], &goals[1]["description"]), (&json!("big"), &json!("small")));
    assert_eq!(
        (&goals[1]["priority"], &goals[1]["isLongTerm"], &goals[1]["isCompleted"]),
        (&json!(0), &json!(false), &json!(false))
    );
    let id = goals[1]["id"].clone();
    let update = json!({"goals": [{"id": id, "description": "small", "isCompleted": true}]});
    let updated = call(&yard, "setGoals", update).await.unwrap();
    assert_eq!(
        (&updated["goalsModified"][0]["action"], &updated["goalsModified"][0]["id"]),
        (&json!("updated"), &id)
    );
    assert_eq!(updated["currentGoals"][0]["isLongTerm"], true, "what is not named stays");
    // Required fields, by the schema.
    assert!(
        call(&yard, "setGoals", json!({"goals": [{"priority": 1}]}))
            .await
            .unwrap_err()
            .contains("description")
    );
    assert!(call(&yard, "setGoals", json!({})).await.unwrap_err().contains("goals"));
    // They belong to the agent's entity, whatever the space.
    let space = new_space(&yard.gateway).await;
    join(&yard.gateway, &space, &yard.agent_entity).await;
    join(&yard.gateway, &space, &yard.ann).await;
    let other =
        Yard { space, gateway: yard.gateway, agent_entity: yard.agent_entity, ann: yard.ann, bob: yard.bob };
    let read = call(&other, "getGoals", json!({})).await.unwrap();
    assert_eq!(read.to_string().matches("\"description\"").count(), 2, "{read}");
    let cleared =
        call(&other, "setGoals", json!({"goals": [{"description": "only"}], "clearExisting": true}))
            .await
            .unwrap();
    assert_eq!(cleared["totalGoals"], 1);
    let path = format!("/api/goals?entityId={}", other.agent_entity);
    let listed = other.gateway.get(&path).await;
    let goal = &listed["goals"][0];
    assert!(
        goal["createdAt"].is_string() && goal["updatedAt"].is_string() && goal.get("metadata").is_some(),
        "{goal}"
    );
    let gone = other.gateway.secret(Method::DELETE, &format!("/api/entities/{}", other.agent_entity));
    assert_eq!(gone.send().await.unwrap().status(), 204);
    assert_eq!(other.gateway.get("/api/goals").await["goals"], json!([]));
}

#[tokio::test]
async fn g24_memories_over_http() {
    let yard = yard_with(json!({"prebuilt": "all"})).await;
    let set = call(&yard, "setMemory", json!({"topic": "Colour", "content": "likes blue"})).await.unwrap();
    assert_eq!(set["action"], "created", "{set}");
    let again = call(&yard, "setMemory", json!({"topic": "colour", "content": "likes green"})).await.unwrap();
    assert_eq!(again["action"], "updated");
    let got = call(&yard, "getMemory", json!({"topic": "colour"})).await.unwrap();
    assert_eq!((&got["total"], &got["memories"][0]["content"]), (&json!(1), &json!("likes green")), "{got}");
    // Ann sees and corrects it; Bob does not.
    let list = fine(yard.gateway.user("ann", Method::GET, "/api/memories")).await;
    let path = format!("/api/memories/{}", list["memories"][0]["id"].as_str().unwrap());
    fine(yard.gateway.user("ann", Method::PATCH, &path).json(&json!({"content": "likes red"}))).await;
    assert_eq!(ask(yard.gateway.user("bob", Method::GET, &path)).await.0, 403);
    let got = call(&yard, "getMemory", json!({"query": "red"})).await.unwrap();
    assert_eq!(got["total"], 1);
}

#[tokio::test]
async fn g25_plans_over_http() {
    let yard = yard_with(json!({"prebuilt": "all"})).await;
    let made =
        call(&yard, "createPlan", json!({"name": "Report", "instruction": "hello", "cron": "0 9 * * 1"}))
            .await
            .unwrap();
    assert_eq!(made["success"], true, "{made}");
    let read = call(&yard, "getPlan", json!({})).await.unwrap();
    assert!(read.to_string().contains("Report"), "{read}");
    for bad in ["banana", "0 0 30 2 *", "0 0 31 4,6 *"] {
        let error = call(&yard, "createPlan", json!({"name": "x", "instruction": "y", "cron": bad})).await;
        assert!(error.is_err(), "{bad}: {error:?}");
    }
    let plans = fine(yard.gateway.user("ann", Method::GET, "/api/plans")).await;
    assert_eq!(plans["plans"].as_array().unwrap().len(), 1, "{plans}");
}

/// A canceled plan that gets a new time is one more pending plan.
#[tokio::test]
async fn g25_a_canceled_plan_does_not_come_back_over_the_limit() {
    let yard = Yard::new().await;
    let plan = || {
        json!({"agentEntityId": yard.agent_entity, "entityId": yard.ann, "smartSpaceId": yard.space,
        "instruction": "x", "cron": "0 0 1 1 *"})
    };
    let first = yard.gateway.post("/api/plans", plan()).await["plan"]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/plans/{first}");
    fine(yard.gateway.secret(Method::PATCH, &path).json(&json!({"status": "canceled"}))).await;
    let again = || yard.gateway.secret(Method::PATCH, &path).json(&json!({"cron": "0 0 2 1 *"}));
    for _ in 0..100 {
        yard.gateway.post("/api/plans", plan()).await;
    }
    let (status, body) = ask(again()).await;
    assert_eq!((status.as_u16(), &body["error"]["limit"]), (422, &json!(100)), "{body}");
    assert_eq!(yard.gateway.get(&path).await["plan"]["status"], "canceled");
    // One that is pending may change its time all the same.
    let other = yard.gateway.get("/api/plans?status=pending&limit=1").await["plans"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    fine(
        yard.gateway
            .secret(Method::PATCH, &format!("/api/plans/{other}"))
            .json(&json!({"cron": "0 0 3 1 *"})),
    )
    .await;
}

/// X15: who has left a space does not speak there any more, not by an old
/// memory either; and one topic holds one memory.
#[tokio::test]
async fn x15_a_removed_member_does_not_change_what_a_space_remembers() {
    let yard = Yard::new().await;
    let memory = |topic: &str| {
        json!({"agentEntityId": yard.agent_entity, "smartSpaceId": yard.space, "scope": "space",
        "topic": topic, "content": "open on mondays"})
    };
    let post = |topic: &str| yard.gateway.user("bob", Method::POST, "/api/memories").json(&memory(topic));
    let made = fine(post("hours")).await;
    fine(post("days")).await;
    assert_eq!(ask(post("Hours")).await.0, 409);
    let path = format!("/api/memories/{}", made["memory"]["id"].as_str().unwrap());
    let patch = |body: Value| yard.gateway.user("bob", Method::PATCH, &path).json(&body);
    assert_eq!(ask(patch(json!({"topic": "days"}))).await.0, 409);
    fine(patch(json!({"content": "open on tuesdays", "topic": "HOURS"}))).await;
    let seat = format!("/api/smart-spaces/{}/members/{}", yard.space, yard.bob);
    assert_eq!(yard.gateway.secret(Method::DELETE, &seat).send().await.unwrap().status(), 204);
    let (status, body) = ask(patch(json!({"content": "never open"}))).await;
    assert_eq!(status, 403, "{body}");
    assert_eq!(yard.gateway.get(&path).await["memory"]["content"], "open on tuesdays");
}

/// A user cannot fill the tenant with documents.
#[tokio::test]
async fn g26_a_users_documents_are_counted() {
    let env = [("TOOLYARD_LIMITS_PUBLIC_RATE", "0")];
    let yard = Yard::on(Gateway::start_with(crate::gateway::Folder::new(), &env).await).await;
    let post = || {
        let body = json!({"content": "words", "smartSpaceId": yard.space});
        yard.gateway.user("ann", Method::POST, "/api/knowledge").json(&body)
    };
    for _ in 0..10 {
        let made = futures::future::join_all((0..50).map(|_| ask(post()))).await;
        assert!(made.iter().all(|(status, _)| status.as_u16() == 201), "{made:?}");
    }
    let (status, body) = ask(post()).await;
    assert_eq!((status.as_u16(), &body["error"]["limit"]), (422, &json!(500)), "{body}");
    assert!(message(&body).contains("500"), "{body}");
}

/// A user picks tools of a space, and a message picks groups of them.
#[tokio::test]
async fn h10_tools_are_picked_over_http() {
    let tool = |name: &str, category: Option<&str>| {
        let mut tool = json!({"name": name, "description": "x", "inputSchema": {"type": "object", "properties": {}},
            "execution": {"mode": "static", "output": {"is": name}}});
        if let Some(category) = category {
            tool["category"] = json!(category);
        }
        tool
    };
    let tools = json!([tool("mail", Some("work")), tool("games", Some("fun")), tool("clock", None)]);
    let yard = yard_with(json!({"tools": tools, "loop": {"maxToolFailures": 100}})).await;
    let path = format!("/api/smart-spaces/{}/messages", yard.space);
    let has = async |tool: &str, categories: Value| {
        let mut body = json!({"content": format!("call {tool} {{}}")});
        if !categories.is_null() {
            body["selectedToolCategories"] = categories;
        }
        let posted = fine(yard.gateway.user("ann", Method::POST, &path).json(&body)).await;
        let run = posted["runs"][0]["runId"].as_str().unwrap().to_owned();
        named(&yard.finish(&run).await, "tool-output-available").is_some()
    };
    assert!(has("mail", json!(["work"])).await && has("clock", json!(["work"])).await);
    assert!(!has("games", json!(["work"])).await);
    assert!(has("games", Value::Null).await, "one message's choice is that message's");
    let selection = format!("/api/smart-spaces/{}/tool-selection", yard.space);
    fine(yard.gateway.user("ann", Method::PUT, &selection).json(&json!({"tools": {"games": false}}))).await;
    assert!(!has("games", Value::Null).await && has("mail", Value::Null).await);
}

/// A client that is too slow: its call expires, the model hears of it, and what
/// it hands in later changes nothing.
#[tokio::test]
async fn h43_a_slow_client_tool_expires_and_the_run_goes_on() {
    let tool = json!({"name": "slow_robot", "description": "x", "inputSchema": {"type": "object", "properties": {}}, "expiresMs": 300});
    let yard = yard_with(json!({"tools": [tool]})).await;
    let run = yard.say("call slow_robot {}").await;
    let wait = yard.wait_of(&run).await;
    let events = yard.finish(&run).await;
    let error = named(&events, "tool-error").unwrap();
    assert_eq!(error["outcome"], "expired", "{error}");
    assert!(error["error"].as_str().unwrap().starts_with("Expired"), "{error}");
    assert!(named(&events, "run.completed").is_some());
    let (status, _) =
        yard.submit(Some("ann"), &run, json!({"callId": wait["toolCallId"], "result": "late"})).await;
    assert_eq!(status, 409);
}

/// An address that never answers holds its own deliveries up, not those of others.
#[tokio::test]
async fn a_webhook_that_never_answers_keeps_nobody_else_waiting() {
    let far = crate::far_side::FarSide::start().await;
    let pit = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pit_address = pit.local_addr().unwrap().to_string();
    let open = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = open.clone();
    let mut task = tokio::task::JoinSet::new();
    task.spawn(async move {
        let mut kept = Vec::new();
        loop {
            kept.push(pit.accept().await.unwrap());
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    });
    let opened = format!("{},{pit_address}", far.address);
    let env = [("TOOLYARD_ALLOW_PRIVATE_NETWORK", opened.as_str())];
    let yard = Yard::on(Gateway::start_with(crate::gateway::Folder::new(), &env).await).await;
    for url in [format!("http://{pit_address}/pit"), format!("{}/hook", far.url())] {
        yard.gateway.post("/api/webhooks", json!({"url": url, "events": ["run.completed"]})).await;
    }
    for _ in 0..20 {
        yard.finish(&yard.say("hello").await).await;
    }
    eventually("all twenty are told", || async { far.asked().len() >= 20 }).await;
    let held = open.load(std::sync::atomic::Ordering::SeqCst);
    assert!((1..=4).contains(&held), "{held} deliveries to the pit");
}

/// What a run has used so far is part of it, while it waits and when it ended.
#[tokio::test]
async fn a_run_shows_what_it_used() {
    let yard = Yard::new().await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let wait = yard.wait_of(&run).await;
    let usage = async || yard.gateway.get(&format!("/api/runs/{run}")).await["usage"].clone();
    let waiting = usage().await;
    assert!(waiting["outputTokens"].as_u64() > Some(0), "{waiting}");
    yard.submit(Some("ann"), &run, json!({"callId": wait["toolCallId"], "result": 1})).await;
    let events =
        read_all(yard.gateway.secret(Method::GET, &format!("/api/runs/{run}/stream")).send().await.unwrap())
            .await;
    let end = named(&events, "run.completed").unwrap();
    let done = usage().await;
    assert_eq!(done, end["usage"], "{end}");
    assert!(done["outputTokens"].as_u64() > waiting["outputTokens"].as_u64());
}
