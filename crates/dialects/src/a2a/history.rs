//! Messages of a space as A2A messages, and back.
//!
//! A client's message id and other words that the gateway has no use for ride
//! in the metadata of the stored message, so that its history reads as it was
//! sent. Ids are the client's and may repeat: they name nothing here.

use serde_json::{Map, Value, json};
use toolyard_protocol::message::{self as words, Speaker};
use toolyard_protocol::visible::visible_message;
use toolyard_protocol::{RunId, Viewer};

use super::model::{Content, Message, Part, Role};

/// The member of a stored message's metadata.
const MEMBER: &str = "a2a";

/// What of a message is kept beside its parts.
pub fn kept(message: &Message) -> Value {
    let mut own = Map::new();
    own.insert("messageId".to_owned(), Value::from(message.id.as_str()));
    let data: Vec<usize> = message
        .parts
        .iter()
        .enumerate()
        .filter(|(_, part)| matches!(part.content, Content::Data(_)))
        .map(|(i, _)| i)
        .collect();
    if !data.is_empty() {
        own.insert("data".to_owned(), json!(data));
    }
    if !message.references.is_empty() {
        own.insert("referenceTaskIds".to_owned(), json!(message.references));
    }
    json!({ MEMBER: own })
}

/// The id that the client gave a message.
pub fn message_id(metadata: Option<&Value>) -> Option<&str> {
    metadata?.get(MEMBER)?.get("messageId")?.as_str().filter(|id| !id.is_empty())
}

/// A stored message as its reader sees it.
pub fn history_message(stored: &words::Message, run: &RunId, context: &str, viewer: &Viewer) -> Message {
    let seen = visible_message(viewer, stored);
    let own = seen.metadata.as_ref().and_then(|m| m.get(MEMBER));
    let data: Vec<u64> = own
        .and_then(|own| own.get("data"))
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_u64).collect())
        .unwrap_or_default();
    let parts = (0u64..).zip(&seen.parts).filter_map(|(i, part)| part_of(part, data.contains(&i))).collect();
    let references = own
        .and_then(|own| own.get("referenceTaskIds"))
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    Message {
        id: message_id(seen.metadata.as_ref()).unwrap_or(seen.id.as_str()).to_owned(),
        role: match seen.speaker {
            Speaker::User | Speaker::System => Role::User,
            Speaker::Assistant => Role::Agent,
        },
        parts,
        context: Some(context.to_owned()),
        task: Some(run.to_string()),
        metadata: None,
        extensions: Vec::new(),
        references,
    }
}

fn part_of(part: &words::Part, was_data: bool) -> Option<Part> {
    match part {
        words::Part::Text { text } => {
            let data = was_data.then(|| serde_json::from_str(text).ok()).flatten();
            Some(data.map_or_else(|| Part::text(text.clone()), Part::data))
        }
        words::Part::File { media_type, file, url, name } => {
            let place = url.clone().or_else(|| file.as_ref().map(|id| format!("/api/files/{id}")))?;
            Some(Part {
                content: Content::Url(place),
                media_type: Some(media_type.clone()),
                filename: name.clone(),
                metadata: None,
            })
        }
        // The mark that a scripted agent reads is no word of the client.
        words::Part::Data { name, .. } if name == MEMBER => None,
        words::Part::Data { name: _, value } => Some(Part::data(value.clone())),
        words::Part::Reasoning { .. }
        | words::Part::Source { .. }
        | words::Part::ToolCall { .. }
        | words::Part::ToolResult { .. }
        | words::Part::Opaque { .. } => None,
    }
}

/// The text that a model reads of a data part.
pub fn data_text(value: &Value) -> String {
    value.to_string()
}
