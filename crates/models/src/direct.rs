//! A model that does not think: the first message says which tool to call, and
//! it calls it once. So a tool that somebody calls by hand has a run of its
//! own, with the same gate, waits and log as every other call.
//!
//! It obeys whoever speaks to it. No request and no user may choose it: only
//! the runtime does, for routes that have checked what the caller may call.

use futures::StreamExt;
use futures::stream;
use serde_json::{Value, json};
use toolyard_protocol::ToolName;
use toolyard_protocol::message::Part;
use toolyard_protocol::run::{FinishReason, Usage};

use crate::chunk::Chunk;
use crate::error::ModelError;
use crate::model::{Model, ModelStream};
use crate::request::{ChatTurn, Request};

/// No list names it.
pub const PROVIDER: &str = "toolyard-direct";
pub const MODEL: &str = "toolyard-direct/call";
/// The data part that holds `{tool, arguments}`.
const MARK: &str = "directCall";

/// What says to call a tool.
pub fn part(tool: &ToolName, arguments: &Value) -> Part {
    Part::Data { name: MARK.to_owned(), value: json!({ "tool": tool, "arguments": arguments }) }
}

#[derive(Debug, Clone, Default)]
pub struct Direct;

impl Model for Direct {
    fn stream(&self, request: Request) -> ModelStream {
        let mut chunks: Vec<Result<Chunk, ModelError>> = Vec::new();
        let call = asked(&request);
        let reason = if call.is_some() { FinishReason::ToolCalls } else { FinishReason::Stop };
        chunks.extend(call.map(Ok));
        chunks.push(Ok(Chunk::Usage { usage: Usage::default() }));
        chunks.push(Ok(Chunk::Finish { reason }));
        stream::iter(chunks).boxed()
    }

    fn provider(&self) -> &str {
        PROVIDER
    }
}

/// The call that the first message asks for, if nothing was called yet. Whatever
/// is said later calls nothing: others may speak there.
fn asked(request: &Request) -> Option<Chunk> {
    let begun = |turn: &ChatTurn| matches!(turn, ChatTurn::ToolResults(_) | ChatTurn::Assistant { .. });
    if request.turns.iter().any(begun) {
        return None;
    }
    let first = request.turns.iter().find_map(|turn| match turn {
        ChatTurn::User { parts, .. } => Some(parts),
        ChatTurn::System(_) | ChatTurn::Assistant { .. } | ChatTurn::ToolResults(_) => None,
    })?;
    let value = first.iter().find_map(|part| match part {
        Part::Data { name, value } if name == MARK => Some(value),
        _ => None,
    })?;
    Some(Chunk::ToolCall {
        index: 0,
        name: value["tool"].as_str()?.to_owned(),
        args_text: value["arguments"].to_string(),
        vendor_id: None,
        metadata: Value::Null,
    })
}
