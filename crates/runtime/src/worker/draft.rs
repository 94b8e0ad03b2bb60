//! A reply as it grows: pieces for readers, parts for the log.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_engine::{Note, Reply};
use toolyard_models::Chunk;
use toolyard_models::wire::{OUTPUT_IN_WORDS, TOOLS_LEFT_OUT};
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::event::PluginEmitted;
use toolyard_protocol::message::Part;
use toolyard_protocol::run::{FinishReason, Usage};
use toolyard_protocol::tool::{ToolSpec, Visibility};
use toolyard_protocol::{CallId, Guarded, RunId, SpaceId, ToolName};
use toolyard_store::Feed;

use crate::agents::LoadedTools;

/// A call as the model wrote it.
#[derive(Debug, Clone)]
pub(super) struct RawCall {
    pub(super) call: CallId,
    pub(super) name: String,
    pub(super) args_text: String,
    pub(super) metadata: Value,
}

/// Who tells readers what no plugin does.
const GATEWAY: &str = "toolyard";

/// What is open at the end of the text so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Text,
    Reasoning,
}

/// Where pieces go.
#[derive(Debug)]
pub(super) struct Audience {
    pub(super) feed: Feed,
    pub(super) run: RunId,
    pub(super) space: Option<SpaceId>,
    pub(super) step: u32,
    pub(super) attempt: u32,
    pub(super) show_reasoning: bool,
}

#[derive(Debug)]
pub(super) struct Draft {
    audience: Audience,
    /// Pieces that nobody was told of yet.
    fresh: Vec<Delta>,
    /// The tools that were offered.
    tools: Option<Arc<LoadedTools>>,
    offset: u32,
    part: u32,
    open: Open,
    parts: Vec<Part>,
    calls: Vec<Option<RawCall>>,
    usage: Usage,
    metadata: Option<Value>,
    sources: u32,
    /// What readers must know of the request.
    notes: Vec<Note>,
}

fn find<'t>(tools: &'t Option<Arc<LoadedTools>>, name: &str) -> Option<&'t ToolSpec> {
    tools.as_ref().and_then(|tools| tools.set.find(name))
}

impl Draft {
    pub(super) fn new(audience: Audience, tools: Option<Arc<LoadedTools>>) -> Self {
        Self {
            audience,
            fresh: Vec::new(),
            tools,
            offset: 0,
            part: 0,
            open: Open::Nothing,
            parts: Vec::new(),
            calls: Vec::new(),
            usage: Usage::default(),
            metadata: None,
            sources: 0,
            notes: Vec::new(),
        }
    }

    /// Nothing was shown yet.
    pub(super) fn is_silent(&self) -> bool {
        self.offset == 0
    }

    /// Nothing was heard yet.
    pub(super) fn is_empty(&self) -> bool {
        self.is_silent() && self.parts.is_empty() && self.calls.is_empty()
    }

    /// Takes a chunk; the last one says why the model stopped.
    pub(super) fn take(&mut self, chunk: Chunk) -> Option<FinishReason> {
        match chunk {
            Chunk::TextDelta { text } => self.text(text),
            Chunk::ReasoningDelta { text } => self.reasoning(text),
            Chunk::ReasoningMetadata { value } => self.reasoning_metadata(value),
            Chunk::ToolInputStart { index, name } => self.call_starts(index, name),
            Chunk::ToolInputDelta { index, text } => self.call_grows(index, text),
            Chunk::ToolCall { index, name, args_text, vendor_id: _, metadata } => {
                self.call_starts(index, name.clone());
                if let Some(Some(raw)) = self.calls.get_mut(index) {
                    *raw = RawCall { call: raw.call.clone(), name, args_text, metadata };
                }
            }
            Chunk::Source { url, title, start, end } => {
                self.close_part();
                self.sources += 1;
                let id = format!("src_{}", self.sources);
                self.parts.push(Part::Source { id, url, title, start_index: start, end_index: end });
            }
            Chunk::Opaque { value } => {
                self.close_part();
                self.parts.push(Part::Opaque { value: Guarded::Shown(value) });
            }
            Chunk::Part { part } => {
                self.close_part();
                self.parts.push(part);
            }
            Chunk::Metadata { value } => {
                self.warn(&value);
                self.metadata = Some(value);
            }
            Chunk::Usage { usage } => self.usage = usage,
            Chunk::Finish { reason } => {
                self.close_part();
                return Some(reason);
            }
        }
        None
    }

    /// Tells readers what the vendor could not take. The log has every reason;
    /// of a private tool readers learn only its name.
    fn warn(&mut self, facts: &Value) {
        let mut tell = |name: &str, value: Value| {
            let (plugin, name) = (GATEWAY.to_owned(), name.to_owned());
            self.notes.push(Note::PluginEmitted(PluginEmitted { plugin, name, value }));
        };
        if let Some(left @ Value::Array(tools)) = facts.get(TOOLS_LEFT_OUT) {
            tracing::warn!(run = %self.audience.run, tools = %left, "the vendor cannot take some tools: they are not offered");
            let told = tools.iter().map(|tool| {
                let name = tool["name"].as_str().unwrap_or_default();
                let public = find(&self.tools, name).is_some_and(|s| s.visibility == Visibility::Public);
                let reason =
                    if public { tool["reason"].clone() } else { json!("its schema cannot be offered") };
                json!({ "name": name, "reason": reason })
            });
            tell("tools.left-out", json!({ "tools": told.collect::<Vec<_>>() }));
        }
        if let Some(reason) = facts.get(OUTPUT_IN_WORDS) {
            tracing::warn!(run = %self.audience.run, %reason, "the form of the answer is only asked for in words");
            tell("output.in-words", json!({ "reason": "the model's vendor does not enforce this schema" }));
        }
    }

