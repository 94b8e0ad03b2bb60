//! The payloads of frames: what stands beside `type`, `runId`, `seq` and `ts`.
//!
//! Names are the source document's where it has one (rows G32, G33, G37). An
//! absent field is hidden from this viewer, or there is nothing to say. The
//! TypeScript types of frames are generated from here.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolyard_protocol::agent::OutputSection;
use toolyard_protocol::event::{BlobRef, Decision, Errand, Spent};
use toolyard_protocol::limits::RunLimits;
use toolyard_protocol::picks::Picks;
use toolyard_protocol::principal::Actor;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::run::{FinishReason, MessagePolicy, PauseReason, RunEnd, Usage};
use toolyard_protocol::tool::{Answerers, Visibility};
use toolyard_protocol::wait::{AnswerRule, WaitKind};
use toolyard_protocol::{
    AgentName, BranchId, CallId, EntityId, ErrorCode, Hash, MessageId, OutcomeKind, RunId, Timestamp,
    ToolName, WaitId,
};
use ts_rs::TS;

use super::delta::PartId;
use super::parts::PartView;
use super::so_far::PartSoFar;
use super::view::{MessageView, RunView, WaitView};

/// Required fields, then after the semicolon those that may be absent.
macro_rules! payload {
    ($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? {
        $($(#[$at:meta])* $field:ident: $ty:ty,)*
        $(; $($(#[$opt_at:meta])* $opt:ident: $opt_ty:ty,)*)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
        #[serde(rename_all = "camelCase")]
        #[ts(optional_fields)]
        pub struct $name $(<$life>)? {
            $($(#[$at])* pub $field: $ty,)*
            $($($(#[$opt_at])* #[serde(skip_serializing_if = "Option::is_none")] pub $opt: Option<$opt_ty>,)*)?
        }
    };
}

payload! {
    /// `run.created`
    RunCreated<'a> {
        agent_name: &'a AgentName,
        branch_id: &'a BranchId,
        #[ts(type = "number")]
        history_to: i64,
        root_run_id: &'a RunId,
        depth: u32,
        show_reasoning: bool,
        ;
        agent_entity_id: &'a EntityId,
        triggered_by_id: &'a EntityId,
        trigger_message_id: &'a MessageId,
        parent_run_id: &'a RunId,
        parent_tool_call_id: &'a CallId,
        agent_version: &'a Hash,
        toolset: &'a Hash,
        limits: &'a RunLimits,
        on_message: MessagePolicy,
        answerers: Answerers,
        by: &'a Actor,
        metadata: &'a Value,
        model: &'a str,
        /// Of a child run: what it was sent to do.
        errand: &'a Errand,
        /// Which tools are left of the agent's.
        picks: &'a Picks,
        /// The form of the answer that was asked for.
        output: &'a OutputSection,
        /// The run that this one begins with.
        replayed_run_id: &'a RunId,
        /// The step of that run that is done anew; the steps before it are copies.
        replayed_step: u32,
    }
}

payload! {
    /// `run.started`
    RunStarted {}
}

payload! {
    /// `step.restarted`: what was streamed of the run and is not in the log is void.
    StepRestarted<'a> {
        step: u32,
        attempt: u32,
        ;
        why: &'a str,
    }
}

payload! {
    /// A call in a reply.
    CallView<'a> {
        tool_call_id: &'a CallId,
        tool_name: &'a ToolName,
        ;
        input: &'a Value,
        visibility: Visibility,
        provider_metadata: &'a Value,
    }
}

payload! {
    /// `message.assistant`: the whole step; it replaces what was streamed of it.
    MessageAssistant<'a> {
        step: u32,
        message_id: &'a MessageId,
        parts: Vec<PartView<'a>>,
        tool_calls: Vec<CallView<'a>>,
        usage: Usage,
        finish_reason: FinishReason,
        show_reasoning: bool,
        partial: bool,
        ;
        #[ts(type = "number", optional)]
        cost: u64,
        model: &'a str,
        provider_metadata: &'a Value,
    }
}

payload! {
    /// `tool-approval-request`, `input-required`, `auth-required`
    Asked<'a> {
        tool_call_id: &'a CallId,
        tool_name: &'a ToolName,
        wait_id: &'a WaitId,
        kind: WaitKind,
        step: u32,
        #[ts(type = "\"server\" | \"client\" | \"external\"")]
        execution_target: &'static str,
        risk: Risk,
        visibility: Visibility,
        answer_rule: &'a AnswerRule,
        /// This key may answer.
        may_answer: bool,
        ;
        expires_at: Timestamp,
        /// The exact arguments, or the prompt: for those who may answer.
        payload: &'a Value,
        fingerprint: &'a Hash,
    }
}

payload! {
    /// `wait.answered`
    WaitAnswered<'a> {
        wait_id: &'a WaitId,
        kind: WaitKind,
        tool_call_id: &'a CallId,
        decision: Decision,
        ;
        visibility: Visibility,
        edited: &'a Value,
        by: &'a Actor,
    }
}

payload! {
    /// `tool-input-available`: the call may run from here on.
    ToolInputAvailable<'a> {
        tool_call_id: &'a CallId,
        tool_name: &'a ToolName,
        ;
        input: &'a Value,
        #[ts(type = "\"server\" | \"client\" | \"external\"", optional)]
        execution_target: &'static str,
        step: u32,
        risk: Risk,
        visibility: Visibility,
        idempotent: bool,
        untrusted: bool,
        expires_at: Timestamp,
        wait_id: &'a WaitId,
        kind: WaitKind,
        answer_rule: &'a AnswerRule,
        /// This key may submit the result.
        may_answer: bool,
        /// What a timer answers when it is due.
        payload: &'a Value,
        fingerprint: &'a Hash,
    }
}

payload! {
    /// `tool.progress`
    ToolProgress<'a> {
        tool_call_id: &'a CallId,
        tool_name: &'a ToolName,
        ;
        visibility: Visibility,
        fraction: f64,
        message: &'a str,
        preliminary: &'a Value,
    }
}

payload! {
    /// `tool-output-available`, or `tool-error` if the outcome is not `ok`.
    ToolOutput<'a> {
        tool_call_id: &'a CallId,
        tool_name: &'a ToolName,
        ;
        /// The value; a preview if there is a blob.
        output: &'a Value,
        blob: &'a BlobRef,
        error: &'a str,
        /// Why the call never ran: `tool_not_found`.
        code: ErrorCode,
        outcome: OutcomeKind,
        visibility: Visibility,
        untrusted: bool,
        /// `client` or `server` (row G40).
        #[ts(type = "\"server\" | \"client\"", optional)]
        source: &'static str,
        by: &'a Actor,
        /// What a child run used.
        spent: Spent,
    }
}

payload! {
    /// `message-replaced`: a hook changed the answer of this step.
    MessageReplaced<'a> {
        step: u32,
        message_id: &'a MessageId,
        parts: Vec<PartView<'a>>,
        show_reasoning: bool,
        ;
        by: &'a str,
    }
}

payload! {
    /// `tool-output-amended`: a hook changed the result that the model reads.
    ToolOutputAmended<'a> {
        tool_call_id: &'a CallId,
        tool_name: &'a ToolName,
        ;
        output: &'a Value,
        error: &'a str,
        outcome: OutcomeKind,
        visibility: Visibility,
        untrusted: bool,
        by: &'a str,
    }
}

