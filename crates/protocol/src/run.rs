//! A run as callers name its state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use ts_rs::TS;

use crate::wait::WaitKind;

/// The state of a run on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Queued,
    Running,
    WaitingTool,
    Completed,
    Failed,
    Canceled,
}

impl RunStatus {
    pub const ALL: [RunStatus; 6] =
        [Self::Queued, Self::Running, Self::WaitingTool, Self::Completed, Self::Failed, Self::Canceled];
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::WaitingTool => "waiting_tool",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum RunEnd {
    Completed,
    Failed,
    Canceled,
}

impl RunEnd {
    pub const fn status(self) -> RunStatus {
        match self {
            Self::Completed => RunStatus::Completed,
            Self::Failed => RunStatus::Failed,
            Self::Canceled => RunStatus::Canceled,
        }
    }
}

/// Why a run stands still. The most urgent open wait names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum PauseReason {
    Approval,
    Input,
    Credential,
    Client,
    Child,
    Timer,
}

impl PauseReason {
    pub const fn of(kind: WaitKind) -> Self {
        match kind {
            WaitKind::Approval => Self::Approval,
            WaitKind::Input => Self::Input,
            WaitKind::Credential => Self::Credential,
            WaitKind::Client => Self::Client,
            WaitKind::Child => Self::Child,
            WaitKind::Timer => Self::Timer,
        }
    }
    /// Somebody outside must act: the run shows `waiting_tool`. With only
    /// children and timers open it shows `running`.
    pub const fn needs_someone(self) -> bool {
        !matches!(self, Self::Child | Self::Timer)
    }
    pub const fn status(self) -> RunStatus {
        if self.needs_someone() { RunStatus::WaitingTool } else { RunStatus::Running }
    }
}

/// Tokens of a model call, summed over a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    #[ts(type = "number")]
    pub input_tokens: u64,
    #[ts(type = "number")]
    pub output_tokens: u64,
    #[ts(type = "number")]
    pub reasoning_tokens: u64,
    /// Input that the vendor had kept; part of `input_tokens`.
    #[ts(type = "number")]
    pub cached_tokens: u64,
    /// Input that the vendor kept for later calls.
    #[ts(type = "number")]
    pub cache_write_tokens: u64,
}

impl Usage {
    /// As it is stored: most counts of most calls are zero, and those are left out.
    pub(crate) fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counts = [
            ("inputTokens", self.input_tokens),
            ("outputTokens", self.output_tokens),
            ("reasoningTokens", self.reasoning_tokens),
            ("cachedTokens", self.cached_tokens),
            ("cacheWriteTokens", self.cache_write_tokens),
        ];
        serializer.collect_map(counts.into_iter().filter(|(_, count)| *count > 0))
    }

    pub fn add(&mut self, other: &Usage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
        self.cached_tokens += other.cached_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
    }
}

/// Why the model stopped talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    Stop,
    ToolCalls,
    Length,
    ContentFilter,
    /// Calls of the last allowed step were dropped.
    MaxSteps,
    /// Stopped by a cancel or an interrupt.
    Stopped,
    /// The vendor rests in the middle of work of its own and goes on when it is
    /// asked again.
    Paused,
    Other,
}

/// What a message does that reaches a live run of somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum MessagePolicy {
    /// Taken when the run would finish.
    #[default]
    Queue,
    /// The model stops talking and hears it.
    Interrupt,
    /// Refused while the run is live.
    Reject,
}
