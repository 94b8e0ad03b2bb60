//! Where a request goes: which agent, and what of its path is left.

use toolyard_dialects::a2a::card::Face;
use toolyard_protocol::AgentName;

use crate::http::Refusal;
use crate::routes::call::Call;

#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) agent: AgentName,
    /// Below the agent's address, without a leading slash.
    pub(super) rest: String,
    /// There was a prefix `/v1`.
    pub(super) prefixed: bool,
    /// Which card lies here.
    pub(super) face: Face,
}

/// First words of a path that belong to the default agent.
const OWN: [&str; 9] = [
    "",
    "message",
    "message:send",
    "message:stream",
    "tasks",
    "v1",
    "v0.3",
    ".well-known",
    "extendedAgentCard",
];

impl Place {
    pub(super) fn of(call: &Call, path: &str) -> Result<Self, Refusal> {
        let missing = || Refusal::not_found("Agent");
        let path = path.trim_matches('/');
        let first = path.split('/').next().unwrap_or_default();
        let (agent, rest) = if OWN.contains(&first) {
            (call.app.config.default_agent.as_str(), path)
        } else {
            (first, path.strip_prefix(first).unwrap_or_default())
        };
        let agent = AgentName::parse(agent).map_err(|_| missing())?;
        let mut rest = rest.trim_start_matches('/');
        let (mut face, mut prefixed) = (Face::Hybrid, false);
        for (word, is) in [("v0.3", Face::V03), ("v1", Face::V10)] {
            if let Some(below) = after(rest, word) {
                rest = below;
                prefixed = true;
                if face == Face::Hybrid {
                    face = is;
                }
            }
        }
        Ok(Self { agent, rest: rest.to_owned(), prefixed, face })
    }

    /// The agent's path.
    pub(super) fn path(&self) -> String {
        format!("/a2a/{}", self.agent)
    }
}

/// What follows the first word, if it is this one.
fn after<'p>(path: &'p str, word: &str) -> Option<&'p str> {
    match path.strip_prefix(word)? {
        "" => Some(""),
        rest => rest.strip_prefix('/'),
    }
}
