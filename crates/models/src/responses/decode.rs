//! Events in, chunks out. A reply is a list of items: thoughts, messages,
//! calls, and searches on the vendor's side. Each streams, then comes whole;
//! what did not stream is told from the whole item.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use toolyard_protocol::run::{FinishReason, Usage};
use toolyard_protocol::sse::SseEvent;

use super::calls::Calls;
use super::speech::Speech;
use super::wire::{Body, Event};
use super::{WIRE, fault};
use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};
use crate::lenient::filled;
use crate::sse::{Listen, SseDecoder};
use crate::unknown::Unknown;
use crate::wire::Refusal;

/// Reads one reply.
pub type Decoder = SseDecoder<Listener>;

/// Understands the events of one reply.
#[derive(Debug, Default)]
pub struct Listener {
    speech: Speech,
    calls: Calls,
    /// Items that were told.
    items: u64,
    facts: Map<String, Value>,
    unknown: Unknown,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    done: bool,
}

impl Listen for Listener {
    fn hear(&mut self, event: &SseEvent, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let named = event.event.as_deref().unwrap_or_default();
        match serde_json::from_str::<Event<'_>>(data) {
            Ok(mut event) => {
                let told = event.kind.take().filter(|kind| kind.filled().is_some());
                let kind = told.map_or(Cow::Borrowed(named), |kind| kind.0);
                if kind == "error" || (kind.is_empty() && event.error.is_some()) {
                    return Err(fault::in_stream(data));
                }
                match reading(&kind) {
                    Reading::Whole => self.unknown.fields("", event.rest.take()),
                    Reading::Nothing => return Ok(()),
                    // Its fields are read all the same if it has no name.
                    Reading::Unknown if kind.is_empty() => {}
                    Reading::Unknown => {
                        self.unknown.keep(Some(&kind), data);
                        return Ok(());
                    }
                }
                self.take(&kind, event, out)
            }
            Err(_) if named == "error" => Err(fault::in_stream(data)),
            Err(why) if concerns_us(named, data) => {
                Err(ModelError::Unreadable { detail: Detail::new(format!("{why} in: {data}")) })
            }
            Err(_) => {
                self.unknown.keep(event.event.as_deref(), data);
                Ok(())
            }
        }
    }

    fn hear_whole(&mut self, body: &str, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        match serde_json::from_str::<Body<'_>>(body) {
            Ok(body) => self.ends(body, out),
            Err(why) => Err(ModelError::Unreadable { detail: Detail::new(format!("{why} in: {body}")) }),
        }
    }

    fn close(&mut self, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let Some(reason) = self.finish else {
            return Err(ModelError::Cut { detail: Detail::new("no end of the response") });
        };
        self.done = true;
        let has_calls = !self.calls.is_empty();
        self.calls.finish(out)?;
        self.unknown.tell(&mut self.facts);
        if !self.facts.is_empty() {
            out.push(Chunk::Metadata { value: Value::Object(std::mem::take(&mut self.facts)) });
        }
        if let Some(usage) = self.usage {
            out.push(Chunk::Usage { usage });
        }
        let calls_end_it = has_calls && reason == FinishReason::Stop;
        out.push(Chunk::Finish { reason: if calls_end_it { FinishReason::ToolCalls } else { reason } });
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    fn refused(refusal: &Refusal) -> ModelError {
        fault::refused(refusal)
    }
}

impl Listener {
    fn take(&mut self, kind: &str, event: Event<'_>, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let at = event.output_index.unwrap_or(self.items);
        let part = (at, event.content_index.unwrap_or(0));
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                if let Some(text) = filled(&event.delta) {
                    self.speech.says(part, text, out);
                }
            }
            "response.output_text.done" => self.speech.said(part, filled(&event.text), out),
            "response.refusal.done" => self.speech.said(part, filled(&event.refusal), out),
            "response.output_text.annotation.added" => {
                if let Some(mut annotation) = event.annotation {
                    self.unknown.fields("annotation", annotation.rest.take());
                    self.speech.cites(part, annotation, out);
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let index = event.summary_index.or(event.content_index).unwrap_or(0);
                if let Some(text) = filled(&event.delta) {
                    self.speech.thinks((at, index), text, out);
                }
            }
            "response.function_call_arguments.delta" => {
                let piece = filled(&event.delta).unwrap_or_default();
                self.calls.grows(filled(&event.item_id), at, piece, out);
            }
            "response.function_call_arguments.done" => {
                let whole = filled(&event.arguments).unwrap_or_default();
                self.calls.completes(filled(&event.item_id), at, whole, out);
            }
            "response.output_item.added" => {
                if let Some(item) = event.item
                    && item["type"] == "function_call"
                {
                    self.calls.starts(at, &item, out);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.take_item(at, item, out);
                }
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                if let Some(body) = event.response {
                    self.note(&body);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                let mut body = event.response.unwrap_or_default();
                let status = kind.trim_start_matches("response.");
                body.status.get_or_insert_with(|| status.to_owned());
                self.ends(body, out)?;
                self.done = true;
            }
            // An event without a name.
            _ => {}
        }
        Ok(())
    }

