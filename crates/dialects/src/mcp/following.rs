//! A run as it goes on, for one call of an MCP client: lines of news, and at
//! last where the run stands.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_protocol::delta::Delta;
use toolyard_protocol::event::{Event, ToolReturned};
use toolyard_protocol::message::{Part, text_of};
use toolyard_protocol::outcome::OutcomeKind;
use toolyard_protocol::run::RunEnd;
use toolyard_protocol::visible::visible_to;
use toolyard_protocol::wait::{WaitKind, may_answer};
use toolyard_protocol::{CallId, MessageId, RunId, Timestamp, ToolName, Viewer, WaitId};

use super::STARTED_BY;
use super::pause::Open;
use crate::telling::{Flow, Said, SoFar, Speech, Telling};

/// Letters that are worth a line of their own.
const LINE_CHARS: usize = 80;

/// One line of a following.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Line {
    Progress { message: String },
    Stands(Box<Standing>),
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    pub run: RunId,
    /// None: it works, or waits.
    pub end: Option<End>,
    /// Somebody outside must act.
    pub waits: bool,
    pub open: Vec<Open>,
    /// The last reply of the turn.
    pub answer: String,
    pub sources: Vec<Value>,
    pub files: Vec<Value>,
    /// Why it did not end well.
    pub note: Option<String>,
    /// The one tool that the run was started for, and what it returned.
    pub direct: Option<ToolName>,
    pub returned: Option<Result<Value, String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum End {
    Completed,
    Failed,
    Canceled,
}

/// How long a run is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// It has ended, or waits for somebody.
    Rest,
    /// The log is read.
    Now,
}

/// What a following begins with.
#[derive(Debug, Clone)]
pub struct Opening {
    pub run: RunId,
    pub viewer: Viewer,
    /// The message that the caller said, if the run has not heard it yet.
    pub taking: Option<MessageId>,
    pub until: Until,
}

#[derive(Debug)]
pub struct Following {
    viewer: Viewer,
    taking: Option<MessageId>,
    until: Until,
    speech: Speech,
    /// Said and not told yet.
    words: String,
    stands: Standing,
    over: bool,
}

impl Following {
    pub fn new(opening: Opening) -> Self {
        let Opening { run, viewer, taking, until } = opening;
        let stands = Standing {
            run,
            end: None,
            waits: false,
            open: Vec::new(),
            answer: String::new(),
            sources: Vec::new(),
            files: Vec::new(),
            note: None,
            direct: None,
            returned: None,
        };
        Self { viewer, taking, until, speech: Speech::default(), words: String::new(), stands, over: false }
    }

    fn write(line: &Line, out: &mut String) {
        out.push_str(&serde_json::to_string(line).unwrap_or_default());
        out.push('\n');
    }

    fn progress(message: impl Into<String>, out: &mut String) {
        Self::write(&Line::Progress { message: message.into() }, out);
    }

    /// Tells the words so far, if they are enough for a line or nothing follows.
    fn flush(&mut self, all: bool, out: &mut String) {
        if self.words.chars().count() < LINE_CHARS && !all {
            return;
        }
        let words = std::mem::take(&mut self.words);
        if !words.trim().is_empty() && self.taking.is_none() {
            Self::progress(words, out);
        }
    }

