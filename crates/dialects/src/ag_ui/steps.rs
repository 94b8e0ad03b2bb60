//! The words of a step: text, thoughts, and what takes them back.

use toolyard_protocol::delta::Piece;
use toolyard_protocol::event::{ModelReplied, ReplyAmended};
use toolyard_protocol::message::{Part, text_of};

use serde_json::{Value, json};

use super::names;
use super::telling::{AgUi, OpenStep};
use super::wire::WireEvent;

const ASSISTANT: &str = "assistant";
const REASONING: &str = "reasoning";

impl AgUi {
    /// This step is spoken of from here on.
    pub(super) fn enter(&mut self, number: u32, out: &mut String) {
        if self.step.as_ref().is_some_and(|step| step.number == number) {
            return;
        }
        self.close_step(out);
        self.step = Some(OpenStep {
            number,
            name: format!("step_{number}"),
            message: self.step_message(number),
            text_open: false,
            thought: None,
            thoughts: 0,
            told: false,
        });
    }

    /// The first thing that is said of a step says that it began.
    pub(super) fn begin_step(&mut self, out: &mut String) {
        let Some(step) = self.step.as_mut().filter(|step| !step.told) else { return };
        step.told = true;
        let name = step.name.clone();
        self.tell(WireEvent::StepStarted { step_name: &name }, out);
    }

    /// Ends all that is open of a step on the wire.
    pub(super) fn close_step(&mut self, out: &mut String) {
        self.close_thought(out);
        self.close_text(out);
        for call in std::mem::take(&mut self.open_calls) {
            self.tell(WireEvent::ToolCallEnd { tool_call_id: call.as_str() }, out);
        }
        if let Some(step) = self.step.as_mut().filter(|step| step.told) {
            step.told = false;
            let name = step.name.clone();
            self.tell(WireEvent::StepFinished { step_name: &name }, out);
        }
    }

    /// Does the client have words of the step that is entered?
    pub(super) fn has_words(&self) -> bool {
        let Some(step) = &self.step else { return false };
        !self.transcript.text(&step.message).is_empty()
            || !self.transcript.text(&names::thought(&self.open.run, step.number, 0)).is_empty()
            || self.transcript.messages().iter().any(|m| m["id"] == step.message.as_str())
    }

    /// What was told of the step did not come to anything.
    pub(super) fn void_step(&mut self, out: &mut String) {
        let Some(step) = &self.step else { return };
        let (message, number) = (step.message.clone(), step.number);
        self.close_step(out);
        let thought = names::thought(&self.open.run, number, 0);
        let thought = thought.trim_end_matches('0').to_owned();
        let before = self.transcript.messages().len();
        self.transcript.remove(|id| id == message || id.starts_with(&thought));
        self.wrong |= before != self.transcript.messages().len();
        self.step = None;
        self.mend(out);
    }

    pub(super) fn piece(&mut self, piece: &Piece, out: &mut String) {
        match piece {
            // A message starts with its first word: an empty one is none.
            Piece::TextStart { part: _ } => {}
            Piece::TextDelta { part: _, text } => self.say(text, out),
            Piece::TextEnd { part: _ } => self.close_text(out),
            Piece::ReasoningStart { part: _, public: _ } => self.close_thought(out),
            Piece::ReasoningDelta { part: _, public: _, text } => self.think(text, out),
            Piece::ReasoningEnd { part: _, public: _ } => self.close_thought(out),
            Piece::ToolInputStart { call, tool, visibility: _ } => self.start_call(call, tool, out),
            Piece::ToolInputDelta { call, tool: _, visibility: _, text } => self.grow_input(call, text, out),
        }
    }

    pub(super) fn replied(&mut self, e: &ModelReplied, out: &mut String) {
        self.enter(e.step, out);
        self.turn = Some((e.message.clone(), self.step_message(e.step)));
        let thoughts: Vec<String> = e.parts.iter().filter_map(thought_of).collect();
        self.grow_thoughts(&thoughts, out);
        self.close_thought(out);
        self.grow_text(&text_of(&e.parts), out);
        self.close_text(out);
        self.tell_sources(&e.parts, out);
        self.reply_calls(&e.calls, out);
        self.mend(out);
    }