    /// A whole item. What it streamed already is not told again.
    fn take_item(&mut self, at: u64, item: Value, out: &mut Vec<Chunk>) {
        self.items = self.items.max(at + 1);
        match item["type"].as_str() {
            None => {}
            Some("message") => self.speech.message(at, &item, &mut self.unknown, out),
            Some("reasoning") => {
                self.speech.thought(at, &item, out);
                if may_return(&item) {
                    let value = json!({ WIRE: { "at": at, "item": item } });
                    out.push(Chunk::ReasoningMetadata { value });
                }
            }
            Some("function_call") => self.calls.ends(at, item, out),
            Some(_) => out.push(Chunk::Opaque { value: json!({ WIRE: { "at": at, "item": item } }) }),
        }
    }

    /// The end of the reply.
    fn ends(&mut self, mut body: Body<'_>, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        self.note(&body);
        self.unknown.fields("response", body.rest.take());
        let counts = body.usage.as_mut().and_then(|tokens| tokens.rest.take());
        self.unknown.fields("response.usage", counts);
        if let Some(error) = body.error {
            return Err(fault::of_error(&error));
        }
        if self.items == 0 && self.calls.is_empty() && self.speech.is_silent() {
            for (at, item) in (0..).zip(body.output.into_iter().flatten()) {
                self.take_item(at, item, out);
            }
        }
        let why = body.incomplete_details.and_then(|details| details.reason);
        self.usage = body.usage.map(|tokens| tokens.usage()).or(self.usage);
        self.finish = match body.status.as_deref() {
            Some("completed") => Some(FinishReason::Stop),
            Some("incomplete") => Some(match why.as_deref() {
                Some("max_output_tokens") => FinishReason::Length,
                Some("content_filter") => FinishReason::ContentFilter,
                Some(_) | None => FinishReason::Other,
            }),
            Some("failed") => return Err(fault::of_error(&Value::Null)),
            // Stopped by somebody else, or no reply at all.
            Some(_) | None => None,
        };
        Ok(())
    }

    /// Keeps a fact about the reply; several events repeat it.
    fn note(&mut self, body: &Body<'_>) {
        for (name, value) in [("id", &body.id), ("model", &body.model)] {
            if let Some(value) = value
                && !self.facts.contains_key(name)
            {
                self.facts.insert(name.to_owned(), Value::from(value.as_str()));
            }
        }
    }
}

enum Reading {
    Whole,
    Nothing,
    Unknown,
}

/// What is read of a kind of event. Of searches and parts nothing is: what
/// matters comes with the item.
fn reading(kind: &str) -> Reading {
    const PROGRESS: [&str; 10] = [
        "content_part.",
        "reasoning_summary_part.",
        "web_search_call.",
        "file_search_call.",
        "code_interpreter_call",
        "image_generation_call.",
        "mcp_call",
        "mcp_list_tools.",
        "custom_tool_call_input.",
        "audio.",
    ];
    let Some(short) = kind.strip_prefix("response.") else { return Reading::Unknown };
    match short {
        "output_text.delta" | "output_text.done" | "output_text.annotation.added" => Reading::Whole,
        "refusal.delta" | "refusal.done" => Reading::Whole,
        "reasoning_summary_text.delta" | "reasoning_text.delta" => Reading::Whole,
        "function_call_arguments.delta" | "function_call_arguments.done" => Reading::Whole,
        "output_item.added" | "output_item.done" => Reading::Whole,
        "created" | "in_progress" | "queued" => Reading::Whole,
        "completed" | "incomplete" | "failed" | "cancelled" => Reading::Whole,
        "reasoning_summary_text.done" | "reasoning_text.done" => Reading::Nothing,
        progress if PROGRESS.iter().any(|prefix| progress.starts_with(prefix)) => Reading::Nothing,
        _ => Reading::Unknown,
    }
}

/// The vendor keeps nothing for us, so it knows a thought again only by its
/// content.
fn may_return(thought: &Value) -> bool {
    let sealed = thought["encrypted_content"].as_str().is_some_and(|text| !text.is_empty());
    sealed || thought["content"].as_array().is_some_and(|parts| !parts.is_empty())
}

/// An event that cannot be read is an error only if it is one that we need.
fn concerns_us(named: &str, data: &str) -> bool {
    match serde_json::from_str::<Value>(data) {
        Err(_) => named.is_empty() || named.starts_with("response."),
        Ok(Value::Object(event)) => match event.get("type").and_then(Value::as_str) {
            None => true,
            Some(kind) => NEEDED.contains(&kind),
        },
        Ok(_) => true,
    }
}

const NEEDED: [&str; 6] = [
    "response.output_text.delta",
    "response.output_item.added",
    "response.output_item.done",
    "response.function_call_arguments.delta",
    "response.completed",
    "response.incomplete",
];