    fn say(
        &mut self,
        out: &mut String,
        with: impl FnOnce(&mut Speech, &Viewer, &RunId, &mut dyn FnMut(Said<'_>)),
    ) {
        let mut speech = std::mem::take(&mut self.speech);
        let (viewer, run) = (self.viewer.clone(), self.stands.run.clone());
        with(&mut speech, &viewer, &run, &mut |said| {
            if let Said::Text { text, .. } = said {
                self.words.push_str(text);
            }
        });
        self.speech = speech;
        self.flush(false, out);
    }

    fn reply(&mut self, parts: &[Part]) {
        let text = text_of(parts);
        if !text.is_empty() {
            self.stands.answer = text;
        }
        for part in parts {
            match part {
                Part::Source { url, title, .. } => {
                    self.stands.sources.push(json!({ "url": url, "title": title }));
                }
                Part::File { media_type, file, url, name } => {
                    let uri = url.clone().or_else(|| file.as_ref().map(|file| format!("/api/files/{file}")));
                    if let Some(uri) = uri {
                        let name = name.clone().unwrap_or_else(|| "file".to_owned());
                        let link = json!({ "type": "resource_link", "uri": uri, "name": name, "mimeType": media_type });
                        self.stands.files.push(link);
                    }
                }
                _ => {}
            }
        }
    }

    fn opened(
        &mut self,
        wait: &WaitId,
        kind: WaitKind,
        call: &CallId,
        tool: ToolName,
        payload: Option<&Value>,
        may: bool,
    ) {
        let open = Open {
            wait: wait.clone(),
            kind,
            call: call.clone(),
            tool,
            payload: payload.cloned(),
            may_answer: may,
        };
        self.stands.open.push(open);
    }

    fn closed(&mut self, wait: &WaitId) {
        self.stands.open.retain(|open| open.wait != *wait);
        self.stands.waits = false;
    }

    fn returned(&mut self, e: &ToolReturned) {
        self.stands.open.retain(|open| open.call != e.call);
        self.stands.waits = false;
        if self.stands.direct.as_ref() != Some(&e.tool) {
            return;
        }
        self.stands.returned = Some(match (e.outcome, e.value.shown(), e.error.shown()) {
            (OutcomeKind::Ok, Some(value), _) => Ok(value.clone()),
            (OutcomeKind::Ok, None, _) => Ok(Value::Null),
            (_, _, Some(error)) => Err(error.clone()),
            (_, _, None) => Err("Tool failed".to_owned()),
        });
    }

    fn hear(&mut self, event: &Event, out: &mut String) {
        match event {
            Event::ModelReplied(e) => {
                self.say(out, |speech, viewer, run, say| speech.reply(viewer, run, e, say));
                self.flush(true, out);
                self.reply(&e.parts);
            }
            Event::ReplyAmended(e) => self.reply(&e.parts),
            Event::StepRestarted(_) => {
                self.speech = Speech::default();
                self.words.clear();
            }
            Event::Asked(e) => {
                let may = may_answer(&self.viewer, &e.rule);
                self.opened(&e.wait, e.kind, &e.call, e.tool.clone(), e.payload.shown(), may);
            }
            Event::ToolCallRequested(e) => {
                if let Some(parked) = e.wait.as_ref().filter(|parked| parked.kind == WaitKind::Client) {
                    let may = may_answer(&self.viewer, &parked.rule);
                    self.opened(&parked.wait, parked.kind, &e.call, e.tool.clone(), e.args.shown(), may);
                }
                if self.taking.is_none() {
                    Self::progress(format!("Calls {}", e.tool), out);
                }
            }
            Event::ChildAsked(e) => {
                let payload = e.payload.shown();
                let tool =
                    payload.and_then(|p| p["toolName"].as_str()).and_then(|name| ToolName::parse(name).ok());
                let may = may_answer(&self.viewer, &e.rule);
                self.opened(&e.wait, e.kind, &e.call, tool.unwrap_or_else(ToolName::unnamed), payload, may);
            }
            Event::Answered(e) => self.closed(&e.wait),
            Event::ChildAnswered(e) => self.closed(&e.wait),
            Event::ToolProgressed(e) => {
                if let Some(message) = e.message.shown().filter(|_| self.taking.is_none()) {
                    Self::progress(message.clone(), out);
                }
            }
            Event::ToolReturned(e) => {
                self.returned(e);
                if self.taking.is_none() {
                    Self::progress(format!("{} has returned", e.tool), out);
                }
            }
            Event::MessageTaken(e) => {
                // Another turn: its answer is another one.
                if self.taking.as_ref().is_some_and(|message| e.messages.contains(message)) {
                    self.taking = None;
                }
                self.stands.answer.clear();
                self.stands.sources.clear();
                self.stands.files.clear();
                self.stands.open.clear();
                self.stands.waits = false;
            }
            Event::RunPaused(e) => self.stands.waits = e.reason.needs_someone(),
            Event::RunFinished(e) => {
                self.stands.open.clear();
                self.stands.waits = false;
                self.stands.note = e.message.clone();
                self.stands.end = Some(match e.status {
                    RunEnd::Completed => End::Completed,
                    RunEnd::Failed => End::Failed,
                    RunEnd::Canceled => End::Canceled,
                });
            }
            Event::RunCreated(_)
            | Event::RunStarted(_)
            | Event::ResultAmended(_)
            | Event::ToolsetReplaced(_)
            | Event::ChildStarted(_)
            | Event::MessageQueued(_)
            | Event::CancelRequested(_)
            | Event::HistoryCompacted(_)
            | Event::PluginEmitted(_)
            | Event::PluginStateSaved(_) => {}
        }
    }
}

impl Telling for Following {
    fn event(&mut self, _seq: i64, _at: Timestamp, event: &Event, out: &mut String) -> Flow {
        if self.over {
            return Flow::Over;
        }
        if let Event::RunCreated(e) = event {
            // Not the reader's to see, and the gateway's own word.
            let tool = e.metadata.shown().and_then(|m| m[STARTED_BY]["tool"].as_str());
            self.stands.direct = tool.and_then(|name| ToolName::parse(name).ok());
        }
        let viewer = self.viewer.clone();
        if let Some(seen) = visible_to(&viewer, event) {
            self.hear(&seen, out);
        }
        Flow::On
    }

    fn delta(&mut self, delta: &Delta, out: &mut String) -> Flow {
        if self.over {
            return Flow::Over;
        }
        self.say(out, |speech, viewer, _, say| speech.delta(viewer, delta, say));
        Flow::On
    }

    fn so_far(&mut self, so_far: SoFar<'_>, out: &mut String) -> Flow {
        if self.over {
            return Flow::Over;
        }
        self.say(out, |speech, viewer, run, say| speech.so_far(viewer, run, so_far, say));
        Flow::On
    }

    fn rest(&mut self, out: &mut String) -> Flow {
        let rests = self.stands.end.is_some() || (self.stands.waits && self.taking.is_none());
        if !self.over && !rests && self.until == Until::Rest {
            return Flow::On;
        }
        if !std::mem::replace(&mut self.over, true) {
            Self::write(&Line::Stands(Box::new(self.stands.clone())), out);
        }
        Flow::Over
    }

    fn keep_alive(&self) -> &'static str {
        "\n"
    }

    fn see_as(&mut self, viewer: Viewer) {
        self.viewer = viewer;
    }
}
