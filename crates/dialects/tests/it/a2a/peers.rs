//! The other side: an agent elsewhere, by its card.

use serde_json::{Value, json};
use toolyard_dialects::a2a::client::Peer;
use toolyard_dialects::a2a::{State, Version};

fn face(binding: &str, version: &str) -> Value {
    json!({ "url": format!("https://far/{binding}/{version}"), "protocolBinding": binding, "protocolVersion": version })
}

#[test]
fn the_newest_version_is_spoken_and_json_rpc_first() {
    let of = |faces: &[Value]| Peer::of_card(&json!({ "name": "far", "supportedInterfaces": faces }));
    let peer = of(&[face("JSONRPC", "0.3"), face("HTTP+JSON", "1.0"), face("JSONRPC", "1.0")]).unwrap();
    assert_eq!((peer.url.as_str(), peer.version), ("https://far/JSONRPC/1.0", Version::V10));
    let peer = of(&[face("JSONRPC", "0.3"), face("HTTP+JSON", "1.0")]).unwrap();
    assert_eq!(peer.look("t").url, "https://far/HTTP+JSON/1.0/tasks/t");
    assert_eq!(of(&[face("JSONRPC", "0.3")]).unwrap().version, Version::V03);
    assert!(of(&[face("GRPC", "1.0")]).is_err());
    let old = json!({ "name": "old", "url": "https://far", "protocolVersion": "0.3.0" });
    assert_eq!(Peer::of_card(&old).unwrap().version, Version::V03);
}

#[test]
fn both_forms_of_an_answer_mean_the_same() {
    let new = Peer::of_card(&json!({ "supportedInterfaces": [face("JSONRPC", "1.0")] })).unwrap();
    let old = Peer::of_card(&json!({ "url": "https://far" })).unwrap();
    let new_task = json!({ "result": { "task": { "id": "t", "contextId": "c",
        "status": { "state": "TASK_STATE_COMPLETED" },
        "artifacts": [{ "artifactId": "a", "parts": [{ "text": "one" }, { "data": { "n": 1 } }] }] } } });
    let old_task = json!({ "result": { "kind": "task", "id": "t", "contextId": "c", "status": { "state": "completed" },
        "artifacts": [{ "artifactId": "a", "parts": [{ "kind": "text", "text": "one" }, { "data": { "n": 1 } }] }] } });
    assert_eq!(new.read(&new_task), old.read(&old_task));
    let asks = json!({ "result": { "id": "t", "status": { "state": "TASK_STATE_INPUT_REQUIRED",
        "message": { "parts": [{ "text": "Which?" }] } } } });
    let told = new.read(&asks).unwrap();
    assert_eq!((told.state, told.text.as_str()), (State::InputRequired, "Which?"));
    let said = json!({ "result": { "message": { "messageId": "m", "parts": [{ "text": "hi" }] } } });
    assert_eq!(new.read(&said).unwrap().text, "hi");
    let refused = json!({ "error": { "code": -32001, "message": "Task not found" } });
    assert_eq!(new.read(&refused), Err("Task not found".to_owned()));
    assert!(new.read(&json!({ "result": 1 })).is_err());
}