payload! {
    /// `toolset.replaced`
    ToolsetReplaced<'a> {
        ;
        toolset: &'a Hash,
        model: &'a str,
    }
}

payload! {
    /// `child.started`
    ChildStarted<'a> {
        tool_call_id: &'a CallId,
        tool_name: &'a ToolName,
        child_run_id: &'a RunId,
        ;
        visibility: Visibility,
        expires_at: Timestamp,
    }
}

payload! {
    /// `child.asked`: answers are taken under the root run.
    ChildAsked<'a> {
        tool_call_id: &'a CallId,
        child_run_id: &'a RunId,
        wait_id: &'a WaitId,
        kind: WaitKind,
        answer_rule: &'a AnswerRule,
        may_answer: bool,
        ;
        payload: &'a Value,
    }
}

payload! {
    /// `child.answered`
    ChildAnswered<'a> {
        tool_call_id: &'a CallId,
        child_run_id: &'a RunId,
        wait_id: &'a WaitId,
        decision: Decision,
        ;
        visibility: Visibility,
        value: &'a Value,
    }
}

payload! {
    /// `message.queued`
    MessageQueued<'a> {
        message_id: &'a MessageId,
        interrupt: bool,
    }
}

payload! {
    /// `message.user`: the run reads these messages now.
    MessageUser<'a> {
        message_ids: &'a [MessageId],
    }
}

