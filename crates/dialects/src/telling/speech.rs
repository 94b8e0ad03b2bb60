//! What of a step was said to a reader. A step comes as pieces, as the step so
//! far, as its whole reply, or as some of each: every word is said once.

use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::event::ModelReplied;
use toolyard_protocol::message::Part;
use toolyard_protocol::visible::visible_delta;
use toolyard_protocol::{CallId, RunId, ToolName, Viewer};

use super::SoFar;

/// Something new to say. Parts are counted within their step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Said<'a> {
    TextStart {
        part: u32,
    },
    Text {
        part: u32,
        text: &'a str,
    },
    TextEnd {
        part: u32,
    },
    ReasoningStart {
        part: u32,
    },
    Reasoning {
        part: u32,
        text: &'a str,
    },
    ReasoningEnd {
        part: u32,
    },
    /// The model begins to write a call.
    InputStart {
        call: &'a CallId,
        tool: &'a ToolName,
    },
    Input {
        call: &'a CallId,
        text: &'a str,
    },
    /// What is never streamed: a source, a file, data.
    Whole(&'a Part),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
}

/// A part as far as it was said.
#[derive(Debug, Clone)]
struct Spoken {
    kind: Kind,
    bytes: usize,
    ended: bool,
}

/// One reader's place in the step at hand.
#[derive(Debug, Clone, Default)]
pub struct Speech {
    step: u32,
    attempt: u32,
    parts: Vec<Option<Spoken>>,
    inputs: Vec<(CallId, usize)>,
}

impl Speech {
    /// The step of which something was said and whose reply is not known yet.
    pub fn step(&self) -> Option<u32> {
        (!self.parts.is_empty() || !self.inputs.is_empty()).then_some(self.step)
    }

    /// Was the beginning of this call said?
    pub fn knows(&self, call: &CallId) -> bool {
        self.inputs.iter().any(|(known, _)| known == call)
    }

    fn turn_to(&mut self, step: u32, attempt: u32) {
        if (self.step, self.attempt) != (step, attempt) {
            *self = Self { step, attempt, ..Self::default() };
        }
    }

