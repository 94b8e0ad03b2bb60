//! What a node's runtime is told at start.

use std::time::Duration;

use toolyard_protocol::NodeId;
use toolyard_protocol::agent::OnConflict;
use toolyard_protocol::limits::{self, RunLimits};
use toolyard_protocol::risk::Risk;

#[derive(Debug, Clone)]
pub struct Settings {
    /// Stable over restarts of this node.
    pub node: NodeId,
    /// Runs that this node works on at once; more wait in the queue.
    pub active_runs: usize,
    /// How long a heartbeat is valid.
    pub lease: Duration,
    /// The scheduler's rhythm, also of heartbeats and polls.
    pub tick: Duration,
    /// The lowest risk that asks, for tools that reach outside.
    pub ask_from: Risk,
    /// Who makes vectors of documents: provider and model. None means that words are all.
    pub embedding: Option<(String, String)>,
    /// Bounds of every run; an agent may only lower its steps.
    pub limits: RunLimits,
    pub client_tools: ClientToolRules,
    /// Programs that may be connected to this node at once.
    pub client_sockets: usize,
    /// Every agent's turns become spans, not only of those that name the plugin.
    pub trace_all: bool,
    /// How long runs are kept after they ended; none means for ever.
    pub keep_finished: Option<Duration>,
    /// Tokens of one result that the model reads.
    pub tool_result_tokens: usize,
}

/// What tools that requests bring are held to.
#[derive(Debug, Clone)]
pub struct ClientToolRules {
    /// Tools in one request with a public key.
    pub public: usize,
    /// Tools in one request with a secret key.
    pub secret: usize,
    /// For agents that do not say.
    pub on_conflict: OnConflict,
}

impl Default for ClientToolRules {
    fn default() -> Self {
        Self {
            public: limits::PUBLIC_TOOLS,
            secret: limits::SECRET_TOOLS,
            on_conflict: OnConflict::default(),
        }
    }
}

impl Settings {
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            active_runs: 1024,
            lease: Duration::from_secs(4),
            tick: Duration::from_secs(1),
            ask_from: Risk::High,
            embedding: None,
            limits: RunLimits::default(),
            client_tools: ClientToolRules::default(),
            client_sockets: 20_000,
            trace_all: false,
            keep_finished: None,
            tool_result_tokens: limits::TOOL_RESULT_TOKENS,
        }
    }
}