    /// Sources are no messages: they are told beside them.
    fn tell_sources(&self, parts: &[Part], out: &mut String) {
        let source = |part: &Part| match part {
            Part::Source { id, url, title, start_index, end_index } => {
                let mut source = json!({ "id": id, "url": url });
                for (name, value) in [
                    ("title", title.as_ref().map(|title| json!(title))),
                    ("startIndex", start_index.map(|at| json!(at))),
                    ("endIndex", end_index.map(|at| json!(at))),
                ] {
                    if let Some(value) = value {
                        source[name] = value;
                    }
                }
                Some(source)
            }
            Part::Text { .. }
            | Part::Reasoning { .. }
            | Part::File { .. }
            | Part::ToolCall { .. }
            | Part::ToolResult { .. }
            | Part::Data { .. }
            | Part::Opaque { .. } => None,
        };
        let sources: Vec<Value> = parts.iter().filter_map(source).collect();
        if let (Some(step), false) = (&self.step, sources.is_empty()) {
            let value = json!({ "messageId": step.message, "sources": sources });
            self.tell(WireEvent::Custom { name: "sources", value: &value, timestamp: None }, out);
        }
    }

    /// A hook changed the answer: the client gets all messages anew.
    pub(super) fn amended(&mut self, e: &ReplyAmended, out: &mut String) {
        if !self.keeps() {
            return;
        }
        let message = self.step_message(e.step);
        let text = text_of(&e.parts);
        if self.transcript.text(&message) != text {
            self.transcript.set_text(&message, ASSISTANT, &text);
            self.wrong = true;
        }
        self.mend(out);
    }

    /// Says what is missing of a text that the client has a part of.
    pub(super) fn grow_text(&mut self, whole: &str, out: &mut String) {
        let Some(step) = &self.step else { return };
        let has = self.transcript.text(&step.message);
        if let Some(more) = whole.strip_prefix(has) {
            let more = more.to_owned();
            if !more.is_empty() {
                self.say(&more, out);
            }
        } else if self.keeps() {
            let message = step.message.clone();
            self.close_text(out);
            self.transcript.set_text(&message, ASSISTANT, whole);
            self.wrong = true;
        }
    }

    pub(super) fn grow_thoughts(&mut self, whole: &[String], out: &mut String) {
        let Some(number) = self.step.as_ref().map(|step| step.number) else { return };
        for (nth, thought) in (0..).zip(whole) {
            let id = names::thought(&self.open.run, number, nth);
            let has = self.transcript.text(&id);
            if let Some(more) = thought.strip_prefix(has).filter(|more| !more.is_empty()) {
                let more = more.to_owned();
                if self.step.as_ref().is_some_and(|step| step.thought.as_ref() != Some(&id)) {
                    self.close_thought(out);
                    if let Some(step) = &mut self.step {
                        step.thoughts = nth;
                    }
                }
                self.think(&more, out);
            }
        }
    }

    fn say(&mut self, text: &str, out: &mut String) {
        self.begin_step(out);
        let keeps = self.keeps();
        let Some(step) = &mut self.step else { return };
        let id = step.message.clone();
        let opens = !std::mem::replace(&mut step.text_open, true);
        if keeps {
            self.transcript.say(&id, ASSISTANT, text);
        }
        if opens {
            self.tell(WireEvent::TextMessageStart { message_id: &id, role: ASSISTANT }, out);
        }
        self.tell(WireEvent::TextMessageContent { message_id: &id, delta: text }, out);
    }

    fn close_text(&mut self, out: &mut String) {
        let Some(step) = self.step.as_mut().filter(|step| step.text_open) else { return };
        step.text_open = false;
        let id = step.message.clone();
        self.tell(WireEvent::TextMessageEnd { message_id: &id }, out);
    }

    fn think(&mut self, text: &str, out: &mut String) {
        self.begin_step(out);
        let (keeps, run) = (self.keeps(), self.open.run.clone());
        let Some(step) = &mut self.step else { return };
        let open = step.thought.clone();
        let id = open.clone().unwrap_or_else(|| names::thought(&run, step.number, step.thoughts));
        step.thought = Some(id.clone());
        if keeps {
            self.transcript.say(&id, REASONING, text);
        }
        if open.is_none() {
            self.tell(WireEvent::ReasoningStart { message_id: &id }, out);
            self.tell(WireEvent::ReasoningMessageStart { message_id: &id, role: REASONING }, out);
        }
        self.tell(WireEvent::ReasoningMessageContent { message_id: &id, delta: text }, out);
    }

    pub(super) fn close_thought(&mut self, out: &mut String) {
        let Some(step) = &mut self.step else { return };
        let Some(id) = step.thought.take() else { return };
        step.thoughts += 1;
        self.tell(WireEvent::ReasoningMessageEnd { message_id: &id }, out);
        self.tell(WireEvent::ReasoningEnd { message_id: &id }, out);
    }
}

fn thought_of(part: &Part) -> Option<String> {
    match part {
        Part::Reasoning { text, metadata: _ } => Some(text.clone()).filter(|text| !text.is_empty()),
        Part::Text { .. }
        | Part::File { .. }
        | Part::Source { .. }
        | Part::ToolCall { .. }
        | Part::ToolResult { .. }
        | Part::Data { .. }
        | Part::Opaque { .. } => None,
    }
}
