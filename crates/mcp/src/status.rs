//! How each server is, for `GET /api/mcp/servers`.

use std::time::Instant;

use schemars::JsonSchema;
use serde::Serialize;

use crate::settings::{Era, Origin, Share};
use crate::tool::LeftOut;

/// The state of one connection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State {
    Disabled,
    Starting,
    Ready,
    /// It worked before; its tools are known and the connection is being mended.
    Degraded {
        why: String,
    },
    BackingOff {
        why: String,
        until: Instant,
    },
    /// Given up; a demand after `until` tries again.
    Failed {
        why: String,
        until: Instant,
    },
    NeedsAuth {
        why: String,
        challenge: Option<String>,
    },
    Stopped,
}

impl State {
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Degraded { .. } => "degraded",
            Self::BackingOff { .. } => "backing_off",
            Self::Failed { .. } => "failed",
            Self::NeedsAuth { .. } => "needs_auth",
            Self::Stopped => "stopped",
        }
    }
    pub(crate) fn why(&self) -> Option<&str> {
        match self {
            Self::Disabled | Self::Starting | Self::Ready | Self::Stopped => None,
            Self::Degraded { why }
            | Self::BackingOff { why, .. }
            | Self::Failed { why, .. }
            | Self::NeedsAuth { why, .. } => Some(why),
        }
    }
    /// Waiting longer changes nothing.
    pub(crate) const fn is_hopeless(&self) -> bool {
        matches!(self, Self::Disabled | Self::Failed { .. } | Self::NeedsAuth { .. } | Self::Stopped)
    }
}

/// One connection, as people see it. `why` may quote the server: it is for
/// whoever holds a secret key.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    pub name: String,
    /// `stdio` or `http`.
    pub transport: &'static str,
    #[schemars(with = "String")]
    pub origin: Origin,
    /// Whose connection it is; empty if everybody shares it.
    #[schemars(with = "serde_json::Value")]
    pub owner: Share,
    /// `disabled`, `starting`, `ready`, `degraded`, `backing_off`, `failed`,
    /// `needs_auth` or `stopped`.
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Milliseconds in this state.
    pub for_ms: u64,
    /// Milliseconds until the next try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<Era>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// What the server calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    pub tools: usize,
    /// Tools that the model does not get.
    pub left_out: Vec<LeftOut>,
    /// Rises with each change of the tools.
    pub generation: u64,
    /// Connections made since the first.
    pub restarts: u32,
    pub calls_in_flight: bool,
}
