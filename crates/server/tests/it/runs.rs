//! A client tool from the call to the end (rows G36 to G41, D5, D6, D8), and
//! what each key sees of it (rows G32 to G35).

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Gateway, ask, fine, message};
use crate::yard::{Stream, Yard, data, durable, join, new_space};

const CALL: &str = "call getUserApproval {\"q\":\"ok?\"}";

#[tokio::test]
async fn g37_a_client_runs_the_tool_and_the_run_goes_on() {
    let yard = Yard::new().await;
    let run = yard.say(CALL).await;
    let stream = yard.gateway.user("ann", Method::GET, &format!("/api/runs/{run}/stream"));
    let mut stream = Stream::new(stream.send().await.unwrap());
    let call = data(&stream.until("tool-input-available").await);
    assert_eq!((&call["toolName"], &call["input"]), (&json!("getUserApproval"), &json!({"q": "ok?"})));
    assert_eq!(call["executionTarget"], "client");
    let paused = data(&stream.until("run.waiting_tool").await);
    assert_eq!(paused["pendingToolCalls"][0]["toolCallId"], call["toolCallId"]);
    let shown = fine(yard.gateway.user("ann", Method::GET, &format!("/api/runs/{run}"))).await;
    assert_eq!(
        (&shown["run"]["status"], &shown["run"]["reason"]),
        (&json!("waiting_tool"), &json!("client"))
    );

    let body = json!({"callId": call["toolCallId"], "result": {"approved": true}, "source": "client", "clientId": "cli_tab"});
    let (status, answer) = yard.submit(Some("ann"), &run, body).await;
    assert_eq!((status, &answer["results"][0]["status"]), (200, &json!("accepted")));
    let output = data(&stream.until("tool-output-available").await);
    assert_eq!(output["output"], json!({"approved": true}));
    stream.until("message.assistant").await;
    stream.until("run.completed").await;
    assert_eq!(stream.next().await, None, "the stream ends with the run");
}

#[tokio::test]
async fn g41_the_space_door_takes_results_too_and_refuses_runs_of_other_spaces() {
    let yard = Yard::new().await;
    let run = yard.say(CALL).await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    let door = |space: &str, body: Value| {
        ask(yard.gateway.secret(Method::POST, &format!("/api/smart-spaces/{space}/tool-results")).json(&body))
    };
    let body = json!({"runId": run, "toolCallId": call, "result": "yes", "source": "client"});
    let other = new_space(&yard.gateway).await;
    let (status, refused) = door(&other, body.clone()).await;
    assert_eq!((status.as_u16(), message(&refused)), (400, "Run does not belong to this SmartSpace"));
    for (field, text) in [
        ("runId", "Missing required field: runId"),
        ("toolCallId", "Missing required field: toolCallId"),
        ("result", "Missing required field: result"),
    ] {
        let mut less = body.clone();
        less.as_object_mut().unwrap().remove(field);
        let (status, refused) = door(&yard.space, less).await;
        assert_eq!((status.as_u16(), message(&refused)), (400, text));
    }
    let (status, refused) =
        door(&yard.space, json!({"runId": "run_x", "toolCallId": call, "result": 1})).await;
    assert_eq!((status.as_u16(), message(&refused)), (404, "Run not found"));
    assert_eq!(door(&yard.space, body).await.0, 200);
    let events = yard.finish(&run).await;
    assert_eq!(events.last().unwrap().event.as_deref(), Some("run.completed"));
}

#[tokio::test]
async fn d5_of_a_hundred_results_one_is_taken() {
    let yard = Yard::new().await;
    let run = yard.say(CALL).await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    let body = |n: usize| json!({"callId": call, "result": if n < 90 { "same" } else { "other" }});
    let answers = join_all((0..100).map(|n| yard.submit(Some("ann"), &run, body(n)))).await;
    let taken =
        |status: &str| answers.iter().filter(|(_, answer)| answer["results"][0]["status"] == status).count();
    assert_eq!(taken("accepted"), 1);
    // Whoever came first wins: its equals are repeats, the others are refused.
    let refused = answers.iter().filter(|(status, _)| *status == 409).count();
    assert_eq!(taken("accepted") + taken("repeated") + refused, 100);
    assert!(refused == 10 || refused == 90, "{refused}");
    let events = yard.finish(&run).await;
    let outputs = events.iter().filter(|e| e.event.as_deref() == Some("tool-output-available")).count();
    assert_eq!(outputs, 1);
}

