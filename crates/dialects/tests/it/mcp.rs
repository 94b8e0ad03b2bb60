//! An agent for MCP clients: requests read, runs followed, questions asked and
//! answered.

use serde_json::{Map, Value, json};
use toolyard_dialects::mcp::{
    self, Able, Asking, Command, End, Following, Given, Line, Open, Opening, Standing, Until,
};
use toolyard_dialects::telling::Flow;
use toolyard_protocol::event::*;
use toolyard_protocol::message::Part;
use toolyard_protocol::principal::Viewer;
use toolyard_protocol::run::{PauseReason, RunEnd};
use toolyard_protocol::tool::{Place, Visibility};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{AgentName, Guarded, Timestamp, ToolOutcome, WaitId};

use crate::samples;
use crate::story::*;

fn lines(viewer: Viewer, until: Until, beats: &[Beat]) -> Vec<Line> {
    let opening = Opening { run: samples::run(), viewer, taking: None, until };
    let (out, flow) = tell(&mut Following::new(opening), beats);
    assert_eq!(flow, Flow::Over, "{out}");
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn stands(lines: &[Line]) -> Standing {
    match lines.last() {
        Some(Line::Stands(stands)) => (**stands).clone(),
        other => panic!("{other:?}"),
    }
}

/// A run that an MCP client started for one tool.
fn direct(name: &str) -> Vec<Beat> {
    let mut beats = begin();
    let Beat::Log(event) = &mut beats[0] else { panic!() };
    let Event::RunCreated(created) = &mut **event else { panic!() };
    created.metadata = Guarded::Shown(json!({ "mcpClient": { "tool": name } }));
    beats
}

#[test]
fn the_course_of_a_run_is_progress_and_its_end_a_result() {
    let look = called(1, "look", Visibility::Public, json!({}));
    let mut beats = begin();
    beats.extend(pieces(1, text(0, &["Let me ", "see."])));
    beats.push(log(replied(1, vec![Part::text("Let me see.")], std::slice::from_ref(&look))));
    beats.push(log(requested(1, &look, Place::Gateway)));
    beats.push(log(returned(&look, ToolOutcome::Ok(json!("found")))));
    beats.push(log(replied(2, vec![Part::text("Here it is.")], &[])));
    beats.push(log(finished(RunEnd::Completed)));
    let lines = lines(Viewer::secret(), Until::Rest, &beats);
    let said: Vec<&str> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Progress { message } => Some(message.as_str()),
            Line::Stands(_) => None,
        })
        .collect();
    assert_eq!(said, ["Let me see.", "Calls look", "look has returned", "Here it is."]);
    let stands = stands(&lines);
    assert_eq!((stands.end, stands.answer.as_str()), (Some(End::Completed), "Here it is."));
    let result = mcp::call_result(&stands, Some("sp_1"));
    assert_eq!(result["content"], json!([{ "type": "text", "text": "Here it is." }]));
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["session"]),
        (&json!(false), &json!("sp_1"))
    );
}

#[test]
fn a_direct_call_answers_with_what_its_tool_returned() {
    let look = called(1, "look", Visibility::Private, json!({}));
    let mut beats = direct("look");
    beats.push(log(replied(1, vec![], std::slice::from_ref(&look))));
    beats.push(log(requested(1, &look, Place::Gateway)));
    beats.push(log(returned(&look, ToolOutcome::Ok(json!({ "number": 42 })))));
    beats.push(log(finished(RunEnd::Completed)));
    let seen = mcp::call_result(&stands(&lines(Viewer::secret(), Until::Rest, &beats)), None);
    assert_eq!(seen["structuredContent"], json!({ "number": 42 }));
    // Who may not see what a tool returns does not see it here.
    let [_, (_, user), _] = samples::viewers();
    let hidden = mcp::call_result(&stands(&lines(user, Until::Rest, &beats)), None);
    assert!(!hidden.to_string().contains("42"), "{hidden}");
    // What another MCP server said goes on as it is.
    let raw = json!({ "content": [{ "type": "image", "data": "AA==", "mimeType": "image/png" }], "isError": false });
    beats[4] = log(returned(&look, ToolOutcome::Ok(raw.clone())));
    let passed = mcp::call_result(&stands(&lines(Viewer::secret(), Until::Rest, &beats)), None);
    assert_eq!(passed, raw);
    beats[4] = log(returned(&look, ToolOutcome::Failed("broken".to_owned())));
    let failed = mcp::call_result(&stands(&lines(Viewer::secret(), Until::Rest, &beats)), None);
    assert_eq!((&failed["isError"], &failed["content"][0]["text"]), (&json!(true), &json!("broken")));
}

