//! D1 for plugins: what they make of a run is the same with a death and without
//! one. What they remember is saved with the step that it belongs to, or not at
//! all, so nothing is counted twice and nothing is changed twice.

use serde_json::{Map, Value, json};

use crate::story::Ended;

/// What an event says of the plugins' work. Ids, times and numbers of events
/// differ from run to run.
const SAID: &[&str] = &[
    "type", "toolName", "input", "output", "outcome", "error", "parts", "plugin", "name", "value", "state",
    "step",
];

/// All of a run that a plugin may have touched, in the words of both runs.
fn told(ended: &Ended) -> (Vec<Value>, Value) {
    let mut ids: Vec<String> = Vec::new();
    let mut events = Vec::new();
    for event in &ended.events {
        // A step that starts over is said; what came of it is not another thing.
        if event["type"] == "step.restarted" {
            continue;
        }
        if let Some(id) = event["toolCallId"].as_str().filter(|id| !ids.iter().any(|known| known == id)) {
            ids.push(id.to_owned());
        }
        let fields = SAID.iter().filter_map(|name| Some(((*name).to_owned(), event.get(*name)?.clone())));
        events.push(fields.collect::<Map<String, Value>>());
    }
    let plain = |value: Value| {
        let mut text = value.to_string();
        for (n, id) in ids.iter().enumerate() {
            text = text.replace(id.as_str(), &format!("call-{n}"));
        }
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let events = events.into_iter().map(|event| plain(Value::Object(event))).collect();
    (events, plain(ended.messages[1]["content"].clone()))
}

/// A run with a death came to the same as the one without.
pub(crate) fn same(clean: &Ended, ended: &Ended, place: &str) {
    let ((wanted, answer), (events, said)) = (told(clean), told(ended));
    assert_eq!(events, wanted, "{place}");
    assert_eq!(said, answer, "{place}");
    // The plugin took part at every point, once each, and its last word says so.
    let counted = events.iter().find(|event| event["name"] == "counted").unwrap();
    let counts = json!({"prompts": 2, "calls": 2, "results": 2, "texts": 1});
    assert_eq!(counted["value"], counts, "{place}");
    assert!(said.as_str().unwrap().ends_with(". Seen."), "{said}");
}
