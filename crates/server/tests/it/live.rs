//! Programs that are connected and execute tools: G36, G37, G48, and what
//! keeps a call from being executed twice.

use reqwest::Method;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::database::Database;
use crate::far_side::FarSide;
use crate::gateway::{Folder, Gateway, PUBLIC, SECRET, fine, token};
use crate::socket::Program;
use crate::yard::{Yard, data, eventually};

const TOOL: &str = "getUserApproval";

async fn node(database: &Database) -> Gateway {
    match &database.url {
        Some(url) => Gateway::start_with(Folder::new(), &[("TOOLYARD_DATABASE_URL", url)]).await,
        None => Gateway::start().await,
    }
}

async fn outputs(yard: &Yard, run: &str) -> Vec<Value> {
    let events = yard.finish(run).await;
    let outputs =
        events.iter().filter(|e| matches!(e.event.as_deref(), Some("tool-output-available" | "tool-error")));
    outputs.map(data).collect()
}

/// The whole way of a call, on both databases.
async fn a_connected_program_executes(database: Database) {
    let yard = Yard::on(node(&database).await).await;
    let mut robot = Program::backend(&yard.gateway, "cli_robot", &[TOOL]).await;
    let run = yard.say("call getUserApproval {\"q\":\"go?\"}").await;
    let call = robot.call().await;
    assert_eq!((&call["runId"], &call["toolName"]), (&json!(run), &json!(TOOL)));
    assert_eq!((&call["input"], &call["smartSpaceId"]), (&json!({"q": "go?"}), &json!(yard.space)));
    // The claim is in the ledger, where everybody sees it.
    let wait = yard.wait_of(&run).await;
    assert_eq!((&wait["claimedBy"], &wait["toolCallId"]), (&json!("cli_robot"), &call["toolCallId"]));
    let taken = robot.answer(&call, json!({"approved": true})).await;
    assert_eq!(
        taken,
        json!({"type": "tool.result.accepted", "runId": run,
            "results": [{"toolCallId": call["toolCallId"], "status": "accepted"}]})
    );
    let outputs = outputs(&yard, &run).await;
    assert_eq!((outputs.len(), &outputs[0]["output"]), (1, &json!({"approved": true})));
    assert_eq!(outputs[0]["source"], "client");
    // The same again is the same; another result is too late.
    assert_eq!(robot.answer(&call, json!({"approved": true})).await["results"][0]["status"], "repeated");
    let late = robot.answer(&call, json!(false)).await;
    assert_eq!((&late["type"], &late["code"]), (&json!("error"), &json!("run_ended")));
    assert_eq!(late["toolCallId"], call["toolCallId"]);
    let known = yard.gateway.get("/api/clients").await["clients"][0].clone();
    assert_eq!((&known["clientId"], &known["connected"]), (&json!("cli_robot"), &json!(true)));
}

#[tokio::test]
async fn g36_g37_g48_a_connected_program_executes_a_call_sqlite() {
    a_connected_program_executes(Database::sqlite()).await;
}

#[tokio::test]
async fn g36_g37_g48_a_connected_program_executes_a_call_postgres() {
    a_connected_program_executes(Database::postgres()).await;
}

#[tokio::test]
async fn g48_a_call_that_was_open_before_is_offered_on_connecting() {
    let yard = Yard::new().await;
    let run = yard.say("call getUserApproval {\"q\":\"early\"}").await;
    yard.wait_of(&run).await;
    let mut page = Program::page(&yard.gateway, "ann", "cli_tab", &[TOOL]).await;
    let call = page.call().await;
    assert_eq!(call["input"], json!({"q": "early"}));
    page.answer(&call, json!(null)).await;
    assert_eq!(outputs(&yard, &run).await[0]["output"], json!(null));
}

