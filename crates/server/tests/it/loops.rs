//! How a run's loop ends (rows G3, 12 to 15) and how its tools are reached
//! (rows G10, G36 to G38), over HTTP.

use reqwest::Method;
use serde_json::{Value, json};

use crate::far_side::FarSide;
use crate::gateway::{Folder, Gateway, ask, fine};
use crate::vendor::Vendor;
use crate::yard::{Stream, Yard, data, eventually};

/// A yard whose agent is another one.
async fn yard_with(gateway: Gateway, change: impl FnOnce(&mut Value)) -> Yard {
    let yard = Yard::on(gateway).await;
    let mut config = crate::yard::agent("assistant");
    change(&mut config);
    yard.gateway.post("/api/agents", json!({"config": config})).await;
    yard
}

fn tool(name: &str, more: Value) -> Value {
    let schema = json!({"type": "object", "properties": {}});
    let mut tool = json!({"name": name, "description": "A tool.", "inputSchema": schema});
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tool
}

async fn events_named(yard: &Yard, run: &str, name: &str) -> Vec<Value> {
    let events = yard.finish(run).await;
    events.iter().filter(|e| e.event.as_deref() == Some(name)).map(data).collect()
}

#[tokio::test]
async fn three_tool_failures_in_a_row_stop_the_run() {
    let yard = Yard::new().await;
    let run = yard.say("call a {}\ncall b {}\ncall c {}").await;
    let ends = events_named(&yard, &run, "run.failed").await;
    let wanted = json!({"code": "tool_failures", "message": "Stopped after 3 consecutive tool failures"});
    assert_eq!(ends[0]["error"], wanted);
    let shown = yard.gateway.get(&format!("/api/runs/{run}")).await;
    assert_eq!(
        (&shown["run"]["status"], &shown["run"]["errorCode"]),
        (&json!("failed"), &json!("tool_failures"))
    );
    // A good one in between begins the count anew.
    let run = yard.say("call a {}\ncall b {}\ncall look {}\ncall c {}").await;
    assert_eq!(events_named(&yard, &run, "run.completed").await.len(), 1);
}

#[tokio::test]
async fn g3_after_the_last_step_the_model_speaks_without_tools() {
    let vendor = Vendor::start().await;
    let gateway = Gateway::start_with(vendor.folder(), &[]).await;
    let yard = yard_with(gateway, |config| {
        config["model"] = json!({"provider": "far", "name": "m"});
        config["loop"] = json!({"maxSteps": 2});
        config["tools"] =
            json!([tool("again", json!({"execution": {"mode": "static", "output": {"n": 1}}}))]);
    })
    .await;
    let run = yard.say("go on for ever").await;
    assert_eq!(events_named(&yard, &run, "run.completed").await.len(), 1);
    let asked = vendor.asked();
    assert_eq!(asked.len(), 3, "two steps with tools, one without");
    for step in &asked[..2] {
        assert_eq!(step["tools"][0]["function"]["name"], "again");
    }
    let off = asked[2]["tool_choice"] == "none" || asked[2]["tools"].as_array().is_none_or(Vec::is_empty);
    assert!(off, "{}", asked[2]);
    let said = events_named(&yard, &run, "message.assistant").await;
    assert_eq!(said.last().unwrap()["parts"][0]["text"], "that is all");
}