    /// The next piece.
    pub fn delta(&mut self, viewer: &Viewer, delta: &Delta, say: &mut dyn FnMut(Said<'_>)) {
        self.turn_to(delta.step, delta.attempt);
        if visible_delta(viewer, delta) {
            self.piece(&delta.piece, false, say);
        }
    }

    /// All pieces so far: what was said of them is left out.
    pub fn so_far(
        &mut self,
        viewer: &Viewer,
        run: &RunId,
        SoFar { step, attempt, pieces }: SoFar<'_>,
        say: &mut dyn FnMut(Said<'_>),
    ) {
        self.turn_to(step, attempt);
        for piece in pieces {
            let delta = Delta { run: run.clone(), step, attempt, offset: 0, piece };
            if visible_delta(viewer, &delta) {
                self.piece(&delta.piece, true, say);
            }
        }
    }

    /// The whole reply: says the rest, ends what is open and forgets the step.
    pub fn reply(
        &mut self,
        viewer: &Viewer,
        run: &RunId,
        reply: &ModelReplied,
        say: &mut dyn FnMut(Said<'_>),
    ) {
        if self.step != reply.step {
            self.turn_to(reply.step, 0);
        }
        let piece = Piece::ReasoningStart { part: 0, public: reply.show_reasoning };
        let thought = Delta { run: run.clone(), step: reply.step, attempt: 0, offset: 0, piece };
        let thinks_aloud = visible_delta(viewer, &thought);
        let mut number = 0;
        for part in &reply.parts {
            match part {
                Part::Text { text } => self.rest(Kind::Text, &mut number, text, true, say),
                Part::Reasoning { text, .. } => {
                    self.rest(Kind::Reasoning, &mut number, text, thinks_aloud, say);
                }
                Part::Source { .. } | Part::File { .. } | Part::Data { .. } => say(Said::Whole(part)),
                // Calls have events of their own; a vendor's block is nobody's to read.
                Part::ToolCall { .. } | Part::ToolResult { .. } | Part::Opaque { .. } => {}
            }
        }
        self.close(say);
    }

    /// Ends what is open: no more is said of this step.
    pub fn close(&mut self, say: &mut dyn FnMut(Said<'_>)) {
        for number in 0..u32::try_from(self.parts.len()).unwrap_or(0) {
            self.end(number, say);
        }
        self.parts.clear();
        self.inputs.clear();
    }

    fn piece(&mut self, piece: &Piece, whole: bool, say: &mut dyn FnMut(Said<'_>)) {
        match piece {
            Piece::TextStart { part } => self.start(Kind::Text, *part, say),
            Piece::TextDelta { part, text } => self.grow(Kind::Text, *part, text, whole, say),
            Piece::ReasoningStart { part, .. } => self.start(Kind::Reasoning, *part, say),
            Piece::ReasoningDelta { part, text, .. } => self.grow(Kind::Reasoning, *part, text, whole, say),
            Piece::TextEnd { part } | Piece::ReasoningEnd { part, .. } => self.end(*part, say),
            Piece::ToolInputStart { call, tool, .. } => self.input_start(call, tool, say),
            Piece::ToolInputDelta { call, tool, text, .. } => {
                self.input_start(call, tool, say);
                let Some((_, bytes)) = self.inputs.iter_mut().find(|(known, _)| known == call) else {
                    return;
                };
                let new = if whole { text.get(*bytes..).unwrap_or_default() } else { text };
                *bytes += new.len();
                if !new.is_empty() {
                    say(Said::Input { call, text: new });
                }
            }
        }
    }

    fn input_start(&mut self, call: &CallId, tool: &ToolName, say: &mut dyn FnMut(Said<'_>)) {
        if !self.knows(call) {
            self.inputs.push((call.clone(), 0));
            say(Said::InputStart { call, tool });
        }
    }

    fn slot(&mut self, part: u32) -> &mut Option<Spoken> {
        let at = usize::try_from(part).unwrap_or(usize::MAX).min(1 << 20);
        if self.parts.len() <= at {
            self.parts.resize(at + 1, None);
        }
        &mut self.parts[at]
    }

    fn start(&mut self, kind: Kind, part: u32, say: &mut dyn FnMut(Said<'_>)) {
        let slot = self.slot(part);
        if slot.is_none() {
            *slot = Some(Spoken { kind, bytes: 0, ended: false });
            say(match kind {
                Kind::Text => Said::TextStart { part },
                Kind::Reasoning => Said::ReasoningStart { part },
            });
        }
    }

    fn grow(&mut self, kind: Kind, part: u32, text: &str, whole: bool, say: &mut dyn FnMut(Said<'_>)) {
        self.start(kind, part, say);
        let Some(spoken) = self.slot(part) else { return };
        let new = if whole { text.get(spoken.bytes..).unwrap_or_default() } else { text };
        spoken.bytes += new.len();
        if !new.is_empty() && !spoken.ended {
            say(match kind {
                Kind::Text => Said::Text { part, text: new },
                Kind::Reasoning => Said::Reasoning { part, text: new },
            });
        }
    }

    fn end(&mut self, part: u32, say: &mut dyn FnMut(Said<'_>)) {
        if let Some(spoken) = self.slot(part)
            && !spoken.ended
        {
            spoken.ended = true;
            say(match spoken.kind {
                Kind::Text => Said::TextEnd { part },
                Kind::Reasoning => Said::ReasoningEnd { part },
            });
        }
    }

    /// A part of a reply: what was not said of it. `number` is the part's place
    /// among those that are streamed.
    fn rest(&mut self, kind: Kind, number: &mut u32, text: &str, seen: bool, say: &mut dyn FnMut(Said<'_>)) {
        let streamed = |speech: &mut Self, number: u32| speech.slot(number).as_ref().map(|s| s.kind);
        // A thought that only the vendor can read has no pieces.
        if text.is_empty() && streamed(self, *number) != Some(kind) {
            return;
        }
        let part = *number;
        *number += 1;
        if seen {
            self.grow(kind, part, text, true, say);
            self.end(part, say);
        }
    }
}
