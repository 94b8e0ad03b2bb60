//! The events themselves. The letter behind a field is its class.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use super::birth::{Errand, OpenWait, Parent, Replayed, Spent, Trigger};
use crate::agent::OutputSection;
use crate::error::ErrorCode;
use crate::guarded::Guarded;
use crate::hash::Hash;
use crate::ids::{BranchId, CallId, EntityId, MessageId, RunId, SpaceId, WaitId};
use crate::limits::RunLimits;
use crate::message::Part;
use crate::name::{AgentName, ToolName};
use crate::outcome::{OutcomeKind, ToolOutcome};
use crate::picks::Picks;
use crate::principal::Actor;
use crate::risk::Risk;
use crate::run::{FinishReason, MessagePolicy, PauseReason, RunEnd, Usage};
use crate::time::Timestamp;
use crate::tool::{Answerers, Place, Visibility};
use crate::trace::TraceParent;
use crate::wait::{AnswerRule, WaitKind};

event! {
    /// Pins all that the run depends on.
    RunCreated {
        pub agent: AgentName, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub agent_version: Guarded<Hash>, // S
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub toolset: Guarded<Hash>, // S
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub space: Option<SpaceId>, // P
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub agent_entity: Option<EntityId>, // P
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub trigger: Option<Trigger>, // P
        pub branch: BranchId, // P
        /// The last message of the space that the run reads.
        #[ts(type = "number")]
        pub history_to: i64, // P
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub parent: Option<Parent>, // P
        pub root: RunId, // P
        /// How many agents triggered each other up to here.
        #[serde(default)]
        pub depth: u32, // P
        /// Reasoning is public in this space.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        pub show_reasoning: bool, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub limits: Guarded<RunLimits>, // S
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub on_message: Guarded<MessagePolicy>, // S
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub answerers: Guarded<Answerers>, // S
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub by: Guarded<Actor>, // S
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub metadata: Guarded<Value>, // S
        /// The model that was asked for instead of the agent's own.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub model: Guarded<String>, // S
        /// Of a child run.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub errand: Guarded<Errand>, // S
        /// Which tools are left of the agent's.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub picks: Guarded<Picks>, // S
        /// The form of the answer that was asked for instead of the agent's own.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub output: Guarded<OutputSection>, // S
        /// It begins with words from outside the gateway's trust.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        pub tainted: bool, // P
        /// Its first steps are those of another run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub replayed: Option<Replayed>, // P
        /// Where the request stood in its caller's trace.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub trace: Guarded<TraceParent>, // S
    }
}

event! {
    /// A node works on the run.
    RunStarted {}
}

event! {
    /// A step is tried again after a crash. What was streamed of it is void.
    StepRestarted {
        pub step: u32, // P
        pub attempt: u32, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub why: Guarded<String>, // S
    }
}

event! {
    /// A call as the model asked for it.
    ReplyCall {
        pub call: CallId, // P
        pub tool: ToolName, // P
        pub visibility: Visibility, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub args: Guarded<Value>, // T
        /// The vendor's own id and data, wanted back in the next request.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub metadata: Guarded<Value>, // S
    }
}

event! {
    /// One whole reply of the model.
    ModelReplied {
        pub step: u32, // P
        /// The assistant message of this turn.
        pub message: MessageId, // P
        /// Text and sources P; reasoning by `show_reasoning`.
        pub parts: Vec<Part>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        pub show_reasoning: bool, // P
        #[serde(default)]
        pub calls: Vec<ReplyCall>,
        #[serde(default, serialize_with = "Usage::store")]
        pub usage: Usage, // P
        /// What it cost, in millionths of a dollar, if the price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(type = "number", optional)]
        pub cost: Option<u64>, // P
        /// Who answered: provider and model.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub model: Guarded<String>, // S
        pub finish: FinishReason, // P
        /// Cut short by a cancel or an interrupt.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        pub partial: bool, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub metadata: Guarded<Value>, // S
    }
}

event! {
    /// Somebody must decide or provide something before a call goes on.
    Asked {
        pub wait: WaitId, // P
        pub kind: WaitKind, // P
        pub step: u32, // P
        pub call: CallId, // P
        pub tool: ToolName, // P
        pub place: Place, // P
        pub risk: Risk, // P
        pub visibility: Visibility, // P
        pub rule: AnswerRule, // P
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub expires: Option<Timestamp>, // P
        /// The exact arguments, or the prompt.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub payload: Guarded<Value>, // A
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub fingerprint: Guarded<Hash>, // S
        /// What the far side wants back with the answer.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub state: Guarded<Value>, // S
        /// The call stays in flight on its node while the question is open.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        pub held: bool, // P
    }
}

/// The answer to a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    Allow,
    Deny,
    /// A value was given for an input or credential wait.
    Provide,
    /// Nobody answered in time.
    Expire,
    /// The run went another way.
    Withdraw,
}

event! {
    /// A wait of kind approval, input or credential ended.
    Answered {
        pub wait: WaitId, // P
        pub kind: WaitKind, // P
        pub call: CallId, // P
        pub visibility: Visibility, // P
        pub decision: Decision, // P
        /// Arguments that the answerer changed, or the value it provided.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub edited: Guarded<Value>, // T
        /// It came with a request that is a turn of its own: steps count anew.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        pub recount: bool, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub by: Guarded<Actor>, // S
    }
}

event! {
    /// The wait that a requested call opens: a client's, or a timer's.
    Parked {
        pub wait: WaitId, // P
        pub kind: WaitKind, // P
        pub rule: AnswerRule, // P
        /// What a timer answers when it is due.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub payload: Guarded<Value>, // S
    }
}

