//! The messages that a client has: what it sent, and what it was told since.
//! Snapshots are made of it, so they never say more than the events did.

use serde_json::{Value, json};

#[derive(Debug, Clone, Default)]
pub(super) struct Transcript(Vec<Value>);

impl Transcript {
    pub(super) fn new(messages: Vec<Value>) -> Self {
        Self(messages)
    }

    pub(super) fn messages(&self) -> &[Value] {
        &self.0
    }

    pub(super) fn into_messages(self) -> Vec<Value> {
        self.0
    }

    pub(super) fn push(&mut self, message: Value) {
        self.0.push(message);
    }

    fn find(&mut self, id: &str) -> Option<&mut Value> {
        self.0.iter_mut().rev().find(|message| message["id"] == id)
    }

    fn find_or_add(&mut self, id: &str, role: &str) -> &mut Value {
        let place = self.0.iter().rposition(|message| message["id"] == id);
        let place = place.unwrap_or_else(|| {
            self.0.push(json!({ "id": id, "role": role }));
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    /// The text of a message so far; empty if there is none.
    pub(super) fn text(&self, id: &str) -> &str {
        let message = self.0.iter().rev().find(|message| message["id"] == id);
        message.and_then(|message| message["content"].as_str()).unwrap_or_default()
    }

    pub(super) fn say(&mut self, id: &str, role: &str, more: &str) {
        let message = self.find_or_add(id, role);
        match &mut message["content"] {
            Value::String(text) => text.push_str(more),
            none => *none = Value::from(more),
        }
    }

    pub(super) fn set_text(&mut self, id: &str, role: &str, text: &str) {
        self.find_or_add(id, role)["content"] = Value::from(text);
    }

    pub(super) fn remove(&mut self, gone: impl Fn(&str) -> bool) {
        self.0.retain(|message| !message["id"].as_str().is_some_and(&gone));
    }

    fn call_mut(&mut self, call: &str) -> Option<&mut Value> {
        self.0.iter_mut().rev().find_map(|message| {
            let calls = message.get_mut("toolCalls")?.as_array_mut()?;
            calls.iter_mut().find(|known| known["id"] == call)
        })
    }

    pub(super) fn has_call(&self, call: &str) -> bool {
        self.0.iter().rev().any(|message| {
            message["toolCalls"].as_array().is_some_and(|calls| calls.iter().any(|known| known["id"] == call))
        })
    }

    pub(super) fn add_call(&mut self, parent: &str, call: &str, name: &str) {
        let message = self.find_or_add(parent, "assistant");
        let function = json!({ "name": name, "arguments": "" });
        let call = json!({ "id": call, "type": "function", "function": function });
        match &mut message["toolCalls"] {
            Value::Array(calls) => calls.push(call),
            none => *none = Value::Array(vec![call]),
        }
    }

    pub(super) fn args(&mut self, call: &str) -> String {
        let known = self.call_mut(call).map(|call| call["function"]["arguments"].clone());
        known.and_then(|args| args.as_str().map(ToOwned::to_owned)).unwrap_or_default()
    }

    pub(super) fn grow_args(&mut self, call: &str, more: &str) {
        if let Some(Value::String(args)) = self.call_mut(call).map(|call| &mut call["function"]["arguments"])
        {
            args.push_str(more);
        }
    }

    pub(super) fn set_args(&mut self, call: &str, args: &str) {
        if let Some(call) = self.call_mut(call) {
            call["function"]["arguments"] = Value::from(args);
        }
    }

    /// A call that the model never finished is no call.
    pub(super) fn remove_call(&mut self, call: &str) {
        for message in &mut self.0 {
            let Some(fields) = message.as_object_mut() else { continue };
            let Some(Value::Array(calls)) = fields.get_mut("toolCalls") else { continue };
            calls.retain(|known| known["id"] != call);
            if calls.is_empty() {
                fields.remove("toolCalls");
            }
        }
        let empty = |m: &Value| {
            m["role"] == "assistant" && m.get("content").is_none() && m.get("toolCalls").is_none()
        };
        self.0.retain(|message| !empty(message));
    }

    pub(super) fn has_result(&self, call: &str) -> bool {
        self.0.iter().rev().any(|message| message["toolCallId"] == call)
    }

    /// Adds a result right behind the message of its call, or changes it.
    pub(super) fn set_result(&mut self, id: &str, call: &str, content: &str) {
        if let Some(known) = self.find(id) {
            known["content"] = Value::from(content);
            return;
        }
        let message = json!({ "id": id, "role": "tool", "toolCallId": call, "content": content });
        let owner = self.0.iter().rposition(|message| {
            message["toolCalls"].as_array().is_some_and(|calls| calls.iter().any(|known| known["id"] == call))
        });
        let mut place = owner.map_or(self.0.len(), |owner| owner + 1);
        while self.0.get(place).is_some_and(|message| message["role"] == "tool") {
            place += 1;
        }
        self.0.insert(place, message);
    }
}