#[tokio::test]
async fn g48_one_program_gets_a_call_and_another_when_it_vanishes() {
    let yard = Yard::new().await;
    let mut first = Program::backend(&yard.gateway, "cli_1", &[TOOL]).await;
    let mut second = Program::backend(&yard.gateway, "cli_2", &[TOOL]).await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = first.call().await;
    second.hears_nothing().await;
    // A program that follows the stream cannot claim it either.
    let path = format!("/api/waits/{}/claim", call["waitId"].as_str().unwrap());
    let claim = yard.gateway.secret(Method::POST, &path).json(&json!({"clientId": "cli_3"}));
    assert_eq!(crate::gateway::ask(claim).await.0, 409);
    first.vanish();
    let again = second.call().await;
    assert_eq!(again["toolCallId"], call["toolCallId"]);
    second.answer(&again, json!("done")).await;
    assert_eq!(outputs(&yard, &run).await.len(), 1);
}

#[tokio::test]
async fn g48_calls_are_spread_over_the_programs() {
    let yard = Yard::new().await;
    let mut first = Program::backend(&yard.gateway, "cli_1", &[TOOL]).await;
    let mut second = Program::backend(&yard.gateway, "cli_2", &[TOOL]).await;
    let run = yard.say("call getUserApproval {\"q\":\"1\"}\ncall getUserApproval {\"q\":\"2\"}").await;
    let (one, two) = (first.call().await, second.call().await);
    assert_ne!(one["toolCallId"], two["toolCallId"]);
    first.answer(&one, json!(1)).await;
    second.answer(&two, json!(2)).await;
    assert_eq!(outputs(&yard, &run).await.len(), 2);
}

#[tokio::test]
async fn g48_a_program_of_a_killed_node_is_replaced_by_one_of_another_node() {
    let database = Database::postgres();
    let yard = Yard::on(node(&database).await).await;
    let other = node(&database).await;
    // Only the first node has a program: the second one offers it nothing.
    let mut first = Program::backend(&yard.gateway, "cli_1", &[TOOL]).await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = first.call().await;
    let mut second = Program::backend(&other, "cli_2", &[TOOL]).await;
    second.hears_nothing().await;
    let _folder = yard.gateway.kill();
    let again = second.call().await;
    assert_eq!((&again["toolCallId"], &again["runId"]), (&call["toolCallId"], &json!(run)));
    second.answer(&again, json!("done")).await;
    let stream = other.secret(Method::GET, &format!("/api/runs/{run}/stream")).send().await.unwrap();
    assert!(stream.text().await.unwrap().contains("event: run.completed"));
}

#[tokio::test]
async fn g48_a_call_of_one_node_reaches_a_program_of_another() {
    let database = Database::postgres();
    let yard = Yard::on(node(&database).await).await;
    let other = node(&database).await;
    let mut program = Program::backend(&other, "cli_1", &[TOOL]).await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = program.call().await;
    program.answer(&call, json!("from afar")).await;
    assert_eq!(outputs(&yard, &run).await[0]["output"], "from afar");
}

#[tokio::test]
async fn l25_calls_reach_only_those_who_may_answer_them() {
    let yard = Yard::new().await;
    // Bob is a member, eve is not; the run is ann's.
    let mut bob = Program::page(&yard.gateway, "bob", "cli_bob", &[TOOL]).await;
    let mut eve = Program::page(&yard.gateway, "eve", "cli_eve", &[TOOL]).await;
    let mut idle = Program::page(&yard.gateway, "ann", "cli_idle", &["otherTool"]).await;
    let run = yard.say("call getUserApproval {\"q\":\"canary\"}").await;
    let wait = yard.wait_of(&run).await;
    let mut ann = Program::page(&yard.gateway, "ann", "cli_ann", &[TOOL]).await;
    let call = ann.call().await;
    for other in [&mut bob, &mut eve, &mut idle] {
        other.hears_nothing().await;
    }
    // Knowing the ids is not enough.
    let forged = json!({"runId": run, "toolCallId": wait["toolCallId"]});
    assert_eq!(bob.answer(&forged, json!("forged")).await["code"], "forbidden");
    assert_eq!(eve.answer(&forged, json!("forged")).await["code"], "forbidden");
    let progress =
        json!({"type": "tool.progress", "runId": run, "toolCallId": wait["toolCallId"], "fraction": 1});
    assert_eq!(bob.ask(progress).await["code"], "forbidden");
    // A client id is its owner's.
    let mut thief = Program::open(&yard.gateway, &[]).await.unwrap();
    let auth = json!({"publicKey": PUBLIC, "token": token("eve")});
    let refused = thief.register(json!({"clientId": "cli_ann", "tools": [TOOL], "auth": auth})).await;
    assert_eq!(refused["code"], "conflict", "{refused}");
    assert_eq!(thief.hear().await, None);
    ann.answer(&call, json!("mine")).await;
    assert_eq!(outputs(&yard, &run).await[0]["output"], "mine");
}