#[tokio::test]
async fn g3_the_tool_choice_of_an_agent_is_what_the_vendor_is_told() {
    let vendor = Vendor::start().await;
    let gateway = Gateway::start_with(vendor.folder(), &[]).await;
    let yard = yard_with(gateway, |_| {}).await;
    // Without a choice the vendor gets no tools at all.
    for (choice, told, tools) in
        [("required", json!("required"), 1), ("none", Value::Null, 0), ("auto", Value::Null, 1)]
    {
        let mut config = crate::yard::agent("assistant");
        config["model"] = json!({"provider": "far", "name": "m"});
        config["loop"] = json!({"maxSteps": 1, "toolChoice": choice});
        config["tools"] = json!([tool("once", json!({"execution": {"mode": "static", "output": {"n": 1}}}))]);
        yard.gateway.post("/api/agents", json!({"config": config})).await;
        let before = vendor.asked().len();
        let run = yard.say("hello").await;
        yard.finish(&run).await;
        let first = vendor.asked()[before].clone();
        // To say nothing is to say `auto`.
        let said = first.get("tool_choice").filter(|said| **said != "auto").cloned().unwrap_or_default();
        let offered = first["tools"].as_array().map_or(0, Vec::len);
        assert_eq!((said, offered), (told, tools), "{choice}: {first}");
    }
}

#[tokio::test]
async fn g10_a_slow_far_side_is_waited_for_as_long_as_the_tool_says() {
    let far = FarSide::start().await;
    let env = [("TOOLYARD_ALLOW_PRIVATE_NETWORK", far.address.as_str())];
    let gateway = Gateway::start_with(Folder::new(), &env).await;
    let request = |method: &str| {
        json!({"executionType": "request", "approval": "allow", "timeoutMs": 300,
            "execution": {"url": format!("{}/slow", far.url()), "method": method}})
    };
    let yard = yard_with(gateway, |config| {
        config["tools"] = json!([tool("read", request("GET")), tool("change", request("POST"))]);
    })
    .await;
    for (name, outcome) in [("read", "failed"), ("change", "uncertain")] {
        far.will_answer(&[0, 0, 0]);
        let run = yard.say(&format!("call {name} {{}}")).await;
        let ended = events_named(&yard, &run, "tool-error").await.remove(0);
        assert_eq!(
            (ended["outcome"].as_str(), ended["error"].as_str()),
            (Some(outcome), Some("Tool timed out after 300ms")),
            "{name}: {ended}"
        );
    }
}

#[tokio::test]
async fn a_clients_result_is_taken_while_a_gateway_call_of_the_same_step_is_in_flight() {
    let far = FarSide::start().await;
    let env = [("TOOLYARD_ALLOW_PRIVATE_NETWORK", far.address.as_str())];
    let gateway = Gateway::start_with(Folder::new(), &env).await;
    let request = json!({"executionType": "request", "approval": "allow", "timeoutMs": 20_000,
        "execution": {"url": format!("{}/slow", far.url())}});
    let yard = yard_with(gateway, |config| {
        config["tools"] = json!([tool("far", request), tool("here", json!({}))]);
    })
    .await;
    far.will_answer(&[0]);
    let run = yard.say("call far {}\ncall here {}").await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    eventually("the far side is asked", async || far.asked().len() == 1).await;
    let status = async || yard.gateway.get(&format!("/api/runs/{run}")).await["run"]["status"].clone();
    assert_eq!(status().await, "running", "the gateway still works on it");
    let (code, taken) = yard.submit(Some("ann"), &run, json!({"callId": call, "result": "done"})).await;
    assert_eq!((code, &taken["results"][0]["status"]), (200, &json!("accepted")));
    assert_eq!(status().await, "running");
    let stream = yard.gateway.user("ann", Method::GET, &format!("/api/runs/{run}/stream"));
    let mut stream = Stream::new(stream.send().await.unwrap());
    let output = data(&stream.until("tool-output-available").await);
    assert_eq!((&output["toolCallId"], &output["output"]), (&call, &json!("done")));
    yard.gateway.post(&format!("/api/runs/{run}/cancel"), json!({})).await;
    stream.until("run.canceled").await;
}