fn open(kind: WaitKind, payload: Value) -> Open {
    Open {
        wait: WaitId::parse("wait_1").unwrap(),
        kind,
        call: samples::call(1),
        tool: tool("pay"),
        payload: Some(payload),
        may_answer: true,
    }
}

const BOTH: Able = Able { form: true, url: true, tasks: false };

fn accept(content: Value) -> Map<String, Value> {
    let reply = json!({ "wait_1": { "action": "accept", "content": content } });
    reply.as_object().unwrap().clone()
}

#[test]
fn every_kind_of_wait_is_a_question_that_can_be_answered() {
    let approval = open(WaitKind::Approval, json!({ "args": { "sum": 5 } }));
    let asked = &approval.requests(BOTH)["wait_1"];
    assert_eq!(asked["method"], "elicitation/create");
    assert!(asked["params"]["message"].as_str().unwrap().contains("{\"sum\":5}"));
    assert_eq!(approval.given(&accept(json!({ "decision": "allow" }))), Ok(Some(Given::Allow)));
    let denied = approval.given(&accept(json!({ "decision": "deny", "reason": "no" })));
    assert_eq!(denied, Ok(Some(Given::Deny(Some("no".to_owned())))));
    assert!(approval.given(&accept(json!({ "decision": "maybe" }))).is_err());
    assert_eq!(approval.given(&Map::new()), Ok(None));
    let decline = json!({ "wait_1": { "action": "decline" } }).as_object().unwrap().clone();
    assert!(matches!(approval.given(&decline), Ok(Some(Given::Deny(_)))));

    let client = open(WaitKind::Client, json!({ "x": 1 }));
    let outcome = client.given(&accept(json!({ "result": "{\"a\":1}" })));
    assert_eq!(outcome, Ok(Some(Given::Outcome(ToolOutcome::Ok(json!({ "a": 1 }))))));
    assert!(matches!(client.given(&decline), Ok(Some(Given::Outcome(ToolOutcome::Failed(_))))));

    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let input = open(WaitKind::Input, json!({ "message": "Who?", "schema": schema }));
    assert_eq!(input.requests(BOTH)["wait_1"]["params"]["requestedSchema"], schema);
    assert_eq!(
        input.given(&accept(json!({ "name": "Zoë" }))),
        Ok(Some(Given::Provide(json!({ "name": "Zoë" }))))
    );
    let plain = open(WaitKind::Input, json!({ "message": "Who?" }));
    assert_eq!(plain.given(&accept(json!({ "answer": "me" }))), Ok(Some(Given::Provide(json!("me")))));

    let login = open(WaitKind::Credential, json!({ "loginUrl": "https://login.example/x" }));
    assert_eq!(login.requests(BOTH)["wait_1"]["params"]["url"], "https://login.example/x");
    assert!(login.requests(Able { url: false, ..BOTH }).is_empty());

    let far = open(
        WaitKind::Input,
        json!({ "questions": {
        "a": { "kind": "form", "message": "A?", "schema": schema }, "b": { "kind": "url", "message": "B?", "url": "https://b.example" } } }),
    );
    let keys: Vec<String> = far.requests(BOTH).keys().cloned().collect();
    assert_eq!(keys, ["wait_1.a", "wait_1.b"]);
    let both = json!({ "wait_1.a": { "action": "accept", "content": { "name": "x" } }, "wait_1.b": { "action": "decline" } });
    let both = both.as_object().unwrap();
    let expected = json!({ "a": both["wait_1.a"], "b": both["wait_1.b"] });
    assert_eq!(far.given(both), Ok(Some(Given::Provide(expected))));

    let closed = Open { may_answer: false, ..approval };
    assert!(closed.requests(BOTH).is_empty(), "who may not answer is not asked");
}