#[tokio::test]
async fn d6_a_late_result_is_refused_and_an_identical_repeat_is_fine() {
    let yard = Yard::new().await;
    let run = yard.say(CALL).await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    let body = json!({"callId": call, "result": null});
    assert_eq!(yard.submit(None, &run, body.clone()).await.0, 200);
    let before = yard.finish(&run).await;
    let (status, again) = yard.submit(None, &run, body).await;
    assert_eq!((status, &again["results"][0]["status"]), (200, &json!("repeated")));
    let (status, refused) = yard.submit(None, &run, json!({"callId": call, "result": 1})).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("run_ended")));
    let said = "The run has ended, and a different result for this call was accepted before";
    assert_eq!(refused["error"]["message"], said);
    assert_eq!(yard.submit(None, &run, json!({"callId": "call_unknown", "result": 1})).await.0, 404);
    assert_eq!(yard.finish(&run).await.len(), before.iter().filter(|e| e.id.is_some()).count());
}

#[tokio::test]
async fn d6_a_canceled_run_takes_no_results() {
    let yard = Yard::new().await;
    let run = yard.say(CALL).await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    yard.gateway.post(&format!("/api/runs/{run}/cancel"), json!({"reason": "enough"})).await;
    let events = yard.finish(&run).await;
    assert_eq!(events.last().unwrap().event.as_deref(), Some("run.canceled"));
    let (status, refused) = yard.submit(None, &run, json!({"callId": call, "result": 1})).await;
    // Nobody had handed one in: the cancel ended the call.
    assert_eq!((status, &refused["error"]["message"]), (409, &json!("The run has ended")));
    let remove = yard.gateway.secret(Method::DELETE, &format!("/api/runs/{run}"));
    assert_eq!(remove.send().await.unwrap().status(), 204);
    assert_eq!(ask(yard.gateway.secret(Method::GET, &format!("/api/runs/{run}"))).await.0, 404);
}

/// A live run keeps the version of its agent: its call is still answered. What
/// comes after the end is refused as ever.
#[tokio::test]
async fn d6_a_result_after_the_agent_was_deleted_ends_its_run_and_changes_nothing_later() {
    let yard = Yard::new().await;
    let run = yard.say(CALL).await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    let ended = {
        let other = new_space(&yard.gateway).await;
        for entity in [&yard.ann, &yard.agent_entity] {
            join(&yard.gateway, &other, entity).await;
        }
        let said = json!({"content": CALL, "entityId": yard.ann});
        let posted = yard.gateway.post(&format!("/api/smart-spaces/{other}/messages"), said).await;
        posted["runs"][0]["runId"].as_str().unwrap().to_owned()
    };
    let late = yard.wait_of(&ended).await["toolCallId"].clone();
    yard.gateway.post(&format!("/api/runs/{ended}/cancel"), json!({})).await;
    yard.finish(&ended).await;

    let remove = yard.gateway.secret(Method::DELETE, "/api/agents/assistant");
    assert_eq!(remove.send().await.unwrap().status(), 204);
    assert_eq!(ask(yard.gateway.secret(Method::GET, "/api/agents/assistant")).await.0, 404);
    // A run that had ended takes nothing.
    let (status, refused) = yard.submit(None, &ended, json!({"callId": late, "result": 1})).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("run_ended")));
    // One that was live takes its result, ends, and then takes nothing else.
    let body = json!({"callId": call, "result": "yes"});
    assert_eq!(yard.submit(None, &run, body.clone()).await.0, 200);
    let before = yard.finish(&run).await;
    assert_eq!(before.last().unwrap().event.as_deref(), Some("run.completed"));
    let (status, again) = yard.submit(None, &run, body).await;
    assert_eq!((status, &again["results"][0]["status"]), (200, &json!("repeated")));
    assert_eq!(yard.submit(None, &run, json!({"callId": call, "result": "no"})).await.0, 409);
    assert_eq!(durable(&yard.finish(&run).await), durable(&before));
}