payload! {
    /// `run.canceling`
    RunCanceling<'a> {
        ;
        reason: &'a str,
        by: &'a Actor,
    }
}

payload! {
    /// `history.compacted`
    HistoryCompacted<'a> {
        #[ts(type = "number")]
        up_to: i64,
        usage: Usage,
        ;
        summary: &'a str,
        #[ts(type = "number", optional)]
        cost: u64,
    }
}

payload! {
    /// `plugin.emitted`
    PluginEmitted<'a> {
        plugin: &'a str,
        name: &'a str,
        value: &'a Value,
    }
}

payload! {
    /// `plugin.state`: secret keys only.
    PluginState<'a> {
        ;
        plugin: &'a str,
        state: &'a Value,
    }
}

payload! {
    /// A call that a paused run waits for.
    PendingToolCall<'a> {
        tool_call_id: &'a CallId,
        tool_name: &'a ToolName,
        wait_id: &'a WaitId,
        kind: WaitKind,
    }
}

payload! {
    /// `run.waiting_tool`, or `run.parked` if nobody outside must act.
    RunPaused<'a> {
        reason: PauseReason,
        pending_tool_calls: Vec<PendingToolCall<'a>>,
    }
}

payload! {
    /// Why a run failed.
    RunError<'a> {
        code: ErrorCode,
        ;
        message: &'a str,
    }
}

payload! {
    /// `run.completed`, `run.failed`, `run.canceled`
    RunFinished<'a> {
        status: RunEnd,
        usage: Usage,
        ;
        /// Millionths of a US dollar.
        #[ts(type = "number", optional)]
        cost: u64,
        error: RunError<'a>,
        /// A sentence for everybody, if there is no error.
        message: &'a str,
        detail: &'a str,
    }
}

payload! {
    /// `text-start`, `text-end`, `reasoning-start`, `reasoning-end`
    PartEdge<'a> {
        step: u32,
        #[ts(type = "string")]
        #[schemars(with = "String")]
        id: PartId<'a>,
    }
}

payload! {
    /// `text-delta`, `reasoning-delta`
    PartDelta<'a> {
        step: u32,
        #[ts(type = "string")]
        #[schemars(with = "String")]
        id: PartId<'a>,
        delta: &'a str,
    }
}

payload! {
    /// `tool-input-start`
    ToolInputStart<'a> {
        tool_call_id: &'a CallId,
        tool_name: &'a ToolName,
    }
}

payload! {
    /// `tool-input-delta`
    ToolInputDelta<'a> {
        tool_call_id: &'a CallId,
        tool_name: &'a ToolName,
        delta: &'a str,
        ;
        /// The input written so far, as far as it can be read (row G33).
        partial_input: Value,
    }
}

payload! {
    /// `step-so-far`: replaces what the reader had of this step.
    StepSoFar<'a> {
        step: u32,
        attempt: u32,
        parts: Vec<PartSoFar<'a>>,
    }
}

payload! {
    /// `smartSpace.message`
    SpaceMessage {
        message: MessageView,
    }
}

payload! {
    /// `reset` of a run's stream: forget all, go on from here.
    RunReset<'a> {
        #[ts(type = "number")]
        last_seq: i64,
        run: &'a RunView,
        messages: &'a [MessageView],
        waits: &'a [WaitView],
    }
}

payload! {
    /// `reset` of a space's stream.
    SpaceReset<'a> {
        #[ts(type = "number")]
        last_seq: i64,
        runs: &'a [RunView],
        messages: &'a [MessageView],
        waits: &'a [WaitView],
    }
}
