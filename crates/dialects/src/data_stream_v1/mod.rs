//! The data stream of AI SDK 4 and older clients: one line per chunk, a code
//! and JSON. It has no codes for approvals, denials and progress: they travel
//! as data (`2`), and a failed call as a result with `error`.

use serde_json::{Value, json};
use toolyard_protocol::run::Usage;

use crate::ai_sdk::{Chunk, Voice};

/// The data stream, version 1.
#[derive(Debug, Clone, Default)]
pub struct DataStream;

impl Voice for DataStream {
    fn begin(&mut self, _out: &mut String) {}

    fn say(&mut self, chunk: &Chunk<'_>, out: &mut String) {
        let mut line = |code: char, value: &Value| {
            out.push(code);
            out.push(':');
            out.push_str(&value.to_string());
            out.push('\n');
        };
        match chunk {
            Chunk::StartStep { message } => line('f', &json!({ "messageId": message })),
            Chunk::Text { text, .. } => line('0', &json!(text)),
            Chunk::Reasoning { text, .. } => line('g', &json!(text)),
            Chunk::InputStart { call, tool } => line('b', &json!({ "toolCallId": call, "toolName": tool })),
            Chunk::Input { call, text } => line('c', &json!({ "toolCallId": call, "argsTextDelta": text })),
            Chunk::InputAvailable { call, tool, input } => {
                line('9', &json!({ "toolCallId": call, "toolName": tool, "args": input }));
            }
            Chunk::InputError { call, tool, input, error } => {
                line('9', &json!({ "toolCallId": call, "toolName": tool, "args": input }));
                line('a', &json!({ "toolCallId": call, "result": { "error": error } }));
            }
            Chunk::Output { call, output, preliminary: false } => {
                line('a', &json!({ "toolCallId": call, "result": output }));
            }
            Chunk::Output { call, output, preliminary: true } => {
                line('2', &json!([{ "type": "tool_progress", "toolCallId": call, "output": output }]));
            }
            Chunk::OutputError { call, error } | Chunk::OutputDenied { call, error } => {
                line('a', &json!({ "toolCallId": call, "result": { "error": error } }));
            }
            Chunk::ApprovalRequest { wait, call } => {
                line(
                    '2',
                    &json!([{ "type": "permission_required", "approvalId": wait, "toolCallId": call }]),
                );
            }
            Chunk::Source { id, url, title } => {
                let mut source = json!({ "sourceType": "url", "id": id, "url": url });
                if let Some(title) = title {
                    source["title"] = json!(title);
                }
                line('h', &source);
            }
            // The protocol has sources with an address only: the data holds the others.
            Chunk::Document { .. } => {}
            Chunk::File { url, media_type } => {
                let data = url.split_once(";base64,").map_or(*url, |(_, data)| data);
                line('k', &json!({ "mimeType": media_type, "data": data }));
            }
            Chunk::Data { name, data, .. } => line('2', &json!([{ "type": name, "data": data }])),
            Chunk::FinishStep { reason, usage } => {
                let usage = tokens(usage);
                line('e', &json!({ "finishReason": reason.as_str(), "usage": usage, "isContinued": false }));
            }
            Chunk::Finish { reason, usage, .. } => {
                line('d', &json!({ "finishReason": reason.as_str(), "usage": tokens(usage) }));
            }
            Chunk::Error { text } => line('3', &json!(text)),
            Chunk::Start { .. }
            | Chunk::TextStart { .. }
            | Chunk::TextEnd { .. }
            | Chunk::ReasoningStart { .. }
            | Chunk::ReasoningEnd { .. }
            | Chunk::Abort
            | Chunk::Done => {}
        }
    }

    fn knows_bare_results(&self) -> bool {
        false
    }

    fn keep_alive(&self) -> &'static str {
        // There are no comments; empty data says nothing.
        "2:[]\n"
    }
}

fn tokens(usage: &Usage) -> Value {
    json!({ "promptTokens": usage.input_tokens, "completionTokens": usage.output_tokens })
}