    fn show(&mut self, piece: Piece) {
        let Audience { run, step, attempt, .. } = &self.audience;
        let delta = Delta { run: run.clone(), step: *step, attempt: *attempt, offset: self.offset, piece };
        self.offset += 1;
        self.fresh.push(delta);
    }

    /// Tells the audience what is new.
    pub(super) fn tell(&mut self) {
        let Audience { feed, space, .. } = &self.audience;
        feed.deltas(space.as_ref(), std::mem::take(&mut self.fresh));
    }

    fn close_part(&mut self) {
        let (part, public) = (self.part, self.audience.show_reasoning);
        match self.open {
            Open::Nothing => return,
            Open::Text => self.show(Piece::TextEnd { part }),
            Open::Reasoning => self.show(Piece::ReasoningEnd { part, public }),
        }
        self.part += 1;
        self.open = Open::Nothing;
    }

    fn text(&mut self, text: String) {
        if self.open != Open::Text {
            self.close_part();
            self.open = Open::Text;
            self.parts.push(Part::text(""));
            self.show(Piece::TextStart { part: self.part });
        }
        if let Some(Part::Text { text: whole }) = self.parts.last_mut() {
            whole.push_str(&text);
        }
        self.show(Piece::TextDelta { part: self.part, text: Arc::from(text) });
    }

    fn reasoning(&mut self, text: String) {
        let public = self.audience.show_reasoning;
        if self.open != Open::Reasoning {
            self.close_part();
            self.open = Open::Reasoning;
            self.parts.push(Part::Reasoning { text: String::new(), metadata: Guarded::Hidden });
            self.show(Piece::ReasoningStart { part: self.part, public });
        }
        if let Some(Part::Reasoning { text: whole, .. }) = self.parts.last_mut() {
            whole.push_str(&text);
        }
        self.show(Piece::ReasoningDelta { part: self.part, public, text: Arc::from(text) });
    }

    /// Ends the thought it belongs to. Without one it is a thought that only
    /// the vendor can read.
    fn reasoning_metadata(&mut self, value: Value) {
        let thinking = self.open == Open::Reasoning;
        self.close_part();
        match self.parts.last_mut() {
            Some(Part::Reasoning { metadata, .. }) if thinking => *metadata = Guarded::Shown(value),
            _ => self.parts.push(Part::Reasoning { text: String::new(), metadata: Guarded::Shown(value) }),
        }
    }

    /// The tool's name and class, as far as it is one of ours.
    fn tool(&self, name: &str) -> (ToolName, Visibility) {
        match find(&self.tools, name) {
            Some(spec) => (spec.name.clone(), spec.visibility),
            None => (super::gate::safe_name(name), Visibility::Private),
        }
    }

    fn call_starts(&mut self, index: usize, name: String) {
        if self.calls.len() <= index {
            self.calls.resize(index + 1, None);
        }
        let Some(slot @ None) = self.calls.get_mut(index) else { return };
        let call = CallId::mint();
        *slot = Some(RawCall {
            call: call.clone(),
            name: name.clone(),
            args_text: String::new(),
            metadata: Value::Null,
        });
        self.close_part();
        let (tool, visibility) = self.tool(&name);
        self.show(Piece::ToolInputStart { call, tool, visibility });
    }

    fn call_grows(&mut self, index: usize, text: String) {
        let Some(Some(raw)) = self.calls.get(index) else { return };
        let (call, name) = (raw.call.clone(), raw.name.clone());
        let (tool, visibility) = self.tool(&name);
        self.show(Piece::ToolInputDelta { call, tool, visibility, text: Arc::from(text) });
    }

    /// The whole reply.
    pub(super) fn finish(self, finish: FinishReason) -> (Reply, Vec<RawCall>) {
        let reply = Reply {
            parts: self.parts,
            usage: self.usage,
            cost: None,
            model: None,
            finish,
            metadata: self.metadata,
            notes: self.notes,
        };
        (reply, self.calls.into_iter().flatten().collect())
    }

    /// What was shown of a reply that does not end. Half a call is no call.
    pub(super) fn so_far(self) -> Option<Reply> {
        let shown = self.parts.iter().any(|p| match p {
            Part::Text { text } | Part::Reasoning { text, .. } => !text.is_empty(),
            Part::Source { .. } => true,
            Part::File { .. }
            | Part::ToolCall { .. }
            | Part::ToolResult { .. }
            | Part::Data { .. }
            | Part::Opaque { .. } => false,
        });
        (shown || self.usage != Usage::default()).then(|| self.finish(FinishReason::Stopped).0)
    }
}
