//! Events in, chunks out. No IO: the same bytes give the same chunks at every
//! split.

use serde_json::{Map, Value};
use toolyard_protocol::run::{FinishReason, Usage};
use toolyard_protocol::sse::SseEvent;

use super::calls::Calls;
use super::echo::Echo;
use super::fault;
use super::thoughts::Thoughts;
use super::wire::{Annotation, CallPiece, Choice, Delta, Piece};
use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};
use crate::lenient::{Text, filled};
use crate::sse::{Listen, SseDecoder};
use crate::unknown::Unknown;
use crate::wire::{Refusal, parse};

/// Reads one reply.
pub type Decoder = SseDecoder<Listener>;

/// Understands the events of one reply.
#[derive(Debug, Default)]
pub struct Listener {
    calls: Calls,
    thoughts: Thoughts,
    facts: Map<String, Value>,
    unknown: Unknown,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    done: bool,
    echo: Echo,
}

impl Listen for Listener {
    fn hear(&mut self, event: &SseEvent, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        match event.event.as_deref() {
            None | Some("message") => match self.echo.text(data) {
                Some(text) => {
                    out.push(Chunk::TextDelta { text: text.to_owned() });
                    Ok(())
                }
                None => self.hear_whole(data, out),
            },
            Some("error") => Err(fault::in_stream(&parse(data))),
            // A named event of somebody in between: read it if it is ours.
            name @ Some(_) => match serde_json::from_str::<Piece<'_>>(data) {
                Ok(piece) if !piece.tells_nothing() => self.take(piece, out),
                Ok(_) | Err(_) => {
                    self.unknown.keep(name, data);
                    Ok(())
                }
            },
        }
    }

    fn hear_whole(&mut self, body: &str, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        match serde_json::from_str::<Piece<'_>>(body) {
            Ok(mut piece) => {
                if piece.tells_nothing() {
                    piece.rest = None;
                    self.unknown.keep(None, body);
                }
                self.echo.learn(body, &piece);
                self.take(piece, out)
            }
            Err(why) => Err(ModelError::Unreadable { detail: Detail::new(format!("{why} in: {body}")) }),
        }
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    fn refused(refusal: &Refusal) -> ModelError {
        fault::of_status(refusal.status, refusal.retry_after, &refusal.body)
    }

    fn close(&mut self, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        self.done = true;
        let Some(reason) = self.finish else {
            return Err(ModelError::Cut { detail: Detail::new("no finish reason before the end") });
        };
        let has_calls = !self.calls.is_empty();
        if let Some(value) = self.thoughts.finish(has_calls) {
            out.push(Chunk::ReasoningMetadata { value });
        }
        self.calls.finish(out)?;
        self.unknown.tell(&mut self.facts);
        if !self.facts.is_empty() {
            out.push(Chunk::Metadata { value: Value::Object(std::mem::take(&mut self.facts)) });
        }
        if let Some(usage) = self.usage {
            out.push(Chunk::Usage { usage });
        }
        let reason = match reason {
            // Several servers say `stop` after calls.
            FinishReason::Stop if has_calls => FinishReason::ToolCalls,
            FinishReason::ToolCalls if !has_calls => FinishReason::Stop,
            other => other,
        };
        out.push(Chunk::Finish { reason });
        Ok(())
    }
}

impl Listener {
    fn take(&mut self, piece: Piece<'_>, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        let (mut usage, mut error) = (piece.usage, piece.error);
        self.unknown.fields("", piece.rest);
        if let Some(extra) = piece.x_groq {
            self.unknown.fields("x_groq", extra.rest);
            usage = usage.or(extra.usage);
            error = error.or(extra.error);
        }
        if let Some(error) = error {
            return Err(fault::in_stream(&error));
        }
        self.note("id", &piece.id);
        self.note("model", &piece.model);
        if let Some(mut tokens) = usage {
            self.unknown.fields("usage", tokens.rest.take());
            // Some servers count on with every piece: the last one holds.
            self.usage = Some(tokens.usage());
        }
        for choice in piece.choices.into_iter().flatten() {
            if choice.index.unwrap_or(0) == 0 {
                self.take_choice(choice, out)?;
            }
        }
        Ok(())
    }

    fn take_choice(&mut self, choice: Choice<'_>, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        if let Some(error) = choice.error {
            return Err(fault::in_stream(&error));
        }
        self.unknown.fields("choices", choice.rest);
        if let Some(mut delta) = choice.delta.or(choice.message.map(|whole| *whole)) {
            self.unknown.fields("choices.delta", delta.rest.take());
            self.take_delta(delta, out);
        }
        match filled(&choice.finish_reason) {
            // Routers say so when the vendor behind them broke.
            Some("error") => return Err(fault::in_stream(&Value::from("finish_reason: error"))),
            Some(reason) if self.finish.is_none() => self.finish = Some(finish_reason(reason)),
            Some(_) | None => {}
        }
        Ok(())
    }

    fn take_delta(&mut self, delta: Delta<'_>, out: &mut Vec<Chunk>) {
        let detailed = delta.reasoning_details.map(|details| self.thoughts.take(details)).unwrap_or_default();
        let plain = filled(&delta.reasoning_content).map(|text| ("reasoning_content", text));
        match plain.or_else(|| filled(&delta.reasoning).map(|text| ("reasoning", text))) {
            Some((field, text)) => {
                self.thoughts.came_in(field);
                out.push(Chunk::ReasoningDelta { text: text.to_owned() });
            }
            // Routers say most thoughts twice.
            None if !detailed.is_empty() => out.push(Chunk::ReasoningDelta { text: detailed }),
            None => {}
        }
        for said in [delta.content, delta.refusal].into_iter().flatten() {
            if said.filled().is_some() {
                out.push(Chunk::TextDelta { text: said.0.into_owned() });
            }
        }
        for Annotation { url_citation, rest, .. } in delta.annotations.into_iter().flatten() {
            self.unknown.fields("choices.delta.annotations", rest);
            if let Some(cited) = url_citation
                && let Some(url) = cited.url
            {
                let (start, end) = (cited.start_index, cited.end_index);
                out.push(Chunk::Source { url, title: cited.title, start, end });
            }
        }
        let old = delta
            .function_call
            .map(|function| CallPiece { function: Some(function), ..CallPiece::default() });
        for mut call in delta.tool_calls.into_iter().flatten().chain(old) {
            self.unknown.fields("choices.delta.tool_calls", call.rest.take());
            if let Some(function) = &mut call.function {
                self.unknown.fields("choices.delta.tool_calls.function", function.rest.take());
            }
            self.calls.take(call, out);
        }
    }

    /// Keeps a fact about the reply; every event repeats it.
    fn note(&mut self, name: &str, value: &Option<Text<'_>>) {
        if let Some(value) = filled(value)
            && !self.facts.contains_key(name)
        {
            self.facts.insert(name.to_owned(), Value::from(value));
        }
    }
}

fn finish_reason(vendor: &str) -> FinishReason {
    match vendor {
        "stop" | "end_turn" | "eos" | "eos_token" | "stop_sequence" | "STOP" => FinishReason::Stop,
        "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "model_length" | "MAX_TOKENS" => FinishReason::Length,
        "content_filter" | "safety" | "SAFETY" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}
