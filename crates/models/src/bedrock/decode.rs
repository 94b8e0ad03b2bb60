//! Bytes in, chunks out. No IO: the same bytes give the same chunks at every
//! split.

use serde::Deserialize;
use serde_json::{Map, Value};
use toolyard_protocol::run::{FinishReason, Usage};

use super::blocks::Blocks;
use super::fault;
use super::frames::{Frame, Frames, Kind};
use super::shapes::{
    Block, BlockDelta, BlockStart, BlockStop, Citation, Delta, MessageStop, Start, Tail, Tokens, Whole,
};
use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};
use crate::unknown::Unknown;
use crate::wire::{Decode, Refusal, unless_filtered};

/// Reads one reply of Converse.
#[derive(Debug, Default)]
pub struct Decoder {
    frames: Frames,
    blocks: Blocks,
    facts: Map<String, Value>,
    unknown: Unknown,
    /// Something of the reply was told.
    told: bool,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    seen: u64,
    done: bool,
}

impl Decode for Decoder {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        self.frames.push(bytes);
        while !self.done
            && let Some(frame) = self.frames.next()?
        {
            let before = out.len();
            let taken = self.take_frame(&frame, out);
            self.told |= out.len() > before;
            taken?;
        }
        Ok(())
    }

    fn push_whole(&mut self, body: &[u8], out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let whole: Whole<'_> = read(body)?;
        let output = whole.output.unwrap_or_default();
        let message = output.message.unwrap_or_default();
        for (place, rest) in [("", whole.rest), ("output", output.rest), ("output.message", message.rest)] {
            self.unknown.fields(place, rest);
        }
        self.note("additionalModelResponseFields", whole.additional_model_response_fields);
        self.note("trace", whole.trace);
        let content = message.content;
        for (key, block) in (0u64..).zip(content.into_iter().flatten()) {
            self.take_block(key, block, out)?;
            self.blocks.stop(key, out);
        }
        self.told = !out.is_empty();
        self.finish = whole.stop_reason.as_deref().map(finish_reason);
        self.count(whole.usage);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let Some(reason) = self.finish else {
            return Err(ModelError::Cut { detail: Detail::new("no stop reason before the end") });
        };
        let (start, has_calls) = (out.len(), self.blocks.has_calls());
        self.blocks.finish(out);
        self.unknown.tell(&mut self.facts);
        if !self.facts.is_empty() {
            out.push(Chunk::Metadata { value: Value::Object(std::mem::take(&mut self.facts)) });
        }
        if let Some(usage) = self.usage {
            out.push(Chunk::Usage { usage });
        }
        let reason = match reason {
            FinishReason::Stop if has_calls => FinishReason::ToolCalls,
            FinishReason::ToolCalls if !has_calls => FinishReason::Stop,
            other => other,
        };
        out.push(Chunk::Finish { reason });
        unless_filtered(self.told, start, out)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    fn events_seen(&self) -> u64 {
        self.seen
    }

    fn refused(refusal: &Refusal) -> ModelError {
        fault::of_refusal(refusal)
    }
}

impl Decoder {
    pub fn new() -> Self {
        Self::default()
    }

    fn take_frame(&mut self, frame: &Frame, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        self.seen += 1;
        match frame.kind {
            Kind::Event => self.take_event(&frame.name, &frame.payload, out),
            Kind::Exception | Kind::Error => Err(fault::in_stream(frame)),
            Kind::Unknown => {
                self.keep(&frame.name, &frame.payload);
                Ok(())
            }
        }
    }

