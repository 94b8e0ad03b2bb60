//! What the outside may ask for, as types.

use serde_json::Value;
use toolyard_protocol::message::{Message, Part, Speaker};
use toolyard_protocol::{AgentName, EntityId, Principal, RunId, SpaceId, TraceParent};
use toolyard_store::idempotency::Scope;

use crate::client_tools::BroughtTools;

/// A message for a space, and for the agents in it.
#[derive(Debug, Clone)]
pub struct PostMessage {
    pub by: Principal,
    pub space: SpaceId,
    /// Who speaks; a member of the space. None only for system messages.
    pub sender: Option<EntityId>,
    pub speaker: Speaker,
    pub parts: Vec<Part>,
    pub metadata: Option<Value>,
    pub trigger_agents: bool,
    /// The model for runs that this message starts, instead of the agents' own.
    pub model: Option<String>,
    /// Only tools of these categories, for runs that this message starts.
    pub categories: Option<Vec<String>>,
    /// Tools that the sender executes, for runs that this message starts.
    pub client_tools: BroughtTools,
    /// The caller's span that these runs work for.
    pub trace: Option<TraceParent>,
}

/// A run on what the space already says.
#[derive(Debug, Clone)]
pub struct CreateRun {
    pub by: Principal,
    pub space: SpaceId,
    /// Who answers. Missing, it is who plays `agent` in the space.
    pub agent_entity: Option<EntityId>,
    /// The agent that is meant, by id or name.
    pub agent: Option<String>,
    pub triggered_by: Option<EntityId>,
    pub metadata: Option<Value>,
    /// Instead of the agent's own.
    pub model: Option<String>,
    /// The caller's span that it works for.
    pub trace: Option<TraceParent>,
}

/// What a message did to an agent of the space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// A new run started.
    Started,
    /// A new run waits for a free slot.
    Queued,
    /// The live run takes it when it would finish.
    Added,
    /// The live run stops talking and takes it.
    Interrupted,
    /// The live run's open waits were closed and it goes on with this message.
    Superseded,
    /// The agent takes no messages while it works.
    Rejected,
    /// The entity's agent does not exist.
    AgentMissing,
}

impl Disposition {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Queued => "queued",
            Self::Added => "added",
            Self::Interrupted => "interrupted",
            Self::Superseded => "superseded",
            Self::Rejected => "rejected",
            Self::AgentMissing => "agent_missing",
        }
    }
}

/// An agent that a message reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triggered {
    pub run: Option<RunId>,
    pub agent_entity: EntityId,
    pub agent: Option<AgentName>,
    pub disposition: Disposition,
}

/// A stored message and what it triggered.
#[derive(Debug, Clone, PartialEq)]
pub struct Posted {
    pub message: Message,
    pub runs: Vec<Triggered>,
}

/// Makes the answer of a command: status and body, as the caller will send it.
pub type Respond<T> = Box<dyn Fn(&T) -> (u16, String) + Send + Sync>;

/// Makes a command happen once per `Idempotency-Key`: the answer is kept in
/// the command's own transaction.
pub struct Once<T> {
    pub scope: Scope,
    pub respond: Respond<T>,
}

impl<T> std::fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Once").field("scope", &self.scope).finish_non_exhaustive()
    }
}

/// Whether a command was done now or earlier.
#[derive(Debug, Clone, PartialEq)]
pub enum Fresh<T> {
    Done(T),
    /// The same key came before: this was answered.
    Before {
        status: u16,
        response: String,
    },
}