#[test]
fn a_pause_is_a_question_a_task_or_a_result_by_what_the_client_can() {
    let guarded = called(1, "pay", Visibility::Public, json!({}));
    let mut beats = begin();
    beats.push(log(replied(1, vec![], std::slice::from_ref(&guarded))));
    beats.push(log(asked(1, &guarded, Place::Gateway)));
    beats.push(log(paused(PauseReason::Approval, &[(WaitKind::Approval, 1, "pay")])));
    let stands = stands(&lines(Viewer::secret(), Until::Rest, &beats));
    assert!(stands.waits && stands.end.is_none());
    let question = mcp::input_required(&stands, BOTH).unwrap();
    assert_eq!(question["requestState"], json!(samples::run()));
    assert_eq!(mcp::input_required(&stands, Able::default()), None);
    let told = mcp::call_result(&stands, None);
    assert_eq!((&told["structuredContent"]["status"], &told["isError"]), (&json!("waiting"), &json!(false)));
    let times = (Timestamp::from_millis(0), Timestamp::from_millis(1));
    let task = mcp::task(&stands, None, BOTH, times);
    assert_eq!(
        (&task["status"], &task["inputRequests"]),
        (&json!("input_required"), &question["inputRequests"])
    );
    assert_eq!(mcp::task(&stands, None, Able::default(), times)["status"], "working");
}

#[test]
fn requests_and_capabilities_are_read_once() {
    assert_eq!(mcp::command("tools/list", &json!({})), Ok(Command::ListTools));
    assert_eq!(mcp::command("prompts/list", &json!({})), Ok(Command::ListPrompts));
    assert_eq!(mcp::command("resources/list", &json!({})), Ok(Command::ListResources { after: None }));
    let templates = Command::ListNothing { of: "resourceTemplates" };
    assert_eq!(mcp::command("resources/templates/list", &json!({})), Ok(templates));
    for wrong in ["prompts/get", "resources/read"] {
        assert_eq!(mcp::command(wrong, &json!({})).unwrap_err().code, -32602, "{wrong}");
    }
    for absent in ["completion/complete", "logging/setLevel"] {
        assert_eq!(mcp::command(absent, &json!({})).unwrap_err().code, -32601, "{absent}");
    }
    for bad in [
        json!({}),
        json!({ "name": "x", "arguments": [] }),
        json!({ "name": "x", "requestState": 5 }),
        json!({ "name": "x", "requestState": "no run" }),
    ] {
        assert_eq!(mcp::command("tools/call", &bad).unwrap_err().code, -32602, "{bad}");
    }
    let asking = |arguments: Value| Asking::read(arguments.as_object().unwrap());
    assert!(asking(json!({ "message": "hi", "session": "s" })).is_ok());
    for bad in [
        json!({}),
        json!({ "message": 5 }),
        json!({ "message": " " }),
        json!({ "mesage": "x" }),
        json!({ "message": "x", "run": "run_1" }),
    ] {
        assert!(asking(bad.clone()).is_err(), "{bad}");
    }
    let able = |capabilities: Value| Able::read(&capabilities);
    assert_eq!(able(json!({})), Able::default());
    assert_eq!(able(json!({ "elicitation": {} })), Able { form: true, ..Able::default() });
    assert_eq!(able(json!({ "elicitation": { "url": {} } })), Able { url: true, ..Able::default() });
    assert!(able(json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })).tasks);
    let name = AgentName::parse("my.agent-1").unwrap();
    assert_eq!(mcp::ask_tool_name(&name), "ask_my_agent-1");
}
