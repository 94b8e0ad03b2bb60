//! What a run said and heard so far: the source of the next model request.

use std::sync::Arc;

use toolyard_protocol::event::{BlobRef, ModelReplied};
use toolyard_protocol::{CallId, MessageId, ToolOutcome};

/// How a call ended, as the model hears it.
#[derive(Debug, Clone, PartialEq)]
pub struct Returned {
    /// After a hook changed it, if one did.
    pub outcome: ToolOutcome,
    /// The whole value, if the outcome is only its preview.
    pub blob: Option<BlobRef>,
}

/// One reply of the model and the results of its calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The reply; its parts are the amended ones, if a hook amended them.
    pub reply: Arc<ModelReplied>,
    /// One place per call of the reply, in call order.
    pub results: Vec<Option<Arc<Returned>>>,
}

impl Step {
    pub(crate) fn new(reply: ModelReplied) -> Self {
        let results = vec![None; reply.calls.len()];
        Self { reply: Arc::new(reply), results }
    }
    pub fn result_of(&self, call: &CallId) -> Option<&Returned> {
        self.place_of(call).and_then(|i| self.results.get(i)).and_then(Option::as_deref)
    }
    fn place_of(&self, call: &CallId) -> Option<usize> {
        self.reply.calls.iter().position(|c| &c.call == call)
    }
    pub(crate) fn put(&mut self, call: &CallId, returned: Returned) {
        if let Some(place) = self.place_of(call).and_then(|i| self.results.get_mut(i)) {
            *place = Some(Arc::new(returned));
        }
    }
}

/// What followed one taking of messages: one assistant message.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// From 1.
    pub number: u32,
    /// The assistant message of this turn.
    pub message: MessageId,
    /// The messages that the model hears first. Empty in the first turn: its
    /// trigger is part of the history that the run was created with.
    pub taken: Vec<MessageId>,
    pub steps: Vec<Arc<Step>>,
}