#[tokio::test]
async fn x6_x11_a_socket_needs_a_key_and_a_page_that_may_call() {
    let gateway = Gateway::start().await;
    let bad = |name: &'static str, value: &str| [(name, value.to_owned())];
    assert_eq!(Program::open(&gateway, &bad("x-secret-key", "sk_wrong")).await.err(), Some(401));
    assert_eq!(Program::open(&gateway, &bad("x-public-key", PUBLIC)).await.err(), Some(401));
    assert_eq!(Program::open(&gateway, &bad("origin", "https://evil.example")).await.err(), Some(403));
    let fine = Program::open(&gateway, &bad("origin", "http://localhost:3000")).await;
    assert!(fine.is_ok());
    // No upgrade, no socket: the address says what it is.
    let plain = crate::gateway::ask(gateway.secret(Method::GET, "/api/clients/connect")).await;
    assert_eq!((plain.0.as_u16(), plain.1["error"]["code"].clone()), (400, json!("bad_request")));
    // Without keys in the headers, the first message decides.
    for (first, code) in [
        (json!({"type": "client.register", "tools": []}), "unauthorized"),
        (json!({"type": "client.register", "auth": {"secretKey": "sk_wrong"}}), "unauthorized"),
        (json!({"type": "client.register", "auth": {"publicKey": PUBLIC}}), "unauthorized"),
        (json!({"type": "client.register", "auth": {"publicKey": PUBLIC, "token": "x.y.z"}}), "unauthorized"),
        (json!({"type": "ping"}), "bad_request"),
        (json!({"type": "nonsense"}), "bad_request"),
        (json!("register"), "bad_request"),
    ] {
        let mut program = Program::open(&gateway, &[]).await.unwrap();
        let answer = program.ask(first.clone()).await;
        assert_eq!((&answer["type"], &answer["code"]), (&json!("error"), &json!(code)), "{first}: {answer}");
        assert_eq!(program.hear().await, None, "{first}");
    }
    let mut program = Program::open(&gateway, &[]).await.unwrap();
    let hello = program.ask(json!({"type": "register", "auth": {"secretKey": SECRET}})).await;
    assert_eq!((&hello["type"], &hello["tools"]), (&json!("client.registered"), &json!(0)));
}

/// A gateway that looks at its sockets every second.
async fn watchful() -> Yard {
    let env = [("TOOLYARD_LIMITS_SOCKET_PING_SECONDS", "1")];
    Yard::on(Gateway::start_with(Folder::new(), &env).await).await
}

