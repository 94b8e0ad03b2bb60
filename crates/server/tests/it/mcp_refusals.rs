//! What an MCP client hears whose request nobody can answer: an error of
//! JSON-RPC, in words that help, for the request that it is about.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway};
use crate::mcp_agent::{Modern, gateway, initialize};

const BOTH: &str = "application/json, text/event-stream";

/// The status, the id and code that it names, and its text.
async fn refused(request: RequestBuilder) -> (u16, Value, i64, String) {
    let response = request.send().await.unwrap();
    let (status, kind) = (response.status().as_u16(), response.headers()["content-type"].clone());
    assert_eq!(kind, "application/json");
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    let error = &answer["error"];
    let text = error["message"].as_str().unwrap().to_owned();
    (status, answer["id"].clone(), error["code"].as_i64().unwrap(), text)
}

fn post(gateway: &Gateway, accept: &str, kind: &str, body: &str) -> RequestBuilder {
    let request = gateway.secret(Method::POST, "/mcp/story").header("accept", accept);
    request.header("content-type", kind).body(body.to_owned())
}

#[tokio::test]
async fn a_request_that_is_none_is_refused_in_json_rpc_and_in_words_that_help() {
    let gateway = gateway().await;
    let json_kind = "application/json";
    let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    let no_message = "The body is no JSON-RPC message: it needs \"jsonrpc\": \"2.0\" and a method, and a request an id that is a text or a whole number";
    for (accept, kind, body, said) in [
        (
            "text/html",
            json_kind,
            list,
            (406, json!(7), -32600, "Accept must name both application/json and text/event-stream"),
        ),
        (
            json_kind,
            json_kind,
            list,
            (406, json!(7), -32600, "Accept must name both application/json and text/event-stream"),
        ),
        (BOTH, "text/plain", list, (415, json!(7), -32600, "Content-Type must be application/json")),
        (
            BOTH,
            json_kind,
            "{\"a\":",
            (400, Value::Null, -32700, "The body is not JSON: EOF while parsing a value at line 1 column 5"),
        ),
        (
            BOTH,
            json_kind,
            "",
            (400, Value::Null, -32700, "The body is not JSON: EOF while parsing a value at line 1 column 0"),
        ),
        (BOTH, json_kind, "[]", (400, Value::Null, -32600, "Send one message at a time, not a list")),
        (BOTH, json_kind, "{}", (400, Value::Null, -32600, no_message)),
        (BOTH, json_kind, r#"{"id":"a","method":"ping"}"#, (400, json!("a"), -32600, no_message)),
        (
            BOTH,
            json_kind,
            list,
            (
                400,
                json!(7),
                -32600,
                "Mcp-Session-Id is missing: open a session with initialize, or send what 2026-07-28 wants in _meta",
            ),
        ),
        (
            BOTH,
            json_kind,
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
            (
                400,
                json!(1),
                -32602,
                "The params of initialize do not fit: it needs protocolVersion, capabilities and clientInfo, and an id",
            ),
        ),
    ] {
        let (status, id, code, text) = refused(post(&gateway, accept, kind, body)).await;
        assert_eq!((status, id, code, &*text), said, "{accept} {kind} {body}");
    }
    let (status, id, code, text) =
        refused(gateway.secret(Method::GET, "/mcp/story").header("accept", json_kind)).await;
    assert_eq!((status, id, code, &*text), (406, Value::Null, -32600, "Accept must name text/event-stream"));
    let odd = post(&gateway, BOTH, json_kind, list).header("mcp-protocol-version", "1999-01-01");
    let (status, id, _, text) = refused(odd).await;
    assert_eq!((status, id), (400, json!(7)));
    assert!(text.contains("1999-01-01"), "{text}");
}

/// The older era: a session that is gone, and what is asked in one that is there.
#[tokio::test]
async fn a_session_that_is_gone_and_a_method_that_is_not_there_are_told_apart() {
    let gateway = gateway().await;
    let opened = post(&gateway, BOTH, "application/json", &initialize().to_string()).send().await.unwrap();
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let ask = |gateway: &Gateway, body: Value| {
        post(gateway, BOTH, "application/json", &body.to_string())
            .header("mcp-session-id", &session)
            .header("mcp-protocol-version", "2025-11-25")
    };
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(ask(&gateway, ready).send().await.unwrap().status(), 202);
    let heard = async |body: Value| {
        let text = ask(&gateway, body).send().await.unwrap().text().await.unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut read = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        read.find(|message| message["id"] == 3).unwrap_or_else(|| panic!("{text}"))["error"].clone()
    };
    let unknown = heard(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/burn", "params": {}})).await;
    assert_eq!(unknown, json!({"code": -32601, "message": "There is no method tools/burn here"}));
    let unfit = heard(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {}})).await;
    assert_eq!(
        unfit,
        json!({"code": -32602, "message": "The params of tools/call do not fit: missing field `name`"})
    );

    // A restart ends every session, and says how to go on.
    let folder: Folder = gateway.kill();
    let gateway = Gateway::start_with(folder, &[]).await;
    let late = ask(&gateway, json!({"jsonrpc": "2.0", "id": "late", "method": "ping"}));
    let (status, id, code, text) = refused(late).await;
    assert_eq!((status, id, code), (404, json!("late"), -32001));
    assert!(text.ends_with("Open one with initialize"), "{text}");
}

#[tokio::test]
async fn the_newer_era_hears_the_same_words() {
    let gateway = gateway().await;
    let client = Modern::new(&gateway, json!({}));
    let (status, _, code, text) = refused(client.request("tools/burn", json!({}))).await;
    assert_eq!((status, code, &*text), (404, -32601, "There is no method tools/burn here"));
    let unfit = client.answer("tools/call", json!({"name": "lucky", "arguments": 5})).await;
    assert_eq!(unfit["error"]["code"], -32602, "{unfit}");
    let text = unfit["error"]["message"].as_str().unwrap();
    assert!(text.starts_with("The params of tools/call do not fit: "), "{text}");
}
