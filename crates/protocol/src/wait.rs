//! The ledger: what a run waits for. A wait lives on disk, not in a process.
//!
//! The ledger is a projection of the log: [`LedgerChange::of`] is the one
//! place that says which event opens and which ends a wait.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::event::Event;
use crate::ids::{CallId, ClientId, EntityId, RunId, WaitId};
use crate::name::ToolName;
use crate::principal::{KeyKind, Role, Viewer};
use crate::time::Timestamp;
use crate::tool::Visibility;

/// What is waited for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS,
)]
#[serde(rename_all = "camelCase")]
pub enum WaitKind {
    /// A client that executes a tool.
    Client,
    /// A yes or no before a tool runs.
    Approval,
    /// A value that a tool asks a person for.
    Input,
    /// A credential that a tool needs.
    Credential,
    /// Another run.
    Child,
    /// A moment.
    Timer,
}

impl WaitKind {
    pub const ALL: [WaitKind; 6] =
        [Self::Client, Self::Approval, Self::Input, Self::Credential, Self::Child, Self::Timer];
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Approval => "approval",
            Self::Input => "input",
            Self::Credential => "credential",
            Self::Child => "child",
            Self::Timer => "timer",
        }
    }
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.as_str() == text)
    }
    /// An answer makes the run go on at once, though other waits stay open.
    pub const fn wakes_when_answered(self) -> bool {
        matches!(self, Self::Approval | Self::Input | Self::Credential)
    }
}

/// Who may answer, as stamped on a wait when it opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", tag = "rule")]
pub enum AnswerRule {
    /// The entity that triggered the run.
    #[serde(rename_all = "camelCase")]
    Trigger { entity: EntityId },
    /// Every member of the space.
    #[serde(rename_all = "camelCase")]
    Members {},
    /// Admins of the space.
    #[serde(rename_all = "camelCase")]
    Admin {},
    /// Secret keys only.
    #[serde(rename_all = "camelCase")]
    Backend {},
    /// The gateway's own scheduler.
    #[serde(rename_all = "camelCase")]
    Gateway {},
}

/// May this viewer answer a wait with this rule? The only place that decides it.
pub fn may_answer(viewer: &Viewer, rule: &AnswerRule) -> bool {
    match (viewer.kind, rule) {
        (_, AnswerRule::Gateway {}) => false,
        (KeyKind::Secret, _) => true,
        (KeyKind::Public, AnswerRule::Trigger { entity }) => viewer.entity.as_ref() == Some(entity),
        (KeyKind::Public, AnswerRule::Members {}) => viewer.role.is_some(),
        (KeyKind::Public, AnswerRule::Admin {}) => viewer.role == Some(Role::Admin),
        (KeyKind::Public, AnswerRule::Backend {}) => false,
    }
}

/// One open row of the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    pub run: RunId,
    pub root: RunId,
    pub id: WaitId,
    pub kind: WaitKind,
    pub call: CallId,
    pub tool: ToolName,
    pub visibility: Visibility,
    pub rule: AnswerRule,
    pub opened_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// Who said "mine", and until when.
    pub claim: Option<(ClientId, Timestamp)>,
    /// What a timer answers when it is due, or a prompt shows.
    pub payload: Value,
}

/// A wait as an event opens it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewWait {
    pub id: WaitId,
    pub kind: WaitKind,
    pub call: CallId,
    pub tool: ToolName,
    pub visibility: Visibility,
    pub rule: AnswerRule,
    pub expires_at: Option<Timestamp>,
    pub payload: Value,
}

/// What an event does to the ledger.
#[derive(Debug, Clone, PartialEq)]
pub enum LedgerChange {
    Open(Box<NewWait>),
    /// This wait ended.
    End(WaitId),
    /// The call ended, and with it every wait it has.
    EndCall(CallId),
}

impl LedgerChange {
    pub fn of(event: &Event) -> Option<Self> {
        match event {
            Event::Asked(e) => Some(Self::Open(Box::new(NewWait {
                id: e.wait.clone(),
                kind: e.kind,
                call: e.call.clone(),
                tool: e.tool.clone(),
                visibility: e.visibility,
                rule: e.rule.clone(),
                expires_at: e.expires,
                // The prompt is read from the log, not copied.
                payload: Value::Null,
            }))),
            Event::ToolCallRequested(e) => e.wait.as_ref().map(|parked| {
                Self::Open(Box::new(NewWait {
                    id: parked.wait.clone(),
                    kind: parked.kind,
                    call: e.call.clone(),
                    tool: e.tool.clone(),
                    visibility: e.visibility,
                    rule: parked.rule.clone(),
                    expires_at: e.expires,
                    payload: parked.payload.shown().cloned().unwrap_or_default(),
                }))
            }),
            Event::ChildStarted(e) => Some(Self::Open(Box::new(NewWait {
                id: WaitId::of(WaitKind::Child, &e.call, 0),
                kind: WaitKind::Child,
                call: e.call.clone(),
                tool: e.tool.clone(),
                visibility: e.visibility,
                rule: AnswerRule::Gateway {},
                expires_at: e.expires,
                payload: serde_json::json!({ "child": e.child, "stream": e.stream }),
            }))),
            Event::Answered(e) => Some(Self::End(e.wait.clone())),
            Event::ToolReturned(e) => Some(Self::EndCall(e.call.clone())),
            Event::RunCreated(_)
            | Event::RunStarted(_)
            | Event::StepRestarted(_)
            | Event::ModelReplied(_)
            | Event::ToolProgressed(_)
            | Event::ReplyAmended(_)
            | Event::ResultAmended(_)
            | Event::ToolsetReplaced(_)
            | Event::ChildAsked(_)
            | Event::ChildAnswered(_)
            | Event::MessageQueued(_)
            | Event::MessageTaken(_)
            | Event::CancelRequested(_)
            | Event::HistoryCompacted(_)
            | Event::PluginEmitted(_)
            | Event::PluginStateSaved(_)
            | Event::RunPaused(_)
            | Event::RunFinished(_) => None,
        }
    }
}