#[tokio::test]
async fn x6_the_socket_of_a_revoked_key_is_closed_and_its_call_goes_to_another() {
    let yard = watchful().await;
    let key = yard.gateway.post("/api/keys", json!({"kind": "secret"})).await;
    let headers = [("x-secret-key", key["key"].as_str().unwrap().to_owned())];
    let mut robot = Program::open(&yard.gateway, &headers).await.unwrap();
    let hello = robot.register(json!({"clientId": "cli_robot", "tools": [TOOL]})).await;
    assert_eq!((&hello["pingSeconds"], &hello["silenceSeconds"]), (&json!(1), &json!(2)));
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = robot.call().await;
    let path = format!("/api/keys/{}", key["id"].as_str().unwrap());
    assert_eq!(crate::gateway::ask(yard.gateway.secret(Method::DELETE, &path)).await.0, 204);
    let farewell = robot.hear().await.unwrap();
    assert_eq!((&farewell["type"], &farewell["code"]), (&json!("error"), &json!("unauthorized")));
    assert_eq!(robot.hear().await, None);
    let mut other = Program::backend(&yard.gateway, "cli_other", &[TOOL]).await;
    let again = other.call().await;
    assert_eq!(again["toolCallId"], call["toolCallId"]);
    other.answer(&again, json!("done")).await;
    assert_eq!(outputs(&yard, &run).await[0]["output"], "done");
}

#[tokio::test]
async fn g48_a_program_that_does_not_even_answer_pings_loses_its_calls() {
    let yard = watchful().await;
    let mut silent = Program::backend(&yard.gateway, "cli_silent", &[TOOL]).await;
    let mut other = Program::backend(&yard.gateway, "cli_other", &[TOOL]).await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = silent.call().await;
    // Nobody reads its socket from here on, so nobody answers: it hangs, and
    // its connection stands. The other one answers pings while it listens.
    let again = other.call().await;
    assert_eq!(again["toolCallId"], call["toolCallId"]);
    other.answer(&again, json!("done")).await;
    assert_eq!(outputs(&yard, &run).await[0]["output"], "done");
    assert_eq!(silent.hear().await, None, "its socket was closed");
}

#[tokio::test]
async fn a_bad_message_is_refused_and_the_socket_stays() {
    let yard = Yard::new().await;
    let mut robot = Program::backend(&yard.gateway, "cli_1", &[TOOL]).await;
    let code = |answer: Value| answer["code"].as_str().unwrap_or_default().to_owned();
    assert_eq!(code(robot.register(json!({"tools": []})).await), "conflict");
    assert_eq!(code(robot.ask(json!({"type": "tool.result"})).await), "missing_field");
    assert_eq!(code(robot.ask(json!({"type": "what"})).await), "bad_request");
    robot.say_raw(Message::binary(vec![1, 2, 3])).await;
    assert_eq!(code(robot.hear().await.unwrap()), "bad_request");
    robot.say_raw(Message::text("{\"type\":")).await;
    assert_eq!(code(robot.hear().await.unwrap()), "invalid_json");
    robot.say_raw(Message::text(format!("{}1{}", "[".repeat(200), "]".repeat(200)))).await;
    assert!(!code(robot.hear().await.unwrap()).is_empty());
    let unknown = json!({"runId": "run_unknown", "toolCallId": "call_unknown"});
    assert_eq!(code(robot.answer(&unknown, json!(1)).await), "not_found");
    let run = yard.say("hello").await;
    let unknown = json!({"runId": run, "toolCallId": "call_unknown"});
    assert_eq!(code(robot.answer(&unknown, json!(1)).await), "not_found");
    let missing = json!({"type": "tool.result", "runId": run, "toolCallId": "call_unknown"});
    assert_eq!(robot.ask(missing).await["message"], "Missing required field: result");
    robot.hears_nothing().await;
}

#[tokio::test]
async fn g48_a_program_hears_that_its_call_ended_elsewhere() {
    let yard = Yard::new().await;
    let mut robot = Program::backend(&yard.gateway, "cli_1", &[TOOL]).await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = robot.call().await;
    yard.submit(Some("ann"), &run, json!({"callId": call["toolCallId"], "result": 1})).await;
    let ended = robot.hear().await.unwrap();
    assert_eq!(
        ended,
        json!({"type": "tool.ended", "runId": run, "toolCallId": call["toolCallId"],
            "toolName": TOOL, "outcome": "ok"})
    );
    let run = yard.say("call getUserApproval {\"q\":\"y\"}").await;
    robot.call().await;
    yard.gateway.post(&format!("/api/runs/{run}/cancel"), json!({})).await;
    let ended = robot.hear().await.unwrap();
    assert_eq!((&ended["type"], &ended["outcome"]), (&json!("tool.ended"), &json!("canceled")));
}

