//! Requests of both versions and bindings become the same command.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolyard_dialects::a2a::{
    Answer, Binding, CLIENT_TOOLS, Command, Refused, Request, Rest, Version, rest_request, rpc_request,
};
use toolyard_protocol::{CallId, ToolName, ToolOutcome};

fn rpc(method: &str, params: Value) -> Result<Request, Refused> {
    let said = (!method.contains('/')).then_some("1.0");
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    rpc_request(body.to_string().as_bytes(), said)
}

fn command(request: Result<Request, Refused>) -> Command {
    request.unwrap().command
}

fn code(request: Result<Request, Refused>) -> i64 {
    request.unwrap_err().fault.kind.code()
}

fn rest<'r>(verb: &'r str, path: &'r str, body: &'r str, query: &'r HashMap<String, String>) -> Rest<'r> {
    Rest { verb, path, prefixed: false, query, body: body.as_bytes(), said: Some("1.0") }
}

fn hello_10() -> Value {
    json!({ "message": { "messageId": "m1", "role": "ROLE_USER", "contextId": "c1", "parts": [
        { "text": "hi" },
        { "raw": "aGk=", "mediaType": "text/plain", "filename": "a.txt" },
        { "url": "https://example.com/b", "mediaType": "text/html" },
        { "data": { "k": 1 } },
        { "data": [1, 2] },
    ] } })
}

fn hello_03() -> Value {
    json!({ "message": { "kind": "message", "messageId": "m1", "role": "user", "contextId": "c1", "parts": [
        { "kind": "text", "text": "hi" },
        { "kind": "file", "file": { "bytes": "aGk=", "mimeType": "text/plain", "name": "a.txt" } },
        { "kind": "file", "file": { "uri": "https://example.com/b", "mimeType": "text/html" } },
        { "kind": "data", "data": { "k": 1 } },
        { "kind": "data", "data": { "value": [1, 2] }, "metadata": { "data_part_compat": true } },
    ] } })
}

#[test]
fn both_versions_and_bindings_say_the_same() {
    let new = command(rpc("SendMessage", hello_10()));
    assert_eq!(new, command(rpc("message/send", hello_03())));
    let (body, query) = (hello_10().to_string(), HashMap::new());
    assert_eq!(new, command(rest_request(rest("POST", "message:send", &body, &query))));

    let get = command(rpc("GetTask", json!({ "id": "run_1", "historyLength": 2 })));
    assert_eq!(get, command(rpc("tasks/get", json!({ "id": "run_1", "historyLength": 2 }))));
    let query = HashMap::from([("historyLength".to_owned(), "2".to_owned())]);
    assert_eq!(get, command(rest_request(rest("GET", "tasks/run_1", "", &query))));

    let follow = command(rpc("SubscribeToTask", json!({ "id": "run_1" })));
    assert_eq!(follow, command(rpc("tasks/resubscribe", json!({ "id": "run_1" }))));
    let query = HashMap::new();
    for verb in ["GET", "POST"] {
        assert_eq!(follow, command(rest_request(rest(verb, "tasks/run_1:subscribe", "", &query))));
    }
    let push_10 = json!({ "taskId": "run_1", "id": "run_1", "url": "https://example.com/hook", "token": "t",
        "authentication": { "scheme": "Bearer", "credentials": "c" } });
    let push_03 = json!({ "taskId": "run_1", "pushNotificationConfig": { "url": "https://example.com/hook",
        "token": "t", "authentication": { "schemes": ["Bearer"], "credentials": "c" } } });
    assert_eq!(
        command(rpc("CreateTaskPushNotificationConfig", push_10)),
        command(rpc("tasks/pushNotificationConfig/set", push_03))
    );
}

#[test]
fn what_is_wrong_has_its_code() {
    let broken = rpc_request(b"{", Some("1.0")).unwrap_err();
    assert_eq!((broken.fault.kind.code(), broken.binding), (-32700, Binding::JsonRpc(Value::Null)));
    for body in [
        "[]",
        "1",
        r#"{"jsonrpc":"1.0","id":1,"method":"GetTask"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"GetTask"}"#,
    ] {
        assert_eq!(code(rpc_request(body.as_bytes(), Some("1.0"))), -32600, "{body}");
    }
    assert_eq!(code(rpc("NoSuchMethod", json!({}))), -32601);
    assert_eq!(code(rpc("tasks/none", json!({}))), -32601);
    // A known method with bad parameters is never an invalid request.
    for params in [json!(null), json!([]), json!("x"), json!({}), json!({ "message": 1 })] {
        assert_eq!(code(rpc("message/send", params.clone())), -32602, "{params}");
        assert_eq!(code(rpc("SendMessage", params.clone())), -32602, "{params}");
    }
    let part = |part: Value| json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [part] } });
    for bad in
        [json!({}), json!({ "text": "a", "url": "b" }), json!({ "raw": "not base64!" }), json!({ "text": 1 })]
    {
        assert_eq!(code(rpc("SendMessage", part(bad.clone()))), -32602, "{bad}");
    }
    assert_eq!(code(rpc("GetTask", json!({ "id": "run_1", "historyLength": -1 }))), -32602);
    assert_eq!(code(rpc("ListTasks", json!({ "pageSize": 0 }))), -32602);
    assert_eq!(code(rpc("ListTasks", json!({ "pageSize": 101 }))), -32602);
    assert_eq!(code(rpc("GetTask", json!({ "id": "not an id" }))), -32001);
    // The protocol's JSON form knows both spellings of a field.
    assert_eq!(code(rpc("GetTask", json!({ "id": "run_1", "history_length": -1 }))), -32602);
    let kindless = json!({ "message": { "messageId": "m", "role": "user", "parts": [{ "text": "a" }] } });
    assert_eq!(code(rpc("message/send", kindless)), -32602);
}

