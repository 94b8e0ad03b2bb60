//! What every hook of a run knows, remembers and may say.

use serde_json::{Map, Value};
use toolyard_protocol::run::{FinishReason, Usage};
use toolyard_protocol::{EntityId, RunId, SpaceId, TraceParent, limits};

use super::Span;

/// What plugins of one run remember together. Fresh for the next run.
pub type State = Map<String, Value>;

/// Where a hook is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scene {
    pub run: RunId,
    pub agent: String,
    /// Who triggered the run.
    pub client: Option<EntityId>,
    /// The conversation.
    pub thread: Option<SpaceId>,
    /// The vendor that speaks: `openai`, `anthropic`, …
    pub provider: String,
    /// The model that is asked first, by the vendor's name for it.
    pub model: String,
    /// The model's reply to this step, once it is whole.
    pub spoken: Option<Spoken>,
    /// The message that the run writes.
    pub message: String,
    pub step: u32,
    /// The caller's span that this turn works for.
    pub trace: Option<TraceParent>,
}

/// What is known of a reply beside its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    /// Who answered: another one than was asked, if that one was busy.
    pub model: String,
    pub finish: FinishReason,
    /// Of this step alone.
    pub usage: Usage,
}

/// An event of a plugin's own, for whoever watches the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Emitted {
    pub plugin: String,
    pub name: String,
    pub value: Value,
}

/// A hook's view of its run while it is called.
#[derive(Debug)]
pub struct Stage<'a> {
    pub scene: &'a Scene,
    pub state: &'a mut State,
    pub(super) plugin: &'a str,
    pub(super) emitted: &'a mut Vec<Emitted>,
    pub(super) spans: &'a mut Vec<Span>,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(
        scene: &'a Scene,
        state: &'a mut State,
        plugin: &'a str,
        emitted: &'a mut Vec<Emitted>,
        spans: &'a mut Vec<Span>,
    ) -> Self {
        Self { scene, state, plugin, emitted, spans }
    }

    /// A piece of a trace, for the operator's collector. Nobody else sees it.
    pub fn record(&mut self, span: Span) {
        if self.spans.len() < limits::PLUGIN_SPANS {
            self.spans.push(span);
        }
    }

    /// Tells everybody who watches the run. More than the limit is left out.
    pub fn emit(&mut self, name: &str, value: Value) {
        if self.emitted.len() < limits::PLUGIN_EVENTS {
            let (plugin, name) = (self.plugin.to_owned(), name.to_owned());
            self.emitted.push(Emitted { plugin, name, value });
        } else {
            self.log(&format!("an event is left out: a step has at most {}", limits::PLUGIN_EVENTS));
        }
    }

    /// A line in the gateway's log, with the plugin and the run beside it.
    pub fn log(&self, text: &str) {
        tracing::info!(plugin = self.plugin, run = %self.scene.run, "{text}");
    }
}