#[tokio::test]
async fn g48_a_reloaded_page_takes_the_place_of_its_old_socket_and_its_calls() {
    let yard = Yard::new().await;
    let mut old = Program::page(&yard.gateway, "ann", "cli_tab", &[TOOL]).await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = old.call().await;
    let mut new = Program::page(&yard.gateway, "ann", "cli_tab", &[TOOL]).await;
    let again = new.call().await;
    assert_eq!(again["toolCallId"], call["toolCallId"]);
    let farewell = old.hear().await.unwrap();
    assert_eq!((&farewell["type"], &farewell["code"]), (&json!("error"), &json!("conflict")));
    assert_eq!(old.hear().await, None);
    new.answer(&again, json!(1)).await;
    assert_eq!(outputs(&yard, &run).await.len(), 1);
}

#[tokio::test]
async fn a_user_has_a_number_of_sockets() {
    let yard = Yard::new().await;
    let mut tabs = Vec::new();
    for tab in 0..16 {
        tabs.push(Program::page(&yard.gateway, "ann", &format!("cli_{tab}"), &[TOOL]).await);
    }
    let mut more = Program::open(&yard.gateway, &[]).await.unwrap();
    let auth = json!({"publicKey": PUBLIC, "token": token("ann")});
    let refused = more.register(json!({"auth": auth, "tools": [TOOL]})).await;
    assert_eq!((&refused["code"], &refused["limit"]), (&json!("rate_limited"), &json!(16)));
    // Bob's are his own.
    Program::page(&yard.gateway, "bob", "cli_bob", &[TOOL]).await;
}

fn needy() -> Value {
    let mut config = crate::yard::agent("assistant");
    config["tools"][0]["ifAbsent"] = json!("fail");
    config
}

#[tokio::test]
async fn if_absent_fail_ends_a_call_at_once_when_no_program_holds_its_tool() {
    let yard = Yard::new().await;
    yard.gateway.post("/api/agents", json!({"config": needy()})).await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let ends = outputs(&yard, &run).await;
    assert_eq!(ends[0]["error"], "No connected client has the tool getUserApproval", "{ends:?}");
    // A program that may not answer counts as none, and so does one without the tool.
    let _bob = Program::page(&yard.gateway, "bob", "cli_bob", &[TOOL]).await;
    let _other = Program::page(&yard.gateway, "ann", "cli_other", &["otherTool"]).await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    assert_eq!(outputs(&yard, &run).await[0]["outcome"], "failed");
    let mut ann = Program::page(&yard.gateway, "ann", "cli_ann", &[TOOL]).await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = ann.call().await;
    ann.answer(&call, json!("here")).await;
    assert_eq!(outputs(&yard, &run).await[0]["output"], "here");
    // A gateway's tool lacks nobody.
    let mut wrong = needy();
    wrong["tools"][1]["ifAbsent"] = json!("fail");
    let (status, body) =
        crate::gateway::ask(yard.gateway.secret(Method::POST, "/api/agents").json(&json!({"config": wrong})))
            .await;
    assert_eq!((status.as_u16(), &body["error"]["code"]), (400, &json!("invalid_config")));
}

#[tokio::test]
async fn if_absent_sees_programs_of_other_nodes() {
    let database = Database::postgres();
    let yard = Yard::on(node(&database).await).await;
    yard.gateway.post("/api/agents", json!({"config": needy()})).await;
    let other = node(&database).await;
    let mut program = Program::backend(&other, "cli_1", &[TOOL]).await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = program.call().await;
    program.answer(&call, json!(1)).await;
    assert_eq!(outputs(&yard, &run).await[0]["output"], 1);
}

