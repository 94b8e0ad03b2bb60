//! May this call run? A pure decision; its result becomes an event and is
//! never asked again on replay.
//!
//! Order: any deny, session grants, stored grants, the tool's own `approval`,
//! the agent's policy, the default. A grant speaks for a tool as it was when
//! the grant was given: a changed tool voids an allow, never a deny.
//!
//! This room does not know who asks, or what time it is: callers pass the
//! grants of the entity and the space that are live ([`Grant::is_live`]).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_protocol::agent::PermissionRule;
use toolyard_protocol::agent::execution::Execution;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{Approval, Place, ToolSpec};
use toolyard_protocol::{GrantId, Hash, SpaceId, Timestamp};

/// What a grant says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GrantEffect {
    Allow,
    Deny,
}

/// How far a grant reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum GrantScope {
    /// One conversation.
    #[serde(rename_all = "camelCase")]
    Session { space: SpaceId },
    /// Until it is taken back.
    #[serde(rename_all = "camelCase")]
    Stored {},
}

/// A remembered permission. The store keeps it as this JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    pub id: GrantId,
    /// [`key_of`] the tool.
    pub tool: String,
    pub effect: GrantEffect,
    pub scope: GrantScope,
    /// The tool as it was when the grant was given.
    pub fingerprint: Hash,
    /// The highest risk that an allow covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_risk: Option<Risk>,
    /// Only calls whose arguments have these fields with these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// The arguments must be these, no more and no less.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl Grant {
    pub fn is_live(&self, at: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| at < end)
    }
    fn speaks_of(&self, key: &str, args: &Value) -> bool {
        let fits = |pattern: &Value| if self.exact { pattern == args } else { fits(pattern, args) };
        self.tool == key && self.args.as_ref().is_none_or(fits)
    }
    fn denies(&self, key: &str, args: &Value) -> bool {
        self.effect == GrantEffect::Deny && self.speaks_of(key, args)
    }
    fn allows(&self, spec: &ToolSpec, key: &str, args: &Value) -> bool {
        self.effect == GrantEffect::Allow
            && self.speaks_of(key, args)
            && self.max_risk.is_none_or(|most| spec.risk <= most)
            // Last: it is dear, and most grants speak of other tools.
            && self.fingerprint == spec.fingerprint()
    }
}

/// The agent's rules, and from which risk on tools that reach outside ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy<'a> {
    pub rules: &'a [PermissionRule],
    /// The agent's word.
    pub ask_from: Option<Risk>,
    /// The operator's word, where the agent has none.
    pub default_ask_from: Risk,
}

impl Default for Policy<'_> {
    fn default() -> Self {
        Self { rules: &[], ask_from: None, default_ask_from: Risk::High }
    }
}

/// What the gate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allow,
    Ask,
    /// With the sentence that the model hears.
    Deny(String),
}

/// The name that grants use: `<service>:<tool>`, or the tool's own name.
pub fn key_of(spec: &ToolSpec) -> String {
    spec.key()
}

/// Decides about one call.
pub fn decide(
    spec: &ToolSpec,
    policy: &Policy<'_>,
    grants: &[Grant],
    args: &Value,
    tainted: bool,
) -> Decision {
    let key = key_of(spec);
    let rules = || policy.rules.iter().filter(|rule| rule.speaks_of(spec, &key, args));
    let denied = grants.iter().any(|g| g.denies(&key, args) || g.denies(spec.name.as_str(), args))
        || rules().any(|rule| rule.decision == Approval::Deny);
    if spec.approval == Some(Approval::Deny) || denied {
        return Decision::Deny(format!("Denied: the tool {} is not allowed here", spec.name));
    }
    // Session grants come before stored ones in the order; both only allow
    // here, so which of them speaks makes no difference.
    if grants.iter().any(|g| g.allows(spec, &key, args)) {
        return Decision::Allow;
    }
    // Only a grant was given by somebody who knows the risk of this call; the
    // tool's owner did not know what the model would read before it.
    if tainted && spec.risk == Risk::High {
        return Decision::Ask;
    }
    match spec.approval {
        Some(Approval::Allow) => return Decision::Allow,
        Some(Approval::Ask) => return Decision::Ask,
        Some(Approval::Deny) | None => {}
    }
    match rules().next().map(|rule| rule.decision) {
        Some(Approval::Allow) => return Decision::Allow,
        Some(Approval::Ask) => return Decision::Ask,
        Some(Approval::Deny) | None => {}
    }
    let from = policy.ask_from.unwrap_or(policy.default_ask_from);
    if reaches_outside(spec) && spec.risk >= from { Decision::Ask } else { Decision::Allow }
}

/// Tools whose effect is neither the gateway's own nor a client's own.
fn reaches_outside(spec: &ToolSpec) -> bool {
    let by_execution = match &spec.execution {
        Execution::Request(_) | Execution::Mcp(_) | Execution::Plugin(_) | Execution::RemoteAgent(_) => true,
        // A configuration with a URL names an agent somewhere else.
        Execution::AiAgent(agent) => agent.agent_config.get("url").is_some(),
        Execution::Basic(_)
        | Execution::Waiting(_)
        | Execution::Compute(_)
        | Execution::Prebuilt(_)
        | Execution::ImageGenerator(_)
        | Execution::Recorder(_) => spec.place == Place::Agent,
    };
    // A client tool of a service is MCP, held by a browser.
    by_execution || spec.place == Place::Mcp || spec.service_id.is_some()
}

/// An object fits if every field of the pattern is there and equal.
fn fits(pattern: &Value, args: &Value) -> bool {
    match pattern {
        Value::Object(fields) => fields.iter().all(|(name, want)| args.get(name) == Some(want)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            pattern == args
        }
    }
}
