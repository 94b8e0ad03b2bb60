//! Conversation items and their typed pieces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::guarded::Guarded;
use crate::ids::{BranchId, CallId, EntityId, FileId, MessageId, RunId, SpaceId};
use crate::name::ToolName;
use crate::outcome::{OutcomeKind, ToolOutcome};
use crate::time::Timestamp;
use crate::tool::Visibility;

/// Who speaks, as a model understands it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum Speaker {
    User,
    Assistant,
    System,
}

impl Speaker {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
    pub fn parse(text: &str) -> Option<Self> {
        [Self::User, Self::Assistant, Self::System].into_iter().find(|s| s.as_str() == text)
    }
}

/// A typed piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(tag = "type", rename_all = "kebab-case")]
#[ts(optional_fields)]
pub enum Part {
    #[serde(rename_all = "camelCase")]
    Text { text: String },
    /// What the model thought. Shown to public keys by a setting of the space.
    #[serde(rename_all = "camelCase")]
    Reasoning {
        text: String,
        /// Signed or encrypted thinking that a vendor wants back.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        metadata: Guarded<Value>,
    },
    #[serde(rename_all = "camelCase")]
    File {
        media_type: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<FileId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    #[serde(rename_all = "camelCase")]
    Source {
        id: String,
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start_index: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end_index: Option<u32>,
    },
    /// A call in the message of a run's turn.
    #[serde(rename_all = "camelCase")]
    ToolCall {
        call: CallId,
        tool: ToolName,
        visibility: Visibility,
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        args: Guarded<Value>,
        /// What a vendor wants back with the call.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        metadata: Guarded<Value>,
    },
    /// The outcome of a call of the same message.
    #[serde(rename_all = "camelCase")]
    ToolResult {
        call: CallId,
        tool: ToolName,
        visibility: Visibility,
        outcome: OutcomeKind,
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        value: Guarded<Value>,
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        error: Guarded<String>,
    },
    /// Data of a client or a plugin that models do not read.
    #[serde(rename_all = "camelCase")]
    Data { name: String, value: Value },
    /// A vendor's own block, such as a search on its side. It goes back
    /// unchanged, at its place; nobody else reads it.
    #[serde(rename_all = "camelCase")]
    Opaque {
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        value: Guarded<Value>,
    },
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
    pub fn tool_result(call: CallId, tool: ToolName, visibility: Visibility, outcome: &ToolOutcome) -> Self {
        Self::ToolResult {
            call,
            tool,
            visibility,
            outcome: outcome.kind(),
            value: outcome.value().cloned().map_or(Guarded::Hidden, Guarded::Shown),
            error: outcome.text().map(str::to_owned).map_or(Guarded::Hidden, Guarded::Shown),
        }
    }
}

/// The text of some parts, one after the other.
pub fn text_of(parts: &[Part]) -> String {
    parts
        .iter()
        .filter_map(|p| match p {
            Part::Text { text } => Some(text.as_str()),
            Part::Reasoning { .. }
            | Part::File { .. }
            | Part::Source { .. }
            | Part::ToolCall { .. }
            | Part::ToolResult { .. }
            | Part::Data { .. }
            | Part::Opaque { .. } => None,
        })
        .collect()
}

/// A row of a space.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub id: MessageId,
    pub space: SpaceId,
    /// Its place in the space's order.
    pub seq: i64,
    pub speaker: Speaker,
    pub entity: Option<EntityId>,
    pub run: Option<RunId>,
    pub branch: BranchId,
    pub parts: Vec<Part>,
    /// Public keys see reasoning parts.
    pub show_reasoning: bool,
    pub metadata: Option<Value>,
    pub created_at: Timestamp,
}