#[tokio::test]
async fn a_waiting_run_is_told_to_webhooks_only_while_no_program_holds_its_tool() {
    let far = FarSide::start().await;
    let env = [("TOOLYARD_ALLOW_PRIVATE_NETWORK", far.address.as_str())];
    let yard = Yard::on(Gateway::start_with(Folder::new(), &env).await).await;
    let hook = json!({"url": format!("{}/hook", far.url()), "events": ["run.waiting"]});
    yard.gateway.post("/api/webhooks", hook).await;
    let mut ann = Program::page(&yard.gateway, "ann", "cli_ann", &[TOOL]).await;
    let held = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = ann.call().await;
    ann.answer(&call, json!(1)).await;
    yard.finish(&held).await;
    // Nobody holds this one; what comes later proves that the first was not only late.
    let asks = yard.say("call guarded {\"q\":\"x\"}").await;
    eventually("the delivery", || async { !far.asked().is_empty() }).await;
    let told: Vec<Value> = far.asked().iter().map(|asked| asked.json()["runId"].clone()).collect();
    assert_eq!(told, [json!(asks)]);
    yard.gateway.post(&format!("/api/runs/{asks}/cancel"), json!({})).await;
    yard.finish(&asks).await;
    // The program is gone, and so is its presence.
    ann.vanish();
    eventually("the farewell", || async {
        yard.gateway.get("/api/clients").await["clients"][0]["connected"] == false
    })
    .await;
    let alone = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    eventually("the delivery", || async { far.asked().len() > 1 }).await;
    assert_eq!(far.asked()[1].json()["runId"], json!(alone));
}

#[tokio::test]
async fn a_restarted_gateway_offers_its_open_calls_again() {
    let yard = Yard::new().await;
    let mut robot = Program::backend(&yard.gateway, "cli_1", &[TOOL]).await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = robot.call().await;
    let folder = yard.gateway.kill();
    let gateway = Gateway::start_with(folder, &[]).await;
    // Another program: the claim of the first died with its socket.
    let mut other = Program::backend(&gateway, "cli_2", &[TOOL]).await;
    let again = other.call().await;
    assert_eq!(again["toolCallId"], call["toolCallId"]);
    other.answer(&again, json!("after")).await;
    let stream = gateway.secret(Method::GET, &format!("/api/runs/{run}/stream")).send().await.unwrap();
    assert!(stream.text().await.unwrap().contains("event: run.completed"));
}

#[tokio::test]
async fn a_stopping_gateway_closes_its_sockets() {
    let gateway = Gateway::start().await;
    let mut robot = Program::backend(&gateway, "cli_1", &[TOOL]).await;
    let (status, took, _folder) = gateway.terminate();
    assert!(status.success() && took.as_secs() < 8, "{status} {took:?}");
    assert_eq!(robot.hear().await, None);
}

#[tokio::test]
async fn l14_l15_invalid_arguments_go_back_to_the_model_and_never_to_a_program() {
    let yard = Yard::new().await;
    let mut robot = Program::backend(&yard.gateway, "cli_1", &[TOOL]).await;
    let run = yard.say("call getUserApproval {\"q\":5}").await;
    let ends = outputs(&yard, &run).await;
    assert_eq!(ends[0]["error"], "Parameter q has wrong type: expected string, got number");
    let list = yard.gateway.get(&format!("/api/runs/{run}/events?limit=200")).await;
    let kinds: Vec<_> = list["events"].as_array().unwrap().iter().map(|e| e["type"].clone()).collect();
    assert!(!kinds.contains(&json!("tool-input-available")), "{kinds:?}");
    robot.hears_nothing().await;
    let waits = fine(yard.gateway.secret(Method::GET, &format!("/api/waits?runId={run}"))).await;
    assert_eq!(waits["waits"], json!([]));
}