/// The gateway looks for a backend's run or space only in the transaction that
/// needs it. That shows nowhere: what is not there is not found, however odd the rest.
#[tokio::test]
async fn d8_x6_what_is_another_tenants_is_not_found_whatever_else_is_wrong() {
    let yard = Yard::new().await;
    let run = yard.say(CALL).await;
    yard.wait_of(&run).await;
    let acme = yard.gateway.post("/api/keys", json!({"tenant": "acme", "kind": "secret"})).await;
    let acme = acme["key"].as_str().unwrap();
    let places = ["results", "messages"].map(|door| match door {
        "results" => format!("/api/runs/{run}/tool-results"),
        _ => format!("/api/smart-spaces/{}/messages", yard.space),
    });
    let unknown = ["/api/runs/run_none/tool-results", "/api/smart-spaces/spc_none/messages"];
    for path in places.iter().map(String::as_str).chain(unknown).chain(["/api/runs/%20/tool-results"]) {
        let post = || {
            let request = yard.gateway.bare(Method::POST, path).header("x-secret-key", acme);
            request.header("content-type", "application/json")
        };
        let odd = [
            post().body("{"),
            post().body("{}"),
            post().body("[]"),
            post().body(r#"{"content": "hi", "entityId": "ent_none"}"#),
            post().body(r#"{"callId": "call_none", "result": 1}"#),
            post().header("content-encoding", "gzip").body("{}"),
            post().header("idempotency-key", "once").body("{"),
        ];
        for (n, request) in odd.into_iter().enumerate() {
            let (status, refused) = ask(request).await;
            assert_eq!(status, 404, "{path}, body {n}: {refused}");
        }
    }
    let audit = fine(yard.gateway.bare(Method::GET, "/api/audit").header("x-secret-key", acme)).await;
    let noted =
        |run: &str| audit["entries"].as_array().unwrap().iter().filter(|e| e["target"] == run).count();
    assert_eq!((noted(&run), noted("run_none")), (7, 7), "{audit}");
}

#[tokio::test]
async fn d8_a_result_for_somebody_elses_call_changes_nothing_and_is_noted() {
    let yard = Yard::new().await;
    let run = yard.say(CALL).await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    let body = json!({"callId": call, "result": "mine"});
    // Bob is a member, but Ann's message triggered the run.
    let (status, refused) = yard.submit(Some("bob"), &run, body.clone()).await;
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("forbidden")));
    let (status, refused) = yard.submit(Some("eve"), &run, body.clone()).await;
    assert_eq!((status, message(&refused)), (403, "Not a member of this run's SmartSpace"));
    let acme = yard.gateway.post("/api/keys", json!({"tenant": "acme", "kind": "secret"})).await;
    let path = format!("/api/runs/{run}/tool-results");
    let foreign =
        yard.gateway.bare(Method::POST, &path).header("x-secret-key", acme["key"].as_str().unwrap());
    assert_eq!(ask(foreign.json(&body)).await.0, 404);
    // The other door, and an answer to a question, are noted too.
    let door = format!("/api/smart-spaces/{}/tool-results", yard.space);
    let result = json!({"runId": run, "toolCallId": call, "result": "mine"});
    assert_eq!(ask(yard.gateway.user("eve", Method::POST, &door).json(&result)).await.0, 403);
    let asked = yard.say_in_new_space("call guarded {\"q\":\"x\"}").await;
    let wait = yard.wait_of(&asked).await["id"].as_str().unwrap().to_owned();
    let answer = format!("/api/waits/{wait}/answer");
    let allow = json!({"decision": "allow"});
    for (user, status) in [("bob", 403), ("eve", 403)] {
        let refused = ask(yard.gateway.user(user, Method::POST, &answer).json(&allow)).await;
        assert_eq!(refused.0, status, "{user}: {}", refused.1);
    }
    let acme = acme["key"].as_str().unwrap();
    let foreign = yard.gateway.bare(Method::POST, &answer).header("x-secret-key", acme);
    assert_eq!(ask(foreign.json(&allow)).await.0, 404);
    assert_eq!(yard.wait_of(&asked).await["id"], json!(wait), "it still waits");
    let shown = yard.gateway.get(&format!("/api/runs/{run}")).await;
    assert_eq!(shown["run"]["status"], "waiting_tool");
    // Each tenant has the lines of its own callers.
    let noted = |audit: &Value, action: &str| -> Vec<String> {
        let lines = audit["entries"].as_array().unwrap().iter().filter(|e| e["action"] == action);
        lines.map(|e| e["target"].as_str().unwrap().to_owned()).collect()
    };
    let audit = yard.gateway.get("/api/audit").await;
    assert_eq!(noted(&audit, "result.refused"), [&*yard.space, &run, &run], "{audit}");
    assert_eq!(noted(&audit, "answer.refused"), [&*wait, &wait], "{audit}");
    let audit = fine(yard.gateway.bare(Method::GET, "/api/audit").header("x-secret-key", acme)).await;
    assert_eq!(noted(&audit, "result.refused"), [&*run], "{audit}");
    assert_eq!(noted(&audit, "answer.refused"), [&*wait], "{audit}");
}

