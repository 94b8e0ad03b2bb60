//! What is printed. Words of models and tools are strangers' words: nothing in
//! them may move the cursor or colour the screen.

use std::io::Write;
use std::sync::Mutex;

use serde_json::{Value, json};
use toolyard_client::{Asked, CallReady, Event, EventKind, Outcome, Returned, ToolCall};

use super::setup::Place;

/// Characters of a value in one line.
const SHORT: usize = 200;

/// Standard output and standard error.
pub(super) struct Screen {
    json: bool,
    /// What the line at hand holds: text and notes do not share one.
    line: Mutex<Line>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Line {
    Fresh,
    Text,
    Reasoning,
    /// The cursor stands behind a question.
    Prompt,
}

/// Text without what a terminal would obey.
pub(super) fn plain(text: &str) -> String {
    let obeyed = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
    };
    text.chars().map(|c| if obeyed(c) { '\u{fffd}' } else { c }).collect()
}

/// A value in one line, cut off if it is long.
fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let one = plain(&text).replace('\n', " ");
    if one.chars().count() <= SHORT {
        return one;
    }
    let cut: String = one.chars().take(SHORT).collect();
    format!("{cut}…")
}

fn place_word(target: Option<&str>) -> &'static str {
    match target {
        Some("client" | "external") => "client",
        Some(_) | None => "gateway",
    }
}

impl Screen {
    pub(super) fn new(json: bool) -> Self {
        Self { json, line: Mutex::new(Line::Fresh) }
    }

