//! A2A over HTTP: the document's own story, pauses that survive a kill, who
//! sees what, notifications, and agents as tools of agents.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use toolyard_dialects::a2a::signing::{BadNotice, Notices};
use toolyard_protocol::Timestamp;
use toolyard_protocol::sse::SseEvent;

use crate::far_side::FarSide;
use crate::gateway::{Folder, Gateway, ask, fine, now};
use crate::yard::{Stream, agent, eventually, new_user};

/// The name of the extension.
const CLIENT_TOOLS: &str = "urn:toolyard:a2a:ext/client-tools/v1";

/// A gateway whose agent talks by the demo model's grammar.
async fn start(env: &[(&str, &str)]) -> Gateway {
    let gateway = Gateway::start_with(Folder::new(), env).await;
    gateway.post("/api/agents", json!({ "config": agent("assistant") })).await;
    gateway
}

fn old(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn rpc(request: RequestBuilder, method: &str, params: Value) -> RequestBuilder {
    request.header("a2a-version", "1.0").json(&old(method, params))
}

/// A message of 1.0.
fn says(text: &str) -> Value {
    json!({ "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "text": text }] })
}

/// The result of a call of 1.0 with a secret key.
async fn called(gateway: &Gateway, method: &str, params: Value) -> Value {
    let body = fine(rpc(gateway.secret(Method::POST, "/a2a/assistant"), method, params)).await;
    assert!(body["error"].is_null(), "{body}");
    body["result"].clone()
}

/// The code of a refused call.
async fn code(request: RequestBuilder) -> i64 {
    let (_, body) = ask(request).await;
    body["error"]["code"].as_i64().unwrap_or_else(|| panic!("{body}"))
}

fn data(event: &SseEvent) -> Value {
    serde_json::from_str(&event.data).unwrap()
}

async fn stream(request: RequestBuilder) -> Stream {
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    Stream::new(response)
}

/// Reads a stream until an event fits.
async fn until(stream: &mut Stream, fits: impl Fn(&Value) -> bool) -> (Value, Option<String>) {
    loop {
        let event = stream.next().await.expect("the stream ended");
        let value = data(&event);
        if fits(&value) {
            return (value, event.id);
        }
    }
}

fn tool() -> Value {
    json!({ "name": "search_users", "description": "Searches users", "parameters": {
        "type": "object", "properties": { "query": { "type": "string" } }, "required": ["query"] } })
}

const CALL: &str = "call search_users {\"query\":\"ann\"}";

/// Rows L18, L19, L20, L21 and L22, as the document writes them; SPEC part 2
/// rows 35 and 36: the documented paths keep the stream over the pause.
#[tokio::test]
async fn l18_l19_l20_l21_l22_row35_row36_the_documents_own_client_runs_its_tool_over_one_stream() {
    let gateway = start(&[]).await;
    // Its examples write tools in two forms.
    for tool in [json!({ "type": "function", "function": tool() }), tool()] {
        literal(&gateway, tool).await;
    }
}

async fn literal(gateway: &Gateway, tool: Value) {
    let message =
        json!({ "role": "user", "parts": [{ "kind": "text", "text": CALL }], "contextId": "ctx-1" });
    let request = gateway
        .secret(Method::POST, "/a2a/message/stream")
        .json(&old("message/stream", json!({ "message": message, "tools": [tool] })));
    let mut events = stream(request).await;
    let (pause, _) = until(&mut events, |v| v["result"]["status"]["state"] == "input-required").await;
    let result = &pause["result"];
    assert_eq!((&result["kind"], &result["final"]), (&json!("status-update"), &json!(false)));
    assert_eq!(result["contextId"], "ctx-1");
    let said = &result["status"]["message"];
    assert_eq!((&said["role"], &said["content"]), (&json!("assistant"), &json!("")));
    let call = &said["toolCalls"][0];
    assert_eq!(call["function"], json!({ "name": "search_users", "arguments": "{\"query\":\"ann\"}" }));

    let resume = |name: &str, value: Value| {
        let given = json!({ "toolCallId": call["id"], "toolName": name, "success": true, "result": value });
        gateway
            .secret(Method::POST, "/a2a/tasks/resume")
            .json(&old("tasks/resume", json!({ "taskId": result["taskId"], "toolResults": [given] })))
    };
    // What does not fit changes nothing.
    let (_, refused) = ask(resume("other_tool", json!(1))).await;
    assert_eq!(refused["error"]["code"], -32602);
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(text.starts_with("toolResults: the call call_") && text.contains("search_users"), "{text}");
    let task = fine(resume("search_users", json!({ "users": ["ann"] }))).await;
    assert_eq!(task["result"]["kind"], "task");
    let (end, _) = until(&mut events, |v| v["result"]["final"] == true).await;
    assert_eq!(end["result"]["status"]["state"], "completed");
    assert!(events.next().await.is_none());
    // A result for a task that has ended.
    assert_eq!(code(resume("search_users", json!(2))).await, -32004);
    let task = old("tasks/get", json!({ "id": result["taskId"] }));
    let task = fine(gateway.secret(Method::POST, "/a2a").json(&task)).await;
    let text = task["result"]["artifacts"].to_string();
    assert!(text.contains("Tool search_users answered"), "{text}");
}

/// SPEC part 2 rows 35 and 36: on the plain address a pause ends the stream, the
/// task is followed again from there, results come as data parts, and the card
/// names the extension with its own method.
#[tokio::test]
async fn row35_row36_on_the_plain_address_a_pause_ends_the_stream() {
    let gateway = start(&[]).await;
    let card = gateway.get("/a2a/assistant/.well-known/agent-card.json").await;
    let extensions = card["capabilities"]["extensions"].as_array().unwrap();
    let own = extensions.iter().find(|extension| extension["uri"] == CLIENT_TOOLS).unwrap();
    assert_eq!(own["params"]["methods"], json!(["tasks/resume"]), "{own}");
    let mut message = json!({ "kind": "message", "messageId": "m", "role": "user",
        "parts": [{ "kind": "text", "text": CALL }] });
    message["metadata"] = json!({ CLIENT_TOOLS: { "tools": [tool()] } });
    let send = old("message/stream", json!({ "message": message }));
    let mut events = stream(gateway.secret(Method::POST, "/a2a/assistant").json(&send)).await;
    let (pause, _) = until(&mut events, |v| v["result"]["status"]["state"] == "input-required").await;
    assert_eq!(pause["result"]["final"], true, "{pause}");
    assert!(events.next().await.is_none());

    let id = pause["result"]["taskId"].clone();
    let follow = old("tasks/resubscribe", json!({ "id": id }));
    let mut again = stream(gateway.secret(Method::POST, "/a2a/assistant").json(&follow)).await;
    until(&mut again, |v| v["result"]["status"]["state"] == "input-required").await;
    let call = &pause["result"]["status"]["message"]["parts"][1]["data"]["toolCallId"];
    let data = json!({ "type": "tool-result", "toolCallId": call, "success": true, "result": "yes" });
    let answer = json!({ "kind": "message", "messageId": "m2", "role": "user", "taskId": id,
        "parts": [{ "kind": "data", "data": data }] });
    let answer = old("message/send", json!({ "message": answer }));
    let done = fine(gateway.secret(Method::POST, "/a2a/assistant").json(&answer)).await;
    assert_eq!(done["result"]["status"]["state"], "completed", "{done}");
    let (end, _) = until(&mut again, |v| v["result"]["final"] == true).await;
    assert_eq!(end["result"]["status"]["state"], "completed");
}

/// The extension on 1.0, over a kill of the gateway.
#[tokio::test]
async fn a_paused_task_survives_a_kill_and_is_followed_from_where_it_was() {
    let gateway = start(&[]).await;
    let mut message = says(CALL);
    message["metadata"] = json!({ CLIENT_TOOLS: { "tools": [tool()] } });
    let task = called(&gateway, "SendMessage", json!({ "message": message })).await["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let calls = &task["status"]["message"]["parts"];
    assert_eq!(calls[1]["data"]["toolName"], "search_users");
    assert_eq!(calls[1]["data"]["arguments"], json!({ "query": "ann" }));
    let (id, call) = (task["id"].clone(), calls[1]["data"]["toolCallId"].clone());

    let gateway = Gateway::start_with(gateway.kill(), &[]).await;
    let again = called(&gateway, "GetTask", json!({ "id": id })).await;
    assert_eq!(again["status"], task["status"]);
    let follow =
        || rpc(gateway.secret(Method::POST, "/a2a/assistant"), "SubscribeToTask", json!({ "id": id }));
    let mut reader = stream(follow()).await;
    let (first, seen) = until(&mut reader, |_| true).await;
    assert_eq!(first["result"]["task"]["status"], task["status"]);

    let result = |value: Value| {
        let part = json!({ "data": { "type": "tool-result", "toolCallId": call, "toolName": "search_users",
            "success": true, "result": value } });
        json!({ "message": { "messageId": "m-2", "role": "ROLE_USER", "taskId": id, "parts": [part] } })
    };
    let done = called(&gateway, "SendMessage", result(json!("yes"))).await;
    assert_eq!(done["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    // The reader that stayed over the pause hears of the end.
    let (end, _) = until(&mut reader, |v| {
        v["result"]["statusUpdate"]["status"]["state"] != "TASK_STATE_WORKING"
            && !v["result"]["statusUpdate"].is_null()
    })
    .await;
    assert_eq!(end["result"]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    // One that comes back with its last id gets what it missed, and no snapshot.
    let mut late = stream(follow().header("last-event-id", seen.unwrap())).await;
    let (missed, _) = until(&mut late, |_| true).await;
    assert_eq!(missed["result"]["statusUpdate"]["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(code(follow()).await, -32004, "without an id there is nothing to follow");
    let late = rpc(gateway.secret(Method::POST, "/a2a/assistant"), "SendMessage", result(json!("no")));
    assert_eq!(code(late).await, -32004);
    assert_eq!(
        code(rpc(gateway.secret(Method::POST, "/a2a/assistant"), "CancelTask", json!({ "id": id }))).await,
        -32002
    );
}

#[tokio::test]
async fn tools_stay_with_the_conversation_and_a_text_closes_open_calls() {
    let gateway = start(&[]).await;
    let mut message = says(CALL);
    message["contextId"] = json!("ctx-2");
    message["metadata"] = json!({ CLIENT_TOOLS: { "tools": [tool()] } });
    let task = called(&gateway, "SendMessage", json!({ "message": message })).await["task"].clone();
    assert_eq!(task["contextId"], "ctx-2");
    // Words instead of a result: the same task goes on with them.
    let mut words = says("say never mind");
    words["taskId"] = task["id"].clone();
    let done = called(&gateway, "SendMessage", json!({ "message": words })).await["task"].clone();
    assert_eq!((&done["id"], &done["status"]["state"]), (&task["id"], &json!("TASK_STATE_COMPLETED")));
    let said = |task: &Value| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let line = |m: &Value| (text(&m["role"]), text(&m["parts"][0]["text"]));
        task["history"].as_array().unwrap().iter().map(line).collect()
    };
    let expected = [("ROLE_USER", CALL), ("ROLE_USER", "say never mind"), ("ROLE_AGENT", "never mind")];
    let expected: Vec<_> = expected.map(|(who, what)| (who.to_owned(), what.to_owned())).into();
    assert_eq!(said(&done), expected);
    // Read again it is the same, and the newest come first to be kept.
    let read = called(&gateway, "GetTask", json!({ "id": done["id"] })).await;
    assert_eq!(read["history"], done["history"]);
    let last = called(&gateway, "GetTask", json!({ "id": done["id"], "historyLength": 1 })).await;
    assert_eq!(said(&last), expected[2..]);
    // A new task of the same conversation has the tools without an offer.
    let mut next = says(CALL);
    next["contextId"] = json!("ctx-2");
    let paused = called(&gateway, "SendMessage", json!({ "message": next })).await["task"].clone();
    assert_eq!(paused["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{paused}");
    assert_ne!(paused["id"], task["id"]);
    let canceled = called(&gateway, "CancelTask", json!({ "id": paused["id"] })).await;
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED");
    // Another context has none.
    let mut other = says(CALL);
    other["contextId"] = json!("ctx-3");
    let other = called(&gateway, "SendMessage", json!({ "message": other })).await;
    assert_ne!(other["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let mut wrong = says("say a");
    wrong["metadata"] = json!({ CLIENT_TOOLS: { "tools": [{ "name": "no spaces please" }] } });
    let wrong =
        rpc(gateway.secret(Method::POST, "/a2a/assistant"), "SendMessage", json!({ "message": wrong }));
    assert_eq!(code(wrong).await, -32602);
}

#[tokio::test]
async fn a_task_of_somebody_else_is_not_there() {
    let gateway = start(&[]).await;
    for user in ["ann", "bob"] {
        new_user(&gateway, user).await;
    }
    let by = |user: &str| gateway.user(user, Method::POST, "/a2a/assistant");
    let task = fine(rpc(by("ann"), "SendMessage", json!({ "message": says("say hi") }))).await;
    let task = &task["result"]["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let id = &task["id"];
    for (method, params) in [
        ("GetTask", json!({ "id": id })),
        ("CancelTask", json!({ "id": id })),
        ("SubscribeToTask", json!({ "id": id })),
        ("ListTaskPushNotificationConfigs", json!({ "taskId": id })),
    ] {
        assert_eq!(code(rpc(by("bob"), method, params)).await, -32001, "{method}");
    }
    let mut message = says("say hi");
    message["taskId"] = id.clone();
    assert_eq!(code(rpc(by("bob"), "SendMessage", json!({ "message": message }))).await, -32001);
    let listed = |body: Value| body["result"]["tasks"].as_array().unwrap().len();
    assert_eq!(listed(fine(rpc(by("bob"), "ListTasks", json!({}))).await), 0);
    assert_eq!(listed(fine(rpc(by("ann"), "ListTasks", json!({}))).await), 1);
    // Another agent's door does not lead to it either.
    gateway.post("/api/agents", json!({ "config": agent("other") })).await;
    let elsewhere = gateway.user("ann", Method::POST, "/a2a/other");
    assert_eq!(code(rpc(elsewhere, "GetTask", json!({ "id": id }))).await, -32001);
    // Another tenant has no such agent, and with one of that name no such task.
    let key = gateway.post("/api/keys", json!({ "tenant": "acme", "kind": "secret" })).await;
    let key = key["key"].as_str().unwrap().to_owned();
    let theirs = |method, path: &str| gateway.bare(method, path).header("x-secret-key", &key);
    fine(theirs(Method::POST, "/api/agents").json(&json!({ "config": agent("assistant") }))).await;
    let read = rpc(theirs(Method::POST, "/a2a/assistant"), "GetTask", json!({ "id": id }));
    assert_eq!(code(read).await, -32001);
    let path = format!("/a2a/assistant/tasks/{}", id.as_str().unwrap());
    let (status, _) = ask(theirs(Method::GET, &path).header("a2a-version", "1.0")).await;
    assert_eq!(status.as_u16(), 404);
    // Without a key nothing is told, but the card.
    let (status, _) =
        ask(rpc(gateway.bare(Method::POST, "/a2a/assistant"), "GetTask", json!({ "id": id }))).await;
    assert_eq!(status.as_u16(), 401);
    let card = fine(gateway.bare(Method::GET, "/a2a/assistant/.well-known/agent-card.json")).await;
    assert_eq!(card["name"], "assistant");
    assert_eq!(card["supportedInterfaces"][0]["protocolVersion"], "1.0");
}

#[tokio::test]
async fn cards_are_cached_and_have_three_faces() {
    let gateway = start(&[]).await;
    let get = |path: &str| gateway.bare(Method::GET, path).send();
    let response = get("/.well-known/agent-card.json").await.unwrap();
    let head = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    let tag = head("etag");
    assert!(head("cache-control").contains("max-age=") && head("last-modified").ends_with("GMT"));
    let again = gateway.bare(Method::GET, "/.well-known/agent-card.json").header("if-none-match", tag);
    assert_eq!(again.send().await.unwrap().status().as_u16(), 304);
    let new = fine(gateway.bare(Method::GET, "/a2a/assistant/v1/.well-known/agent-card.json")).await;
    assert_eq!((&new["url"], new["signatures"].as_array().unwrap().len()), (&Value::Null, 1));
    let old = fine(gateway.bare(Method::GET, "/a2a/assistant/v0.3/.well-known/agent-card.json")).await;
    assert_eq!((&old["supportedInterfaces"], &old["protocolVersion"]), (&Value::Null, &json!("0.3.0")));
    let (status, _) = ask(gateway.bare(Method::GET, "/a2a/nobody/.well-known/agent-card.json")).await;
    assert_eq!(status.as_u16(), 404);
    let (status, _) =
        ask(gateway.secret(Method::GET, "/a2a/assistant/tasks").header("a2a-version", "1.0")).await;
    assert_eq!(status.as_u16(), 200);
}

/// Row X20: what is pushed is signed, for its task, and believed once.
#[tokio::test]
async fn x20_notifications_are_signed_and_never_go_inside() {
    let far = FarSide::start().await;
    let gateway = start(&[("TOOLYARD_ALLOW_PRIVATE_NETWORK", &far.address)]).await;
    let push = json!({ "url": format!("{}/hook", far.url()), "token": "tok-1",
        "authentication": { "scheme": "Bearer", "credentials": "cred-1" } });
    let params =
        json!({ "message": says("say pushed"), "configuration": { "taskPushNotificationConfig": push } });
    let task = called(&gateway, "SendMessage", params).await["task"].clone();
    eventually("the notification", || async { !far.asked().is_empty() }).await;
    let asked = far.asked().remove(0);
    assert_eq!(asked.header("x-a2a-notification-token"), Some("tok-1"));
    assert_eq!(asked.header("authorization"), Some("Bearer cred-1"));
    let body = asked.json();
    assert_eq!((&body["task"]["id"], &body["task"]["status"]), (&task["id"], &task["status"]));

    let keys = fine(gateway.bare(Method::GET, "/.well-known/jwks.json")).await;
    let mut receiver = Notices::of_keys(&keys);
    let notice = asked.header("x-toolyard-notice").unwrap();
    let id = task["id"].as_str().unwrap();
    let at = |seconds: i64| Timestamp::from_millis((i64::try_from(now()).unwrap() + seconds) * 1000);
    let body = asked.body.as_bytes();
    assert_eq!(receiver.accept(notice, "run_other", body, at(0)), Err(BadNotice::OtherTask));
    assert_eq!(receiver.accept(notice, id, b"{}", at(0)), Err(BadNotice::Changed));
    assert_eq!(receiver.accept(notice, id, body, at(3600)), Err(BadNotice::WrongTime));
    assert_eq!(receiver.accept(notice, id, body, at(0)), Ok(()));
    assert_eq!(receiver.accept(notice, id, body, at(0)), Err(BadNotice::Repeated));
    let other = start(&[]).await;
    let others = fine(other.bare(Method::GET, "/.well-known/jwks.json")).await;
    let forged = Notices::of_keys(&others).accept(notice, id, body, at(0));
    assert_eq!(forged, Err(BadNotice::WrongKey), "each gateway has a key of its own");

    // Without the operator's word no address inside is taken.
    let inside = json!({ "message": says("say a"),
        "configuration": { "taskPushNotificationConfig": { "url": far.url() } } });
    let refused = rpc(other.secret(Method::POST, "/a2a/assistant"), "SendMessage", inside);
    assert_eq!(code(refused).await, -32602);
    // Secrets are shown to their owner only by name of the task, and go when told to.
    let listed = called(&gateway, "ListTaskPushNotificationConfigs", json!({ "taskId": id })).await;
    let config = &listed["configs"][0];
    assert_eq!(config["token"], "tok-1");
    let gone = json!({ "taskId": id, "id": config["id"] });
    assert_eq!(called(&gateway, "DeleteTaskPushNotificationConfig", gone).await, json!({}));
}

/// An agent elsewhere is a tool: its card is read by the guarded door, and what
/// it asks is asked here.
#[tokio::test]
async fn a_remote_agent_is_a_tool_and_its_questions_are_waits() {
    let far = start(&[]).await;
    let far_agent = json!({ "version": "1", "agent": { "name": "far" }, "model": { "provider": "demo", "name": "demo" },
        "tools": [{ "name": "pick", "description": "Asks", "inputSchema": { "type": "object", "properties": {} } }] });
    far.post("/api/agents", json!({ "config": far_agent })).await;
    let here = |name: &str, headers: Value| {
        json!({ "version": "1", "agent": { "name": name }, "model": { "provider": "demo", "name": "demo" },
            "tools": [{ "name": "ask_far", "description": "Asks the far agent", "executionType": "remote-agent",
                "visibility": "public",
                "execution": { "card": format!("{}/a2a/far", far.url), "headers": headers } }] })
    };
    let headers = json!({ "x-secret-key": crate::gateway::SECRET });
    let gateway = start(&[("TOOLYARD_ALLOW_PRIVATE_NETWORK", &far.address())]).await;
    gateway.post("/api/agents", json!({ "config": here("assistant", headers.clone()) })).await;
    let plain = says("call ask_far {\"prompt\":\"say hello from afar\"}");
    let task = called(&gateway, "SendMessage", json!({ "message": plain })).await["task"].clone();
    assert!(task["artifacts"].to_string().contains("hello from afar"), "{task}");

    let asks = says("call ask_far {\"prompt\":\"call pick {}\"}");
    let task = called(&gateway, "SendMessage", json!({ "message": asks })).await["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    let part = &task["status"]["message"]["parts"][1]["data"];
    assert_eq!((&part["type"], &part["toolName"]), (&json!("input-request"), &json!("ask_far")));
    assert_eq!(part["request"]["agent"], "far");
    // The answer goes to the same far task.
    let answer = json!({ "message": { "messageId": "m-2", "role": "ROLE_USER", "taskId": task["id"], "parts": [
        { "data": { "type": "input-response", "waitId": part["waitId"], "value": "say thank you" } }] } });
    let done = called(&gateway, "SendMessage", answer).await["task"].clone();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    assert!(done["artifacts"].to_string().contains("thank you"), "{done}");

    // X20: without the operator's word the card is not fetched at all.
    let shut = start(&[]).await;
    shut.post("/api/agents", json!({ "config": here("assistant", headers) })).await;
    let message = says("call ask_far {\"prompt\":\"say hi\"}");
    let task = called(&shut, "SendMessage", json!({ "message": message })).await["task"].clone();
    assert!(task["artifacts"].to_string().contains("card cannot be read"), "{task}");
    assert!(task["artifacts"].to_string().contains("private or reserved network"), "{task}");
}

#[tokio::test]
async fn a2a_check_judges_an_agent() {
    let gateway = start(&[]).await;
    let check = |url: String, key: &str| {
        let mut command = crate::gateway::toolyard(gateway.folder.path());
        command.args(["a2a", "check", &url, "--json", "--say", "say hello"]);
        if !key.is_empty() {
            command.args(["--header", &format!("x-secret-key: {key}")]);
        }
        command.output().unwrap()
    };
    let good = check(format!("{}/a2a/assistant", gateway.url), crate::gateway::SECRET);
    let said: Value = serde_json::from_slice(&good.stdout).unwrap();
    assert!(good.status.success(), "{said:#}");
    let checks = said["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 9, "{said:#}");
    assert_eq!(checks[8]["says"], "Completed: hello");
    let bad = check(format!("{}/a2a/nobody", gateway.url), crate::gateway::SECRET);
    assert!(!bad.status.success());
    // A missing key is said as that, not as five other faults.
    let shut = check(format!("{}/a2a/assistant", gateway.url), "");
    let said: Value = serde_json::from_slice(&shut.stdout).unwrap();
    assert_eq!((shut.status.code(), said["checks"].as_array().unwrap().len()), (Some(1), 4), "{said:#}");
    assert!(said["checks"][3]["says"].as_str().unwrap().starts_with("the agent answers 401: give its key"));
}

/// HTTP+JSON as 0.3 has it: `/v1` before the paths, its words in the bodies.
#[tokio::test]
async fn the_http_json_binding_of_0_3_serves_every_operation() {
    let gateway = start(&[("TOOLYARD_ALLOW_PRIVATE_NETWORK", "127.0.0.1")]).await;
    let at = |verb: Method, path: &str| gateway.secret(verb, &format!("/a2a/assistant/v1/{path}"));
    let says = |text: &str| {
        json!({ "message": { "kind": "message", "messageId": "m-1", "role": "user",
            "parts": [{ "kind": "text", "text": text }] } })
    };
    let done = fine(at(Method::POST, "message:send").json(&says("say hello"))).await;
    assert_eq!((&done["kind"], &done["status"]["state"]), (&json!("task"), &json!("completed")), "{done}");
    assert_eq!(done["artifacts"][0]["parts"][0], json!({ "kind": "text", "text": "hello" }));
    let roles: Vec<&Value> = done["history"].as_array().unwrap().iter().map(|m| &m["role"]).collect();
    assert_eq!(roles, ["user", "agent"]);
    let id = done["id"].as_str().unwrap();
    let read = fine(at(Method::GET, &format!("tasks/{id}?historyLength=1"))).await;
    assert_eq!((&read["id"], read["history"].as_array().unwrap().len()), (&done["id"], 1));
    assert_eq!(read["history"][0]["parts"][0]["text"], "hello");

    let mut heard = stream(at(Method::POST, "message:stream").json(&says("say bye"))).await;
    let (last, _) = until(&mut heard, |event| event["final"] == true).await;
    assert_eq!((&last["kind"], &last["status"]["state"]), (&json!("status-update"), &json!("completed")));

    let mut asks = says(CALL);
    asks["message"]["metadata"] = json!({ CLIENT_TOOLS: { "tools": [tool()] } });
    let paused = fine(at(Method::POST, "message:send").json(&asks)).await;
    assert_eq!(paused["status"]["state"], "input-required", "{paused}");
    let id = paused["id"].as_str().unwrap();
    let push = json!({ "taskId": id, "pushNotificationConfig": { "url": "http://127.0.0.1:9/hook" } });
    let kept = fine(at(Method::POST, &format!("tasks/{id}/pushNotificationConfigs")).json(&push)).await;
    assert_eq!(kept["pushNotificationConfig"]["url"], "http://127.0.0.1:9/hook", "{kept}");
    let config = kept["pushNotificationConfig"]["id"].as_str().unwrap();
    let path = format!("tasks/{id}/pushNotificationConfigs/{config}");
    assert_eq!(fine(at(Method::GET, &path)).await["taskId"], id);
    assert!(at(Method::DELETE, &path).send().await.unwrap().status().is_success());
    assert_eq!(ask(at(Method::GET, &path)).await.0.as_u16() / 100, 4);

    let mut follows = stream(at(Method::POST, &format!("tasks/{id}:subscribe"))).await;
    let (first, _) = until(&mut follows, |_| true).await;
    assert_eq!((&first["id"], &first["status"]["state"]), (&paused["id"], &json!("input-required")));
    let canceled = fine(at(Method::POST, &format!("tasks/{id}:cancel"))).await;
    assert_eq!(canceled["status"]["state"], "canceled");
    let (last, _) = until(&mut follows, |event| event["final"] == true).await;
    assert_eq!(last["status"]["state"], "canceled");

    // Without the prefix these are requests of 1.0, which must say so.
    let bare = gateway.secret(Method::POST, "/a2a/assistant/message:send").json(&says("say hello"));
    let (status, body) = ask(bare).await;
    assert_eq!(status.as_u16(), 400, "{body}");
    let (status, body) = ask(at(Method::GET, "tasks/run_nothing")).await;
    assert_eq!(status.as_u16(), 404, "{body}");
    let (status, body) = ask(at(Method::POST, "message:send").json(&json!({ "message": {} }))).await;
    assert_eq!(status.as_u16(), 400, "{body}");
}
