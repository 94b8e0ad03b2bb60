//! Events in, chunks out. Each event is a small reply of its own: some parts,
//! and near the end a finish reason, usage and grounding.

use serde_json::{Map, Value, json};
use toolyard_protocol::run::{FinishReason, Usage};
use toolyard_protocol::sse::SseEvent;

use super::grounding::Grounding;
use super::wire::{Candidate, Part, Piece};
use super::{WIRE, fault};
use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};
use crate::lenient::{Object, filled};
use crate::sse::{Listen, SseDecoder};
use crate::unknown::Unknown;
use crate::wire::{Refusal, parse};

/// Reads one reply.
pub type Decoder = SseDecoder<Listener>;

/// Understands the events of one reply.
#[derive(Debug, Default)]
pub struct Listener {
    /// All text so far: grounding points into it.
    text: String,
    /// Parts so far.
    at: u64,
    calls: usize,
    grounding: Grounding,
    facts: Map<String, Value>,
    unknown: Unknown,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    done: bool,
}

impl Listen for Listener {
    fn hear(&mut self, event: &SseEvent, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let data = event.data.trim();
        match event.event.as_deref() {
            _ if data == "[DONE]" => {
                self.done = true;
                Ok(())
            }
            Some("error") => Err(fault::in_stream(&parse(data))),
            None | Some("message") => self.hear_whole(data, out),
            // A named event of somebody in between: read it if it is ours.
            Some(_) => match serde_json::from_str(data) {
                Ok(piece) => self.take(piece, out),
                Err(_) => {
                    self.unknown.keep(event.event.as_deref(), data);
                    Ok(())
                }
            },
        }
    }

    fn hear_whole(&mut self, body: &str, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let unreadable = |why: serde_json::Error| ModelError::Unreadable {
            detail: Detail::new(format!("{why} in: {body}")),
        };
        // Servers that do not stream events give a list of them.
        if body.trim_start().starts_with('[') {
            let pieces: Vec<Piece<'_>> = serde_json::from_str(body).map_err(unreadable)?;
            return pieces.into_iter().try_for_each(|piece| self.take(piece, out));
        }
        let piece = serde_json::from_str(body).map_err(unreadable)?;
        self.take(piece, out)
    }

    fn close(&mut self, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let Some(reason) = self.finish else {
            return Err(ModelError::Cut { detail: Detail::new("no finish reason before the end") });
        };
        self.done = true;
        self.grounding.tell(&self.text, &mut self.facts, out);
        self.unknown.tell(&mut self.facts);
        if !self.facts.is_empty() {
            out.push(Chunk::Metadata { value: Value::Object(std::mem::take(&mut self.facts)) });
        }
        if let Some(usage) = self.usage {
            out.push(Chunk::Usage { usage });
        }
        let calls_end_it = self.calls > 0 && reason == FinishReason::Stop;
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
    fn take(&mut self, piece: Piece<'_>, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        if let Some(error) = piece.error {
            return Err(fault::in_stream(&error));
        }
        self.unknown.fields("", piece.rest);
        self.note("id", filled(&piece.response_id));
        self.note("model", filled(&piece.model_version));
        if let Some(mut tokens) = piece.usage_metadata {
            self.unknown.fields("usageMetadata", tokens.rest.take());
            // The vendor counts on with every event: the last one holds.
            self.usage = Some(tokens.usage());
        }
        let told = piece.prompt_feedback.unwrap_or_default();
        self.unknown.fields("promptFeedback", told.rest);
        let blocked = told.block_reason.map(|reason| (reason, told.block_reason_message));
        if let Some((reason, message)) = blocked {
            let detail = Detail::new(format!("{reason}: {}", message.unwrap_or_default()));
            return Err(ModelError::Filtered { detail });
        }
        let first = |candidate: &Candidate<'_>| candidate.index.unwrap_or(0) == 0;
        for candidate in piece.candidates.into_iter().flatten().filter(first) {
            self.take_candidate(candidate, out)?;
        }
        Ok(())
    }

