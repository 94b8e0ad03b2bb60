//! AG-UI: what clients send, and the binary form.

use serde_json::{Value, json};
use toolyard_dialects::ag_ui::{
    AgUi, Encoding, Opening, Recoder, Resolved, Version, parse, resolve, stored_name,
};
use toolyard_dialects::history::Entry;
use toolyard_dialects::telling::Telling;
use toolyard_protocol::ErrorCode;
use toolyard_protocol::message::Part;
use toolyard_protocol::wait::WaitKind;

use crate::ag_ui::{opening, user};

/// The bytes of a frame as the reference encoder writes them.
#[test]
fn the_binary_form_has_the_bytes_of_the_reference() {
    let thread = "t-".to_owned() + &"0".repeat(36);
    let mut telling =
        AgUi::new(Opening { thread: thread.clone(), state: None, ..opening(Version::One, user()) });
    let mut out = String::new();
    telling.begin(&mut out);
    let mut recoder = Recoder::default();
    let (head, tail) = out.as_bytes().split_at(7);
    assert_eq!(recoder.push(head), Vec::<u8>::new());
    let mut frame = vec![0, 0, 0, 0x37, 0x62, 0x35, 0x0a, 0x02, 0x08, 0x0b, 0x12, 0x26];
    frame.extend_from_slice(thread.as_bytes());
    frame.extend_from_slice(b"\x1a\x02r1\x32\x031.0");
    assert_eq!(recoder.push(tail), frame);
    assert_eq!(recoder.push(b": keep-alive\n\n"), Vec::<u8>::new());
}

#[test]
fn the_form_of_the_body_follows_what_is_accepted() {
    let proto = "application/vnd.ag-ui.event+proto";
    assert_eq!(Encoding::of_accept(None), Encoding::Sse);
    assert_eq!(Encoding::of_accept(Some("*/*")), Encoding::Sse);
    assert_eq!(Encoding::of_accept(Some(proto)), Encoding::Protobuf);
    assert_eq!(Encoding::of_accept(Some(&format!("{proto}, text/event-stream"))), Encoding::Protobuf);
    assert_eq!(Encoding::of_accept(Some(&format!("text/event-stream, {proto}"))), Encoding::Sse);
    assert_eq!(Encoding::of_accept(Some(&format!("{proto};q=0, text/event-stream"))), Encoding::Sse);
}

fn request(messages: Value) -> Value {
    json!({ "threadId": "t", "runId": "r", "messages": messages })
}

#[test]
fn a_request_is_read_leniently_and_refused_clearly() {
    let mut body = request(json!([
        { "id": "1", "role": "developer", "content": "Be kind" },
        { "id": "2", "role": "user", "content": [
            { "type": "text", "text": "Look ä" },
            { "type": "image", "source": { "type": "data", "value": "AAAA", "mimeType": "image/png" } },
            { "type": "binary", "mimeType": "image/gif", "url": "https://example.com/a.gif" },
        ] },
        { "id": "3", "role": "assistant", "content": null, "toolCalls": [
            { "id": "call_1", "type": "function", "function": { "name": "f", "arguments": "{\"a\":1}" } },
        ] },
        { "id": "4", "role": "tool", "toolCallId": "call_1", "content": "[1]" },
        { "id": "5", "role": "activity", "activityType": "x", "content": {} },
        { "id": "6", "role": "reasoning", "content": "hm" },
        { "id": "7", "role": "tool", "toolCallId": "call_2", "content": "plain", "error": "broke" },
    ]));
    body["protocolVersion"] = json!("1.0");
    body["unknown"] = json!(1);
    let read = parse(body).unwrap();
    assert_eq!((read.version, read.history.len(), read.messages.len()), (Version::One, 7, 5));
    let Entry::User { parts, .. } = &read.messages[1] else { panic!() };
    assert_eq!(parts.len(), 3);
    assert!(matches!(&parts[1], Part::File { url: Some(url), .. } if url == "data:image/png;base64,AAAA"));
    assert_eq!(
        read.messages[4],
        Entry::Result { call: "call_2".into(), value: json!("plain"), error: Some("broke".into()) }
    );

    let refused = |body: Value, text: &str| {
        let error = parse(body).unwrap_err();
        assert!(error.message.contains(text), "{}", error.message);
    };
    refused(json!([]), "object");
    refused(json!({ "runId": "r", "messages": [] }), "threadId");
    refused(json!({ "threadId": "t", "runId": "r" }), "messages");
    refused(request(json!([{ "id": "1", "role": "wizard" }])), "messages[0].role");
    refused(request(json!([{ "role": "user" }])), "messages[0].id");
    let mut odd = request(json!([]));
    odd["protocolVersion"] = json!("one");
    refused(odd, "protocolVersion");
    let mut odd = request(json!([]));
    odd["resume"] = json!([{ "interruptId": "w", "status": "maybe" }]);
    refused(odd, "resume[0].status");
}

#[test]
fn answers_to_interrupts_must_have_the_form_that_was_asked_for() {
    let entry = |status: &str, payload: Value| {
        let mut body = request(json!([]));
        body["resume"] = json!([{ "interruptId": "wait_1", "status": status, "payload": payload }]);
        parse(body).unwrap().resume.remove(0)
    };
    let say = |payload: Value, kind| resolve(&entry("resolved", payload), kind);
    assert_eq!(say(json!({ "approved": true }), WaitKind::Approval), Ok(Resolved::Allow { edited: None }));
    let edited = json!({ "approved": true, "editedArgs": { "a": 2 } });
    assert_eq!(say(edited, WaitKind::Approval), Ok(Resolved::Allow { edited: Some(json!({ "a": 2 })) }));
    let no = json!({ "approved": false, "reason": "no" });
    assert_eq!(say(no, WaitKind::Approval), Ok(Resolved::Deny { reason: Some("no".into()) }));
    assert_eq!(say(json!("Bern"), WaitKind::Input), Ok(Resolved::Provide(json!("Bern"))));
    assert!(matches!(
        resolve(&entry("cancelled", Value::Null), WaitKind::Approval),
        Ok(Resolved::Deny { .. })
    ));
    for (payload, kind) in [
        (json!({ "ok": true }), WaitKind::Approval),
        (Value::Null, WaitKind::Approval),
        (json!({ "approved": true, "editedArgs": 1 }), WaitKind::Approval),
        (Value::Null, WaitKind::Input),
        (json!({}), WaitKind::Client),
    ] {
        assert_eq!(say(payload, kind).unwrap_err().code, ErrorCode::BadRequest);
    }
}

#[test]
fn a_message_that_comes_back_is_named_as_the_store_names_it() {
    assert_eq!(stored_name("msg_01abc_2.7"), "msg_01abc_2");
    assert_eq!(stored_name("msg_01abc_2.7.9xy"), "msg_01abc_2");
    assert_eq!(stored_name("4f.7"), "4f.7");
    assert_eq!(stored_name("msg_01abc_2"), "msg_01abc_2");
}