    fn out(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        // Whoever has heard enough is no error.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn now(&self) -> std::sync::MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Ends a line that words stand on.
    pub(super) fn end_line(&self) {
        let before = std::mem::replace(&mut *self.now(), Line::Fresh);
        match before {
            Line::Fresh => {}
            Line::Text => self.out("\n"),
            Line::Reasoning | Line::Prompt => eprintln!(),
        }
    }

    /// A line for the person. With `--json` it is not part of the output.
    pub(super) fn note(&self, text: &str) {
        self.end_line();
        eprintln!("{}", plain(text));
    }

    /// Words before the cursor.
    pub(super) fn prompt(&self, text: &str) {
        self.end_line();
        eprint!("{}", plain(text));
        let _ = std::io::stderr().flush();
        *self.now() = Line::Prompt;
    }

    /// The person has ended the line of the question.
    pub(super) fn entered(&self) {
        *self.now() = Line::Fresh;
    }

    /// One object for a program.
    pub(super) fn object(&self, value: &Value) {
        if self.json {
            self.out(&format!("{value}\n"));
        }
    }

    pub(super) fn place(&self, place: &Place) {
        self.object(&json!({"type": "chat", "smartSpaceId": place.space, "agent": place.agent}));
        if self.json {
            return;
        }
        let (agent, space) = (&place.agent, &place.space);
        self.note(&format!("{agent} in {space} (go on later with --space {space})"));
        let names: Vec<&str> = place.tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        if !names.is_empty() {
            self.note(&format!("tools of this terminal: {}", names.join(", ")));
        }
        for name in &place.shared {
            self.note(&format!("{name} is the agent's own tool; its calls run here if clients run them"));
        }
    }

    fn words(&self, kind: Line, text: &str) {
        let text = plain(text);
        if *self.now() != kind {
            self.end_line();
            if kind == Line::Reasoning {
                eprint!("(thinks) ");
            }
        }
        *self.now() = kind;
        match kind {
            Line::Reasoning => {
                eprint!("{text}");
                let _ = std::io::stderr().flush();
            }
            Line::Text | Line::Fresh | Line::Prompt => self.out(&text),
        }
    }

    /// An event of the run.
    pub(super) fn event(&self, event: &Event, streamed: &mut Streamed) {
        if self.json {
            return self.object(&event.data);
        }
        match &event.kind {
            EventKind::TextDelta(delta) => {
                streamed.take((delta.step, Line::Text), &delta.delta);
                self.words(Line::Text, &delta.delta);
            }
            EventKind::ReasoningDelta(delta) => {
                streamed.take((delta.step, Line::Reasoning), &delta.delta);
                self.words(Line::Reasoning, &delta.delta);
            }
            EventKind::Replied(reply) => {
                // What was missed of it while the connection was away.
                for (kind, whole) in [(Line::Reasoning, reply.reasoning()), (Line::Text, reply.text())] {
                    if let Some(rest) = streamed.missing((reply.step, kind), &whole) {
                        self.words(kind, &rest);
                    }
                }
                self.end_line();
            }
            EventKind::StepRestarted { step } => {
                streamed.forget(*step);
                self.note("(the gateway restarted: the step begins again)");
            }
            EventKind::CallReady(call) => self.call(call),
            EventKind::Progressed(progress) => {
                let percent = progress.fraction.map(|part| format!("{:.0} % ", part * 100.0));
                let said = progress.message.clone().unwrap_or_default();
                self.note(&format!("  … {}{said}", percent.unwrap_or_default()));
            }
            EventKind::Returned(returned) => self.returned(returned),
            EventKind::Finished(finished) => {
                self.end_line();
                if let Some(error) = &finished.error {
                    let why = error.message.clone().unwrap_or_default();
                    self.note(&format!("the run failed: {} {why}", error.code));
                } else if finished.status == "canceled" {
                    self.note("canceled");
                }
            }
            _ => {}
        }
    }

    fn call(&self, call: &CallReady) {
        let place = place_word(call.execution_target.as_deref());
        let input = call.input.as_ref().map(short).unwrap_or_default();
        self.note(&format!("→ {} ({place}) {input}", call.tool_name));
    }

    fn returned(&self, returned: &Returned) {
        let outcome = returned.outcome.as_deref().unwrap_or("ended");
        let said = match (&returned.error, &returned.output) {
            (Some(error), _) => short(&Value::String(error.clone())),
            (None, Some(output)) => short(output),
            (None, None) => String::new(),
        };
        self.note(&format!("← {} {outcome} {said}", returned.tool_name));
    }

    /// A call of this program's own tools.
    pub(super) fn own(&self, call: &ToolCall, outcome: Option<&Outcome>) {
        let state = match outcome {
            None => "tool.start",
            Some(_) => "tool.end",
        };
        let mut object = json!({"type": state, "toolCallId": call.id, "toolName": call.name});
        if let Some(outcome) = outcome {
            match outcome {
                Ok(value) => object["result"] = value.clone(),
                Err(text) => object["error"] = json!(text),
            }
        }
        self.object(&object);
    }

    /// What is asked: the tool, its risk, its place and the exact arguments.
    pub(super) fn approval(&self, asked: &Asked) {
        if self.json {
            return;
        }
        let risk = asked.risk.as_deref().unwrap_or("unknown");
        let place = place_word(asked.execution_target.as_deref());
        self.note(&format!("? {} wants to run ({place}, risk: {risk}) with exactly:", asked.tool_name));
        let args = asked.payload.as_ref().and_then(|payload| payload.get("args"));
        for line in format!("{:#}", args.unwrap_or(&Value::Null)).lines() {
            self.note(&format!("    {line}"));
        }
    }
}

/// How much of each step was printed.
#[derive(Debug, Default)]
pub(super) struct Streamed {
    steps: std::collections::HashMap<(u32, Line), String>,
}

impl Streamed {
    fn take(&mut self, part: (u32, Line), delta: &str) {
        self.steps.entry(part).or_default().push_str(delta);
    }
    fn forget(&mut self, step: u32) {
        self.steps.retain(|(of, _), _| *of != step);
    }
    /// The rest of a step, if what was printed is its beginning.
    fn missing(&mut self, part: (u32, Line), whole: &str) -> Option<String> {
        let printed = self.steps.remove(&part).unwrap_or_default();
        let rest = match whole.strip_prefix(printed.as_str()) {
            Some(rest) => rest.to_owned(),
            None => format!("\n{whole}"),
        };
        (!rest.is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_words_cannot_drive_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\u{9b}31m\tc\nd\r"), "a\u{fffd}[2Jb\u{fffd}31m\tc\nd\u{fffd}");
        assert_eq!(plain("safe\u{202e}txt.exe"), "safe\u{fffd}txt.exe");
        assert_eq!(short(&json!({"a": "x\u{1b}"})), "{\"a\":\"x\\u001b\"}");
    }

    #[test]
    fn what_was_not_streamed_of_a_step_is_printed_once() {
        let mut streamed = Streamed::default();
        streamed.take((1, Line::Text), "hel");
        assert_eq!(streamed.missing((1, Line::Text), "hello"), Some("lo".to_owned()));
        assert_eq!(streamed.missing((2, Line::Text), "whole"), Some("whole".to_owned()));
        streamed.take((3, Line::Text), "all");
        assert_eq!(streamed.missing((3, Line::Text), "all"), None);
    }
}