    fn take_candidate(&mut self, candidate: Candidate<'_>, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        self.unknown.fields("candidates", candidate.rest);
        let content = candidate.content.unwrap_or_default();
        self.unknown.fields("candidates.content", content.rest);
        for Object(part) in content.parts.into_iter().flatten() {
            let Some(part) = part else { continue };
            self.take_part(part, out)?;
        }
        if let Some(grounding) = candidate.grounding_metadata {
            self.grounding.take(&grounding);
        }
        let Some(reason) = candidate.finish_reason else { return Ok(()) };
        if is_mishap(&reason) && self.at == 0 {
            // The model stumbled before it said a word: another try may work.
            let detail = Detail::new(format!("{reason}: {}", candidate.finish_message.unwrap_or_default()));
            return Err(ModelError::Overloaded { status: 502, retry_after: None, detail });
        }
        self.note("finishMessage", candidate.finish_message.as_deref());
        self.finish = finish_reason(&reason).or(self.finish);
        Ok(())
    }

    fn take_part(&mut self, part: Part<'_>, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let (at, signature) = (self.at, part.signature);
        if let Some(call) = part.call {
            self.at += 1;
            self.unknown.fields("candidates.content.parts", part.rest);
            return self.take_call(at, call, signature, out);
        }
        let thought = part.thought == Some(Value::Bool(true));
        let text = match part.text {
            Some(Value::String(text)) => {
                self.unknown.fields("candidates.content.parts", part.rest);
                text
            }
            // A signature may come alone.
            None if part.rest.is_none() && part.thought.is_none() => String::new(),
            odd => {
                self.at += 1;
                let mut whole = part.rest.map_or_else(Map::new, |rest| *rest);
                let known = [("text", odd), ("thought", part.thought), ("thoughtSignature", signature)];
                for (name, value) in known {
                    whole.extend(value.map(|value| (name.to_owned(), value)));
                }
                out.push(Chunk::Opaque { value: json!({ WIRE: { "at": at, "part": whole } }) });
                return Ok(());
            }
        };
        if text.is_empty() && signature.is_none() {
            return Ok(());
        }
        self.at += 1;
        let chars = text.chars().count();
        if thought {
            if !text.is_empty() {
                out.push(Chunk::ReasoningDelta { text });
            }
            if let Some(signature) = signature {
                let value = json!({ WIRE: { "at": at, "thoughtSignature": signature, "chars": chars } });
                out.push(Chunk::ReasoningMetadata { value });
            }
            return Ok(());
        }
        if !text.is_empty() {
            self.text.push_str(&text);
            out.push(Chunk::TextDelta { text });
        }
        if let Some(signature) = signature {
            // It belongs to this part's text only, so that is remembered too.
            let value = json!({ WIRE: { "at": at, "thoughtSignature": signature, "chars": chars } });
            out.push(Chunk::Opaque { value });
        }
        Ok(())
    }

    /// Calls come whole.
    fn take_call(
        &mut self,
        at: u64,
        mut call: Value,
        signature: Option<Value>,
        out: &mut Vec<Chunk>,
    ) -> Result<(), ModelError> {
        let Some(name) = call["name"].as_str().filter(|name| !name.is_empty()).map(str::to_owned) else {
            return Err(ModelError::Unreadable { detail: Detail::new("a tool call has no name") });
        };
        let args_text = match call.get_mut("args").map(Value::take) {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(args) => args.to_string(),
        };
        let vendor_id = call["id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
        let mut kept = json!({ "at": at });
        if let Some(id) = &vendor_id {
            kept["id"] = Value::from(id.as_str());
        }
        if let Some(signature) = signature {
            kept["thoughtSignature"] = signature;
        }
        if let Value::Object(mut rest) = call {
            rest.retain(|name, _| !matches!(name.as_str(), "name" | "args" | "id"));
            self.unknown.rest_of("candidates.content.parts.functionCall", rest);
        }
        let index = self.calls;
        self.calls += 1;
        out.push(Chunk::ToolInputStart { index, name: name.clone() });
        out.push(Chunk::ToolInputDelta { index, text: args_text.clone() });
        out.push(Chunk::ToolCall { index, name, args_text, vendor_id, metadata: json!({ WIRE: kept }) });
        Ok(())
    }

    /// Keeps a fact about the reply; every event repeats it.
    fn note(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value
            && !self.facts.contains_key(name)
        {
            self.facts.insert(name.to_owned(), Value::from(value));
        }
    }
}

/// The model wrote something that the vendor cannot read itself.
fn is_mishap(reason: &str) -> bool {
    matches!(reason, "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL")
}

fn finish_reason(vendor: &str) -> Option<FinishReason> {
    match vendor {
        "" | "FINISH_REASON_UNSPECIFIED" => None,
        "STOP" => Some(FinishReason::Stop),
        "MAX_TOKENS" => Some(FinishReason::Length),
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Some(FinishReason::ContentFilter),
        _ => Some(FinishReason::Other),
    }
}
