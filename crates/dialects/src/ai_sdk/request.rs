//! What a chat client asks for. Fields that nobody knows are ignored, so that
//! newer clients and older gateways get along (row H22).

use serde_json::{Map, Value};
use toolyard_protocol::CallId;
use toolyard_protocol::ToolOutcome;
use toolyard_protocol::WaitId;
use toolyard_protocol::message::Speaker;

use super::messages::{self, Heard};
use crate::history::{Cut, Item};

/// Why a body is no chat request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadChat(String);

impl BadChat {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl std::fmt::Display for BadChat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadChat {}

/// What the history says of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub call: CallId,
    pub said: Replied,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Replied {
    Outcome(ToolOutcome),
    Decision { wait: WaitId, allowed: bool, reason: Option<String> },
}

/// A chat request.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub thread: String,
    pub items: Vec<Item>,
    pub replies: Vec<Reply>,
    pub cut: Option<Cut>,
    /// Calls whose input the client has.
    pub announced: Vec<CallId>,
    /// Questions that the client was asked.
    pub questions: Vec<WaitId>,
    pub agent: Option<String>,
    pub model: Option<String>,
    /// Definitions as they came.
    pub tools: Vec<Value>,
    pub categories: Option<Vec<String>>,
    pub exact: Option<Vec<String>>,
    pub excluded: Vec<String>,
    /// Whom a backend speaks for.
    pub entity: Option<String>,
    pub metadata: Option<Value>,
}

impl Asked {
    /// Reads a body: all messages, or the last one alone.
    pub fn read(body: &Value) -> Result<Self, BadChat> {
        let body = body.as_object().ok_or_else(|| BadChat::new("The body must be a JSON object"))?;
        let text =
            |key: &str| body.get(key).and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned);
        let given = match (body.get("messages"), body.get("message")) {
            (Some(Value::Array(messages)), _) => messages.clone(),
            (Some(_), _) => return Err(BadChat::new("messages: must be an array")),
            (None, Some(message @ Value::Object(_))) => vec![message.clone()],
            (None, _) => return Err(BadChat::new("Missing required field: messages")),
        };
        let Heard { items, replies, announced, questions } = messages::read(&given)?;
        let message = text("messageId");
        let cut = match (text("trigger").as_deref(), message) {
            (Some("regenerate-message"), message) => Some(Cut::Regenerate { message }),
            // An answer that goes on has its own name here; a known user message is an edit.
            (_, Some(message)) => {
                let last = items.last();
                let edits =
                    last.is_some_and(|l| l.speaker == Speaker::User && l.name.as_ref() == Some(&message));
                edits.then_some(Cut::Edit { message })
            }
            (_, None) => None,
        };
        Ok(Self {
            thread: text("id")
                .or_else(|| text("chatId"))
                .ok_or_else(|| BadChat::new("Missing required field: id"))?,
            items,
            replies,
            cut,
            announced,
            questions,
            agent: text("agent"),
            model: text("model"),
            tools: tools(body)?,
            categories: names(body, "selectedToolCategories")?,
            exact: names(body, "exactToolNames")?.filter(|names| !names.is_empty()),
            excluded: names(body, "excludedTools")?.unwrap_or_default(),
            entity: text("entityId"),
            metadata: body.get("metadata").filter(|m| m.is_object()).cloned(),
        })
    }
}

/// `clientTools`, or `tools`: a list, or by name.
fn tools(body: &Map<String, Value>) -> Result<Vec<Value>, BadChat> {
    for key in ["clientTools", "tools"] {
        match body.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::Array(list)) => return Ok(list.clone()),
            Some(Value::Object(by_name)) => {
                let named = by_name.iter().map(|(name, tool)| {
                    let mut tool = tool.clone();
                    if let Some(tool) = tool.as_object_mut() {
                        tool.entry("name").or_insert_with(|| Value::from(name.as_str()));
                    }
                    tool
                });
                return Ok(named.collect());
            }
            Some(_) => return Err(BadChat::new(format!("{key}: must be an array"))),
        }
    }
    Ok(Vec::new())
}

fn names(body: &Map<String, Value>, key: &str) -> Result<Option<Vec<String>>, BadChat> {
    match body.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(list)) => {
            let texts: Option<Vec<String>> = list.iter().map(|v| v.as_str().map(str::to_owned)).collect();
            texts.map(Some).ok_or_else(|| BadChat::new(format!("{key}: must be an array of strings")))
        }
        Some(_) => Err(BadChat::new(format!("{key}: must be an array of strings"))),
    }
}
