//! One run: its state, what it said, and what it asks for.
//!
//! A worker drives it like this, and there is no second path for recovery:
//! 1. Fold the log. Say [`crate::Input::Claimed`], append what [`Run::next`] returns,
//!    fold it.
//! 2. Perform [`Run::due`] minus what is in flight; abort what is in flight and
//!    no longer due. Give each end to [`Run::next`] and append. On a conflict
//!    fold the new facts and ask again with the same input.
//! 3. After facts were folded say [`crate::Input::Woken`].
//! 4. When [`Run::halting`] is true and nothing is in flight (any more), say
//!    [`crate::Input::Halted`] with what the model had shown. `Claimed` implies it,
//!    so a parked run that is woken by a cancel needs no second input.
//! 5. When [`Run::is_parked`] or [`Run::is_finished`], let go of the run.
//!
//! What one `next` returns is one append. So a reply stands together with the
//! fate of its calls, and `RunPaused` with what parked the run.
//!
//! Facts (results, answers, cancels, messages) reach [`Run::fold`] in every
//! state. All other events come from `next` alone.

mod due;
mod fold;
mod fold_calls;
mod next;
mod route;
mod settle;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolyard_protocol::event::{CancelRequested, HistoryCompacted, OpenWait, RunCreated, RunFinished};
use toolyard_protocol::limits::RunLimits;
use toolyard_protocol::run::{PauseReason, RunStatus, Usage};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{CallId, Hash, MessageId, RunId, WaitId};

use crate::call::Call;
use crate::state::State;
use crate::turn::{Step, Turn};

/// A message that came while the run was live and is not taken yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMessage {
    pub message: MessageId,
    /// The model is to stop talking and hear it.
    pub interrupt: bool,
    /// Somebody else than the one this run works for says it.
    pub foreign: bool,
}

/// Something that a child of this run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildWait {
    /// The call of this run that the child answers.
    pub call: CallId,
    pub child: RunId,
    pub wait: WaitId,
    pub kind: WaitKind,
}

/// A run, folded from its log. A clone is cheap: what was said is shared.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    id: RunId,
    created: Option<Arc<RunCreated>>,
    limits: RunLimits,
    state: State,
    /// Never empty; the last one is the current turn.
    turns: Vec<Arc<Turn>>,
    /// The number of the newest step.
    step: u32,
    /// Replies with calls in this turn.
    steps_in_turn: u32,
    /// Replies of the whole run.
    replies: u32,
    /// Tool failures in a row, counted when steps close.
    failures: u32,
    usage: Usage,
    /// Millionths of a dollar; none while no price was known.
    cost: Option<u64>,
    tainted: bool,
    /// It has heard somebody else than the one it works for.
    mixed: bool,
    toolset: Option<Hash>,
    model: Option<String>,
    queued: Vec<QueuedMessage>,
    canceling: Option<Arc<CancelRequested>>,
    child_waits: Vec<ChildWait>,
    /// A `RunPaused` stands for the pause that the run is in.
    paused: bool,
    compacted: Option<Arc<HistoryCompacted>>,
    plugin_states: BTreeMap<String, Arc<Value>>,
    finished: Option<Arc<RunFinished>>,
}

impl Run {
    pub fn new(id: RunId) -> Self {
        let first =
            Turn { number: 1, message: MessageId::of_turn(&id, 1), taken: Vec::new(), steps: Vec::new() };
        Self {
            id,
            created: None,
            limits: RunLimits::default(),
            state: State::Queued,
            turns: vec![Arc::new(first)],
            step: 0,
            steps_in_turn: 0,
            replies: 0,
            failures: 0,
            usage: Usage::default(),
            cost: None,
            tainted: false,
            mixed: false,
            toolset: None,
            model: None,
            queued: Vec::new(),
            canceling: None,
            child_waits: Vec::new(),
            paused: false,
            compacted: None,
            plugin_states: BTreeMap::new(),
            finished: None,
        }
    }

