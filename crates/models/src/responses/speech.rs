//! What the model says and thinks: text, refusals, citations, summaries.
//!
//! Citations count characters within their part; ours count within the whole
//! reply.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::WIRE;
use super::wire::Annotation;
use crate::chunk::Chunk;
use crate::unknown::Unknown;

/// The place of a part: its item, then its number there.
type Place = (u64, u64);

#[derive(Debug, Default)]
pub(super) struct Speech {
    parts: Vec<Spoken>,
    /// Characters of all text so far.
    chars: u32,
    /// Where the model thought last.
    thinking: Option<Place>,
}

#[derive(Debug)]
struct Spoken {
    place: Place,
    /// Characters of the reply before this part.
    base: u32,
    chars: u32,
    /// Citations that were told.
    cited: usize,
}

impl Speech {
    pub(super) fn is_silent(&self) -> bool {
        self.chars == 0 && self.thinking.is_none()
    }

    pub(super) fn says(&mut self, place: Place, text: &str, out: &mut Vec<Chunk>) {
        let chars = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let part = self.part(place);
        part.chars = part.chars.saturating_add(chars);
        self.chars = self.chars.saturating_add(chars);
        out.push(Chunk::text(text));
    }

    /// A part is complete. Its text is news only if none of it streamed.
    pub(super) fn said(&mut self, place: Place, text: Option<&str>, out: &mut Vec<Chunk>) {
        if let Some(text) = text
            && self.part(place).chars == 0
        {
            self.says(place, text, out);
        }
    }

    pub(super) fn cites(&mut self, place: Place, cited: Annotation<'_>, out: &mut Vec<Chunk>) {
        let part = self.part(place);
        part.cited += 1;
        let base = part.base;
        // Files of the vendor have no address.
        if let Some(url) = cited.url {
            let moved = |index: Option<u32>| index.map(|index| index.saturating_add(base));
            let (start, end) = (moved(cited.start_index), moved(cited.end_index));
            out.push(Chunk::Source { url, title: cited.title, start, end });
        }
    }

    /// Text of a thought. Its parts stand apart.
    pub(super) fn thinks(&mut self, place: Place, text: &str, out: &mut Vec<Chunk>) {
        let apart = self.thinking.is_some_and(|last| last.0 == place.0 && last.1 != place.1);
        self.thinking = Some(place);
        let text = if apart { format!("\n\n{text}") } else { text.to_owned() };
        out.push(Chunk::ReasoningDelta { text });
    }

    /// A whole message.
    pub(super) fn message(&mut self, at: u64, item: &Value, unknown: &mut Unknown, out: &mut Vec<Chunk>) {
        keep_rest("item", item, &["id", "type", "status", "role", "content", "phase"], unknown);
        for (index, content) in (0..).zip(item["content"].as_array().into_iter().flatten()) {
            let place = (at, index);
            let known = ["type", "text", "annotations", "logprobs", "refusal"];
            keep_rest("item.content", content, &known, unknown);
            let text = content["text"].as_str().or(content["refusal"].as_str());
            self.said(place, text.filter(|text| !text.is_empty()), out);
            let told = self.part(place).cited;
            for annotation in content["annotations"].as_array().into_iter().flatten().skip(told) {
                if let Ok(mut annotation) = Annotation::deserialize(annotation) {
                    unknown.fields("annotation", annotation.rest.take());
                    self.cites(place, annotation, out);
                }
            }
        }
        // The vendor wants to know again which text was only a comment.
        if let Some(phase) = item["phase"].as_str() {
            out.push(Chunk::Opaque { value: json!({ WIRE: { "at": at, "phase": phase } }) });
        }
    }

    /// A whole thought.
    pub(super) fn thought(&mut self, at: u64, item: &Value, out: &mut Vec<Chunk>) {
        if self.thinking.is_some_and(|last| last.0 == at) {
            return;
        }
        let texts = ["summary", "content"].map(|name| item[name].as_array().map_or(&[][..], Vec::as_slice));
        // The raw thought is told only where there is no summary.
        let told = if texts[0].is_empty() { texts[1] } else { texts[0] };
        for (index, part) in (0..).zip(told) {
            if let Some(text) = part["text"].as_str().filter(|text| !text.is_empty()) {
                self.thinks((at, index), text, out);
            }
        }
    }

    fn part(&mut self, place: Place) -> &mut Spoken {
        let index = match self.parts.iter().rposition(|part| part.place == place) {
            Some(index) => index,
            None => {
                self.parts.push(Spoken { place, base: self.chars, chars: 0, cited: 0 });
                self.parts.len() - 1
            }
        };
        &mut self.parts[index]
    }
}

fn keep_rest(place: &str, object: &Value, known: &[&str], unknown: &mut Unknown) {
    let fields = object.as_object().into_iter().flatten();
    let rest: Map<String, Value> = fields
        .filter(|(name, value)| !known.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    unknown.rest_of(place, rest);
}
