//! A small AG-UI client: it follows the protocol's rules of order and keeps
//! the messages that a real one would have.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// The events of a body.
pub(crate) fn events(body: &str) -> Vec<Value> {
    assert!(!body.contains('\r'));
    let frames = body.split("\n\n").filter(|frame| !frame.is_empty());
    frames.map(|frame| serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap()).collect()
}

/// Reads a body as a client with these messages would, and answers what it has then.
pub(crate) fn follow(body: &str, history: Vec<Value>) -> Vec<Value> {
    let mut messages = history;
    let mut open: BTreeMap<String, &'static str> = BTreeMap::new();
    let (mut started, mut ended) = (false, false);
    for event in events(body) {
        let kind = event["type"].as_str().unwrap().to_owned();
        assert!(!ended, "{kind} after the end");
        assert!(started || kind == "RUN_STARTED" || kind == "RUN_ERROR", "{kind} before the start");
        assert!(no_null(&event), "{event}");
        let id = |field: &str| event[field].as_str().unwrap_or_else(|| panic!("{event}: {field}")).to_owned();
        let mut opens = |id: String, what| assert!(open.insert(id, what).is_none(), "{event}: open twice");
        match kind.as_str() {
            "RUN_STARTED" => started = true,
            "RUN_FINISHED" => {
                assert_eq!(open, BTreeMap::new(), "{event}");
                ended = true;
            }
            "RUN_ERROR" => ended = true,
            "STEP_STARTED" => opens(id("stepName"), "step"),
            "STEP_FINISHED" => assert_eq!(open.remove(&id("stepName")), Some("step")),
            "TEXT_MESSAGE_START" => {
                opens(id("messageId"), "text");
                message(&mut messages, &id("messageId"), "assistant");
            }
            "TEXT_MESSAGE_CONTENT" => {
                assert_eq!(open.get(&id("messageId")), Some(&"text"), "{event}");
                grow(&mut message(&mut messages, &id("messageId"), "assistant")["content"], &id("delta"));
            }
            "TEXT_MESSAGE_END" => assert_eq!(open.remove(&id("messageId")), Some("text")),
            "REASONING_START" => opens(format!("span {}", id("messageId")), "span"),
            "REASONING_MESSAGE_START" => {
                assert_eq!(event["role"], "reasoning");
                opens(id("messageId"), "thought");
                message(&mut messages, &id("messageId"), "reasoning");
            }
            "REASONING_MESSAGE_CONTENT" => {
                assert_eq!(open.get(&id("messageId")), Some(&"thought"), "{event}");
                grow(&mut message(&mut messages, &id("messageId"), "reasoning")["content"], &id("delta"));
            }
            "REASONING_MESSAGE_END" => assert_eq!(open.remove(&id("messageId")), Some("thought")),
            "REASONING_END" => {
                assert_eq!(open.remove(&format!("span {}", id("messageId"))), Some("span"));
            }
            "TOOL_CALL_START" => {
                opens(id("toolCallId"), "call");
                let parent = message(&mut messages, &id("parentMessageId"), "assistant");
                let function = json!({ "name": id("toolCallName"), "arguments": "" });
                let call = json!({ "id": id("toolCallId"), "type": "function", "function": function });
                match &mut parent["toolCalls"] {
                    Value::Array(calls) => calls.push(call),
                    none => *none = json!([call]),
                }
            }
            "TOOL_CALL_ARGS" => {
                assert_eq!(open.get(&id("toolCallId")), Some(&"call"), "{event}");
                let call = id("toolCallId");
                let calls = messages.iter_mut().filter_map(|m| m.get_mut("toolCalls")?.as_array_mut());
                let found = calls.flatten().find(|known| known["id"] == call.as_str()).unwrap();
                grow(&mut found["function"]["arguments"], &id("delta"));
            }
            "TOOL_CALL_END" => assert_eq!(open.remove(&id("toolCallId")), Some("call"), "{event}"),
            "TOOL_CALL_RESULT" => {
                let call = id("toolCallId");
                let new = json!({
                    "id": id("messageId"), "role": "tool", "toolCallId": call, "content": event["content"],
                });
                let owns = |m: &Value| {
                    m["toolCalls"].as_array().is_some_and(|c| c.iter().any(|c| c["id"] == call.as_str()))
                };
                let mut place = messages.iter().rposition(owns).map_or(messages.len(), |at| at + 1);
                while messages.get(place).is_some_and(|m| m["role"] == "tool") {
                    place += 1;
                }
                messages.insert(place, new);
            }
            "MESSAGES_SNAPSHOT" => messages = event["messages"].as_array().unwrap().clone(),
            "STATE_SNAPSHOT" | "CUSTOM" => {}
            "SUBAGENT_STARTED" => opens(id("subagentRunId"), "agent"),
            "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => {
                assert_eq!(open.remove(&id("subagentRunId")), Some("agent"));
            }
            other => panic!("{other} is not an event that this gateway sends"),
        }
    }
    assert!(ended, "a body without an end looks like success");
    let ids: BTreeSet<&str> = messages.iter().filter_map(|m| m["id"].as_str()).collect();
    assert_eq!(ids.len(), messages.len(), "{messages:?}");
    messages
}

fn no_null(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => items.iter().all(no_null),
        // What a tool or plugin says is its own.
        Value::Object(fields) => fields.iter().all(|(name, value)| {
            matches!(name.as_str(), "value" | "metadata" | "snapshot") || no_null(value)
        }),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn message<'m>(messages: &'m mut Vec<Value>, id: &str, role: &str) -> &'m mut Value {
    let place = messages.iter().position(|m| m["id"] == id).unwrap_or_else(|| {
        messages.push(json!({ "id": id, "role": role }));
        messages.len() - 1
    });
    &mut messages[place]
}

fn grow(text: &mut Value, more: &str) {
    match text {
        Value::String(text) => text.push_str(more),
        none => *none = Value::from(more),
    }
}