    pub fn id(&self) -> &RunId {
        &self.id
    }
    pub fn created(&self) -> Option<&RunCreated> {
        self.created.as_deref()
    }
    pub fn limits(&self) -> &RunLimits {
        &self.limits
    }
    pub fn state(&self) -> &State {
        &self.state
    }
    /// It has heard somebody else than the one it works for: what is that one's
    /// alone (grants, memories, logins) is out of its reach from then on.
    pub fn is_mixed(&self) -> bool {
        self.mixed
    }
    /// The newest step; 0 before the first.
    pub fn step(&self) -> u32 {
        self.step
    }
    /// The try at the current step: 1, or more after crashes.
    pub fn attempt(&self) -> u32 {
        match self.state {
            State::Thinking { attempt, .. } => attempt,
            State::Queued | State::Acting { .. } | State::Waiting { .. } | State::Finished(_) => 1,
        }
    }
    /// What the run said and heard, oldest first.
    pub fn turns(&self) -> &[Arc<Turn>] {
        &self.turns
    }
    /// The number of the current turn, from 1.
    pub fn turn(&self) -> u32 {
        self.turns.last().map_or(1, |t| t.number)
    }
    /// The assistant message of the current turn.
    pub fn message(&self) -> MessageId {
        match self.turns.last() {
            Some(turn) => turn.message.clone(),
            None => MessageId::of_turn(&self.id, 1),
        }
    }
    /// The newest step that has a reply.
    pub fn last_step(&self) -> Option<&Arc<Step>> {
        self.turns.iter().rev().find_map(|t| t.steps.last())
    }
    /// The open call of this id.
    pub fn call(&self, id: &CallId) -> Option<&Call> {
        self.state.calls().iter().find(|c| &c.id == id)
    }
    /// The sum over all replies.
    pub fn cost(&self) -> Option<u64> {
        self.cost
    }
    pub fn usage(&self) -> Usage {
        self.usage
    }
    /// The tools of the next step.
    pub fn toolset(&self) -> Option<&Hash> {
        self.toolset.as_ref()
    }
    /// The model that a continuing request chose instead of the agent's.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }
    /// An untrusted result is part of the conversation.
    pub fn tainted(&self) -> bool {
        self.tainted
    }
    pub fn queued(&self) -> &[QueuedMessage] {
        &self.queued
    }
    pub fn canceling(&self) -> Option<&CancelRequested> {
        self.canceling.as_deref()
    }
    /// Up to where a summary stands for the history.
    pub fn compacted(&self) -> Option<&HistoryCompacted> {
        self.compacted.as_deref()
    }
    /// A plugin's memory as its last step left it.
    pub fn plugin_state(&self, plugin: &str) -> Option<&Value> {
        self.plugin_states.get(plugin).map(Arc::as_ref)
    }
    pub fn finished(&self) -> Option<&RunFinished> {
        self.finished.as_deref()
    }
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Finished(_))
    }

    /// The run's own open waits, in call order: its rows of the ledger.
    pub fn open_waits(&self) -> Vec<OpenWait> {
        self.state.calls().iter().filter_map(Call::open_wait).collect()
    }
    /// What children of this run wait for.
    pub fn child_waits(&self) -> &[ChildWait] {
        &self.child_waits
    }
    /// Nothing is due, nothing is in flight and something is open: the owner
    /// lets go of the run.
    pub fn is_parked(&self) -> bool {
        matches!(self.state, State::Waiting { .. }) && !self.halting()
    }
    /// Why a parked run stands still: its most urgent wait, here or in a child.
    pub fn pause_reason(&self) -> Option<PauseReason> {
        if !self.is_parked() {
            return None;
        }
        let own = self.state.calls().iter().filter_map(Call::open_wait).map(|w| w.kind);
        let kinds = own.chain(self.child_waits.iter().map(|w| w.kind));
        kinds.min_by_key(|k| urgency(*k)).map(PauseReason::of)
    }
    pub fn status(&self) -> RunStatus {
        match &self.state {
            State::Queued => RunStatus::Queued,
            State::Thinking { .. } | State::Acting { .. } => RunStatus::Running,
            State::Waiting { .. } => self.pause_reason().map_or(RunStatus::Running, PauseReason::status),
            State::Finished(end) => end.status(),
        }
    }

    /// A cancel or an interrupt is pending: nothing is due, the worker aborts
    /// what is in flight and says [`crate::Input::Halted`].
    pub fn halting(&self) -> bool {
        match &self.state {
            State::Queued => self.canceling.is_some(),
            State::Thinking { .. } | State::Acting { .. } | State::Waiting { .. } => {
                self.canceling.is_some() || self.interrupting()
            }
            State::Finished(_) => false,
        }
    }
    fn interrupting(&self) -> bool {
        self.queued.iter().any(|m| m.interrupt)
    }
}

/// The order in which waits name the pause.
fn urgency(kind: WaitKind) -> u8 {
    match kind {
        WaitKind::Approval => 0,
        WaitKind::Input => 1,
        WaitKind::Credential => 2,
        WaitKind::Client => 3,
        WaitKind::Child => 4,
        WaitKind::Timer => 5,
    }
}
