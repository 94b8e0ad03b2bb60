//! What passes through hooks: plain values, whatever the vendor's form is.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_protocol::run::Usage;
use toolyard_protocol::{CallId, OutcomeKind};

/// Who says a message of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SaidBy {
    System,
    User,
    Assistant,
    /// The result of a tool.
    Tool,
}

/// A message that the model is about to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    pub role: SaidBy,
    pub content: String,
    /// Its place in the conversation. A message without one is the plugin's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
}

/// A tool that the model is offered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskedTool {
    pub name: String,
    pub description: String,
    pub parameters: Value,
}

/// All that the model is asked with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    pub messages: Vec<Said>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// A plugin may take tools away and describe them; it cannot add any.
    #[serde(default)]
    pub tools: Vec<AskedTool>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub provider_tools: Value,
}

/// A call that the model makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Called {
    pub id: CallId,
    pub name: String,
    pub args: Value,
}

/// A call and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    pub id: CallId,
    pub name: String,
    #[serde(default)]
    pub args: Value,
    #[serde(default)]
    pub result: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// It comes from outside. A plugin may say so of any; it cannot unsay it.
    #[serde(default)]
    pub untrusted: bool,
}

/// A source that the vendor names. Positions count characters of the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cited {
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_index: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_index: Option<u32>,
}

/// The end of a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    pub text: String,
    #[serde(default)]
    pub sources: Vec<Cited>,
    /// What the vendor said of it in its own words.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub provider_metadata: Value,
    /// The calls of the turn.
    #[serde(default)]
    pub tool_calls: Vec<Called>,
    /// How those that ended did.
    #[serde(default)]
    pub tool_results: Vec<Ended>,
    /// Of the whole run so far.
    #[serde(default)]
    pub usage: Usage,
    /// In millionths of a dollar, if the model has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
}

/// A call of an earlier step of the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    pub id: CallId,
    pub name: String,
    pub outcome: OutcomeKind,
    #[serde(default)]
    pub result: Value,
}
