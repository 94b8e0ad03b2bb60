//! The items of a response as they grow: words, thoughts, sources.

use serde_json::{Value, json};
use toolyard_protocol::message::Part;

use super::telling::Responses;
use super::wire;
use crate::citation;
use crate::telling::Said;

impl Responses {
    pub(super) fn add_item(&mut self, item: Value, out: &mut String) -> usize {
        let index = self.output.len();
        self.emit("response.output_item.added", json!({ "output_index": index, "item": item }), out);
        self.output.push(item);
        index
    }

    pub(super) fn end_item(&mut self, index: usize, out: &mut String) {
        let item = self.output.get(index).cloned().unwrap_or_default();
        self.emit("response.output_item.done", json!({ "output_index": index, "item": item }), out);
    }

    fn name(&self, prefix: &str, part: u32) -> String {
        let run = self.answer.run.bare();
        format!("{prefix}_{run}_{}_{part}", self.step)
    }

    pub(super) fn grow(&mut self, said: Said<'_>, out: &mut String) {
        match said {
            Said::TextStart { part } => {
                let id = self.name("msg", part);
                let index = self.add_item(wire::message(&id, "in_progress", Vec::new()), out);
                self.items.insert(part, index);
                let body = json!({ "item_id": id, "output_index": index, "content_index": 0, "part": wire::output_text("") });
                self.emit("response.content_part.added", body, out);
                self.output[index]["content"] = json!([wire::output_text("")]);
            }
            Said::Text { part, text } => {
                let Some(index) = self.items.get(&part).copied() else { return };
                if let Value::String(whole) = &mut self.output[index]["content"][0]["text"] {
                    whole.push_str(text);
                }
                let id = self.name("msg", part);
                let body = json!({ "item_id": id, "output_index": index, "content_index": 0, "delta": text, "logprobs": [] });
                self.emit("response.output_text.delta", body, out);
            }
            Said::TextEnd { part } => {
                let Some(index) = self.items.get(&part).copied() else { return };
                let id = self.name("msg", part);
                let held = self.output[index]["content"][0].clone();
                let body = json!({ "item_id": id, "output_index": index, "content_index": 0, "text": held["text"], "logprobs": [] });
                self.emit("response.output_text.done", body, out);
                let body = json!({ "item_id": id, "output_index": index, "content_index": 0, "part": held });
                self.emit("response.content_part.done", body, out);
                self.output[index]["status"] = json!("completed");
                self.end_item(index, out);
            }
            Said::ReasoningStart { part } => {
                let id = self.name("rs", part);
                let index = self.add_item(wire::reasoning(&id, Vec::new()), out);
                self.items.insert(part, index);
                let body = json!({ "item_id": id, "output_index": index, "summary_index": 0, "part": wire::summary_text("") });
                self.emit("response.reasoning_summary_part.added", body, out);
                self.output[index]["summary"] = json!([wire::summary_text("")]);
            }
            Said::Reasoning { part, text } => {
                let Some(index) = self.items.get(&part).copied() else { return };
                if let Value::String(whole) = &mut self.output[index]["summary"][0]["text"] {
                    whole.push_str(text);
                }
                let id = self.name("rs", part);
                let body = json!({ "item_id": id, "output_index": index, "summary_index": 0, "delta": text });
                self.emit("response.reasoning_summary_text.delta", body, out);
            }
            Said::ReasoningEnd { part } => {
                let Some(index) = self.items.get(&part).copied() else { return };
                let id = self.name("rs", part);
                let held = self.output[index]["summary"][0].clone();
                let body =
                    json!({ "item_id": id, "output_index": index, "summary_index": 0, "text": held["text"] });
                self.emit("response.reasoning_summary_text.done", body, out);
                let body = json!({ "item_id": id, "output_index": index, "summary_index": 0, "part": held });
                self.emit("response.reasoning_summary_part.done", body, out);
                self.end_item(index, out);
            }
            Said::Whole(part) => self.cite(part),
            // Calls are shown when they may run.
            Said::InputStart { .. } | Said::Input { .. } => {}
        }
    }

    /// A source belongs to the words before it.
    fn cite(&mut self, part: &Part) {
        let Some(mut annotation) = citation::annotation(part) else { return };
        annotation["type"] = json!("url_citation");
        let said = self.output.iter_mut().rev().find(|item| item["type"] == "message");
        if let Some(Value::Array(annotations)) = said.map(|item| &mut item["content"][0]["annotations"]) {
            annotations.push(annotation);
        }
    }
}