    fn take_event(&mut self, name: &str, payload: &[u8], out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        match name {
            "contentBlockStart" => {
                let event: BlockStart<'_> = read(payload)?;
                match event.start {
                    Some(mut start) if start.is_known() => {
                        self.unknown.fields("", event.rest);
                        self.unknown.fields("start", start.rest.take());
                        if let Some(tool) = start.tool_use.as_mut() {
                            self.unknown.fields("start.toolUse", tool.rest.take());
                        }
                        self.blocks.start(event.content_block_index.unwrap_or(0), start, out)
                    }
                    Some(_) | None => {
                        self.keep(name, payload);
                        Ok(())
                    }
                }
            }
            "contentBlockDelta" => {
                let event: BlockDelta<'_> = read(payload)?;
                match event.delta {
                    Some(delta) if delta.is_known() => {
                        self.unknown.fields("", event.rest);
                        self.take_delta(event.content_block_index.unwrap_or(0), delta, out);
                    }
                    Some(_) | None => self.keep(name, payload),
                }
                Ok(())
            }
            "contentBlockStop" => {
                let BlockStop { content_block_index } = read(payload)?;
                self.blocks.stop(content_block_index, out);
                Ok(())
            }
            "messageStop" => {
                let MessageStop { stop_reason, additional_model_response_fields, rest, .. } = read(payload)?;
                self.unknown.fields("", rest);
                self.finish = Some(stop_reason.as_deref().map_or(FinishReason::Other, finish_reason));
                self.note("additionalModelResponseFields", additional_model_response_fields);
                // Usage may have come first.
                self.done = self.usage.is_some();
                Ok(())
            }
            "metadata" => {
                let Tail { usage, trace, rest, .. } = read(payload)?;
                self.unknown.fields("", rest);
                self.count(usage);
                self.note("trace", trace);
                // Nothing follows the two; some proxies turn them round.
                self.done = self.finish.is_some();
                Ok(())
            }
            // It says that the assistant speaks.
            "messageStart" => Ok(()),
            // New events are no error.
            _ => {
                self.keep(name, payload);
                Ok(())
            }
        }
    }

    fn count(&mut self, tokens: Option<Tokens<'_>>) {
        self.usage = tokens.map(|mut tokens| {
            self.unknown.fields("usage", tokens.rest.take());
            tokens.usage()
        });
    }

    fn take_delta(&mut self, key: u64, delta: Delta<'_>, out: &mut Vec<Chunk>) {
        self.unknown.fields("delta", delta.rest);
        if let Some(text) = delta.text.filter(|text| !text.is_empty()) {
            self.blocks.text(key, text, out);
        }
        if let Some(piece) = delta.tool_use.and_then(|piece| piece.input) {
            self.blocks.input(key, piece, out);
        }
        if let Some(pieces) = delta.tool_result {
            self.blocks.foreign_result(key, pieces);
        }
        if let Some(mut thought) = delta.reasoning_content {
            self.unknown.fields("delta.reasoningContent", thought.rest.take());
            self.blocks.thought(key, thought, out);
        }
        if let Some(citation) = delta.citation {
            cite(&citation, out);
            self.blocks.cites(key, citation);
        }
    }

    /// A block of a reply that was not streamed.
    fn take_block(&mut self, key: u64, block: Block<'_>, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        self.unknown.fields("output.message.content", block.rest);
        let reasoning_content = block.reasoning_content.map(|thought| match thought.reasoning_text {
            Some(inner) => *inner,
            None => thought,
        });
        self.take_delta(key, Delta { text: block.text, reasoning_content, ..Delta::default() }, out);
        if let Some(cited) = block.citations_content {
            for piece in cited.content.into_iter().flatten() {
                self.take_delta(key, Delta { text: piece.text, ..Delta::default() }, out);
            }
            for citation in cited.citations.into_iter().flatten() {
                self.take_delta(key, Delta { citation: Some(citation), ..Delta::default() }, out);
            }
        }
        if let Some(mut tool) = block.tool_use {
            let input = tool.input.take();
            self.blocks.start(key, Start { tool_use: Some(tool), ..Start::default() }, out)?;
            let input = input.map(|input| input.to_string()).unwrap_or_default();
            self.blocks.input(key, input, out);
        }
        Ok(())
    }

    fn keep(&mut self, name: &str, payload: &[u8]) {
        let name = Some(name).filter(|name| !name.is_empty());
        self.unknown.keep(name, &String::from_utf8_lossy(payload));
    }

    fn note(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.facts.insert(name.to_owned(), value);
        }
    }
}

/// The vendor says which page, and not which of its words.
fn cite(citation: &Value, out: &mut Vec<Chunk>) {
    let Ok(mut citation) = Citation::deserialize(citation) else { return };
    if let Some(url) = citation.url() {
        let title = citation.title.filter(|title| !title.is_empty());
        out.push(Chunk::Source { url, title, start: None, end: None });
    }
}

fn read<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Result<T, ModelError> {
    serde_json::from_slice(payload).map_err(|why| {
        let text = String::from_utf8_lossy(payload);
        ModelError::Unreadable { detail: Detail::new(format!("{why} in: {text}")) }
    })
}

fn finish_reason(vendor: &str) -> FinishReason {
    match vendor {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "guardrail_intervened" | "content_filtered" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}