#[tokio::test]
async fn g36_the_target_of_a_client_tool_is_on_the_wire_as_it_is_configured() {
    let yard = yard_with(Gateway::start().await, |config| {
        config["tools"] = json!([
            tool("outside", json!({"executionTarget": "external"})),
            tool("inside", json!({"executionTarget": "client"})),
        ]);
    })
    .await;
    let run = yard.say("call outside {}\ncall inside {}").await;
    let stream = yard.gateway.user("ann", Method::GET, &format!("/api/runs/{run}/stream"));
    let mut stream = Stream::new(stream.send().await.unwrap());
    for target in ["external", "client"] {
        let call = data(&stream.until("tool-input-available").await);
        assert_eq!(call["executionTarget"], target, "{call}");
        let (status, _) =
            yard.submit(Some("ann"), &run, json!({"callId": call["toolCallId"], "result": target})).await;
        assert_eq!(status, 200);
    }
    stream.until("run.completed").await;
}

#[tokio::test]
async fn g38_the_tools_that_the_documents_name_run_to_their_end() {
    let names = [
        "getUserApproval",
        "getDomComponents",
        "fillActiveInput",
        "executeRobotAction",
        "fetchClientData",
        "showCustomChart",
    ];
    let yard = yard_with(Gateway::start().await, |config| {
        config["tools"] = names.iter().map(|name| tool(name, json!({}))).collect();
    })
    .await;
    let calls: Vec<String> = names.iter().map(|name| format!("call {name} {{}}")).collect();
    let run = yard.say(&calls.join("\n")).await;
    let stream = yard.gateway.user("ann", Method::GET, &format!("/api/runs/{run}/stream"));
    let mut stream = Stream::new(stream.send().await.unwrap());
    let mut called = Vec::new();
    for _ in names {
        called.push(data(&stream.until("tool-input-available").await));
    }
    let told: Vec<_> = called.iter().map(|call| call["toolName"].as_str().unwrap()).collect();
    assert_eq!(told, names);
    let paused = data(&stream.until("run.waiting_tool").await);
    assert_eq!(paused["pendingToolCalls"].as_array().unwrap().len(), names.len());
    for (n, call) in called.iter().enumerate() {
        let body = json!({"callId": call["toolCallId"], "result": {"n": n}});
        assert_eq!(yard.submit(Some("ann"), &run, body).await.0, 200);
        let output = data(&stream.until("tool-output-available").await);
        assert_eq!((&output["toolName"], &output["output"]["n"]), (&call["toolName"], &json!(n)));
    }
    stream.until("run.completed").await;
}

#[tokio::test]
async fn answerers_say_whose_result_is_taken() {
    let yard = yard_with(Gateway::start().await, |config| {
        config["tools"] = json!([
            tool("anyone", json!({"answerers": "members"})),
            tool("chief", json!({"answerers": "admin"})),
            tool("own", json!({})),
        ]);
    })
    .await;
    let chief = crate::yard::new_user(&yard.gateway, "chief").await;
    let seat = json!({"entityId": chief, "role": "admin"});
    yard.gateway.post(&format!("/api/smart-spaces/{}/members", yard.space), seat).await;
    for (name, may, may_not) in [("anyone", "bob", "eve"), ("chief", "chief", "ann"), ("own", "ann", "bob")] {
        let run = yard.say(&format!("call {name} {{}}")).await;
        let call = yard.wait_of(&run).await["toolCallId"].clone();
        let path = format!("/api/runs/{run}/tool-results");
        let give = |user: &'static str| {
            let body = json!({"callId": call, "result": user});
            ask(yard.gateway.user(user, Method::POST, &path).json(&body))
        };
        assert_eq!(give(may_not).await.0, 403, "{name}");
        let (status, body) = give(may).await;
        assert_eq!(status, 200, "{name}: {body}");
        yard.finish(&run).await;
    }
    // A backend may always.
    let run = yard.say("call chief {}").await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    let path = format!("/api/runs/{run}/tool-results");
    fine(yard.gateway.secret(Method::POST, &path).json(&json!({"callId": call, "result": 1}))).await;
    yard.finish(&run).await;
}