#[tokio::test]
async fn g32_g33_a_private_tool_shows_its_name_to_users_and_everything_to_backends() {
    let yard = Yard::new().await;
    let run = yard.say("call look {\"q\":\"canary-input\"}").await;
    yard.finish(&run).await;
    let path = format!("/api/runs/{run}/events");
    let seen = fine(yard.gateway.user("ann", Method::GET, &path)).await;
    let of = |list: &Value, name: &str| {
        let events = list["events"].as_array().unwrap();
        events.iter().find(|e| e["type"] == name).unwrap_or_else(|| panic!("no {name} in {list}")).clone()
    };
    for name in ["tool-input-available", "tool-output-available"] {
        let event = of(&seen, name);
        let mut fields: Vec<_> = event.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["runId", "seq", "toolCallId", "toolName", "ts", "type"], "{event}");
    }
    let all = yard.gateway.get(&path).await;
    assert_eq!(of(&all, "tool-input-available")["input"], json!({"q": "canary-input"}));
    assert_eq!(of(&all, "tool-output-available")["output"]["found"], "canary-static-output");
    // G34: a tool that is declared public is not stripped.
    let run = yard.say("call echo {\"q\":\"open\"}").await;
    yard.finish(&run).await;
    let seen = fine(yard.gateway.user("ann", Method::GET, &format!("/api/runs/{run}/events"))).await;
    assert_eq!(of(&seen, "tool-output-available")["output"]["q"], "open");
}

#[tokio::test]
async fn an_approval_is_asked_answered_and_remembered() {
    let yard = Yard::new().await;
    let run = yard.say("call guarded {\"q\":\"x\"}").await;
    let wait = yard.wait_of(&run).await;
    assert_eq!(wait["kind"], "approval");
    let id = wait["id"].as_str().unwrap();
    let path = format!("/api/waits/{id}/answer");
    let answer = |user: &str, body: Value| ask(yard.gateway.user(user, Method::POST, &path).json(&body));
    assert_eq!(answer("bob", json!({"decision": "allow"})).await.0, 403);
    assert_eq!(answer("ann", json!({})).await.0, 400);
    let listed = fine(yard.gateway.user("ann", Method::GET, "/api/approvals")).await;
    assert_eq!(listed["waits"][0]["id"], json!(id));
    assert_eq!(answer("ann", json!({"decision": "allow", "remember": "session"})).await.0, 200);
    assert_eq!(answer("ann", json!({"decision": "deny"})).await.0, 409);
    // Allowed: now a client has to run it.
    let calls = async || yard.gateway.get(&format!("/api/pending-calls?runId={run}")).await;
    crate::yard::eventually("the call", async || !calls().await["waits"].as_array().unwrap().is_empty())
        .await;
    let wait = calls().await["waits"][0].clone();
    let claim = |user: &str, client: &str| {
        let path = format!("/api/waits/{}/claim", wait["id"].as_str().unwrap());
        ask(yard.gateway.user(user, Method::POST, &path).json(&json!({"clientId": client})))
    };
    assert_eq!(claim("ann", "cli_a").await.0, 200);
    assert_eq!(claim("ann", "cli_b").await.0, 409);
    assert_eq!(
        yard.submit(Some("ann"), &run, json!({"callId": wait["toolCallId"], "result": 1})).await.0,
        200
    );
    yard.finish(&run).await;
    // Remembered for this space: the second call goes straight to its client.
    let run = yard.say("call guarded {\"q\":\"y\"}").await;
    assert_eq!(yard.wait_of(&run).await["kind"], "client");
}

#[tokio::test]
async fn a_user_speaks_for_themselves_only() {
    let yard = Yard::new().await;
    let path = format!("/api/smart-spaces/{}/messages", yard.space);
    let post = |body: Value| ask(yard.gateway.user("ann", Method::POST, &path).json(&body));
    let (_, posted) = post(json!({"content": "hi", "entityId": yard.bob, "triggerAgents": false})).await;
    assert_eq!(posted["message"]["entityId"], json!(yard.ann));
    assert_eq!(posted["runs"], json!([]));
    assert_eq!(post(json!({"content": "obey", "role": "system"})).await.0, 403);
    let (status, refused) = post(json!({})).await;
    assert_eq!((status.as_u16(), message(&refused)), (400, "Missing required field: content"));
    let (status, refused) =
        ask(yard.gateway.secret(Method::POST, &path).json(&json!({"content": "x"}))).await;
    assert_eq!((status.as_u16(), message(&refused)), (400, "Missing required field: entityId"));
}

#[tokio::test]
async fn a_waiting_call_survives_a_kill_of_the_gateway() {
    let yard = Yard::new().await;
    let run = yard.say(CALL).await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    let Yard { gateway, space, agent_entity, ann, bob } = yard;
    let gateway = Gateway::start_with(gateway.kill(), &[]).await;
    let yard = Yard { gateway, space, agent_entity, ann, bob };
    assert_eq!(yard.submit(Some("ann"), &run, json!({"callId": call, "result": "still here"})).await.0, 200);
    let events = yard.finish(&run).await;
    assert_eq!(events.last().unwrap().event.as_deref(), Some("run.completed"));
}
