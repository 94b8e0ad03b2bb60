//! One call of the open step, and the list of them in call order.

use std::sync::Arc;

use serde_json::Value;
use toolyard_protocol::event::{Decision, OpenWait, ReplyCall};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{Place, Visibility};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{CallId, Hash, Timestamp, ToolName, ToolOutcome, WaitId};

/// Where a call stands. It only moves on, and `Ended` is the end.
#[derive(Debug, Clone, PartialEq)]
pub enum CallState {
    /// The model asked for it. Its route follows in the same append.
    Proposed,
    /// Somebody must decide or provide something first.
    Gated {
        wait: WaitId,
        kind: WaitKind,
    },
    /// The gate was opened; the worker checks and decides again.
    Cleared,
    /// The gate was closed; its end follows in the same append.
    Refused(Decision),
    /// The gateway runs it.
    Dispatched,
    /// A client, a child or a timer will end it.
    Parked {
        wait: WaitId,
        kind: WaitKind,
    },
    Ended(ToolOutcome),
}

/// A call of the open step.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub id: CallId,
    pub tool: ToolName,
    pub visibility: Visibility,
    /// As the model gave them, or as an answerer edited them.
    pub args: Arc<Value>,
    /// The arguments are an answerer's.
    pub edited: bool,
    /// Somebody allowed exactly these arguments.
    pub approved: bool,
    /// What an input or credential answer gave.
    pub provided: Option<Arc<Value>>,
    /// What the far side wants back with it.
    pub state: Option<Arc<Value>>,
    /// What the far side works on: a crash here does not stop it.
    pub ticket: Option<Arc<Value>>,
    /// A question that the call asks while it is in flight.
    pub asking: Option<(WaitId, WaitKind)>,
    /// How many such questions it has asked.
    pub questions: u32,
    /// How often somebody was asked: the round of the next question.
    pub round: u32,
    pub place: Place,
    pub risk: Risk,
    /// A crash in the middle is mended by running it again.
    pub idempotent: bool,
    /// Its result taints the run.
    pub untrusted: bool,
    pub expires: Option<Timestamp>,
    /// The tool as it was when it was asked for or requested.
    pub fingerprint: Option<Hash>,
    pub at: CallState,
}

impl Call {
    pub(crate) fn proposed(call: &ReplyCall) -> Self {
        Self {
            id: call.call.clone(),
            tool: call.tool.clone(),
            visibility: call.visibility,
            args: Arc::new(call.args.shown().cloned().unwrap_or_default()),
            edited: false,
            approved: false,
            provided: None,
            state: None,
            ticket: None,
            asking: None,
            questions: 0,
            round: 0,
            place: Place::Gateway,
            risk: Risk::Low,
            idempotent: false,
            untrusted: false,
            expires: None,
            fingerprint: None,
            at: CallState::Proposed,
        }
    }
    /// The ledger row that this call holds open.
    pub fn open_wait(&self) -> Option<OpenWait> {
        let (wait, kind) = match &self.at {
            CallState::Gated { wait, kind } | CallState::Parked { wait, kind } => (wait.clone(), *kind),
            CallState::Dispatched => self.asking.clone()?,
            CallState::Proposed | CallState::Cleared | CallState::Refused(_) | CallState::Ended(_) => {
                return None;
            }
        };
        Some(OpenWait { wait, kind, call: self.id.clone(), tool: self.tool.clone() })
    }
    pub fn is_ended(&self) -> bool {
        matches!(self.at, CallState::Ended(_))
    }
    pub fn is_dispatched(&self) -> bool {
        matches!(self.at, CallState::Dispatched)
    }
    /// Only somebody outside can move it on.
    fn is_open_outside(&self) -> bool {
        matches!(self.at, CallState::Gated { .. } | CallState::Parked { .. })
    }
}

/// The calls of one step, in the order the model made them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calls(Vec<Call>);

impl Calls {
    pub(crate) fn new(calls: Vec<Call>) -> Self {
        Self(calls)
    }
    pub fn as_slice(&self) -> &[Call] {
        &self.0
    }
    pub fn find(&self, id: &CallId) -> Option<&Call> {
        self.0.iter().find(|c| &c.id == id)
    }
    pub(crate) fn find_mut(&mut self, id: &CallId) -> Option<&mut Call> {
        self.0.iter_mut().find(|c| &c.id == id)
    }
    pub fn all_ended(&self) -> bool {
        self.0.iter().all(Call::is_ended)
    }
    /// Every call is ended or lies with somebody outside.
    pub(crate) fn rest_outside(&self) -> bool {
        self.0.iter().all(|c| c.is_ended() || c.is_open_outside())
    }
}
