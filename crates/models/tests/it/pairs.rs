//! No vendor sees a call without a result, or a result without a call.

use serde_json::{Value, json};
use toolyard_models::{ChatTurn, PastCall, PastResult, Request, openai, paired};
use toolyard_protocol::ids::CallId;

fn id(text: &str) -> CallId {
    CallId::parse(text).unwrap()
}

fn calls(ids: &[&str]) -> ChatTurn {
    let call =
        |text: &&str| PastCall { id: id(text), name: "f".into(), args: json!({}), metadata: Value::Null };
    ChatTurn::Assistant { parts: Vec::new(), calls: ids.iter().map(call).collect() }
}

fn result(call: &str, content: &str, is_error: bool) -> PastResult {
    PastResult { call: id(call), name: "f".into(), content: content.into(), is_error }
}

#[test]
fn results_follow_their_calls_in_the_calls_order() {
    let turns = vec![
        ChatTurn::ToolResults(vec![result("call_0", "of nothing", false)]),
        calls(&["call_1", "call_2"]),
        ChatTurn::user("hurry"),
        ChatTurn::ToolResults(vec![result("call_2", "two", false), result("call_2", "again", true)]),
        ChatTurn::ToolResults(vec![result("call_1", "one", false)]),
        calls(&["call_3"]),
    ];
    let lost = result("call_3", "There is no result of this call.", true);
    let expected = vec![
        calls(&["call_1", "call_2"]),
        ChatTurn::ToolResults(vec![result("call_1", "one", false), result("call_2", "two", false)]),
        ChatTurn::user("hurry"),
        calls(&["call_3"]),
        ChatTurn::ToolResults(vec![lost]),
    ];
    assert_eq!(paired(turns), expected);
}

#[test]
fn an_encoder_survives_an_open_call() {
    let request = Request { turns: vec![calls(&["call_1"]), ChatTurn::user("so?")], ..Request::default() };
    let body = openai::encode(request).body;
    let roles: Vec<&str> =
        body["messages"].as_array().unwrap().iter().filter_map(|m| m["role"].as_str()).collect();
    assert_eq!(roles, ["assistant", "tool", "user"]);
    assert_eq!(body["messages"][1]["content"], "Error: There is no result of this call.");
}