event! {
    /// A call may run from here on, at its place.
    ToolCallRequested {
        pub step: u32, // P
        pub call: CallId, // P
        pub tool: ToolName, // P
        pub place: Place, // P
        pub risk: Risk, // P
        pub visibility: Visibility, // P
        /// A crash in the middle is mended by running it again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        pub idempotent: bool, // P
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub wait: Option<Parked>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub expires: Option<Timestamp>, // P
        /// Its result will taint the run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        pub untrusted: bool, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub args: Guarded<Value>, // T
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub fingerprint: Guarded<Hash>, // S
    }
}

event! {
    /// News of a running call.
    ToolProgressed {
        pub call: CallId, // P
        pub tool: ToolName, // P
        pub visibility: Visibility, // P
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub fraction: Option<f64>, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub message: Guarded<String>, // T
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub preliminary: Guarded<Value>, // T
        /// What the far side works on: whoever has it can wait for the end.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub ticket: Guarded<Value>, // S
        /// What a child used whose call had ended before it did.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub spent: Guarded<Spent>, // S
    }
}

event! {
    /// A value that lies beside the log because it is large.
    BlobRef {
        pub blob: Hash,
        #[ts(type = "number")]
        pub bytes: u64,
    }
}

event! {
    /// The one end of a call.
    ToolReturned {
        pub call: CallId, // P
        pub tool: ToolName, // P
        pub visibility: Visibility, // P
        pub outcome: OutcomeKind, // P
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        pub untrusted: bool, // P
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        pub recount: bool, // P
        /// The value of an `ok`; a preview if there is a blob.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub value: Guarded<Value>, // T
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub blob: Guarded<BlobRef>, // T
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub error: Guarded<String>, // T
        /// Why it never ran, for programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub code: Option<ErrorCode>, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub by: Guarded<Actor>, // S
        /// Of a child run.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub spent: Guarded<Spent>, // T
    }
}

impl ToolReturned {
    pub fn new(
        call: CallId,
        tool: ToolName,
        visibility: Visibility,
        outcome: ToolOutcome,
        by: Actor,
    ) -> Self {
        let outcome_kind = outcome.kind();
        let (value, error) = match outcome {
            ToolOutcome::Ok(value) => (Guarded::Shown(value), Guarded::Hidden),
            ToolOutcome::Failed(t)
            | ToolOutcome::Denied(t)
            | ToolOutcome::Expired(t)
            | ToolOutcome::Canceled(t)
            | ToolOutcome::Uncertain(t) => (Guarded::Hidden, Guarded::Shown(t)),
        };
        Self {
            call,
            tool,
            visibility,
            outcome: outcome_kind,
            untrusted: false,
            recount: false,
            value,
            blob: Guarded::Hidden,
            error,
            code: None,
            by: Guarded::Shown(by),
            spent: Guarded::Hidden,
        }
    }
    /// The outcome as the model will hear it (a preview stands for a blob).
    pub fn outcome(&self) -> ToolOutcome {
        ToolOutcome::from_parts(self.outcome, self.value.shown().cloned(), self.error.shown().cloned())
    }
}

event! {
    /// A continuing request, or a changed server, brought other tools.
    ToolsetReplaced {
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub toolset: Guarded<Hash>, // S
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub model: Guarded<String>, // S
    }
}

event! {
    /// A call became a run of its own.
    ChildStarted {
        pub call: CallId, // P
        pub tool: ToolName, // P
        pub visibility: Visibility, // P
        pub child: RunId, // P
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub expires: Option<Timestamp>, // P
        /// Each of the child's steps shows as progress of the call.
        #[serde(default)]
        pub stream: bool, // P
    }
}

event! {
    /// A child waits for somebody outside; answers are taken under the root.
    ChildAsked {
        pub call: CallId, // P
        pub child: RunId, // P
        pub wait: WaitId, // P
        pub kind: WaitKind, // P
        pub rule: AnswerRule, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub payload: Guarded<Value>, // A
    }
}

event! {
    /// A child's wait ended.
    ChildAnswered {
        pub call: CallId, // P
        pub child: RunId, // P
        pub wait: WaitId, // P
        pub outcome: Decision, // P
        pub visibility: Visibility, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub value: Guarded<Value>, // T
    }
}

event! {
    /// A message came while the run was live.
    MessageQueued {
        pub message: MessageId, // P
        /// The model is to stop talking and hear it.
        #[serde(default)]
        pub interrupt: bool, // P
        /// Somebody else than the one this run works for says it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        pub foreign: bool, // P
    }
}

event! {
    /// The run reads these messages now; the step counter starts again.
    MessageTaken {
        pub messages: Vec<MessageId>, // P
    }
}

event! {
    /// Somebody wants the run to stop.
    CancelRequested {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub by: Guarded<Actor>, // S
    }
}

event! {
    /// Older history stands as a summary in requests; the originals stay.
    HistoryCompacted {
        #[ts(type = "number")]
        pub up_to: i64, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub summary: Guarded<String>, // S
        /// What the summary took.
        #[serde(default, serialize_with = "Usage::store")]
        pub usage: Usage, // P
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(type = "number", optional)]
        pub cost: Option<u64>, // P
    }
}

event! {
    /// Nothing is in flight and something is open: the run lies on disk.
    RunPaused {
        pub reason: PauseReason, // P
        pub waits: Vec<OpenWait>, // P
    }
}

event! {
    /// The last event of a run.
    RunFinished {
        pub status: RunEnd, // P
        #[serde(default, serialize_with = "Usage::store")]
        pub usage: Usage, // P
        /// In millionths of a US dollar, where prices are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(type = "number", optional)]
        pub cost: Option<u64>, // P
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub error: Option<ErrorCode>, // P
        /// A sentence for everybody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub message: Option<String>, // P
        /// What really went wrong.
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub detail: Guarded<String>, // S
    }
}
