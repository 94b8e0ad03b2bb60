//! What is sent to a server of the vendor's kind. Messages and tools are
//! written straight from their types: this is the whole conversation, at every
//! step, and a tree of values would be built to be written once.

use std::borrow::Cow;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use toolyard_protocol::ids::CallId;

/// The fields of the request, each once.
#[derive(Debug, Default)]
pub(super) struct Body(Vec<(Cow<'static, str>, Field)>);

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Field {
    Value(Value),
    Messages(Vec<Message>),
    Tools(Vec<Tool>),
}

impl<V: Into<Value>> From<V> for Field {
    fn from(value: V) -> Self {
        Self::Value(value.into())
    }
}

impl Body {
    /// Sets a field that is not there yet.
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<Field>) {
        self.0.push((Cow::Borrowed(name), value.into()));
    }

    /// Puts other fields into the place of ours; a `null` removes one.
    pub(super) fn replace(&mut self, fields: Map<String, Value>) {
        for (name, value) in fields {
            self.0.retain(|(ours, _)| *ours != name);
            if !value.is_null() {
                self.0.push((Cow::Owned(name), Field::Value(value)));
            }
        }
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) role: &'static str,
    pub(super) content: Content,
    /// Who speaks, if it is a person with a name.
    pub(super) name: Option<String>,
    /// The call that it is the result of.
    pub(super) call: Option<CallId>,
    pub(super) calls: Vec<Call>,
    /// What the server wants back of its model's thoughts.
    pub(super) thoughts: Map<String, Value>,
}

impl Message {
    pub(super) fn new(role: &'static str, content: Content) -> Self {
        Self { role, content, name: None, call: None, calls: Vec::new(), thoughts: Map::new() }
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("role", self.role)?;
        if let Some(name) = &self.name {
            map.serialize_entry("name", name)?;
        }
        if let Some(call) = &self.call {
            map.serialize_entry("tool_call_id", call)?;
        }
        map.serialize_entry("content", &self.content)?;
        for (name, value) in &self.thoughts {
            map.serialize_entry(name, value)?;
        }
        if !self.calls.is_empty() {
            map.serialize_entry("tool_calls", &self.calls)?;
        }
        map.end()
    }
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Parts(Vec<Value>),
    /// The vendor wants `null` beside calls.
    None,
}

/// A call of the model, as it is told to it again.
#[derive(Debug, Serialize)]
pub(super) struct Call {
    pub(super) id: CallId,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) function: Called,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra_content: Option<Value>,
}

#[derive(Debug, Serialize)]
pub(super) struct Called {
    pub(super) name: String,
    /// JSON as a text.
    pub(super) arguments: String,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Tool {
    Offered {
        #[serde(rename = "type")]
        kind: &'static str,
        function: Function,
    },
    /// One that the vendor runs itself.
    Hosted(Value),
}

#[derive(Debug, Serialize)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) parameters: Value,
}
