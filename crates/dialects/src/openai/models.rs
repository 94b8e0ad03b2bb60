//! Agents as models.

use serde_json::{Value, json};
use toolyard_protocol::{AgentName, Timestamp};

/// An agent that can be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelEntry {
    pub name: AgentName,
    pub created_at: Timestamp,
}

pub fn model_view(entry: &ModelEntry) -> Value {
    json!({
        "id": entry.name,
        "object": "model",
        "created": entry.created_at.millis() / 1000,
        "owned_by": "toolyard",
    })
}

pub fn model_list(entries: &[ModelEntry]) -> Value {
    json!({ "object": "list", "data": entries.iter().map(model_view).collect::<Vec<_>>() })
}
