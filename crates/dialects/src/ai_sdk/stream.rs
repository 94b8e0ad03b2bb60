//! Chunks as server-sent events, one per chunk, and `[DONE]` at the end.

use serde_json::{Map, Value, json};

use super::chunk::{Chunk, Voice};

/// The UI message stream, version 1.
#[derive(Debug, Clone, Default)]
pub struct UiStream {
    /// Some of the first clients of version 5 refuse a reason on `finish`.
    pub without_reason: bool,
}

impl Voice for UiStream {
    fn begin(&mut self, out: &mut String) {
        // The head and the first bytes arrive although nothing is said yet.
        out.push_str(": stream-open\n\n");
    }

    fn say(&mut self, chunk: &Chunk<'_>, out: &mut String) {
        // Pieces of text are most of a stream.
        if let Chunk::Text { id, text } = chunk {
            return delta(out, "text-delta", id, text);
        }
        if let Chunk::Reasoning { id, text } = chunk {
            return delta(out, "reasoning-delta", id, text);
        }
        let Some(value) = self.value(chunk) else {
            out.push_str("data: [DONE]\n\n");
            return;
        };
        out.push_str("data: ");
        out.push_str(&value.to_string());
        out.push_str("\n\n");
    }

    fn keep_alive(&self) -> &'static str {
        ": keep-alive\n\n"
    }
}

fn delta(out: &mut String, kind: &str, id: &str, text: &str) {
    out.push_str("data: {\"type\":\"");
    out.push_str(kind);
    out.push_str("\",\"id\":\"");
    out.push_str(id);
    out.push_str("\",\"delta\":");
    out.push_str(&Value::from(text).to_string());
    out.push_str("}\n\n");
}

/// Leaves out what is not there: a `null` in an optional field ends the chat
/// of a real client.
fn object(fields: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Value {
    let present = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}

impl UiStream {
    /// None for the end.
    fn value(&self, chunk: &Chunk<'_>) -> Option<Value> {
        Some(match chunk {
            Chunk::Start { message, metadata } => object([
                ("type", Some(json!("start"))),
                ("messageId", Some(json!(message))),
                ("messageMetadata", metadata.clone()),
            ]),
            Chunk::StartStep { .. } => json!({ "type": "start-step" }),
            Chunk::FinishStep { .. } => json!({ "type": "finish-step" }),
            Chunk::TextStart { id } => json!({ "type": "text-start", "id": id }),
            Chunk::Text { id, text } => json!({ "type": "text-delta", "id": id, "delta": text }),
            Chunk::TextEnd { id } => json!({ "type": "text-end", "id": id }),
            Chunk::ReasoningStart { id } => json!({ "type": "reasoning-start", "id": id }),
            Chunk::Reasoning { id, text } => json!({ "type": "reasoning-delta", "id": id, "delta": text }),
            Chunk::ReasoningEnd { id } => json!({ "type": "reasoning-end", "id": id }),
            Chunk::InputStart { call, tool } => {
                json!({ "type": "tool-input-start", "toolCallId": call, "toolName": tool })
            }
            Chunk::Input { call, text } => {
                json!({ "type": "tool-input-delta", "toolCallId": call, "inputTextDelta": text })
            }
            Chunk::InputAvailable { call, tool, input } => {
                json!({ "type": "tool-input-available", "toolCallId": call, "toolName": tool, "input": input })
            }
            Chunk::InputError { call, tool, input, error } => json!({
                "type": "tool-input-error", "toolCallId": call, "toolName": tool, "input": input, "errorText": error
            }),
            Chunk::Output { call, output, preliminary } => object([
                ("type", Some(json!("tool-output-available"))),
                ("toolCallId", Some(json!(call))),
                ("output", Some((*output).clone())),
                ("preliminary", preliminary.then(|| json!(true))),
            ]),
            Chunk::OutputError { call, error } => {
                json!({ "type": "tool-output-error", "toolCallId": call, "errorText": error })
            }
            Chunk::OutputDenied { call, .. } => json!({ "type": "tool-output-denied", "toolCallId": call }),
            Chunk::ApprovalRequest { wait, call } => {
                json!({ "type": "tool-approval-request", "approvalId": wait, "toolCallId": call })
            }
            Chunk::Source { id, url, title } => object([
                ("type", Some(json!("source-url"))),
                ("sourceId", Some(json!(id))),
                ("url", Some(json!(url))),
                ("title", title.map(|title| json!(title))),
            ]),
            Chunk::Document { id, title, file } => json!({
                "type": "source-document", "sourceId": id, "mediaType": "text/plain", "title": title, "filename": file,
            }),
            Chunk::File { url, media_type } => json!({ "type": "file", "url": url, "mediaType": media_type }),
            Chunk::Data { name, id, data, transient } => object([
                ("type", Some(json!(format!("data-{name}")))),
                ("id", id.map(|id| json!(id))),
                ("data", Some(data.clone())),
                ("transient", transient.then(|| json!(true))),
            ]),
            Chunk::Error { text } => json!({ "type": "error", "errorText": text }),
            Chunk::Abort => json!({ "type": "abort" }),
            Chunk::Finish { reason, metadata, .. } => object([
                ("type", Some(json!("finish"))),
                ("finishReason", (!self.without_reason).then(|| json!(reason.as_str()))),
                ("messageMetadata", metadata.clone()),
            ]),
            Chunk::Done => return None,
        })
    }
}
