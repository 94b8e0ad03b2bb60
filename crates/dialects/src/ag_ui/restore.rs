//! A stored conversation as AG-UI messages, for a client that has none of it.

use serde_json::{Value, json};
use toolyard_protocol::message::{Message, Part, Speaker};
use toolyard_protocol::visible::visible_message;
use toolyard_protocol::{Guarded, MessageId, OutcomeKind, ToolOutcome, Viewer};

use super::names;
use super::transcript::Transcript;

/// Metadata of a user's message whose last part is the application's context:
/// the model reads it, people do not.
pub const CONTEXT: &str = "agUiContext";

/// A message as AG-UI has it: an answer in several steps is several messages.
pub fn restored(message: &Message, viewer: &Viewer) -> Vec<Value> {
    let with_context = message.metadata.as_ref().is_some_and(|metadata| metadata[CONTEXT] == true);
    let seen = visible_message(viewer, message);
    let parts = match (with_context, seen.parts.as_slice()) {
        (true, [said @ .., _]) => said,
        (_, parts) => parts,
    };
    match seen.speaker {
        Speaker::User => vec![user(&seen.id, parts)],
        Speaker::System => {
            let text = toolyard_protocol::message::text_of(parts);
            vec![json!({ "id": seen.id, "role": "system", "content": text })]
        }
        Speaker::Assistant => steps(&seen.id, parts),
    }
}

fn user(id: &MessageId, parts: &[Part]) -> Value {
    let plain = parts.iter().all(|part| matches!(part, Part::Text { .. } | Part::Data { .. }));
    if plain {
        let text = toolyard_protocol::message::text_of(parts);
        return json!({ "id": id, "role": "user", "content": text });
    }
    let part = |part: &Part| match part {
        Part::Text { text } => Some(json!({ "type": "text", "text": text })),
        Part::File { media_type, url: Some(url), .. } => {
            let family = media_type.split('/').next().unwrap_or_default();
            let known = ["image", "audio", "video"].contains(&family);
            let kind = if known { family } else { "document" };
            let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
            let source = match data {
                Some((_, data)) => json!({ "type": "data", "value": data, "mimeType": media_type }),
                None => json!({ "type": "url", "value": url, "mimeType": media_type }),
            };
            Some(json!({ "type": kind, "source": source }))
        }
        Part::File { .. }
        | Part::Reasoning { .. }
        | Part::Source { .. }
        | Part::ToolCall { .. }
        | Part::ToolResult { .. }
        | Part::Data { .. }
        | Part::Opaque { .. } => None,
    };
    json!({ "id": id, "role": "user", "content": parts.iter().filter_map(part).collect::<Vec<_>>() })
}

/// A step begins with what follows the results of the one before.
fn steps(turn: &MessageId, parts: &[Part]) -> Vec<Value> {
    let mut told = Transcript::default();
    let (mut step, mut thoughts, mut returned) = (1, 0, false);
    for part in parts {
        if returned && !matches!(part, Part::ToolResult { .. }) {
            (step, thoughts, returned) = (step + 1, 0, false);
        }
        let id = names::step_message(turn, step);
        match part {
            Part::Text { text } => told.say(&id, "assistant", text),
            Part::Reasoning { text, .. } if !text.is_empty() => {
                told.say(&format!("rsn_{turn}_{step}_{thoughts}"), "reasoning", text);
                thoughts += 1;
            }
            Part::ToolCall { call, tool, args, .. } => {
                told.add_call(&id, call.as_str(), tool.as_str());
                told.set_args(call.as_str(), &args_text(args));
            }
            Part::ToolResult { call, outcome, value, error, .. } => {
                returned = true;
                told.set_result(&names::result(call), call.as_str(), &result_text(*outcome, value, error));
            }
            Part::Reasoning { .. }
            | Part::File { .. }
            | Part::Source { .. }
            | Part::Data { .. }
            | Part::Opaque { .. } => {}
        }
    }
    told.into_messages()
}

/// Arguments as text; nothing for a key that may not see them.
fn args_text(args: &Guarded<Value>) -> String {
    args.shown().map_or_else(|| "{}".to_owned(), Value::to_string)
}

/// A result as text; nothing for a key that may not see it.
pub(super) fn result_text(outcome: OutcomeKind, value: &Guarded<Value>, error: &Guarded<String>) -> String {
    if value.is_hidden() && error.is_hidden() {
        return String::new();
    }
    ToolOutcome::from_parts(outcome, value.shown().cloned(), error.shown().cloned()).for_model()
}