#[test]
fn a_bad_field_is_named() {
    let params = json!({ "message": { "messageId": "", "role": "ROLE_USER", "parts": [{ "text": "a" }] } });
    let refused = rpc("SendMessage", params).unwrap_err();
    let error = refused.binding.refusal(&refused.fault, refused.version);
    assert_eq!(error["error"]["data"][1]["fieldViolations"][0]["field"], "message.messageId");
    assert_eq!(error["error"]["data"][0]["reason"], "INVALID_PARAMS");
    assert_eq!(error["id"], 7);
    let old = rpc("message/send", json!({})).unwrap_err();
    assert_eq!(old.fault.rpc(old.version), json!({ "code": -32602, "message": "message: is required" }));
}

#[test]
fn the_version_is_said_or_it_is_0_3() {
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": "run_1" } }).to_string();
    for said in [None, Some(""), Some("0.3"), Some("2.0"), Some("1.1"), Some("x")] {
        assert_eq!(code(rpc_request(body.as_bytes(), said)), -32009, "{said:?}");
    }
    for said in ["1.0", "1", "1.0.1", " 1.0 "] {
        assert_eq!(rpc_request(body.as_bytes(), Some(said)).unwrap().version, Version::V10);
    }
    // A name of 0.3 is 0.3, whatever the header says.
    let old =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": { "id": "run_1" } }).to_string();
    assert_eq!(rpc_request(old.as_bytes(), Some("1.0")).unwrap().version, Version::V03);
    let query = HashMap::new();
    let mut bare = rest("GET", "tasks/run_1", "", &query);
    bare.said = None;
    assert_eq!(code(rest_request(bare)), -32009);
    bare.prefixed = true;
    assert_eq!(rest_request(bare).unwrap().version, Version::V03);
}

#[test]
fn l19_tools_are_offered_in_the_extension_around_it_or_literally() {
    let flat = json!({ "name": "search", "description": "Search", "parameters": { "type": "object" } });
    let wrapped = json!({ "type": "function", "function": flat });
    let offered = json!({ CLIENT_TOOLS: { "tools": [flat, wrapped], "hold": true } });
    let message = |metadata: Value| json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "a" }], "metadata": metadata });
    let inside = command(rpc("SendMessage", json!({ "message": message(offered.clone()) })));
    let around = command(rpc("SendMessage", json!({ "message": message(json!({})), "metadata": offered })));
    let literal = command(rpc(
        "message/stream",
        json!({ "message": { "role": "user", "parts": [{ "kind": "text", "text": "a" }], "contextId": "c" },
            "tools": [flat, wrapped] }),
    ));
    for (given, is_literal) in [(inside, false), (around, false), (literal, true)] {
        let Command::Send(send) = given else { panic!("{given:?}") };
        let offer = send.offer.unwrap();
        assert_eq!(offer.tools.unwrap(), [flat.clone(), wrapped.clone()]);
        assert_eq!((offer.hold, offer.literal), (true, is_literal));
    }
    // Without `params.tools` a message of 0.3 must have an id.
    let nameless = json!({ "message": { "role": "user", "parts": [{ "kind": "text", "text": "a" }] } });
    assert_eq!(code(rpc("message/stream", nameless)), -32602);
}

fn result(call: &str, outcome: ToolOutcome) -> Answer {
    let tool = Some(ToolName::parse("search").unwrap());
    Answer::Result { call: CallId::parse(call).unwrap(), tool, outcome }
}

#[test]
fn l21_results_come_as_data_parts_or_by_resume() {
    let one = json!({ "type": "tool-result", "toolCallId": "call_1", "toolName": "search", "success": true,
        "result": { "n": 1 } });
    let two = json!({ "type": "tool-result", "toolCallId": "call_2", "toolName": "search", "success": false,
        "error": "no" });
    let expected = [
        result("call_1", ToolOutcome::Ok(json!({ "n": 1 }))),
        result("call_2", ToolOutcome::Failed("no".into())),
    ];
    let sent = command(rpc(
        "SendMessage",
        json!({ "message": { "messageId": "m", "role": "ROLE_USER", "taskId": "run_1",
            "parts": [{ "data": one }, { "data": two }] } }),
    ));
    let Command::Send(sent) = sent else { panic!("{sent:?}") };
    assert_eq!(sent.answers, expected);
    assert_eq!(sent.message.parts, []);
    let resumed = command(rpc("tasks/resume", json!({ "taskId": "run_1", "toolResults": [one, two] })));
    let Command::Resume { answers, .. } = resumed else { panic!("{resumed:?}") };
    assert_eq!(answers, expected);
    // Results belong to a task.
    let lost = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "data": one }] } });
    assert_eq!(code(rpc("SendMessage", lost)), -32602);
    let foreign = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "taskId": "run_1", "parts": [
        { "data": { "id": "call_1", "name": "search", "response": 3 }, "metadata": { "adk_type": "function_response" } },
    ] } });
    let Command::Send(sent) = command(rpc("SendMessage", foreign)) else { panic!() };
    assert_eq!(sent.answers, [result("call_1", ToolOutcome::Ok(json!(3)))]);
}
