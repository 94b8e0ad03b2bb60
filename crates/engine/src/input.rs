//! What the worker tells the engine. Routing, hooks and the permission gate
//! run in the worker first; their verdict is data here.

use serde_json::Value;
use toolyard_protocol::event::{
    BlobRef, HistoryCompacted, PluginEmitted, PluginStateSaved, ReplyAmended, ResultAmended, ToolsetReplaced,
};
use toolyard_protocol::message::Part;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::run::{FinishReason, Usage};
use toolyard_protocol::tool::{Place, Visibility};
use toolyard_protocol::wait::{AnswerRule, WaitKind};
use toolyard_protocol::{CallId, ErrorCode, Event, Hash, RunId, Timestamp, ToolName, ToolOutcome};

/// News for [`crate::Run::next`].
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A worker took the run; it has nothing in flight. `recovered` says that
    /// the former owner may have died in the middle of the step.
    Claimed { recovered: bool, why: String },
    /// New facts were folded.
    Woken,
    /// The model call that was due ended with a whole reply.
    ModelReplied { reply: Reply, calls: Vec<RoutedCall> },
    /// The model call that was due failed for good.
    ModelFailed {
        code: ErrorCode,
        /// A sentence for everybody.
        message: String,
        /// What really went wrong.
        detail: String,
        /// What was shown before it failed.
        said: Option<Reply>,
    },
    /// The verdict on a call that [`crate::Effect::Route`] named. Also: a
    /// dispatched call that has stopped to ask for input or a credential
    /// (`Verdict::Ask`); the answer makes it due to be routed again.
    Routed(RoutedCall),
    /// An executor of this worker ended a dispatched call.
    ToolEnded {
        call: CallId,
        outcome: ToolOutcome,
        blob: Option<BlobRef>,
        untrusted: bool,
        /// What hooks have to log with it.
        notes: Vec<Note>,
    },
    /// A dispatched call became a run of its own.
    ChildStarted { call: CallId, child: RunId, expires: Option<Timestamp>, stream: bool },
    /// News of a dispatched or parked call.
    Progressed {
        call: CallId,
        fraction: Option<f64>,
        message: Option<String>,
        preliminary: Option<Value>,
        /// What the far side works on, from now on without us.
        ticket: Option<Value>,
    },
    /// What hooks and the worker's own upkeep have to log between steps.
    Noted(Vec<Note>),
    /// Nothing is in flight any more: the worker aborted what was not due.
    Halted { said: Option<Reply> },
}

/// What the model said.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub parts: Vec<Part>,
    pub usage: Usage,
    /// Millionths of a dollar, if the price is known.
    pub cost: Option<u64>,
    /// Who answered.
    pub model: Option<String>,
    pub finish: FinishReason,
    /// The vendor's data, wanted back in the next request.
    pub metadata: Option<Value>,
    /// What hooks have to log with this reply, directly behind it.
    pub notes: Vec<Note>,
}

/// An event that changes no call and no state: the worker may log it as it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    ReplyAmended(ReplyAmended),
    ResultAmended(ResultAmended),
    ToolsetReplaced(ToolsetReplaced),
    HistoryCompacted(HistoryCompacted),
    PluginEmitted(PluginEmitted),
    PluginStateSaved(PluginStateSaved),
}

impl From<Note> for Event {
    fn from(note: Note) -> Self {
        match note {
            Note::ReplyAmended(e) => e.into(),
            Note::ResultAmended(e) => e.into(),
            Note::ToolsetReplaced(e) => e.into(),
            Note::HistoryCompacted(e) => e.into(),
            Note::PluginEmitted(e) => e.into(),
            Note::PluginStateSaved(e) => e.into(),
        }
    }
}

/// A call of a reply with what the worker found out about it.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutedCall {
    pub call: CallId,
    pub tool: ToolName,
    /// As the model gave them, or as an answerer edited them.
    pub args: Value,
    /// The vendor's own id and data.
    pub metadata: Option<Value>,
    pub visibility: Visibility,
    pub place: Place,
    pub risk: Risk,
    pub idempotent: bool,
    pub untrusted: bool,
    pub fingerprint: Option<Hash>,
    /// Who may answer what this call waits for.
    pub rule: AnswerRule,
    pub verdict: Verdict,
}

/// Where a call goes.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The gateway runs it.
    Run,
    /// A client or the clock ends it.
    Park { kind: ParkKind, expires: Option<Timestamp>, payload: Option<Value> },
    /// Somebody decides or provides something first. The engine counts the
    /// rounds, so a second question of one call has an id of its own.
    Ask {
        kind: AskKind,
        expires: Option<Timestamp>,
        payload: Value,
        /// What the far side wants back with the answer.
        state: Option<Value>,
    },
    /// A call in flight asks in the middle and waits for the answer there. Its
    /// node holds it: if that dies, nobody knows what came of it.
    Question { expires: Option<Timestamp>, payload: Value },
    /// It never runs: bad arguments, denied by rule.
    Refuse(ToolOutcome),
    /// It never runs: there is no such tool.
    Unknown(String),
}

/// The waits that a requested call may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParkKind {
    Client,
    Timer,
}

/// The waits that stand before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AskKind {
    Approval,
    Input,
    Credential,
}

impl From<ParkKind> for WaitKind {
    fn from(kind: ParkKind) -> Self {
        match kind {
            ParkKind::Client => Self::Client,
            ParkKind::Timer => Self::Timer,
        }
    }
}

impl From<AskKind> for WaitKind {
    fn from(kind: AskKind) -> Self {
        match kind {
            AskKind::Approval => Self::Approval,
            AskKind::Input => Self::Input,
            AskKind::Credential => Self::Credential,
        }
    }
}
