//! Every frame of the dialect as data, so that types, schemas and tests are
//! made from one list.

use schemars::JsonSchema;
use ts_rs::TS;

use super::wire;

/// A kind of frame: its names, and what its head holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameKind {
    /// The name of the generated type.
    pub title: &'static str,
    /// The values of `event:` and `type`.
    pub names: &'static [&'static str],
    /// It is in the log: it has an id, and lists show it too.
    pub logged: bool,
    pub run_id: Presence,
    pub seq: Presence,
    pub ts: Presence,
    pub smart_space_id: Presence,
}

/// Whether a field of the head is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Always,
    Sometimes,
    Never,
}

/// Gets each kind with the type of its payload.
pub trait FrameVisitor {
    fn visit<B: TS + JsonSchema + 'static>(&mut self, kind: &FrameKind);
}

use Presence::{Always, Never, Sometimes};

const fn logged(title: &'static str, names: &'static [&'static str]) -> FrameKind {
    let (run_id, seq, ts) = (Always, Always, Always);
    FrameKind { title, names, logged: true, run_id, seq, ts, smart_space_id: Sometimes }
}

const fn streamed(title: &'static str, names: &'static [&'static str]) -> FrameKind {
    let (run_id, seq, ts) = (Always, Never, Never);
    FrameKind { title, names, logged: false, run_id, seq, ts, smart_space_id: Sometimes }
}

const SPACE_MESSAGE: FrameKind = FrameKind {
    title: "SpaceMessageFrame",
    names: &["smartSpace.message"],
    logged: true,
    run_id: Sometimes,
    seq: Never,
    ts: Always,
    smart_space_id: Always,
};

const SPACE_RESET: FrameKind = FrameKind {
    title: "SpaceResetFrame",
    names: &["reset"],
    logged: false,
    run_id: Never,
    seq: Never,
    ts: Never,
    smart_space_id: Always,
};

/// Shows every frame of the dialect to the visitor.
pub fn visit_frames(v: &mut impl FrameVisitor) {
    v.visit::<wire::RunCreated<'static>>(&logged("RunCreatedFrame", &["run.created"]));
    v.visit::<wire::RunStarted>(&logged("RunStartedFrame", &["run.started"]));
    v.visit::<wire::StepRestarted<'static>>(&logged("StepRestartedFrame", &["step.restarted"]));
    v.visit::<wire::MessageAssistant<'static>>(&logged("MessageAssistantFrame", &["message.assistant"]));
    v.visit::<wire::Asked<'static>>(&logged(
        "AskedFrame",
        &["tool-approval-request", "input-required", "auth-required"],
    ));
    v.visit::<wire::WaitAnswered<'static>>(&logged("WaitAnsweredFrame", &["wait.answered"]));
    v.visit::<wire::ToolInputAvailable<'static>>(&logged(
        "ToolInputAvailableFrame",
        &["tool-input-available"],
    ));
    v.visit::<wire::ToolProgress<'static>>(&logged("ToolProgressFrame", &["tool.progress"]));
    v.visit::<wire::ToolOutput<'static>>(&logged(
        "ToolOutputFrame",
        &["tool-output-available", "tool-error"],
    ));
    v.visit::<wire::MessageReplaced<'static>>(&logged("MessageReplacedFrame", &["message-replaced"]));
    v.visit::<wire::ToolOutputAmended<'static>>(&logged("ToolOutputAmendedFrame", &["tool-output-amended"]));
    v.visit::<wire::ToolsetReplaced<'static>>(&logged("ToolsetReplacedFrame", &["toolset.replaced"]));
    v.visit::<wire::ChildStarted<'static>>(&logged("ChildStartedFrame", &["child.started"]));
    v.visit::<wire::ChildAsked<'static>>(&logged("ChildAskedFrame", &["child.asked"]));
    v.visit::<wire::ChildAnswered<'static>>(&logged("ChildAnsweredFrame", &["child.answered"]));
    v.visit::<wire::MessageQueued<'static>>(&logged("MessageQueuedFrame", &["message.queued"]));
    v.visit::<wire::MessageUser<'static>>(&logged("MessageUserFrame", &["message.user"]));
    v.visit::<wire::RunCanceling<'static>>(&logged("RunCancelingFrame", &["run.canceling"]));
    v.visit::<wire::HistoryCompacted<'static>>(&logged("HistoryCompactedFrame", &["history.compacted"]));
    v.visit::<wire::PluginEmitted<'static>>(&logged("PluginEmittedFrame", &["plugin.emitted"]));
    v.visit::<wire::PluginState<'static>>(&logged("PluginStateFrame", &["plugin.state"]));
    v.visit::<wire::RunPaused<'static>>(&logged("RunPausedFrame", &["run.waiting_tool", "run.parked"]));
    v.visit::<wire::RunFinished<'static>>(&logged(
        "RunFinishedFrame",
        &["run.completed", "run.failed", "run.canceled"],
    ));
    v.visit::<wire::PartEdge<'static>>(&streamed(
        "PartEdgeFrame",
        &["text-start", "text-end", "reasoning-start", "reasoning-end"],
    ));
    v.visit::<wire::PartDelta<'static>>(&streamed("PartDeltaFrame", &["text-delta", "reasoning-delta"]));
    v.visit::<wire::ToolInputStart<'static>>(&streamed("ToolInputStartFrame", &["tool-input-start"]));
    v.visit::<wire::ToolInputDelta<'static>>(&streamed("ToolInputDeltaFrame", &["tool-input-delta"]));
    v.visit::<wire::StepSoFar<'static>>(&streamed("StepSoFarFrame", &["step-so-far"]));
    v.visit::<wire::RunReset<'static>>(&streamed("RunResetFrame", &["reset"]));
    v.visit::<wire::SpaceMessage>(&SPACE_MESSAGE);
    v.visit::<wire::SpaceReset<'static>>(&SPACE_RESET);
}
