//! Identifiers as types. An id is unguessable, but never an authority: every
//! query also names the tenant.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be 1 to {max} characters of letters, digits and _ - . : (got {got})")]
pub struct BadId {
    what: &'static str,
    max: usize,
    got: String,
}

/// The longest id that is accepted from outside.
pub const ID_MAX: usize = 96;

fn check(what: &'static str, text: &str) -> Result<(), BadId> {
    let fine = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.' | b':');
    if !text.is_empty() && text.len() <= ID_MAX && text.bytes().all(fine) {
        return Ok(());
    }
    // A hostile id is not echoed whole.
    let got = text.chars().take(24).filter(|c| !c.is_control()).collect();
    Err(BadId { what, max: ID_MAX, got })
}

/// A UUID in 26 characters that sort as it does: rows are full of ids, so six
/// characters less each count.
fn short(id: uuid::Uuid) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let bits = id.as_u128();
    let digit = |i: u32| char::from(DIGITS[usize::try_from((bits >> (5 * i)) & 31).unwrap_or(0)]);
    (0..26).rev().map(digit).collect()
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, TS)]
        #[serde(try_from = "String")]
        #[ts(type = "string")]
        pub struct $name(#[schemars(with = "String")] Arc<str>);

        impl $name {
            /// Takes an id from outside.
            pub fn parse(text: &str) -> Result<Self, BadId> {
                check(stringify!($name), text)?;
                Ok(Self(Arc::from(text)))
            }
            /// Makes a new id; its first part grows with time.
            pub fn mint() -> Self {
                Self(Arc::from(format!(concat!($prefix, "_{}"), short(uuid::Uuid::now_v7()))))
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
            /// Without its prefix, for names that are made of it.
            pub fn bare(&self) -> &str {
                self.0.strip_prefix(concat!($prefix, "_")).unwrap_or(&self.0)
            }
        }
        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(text: String) -> Result<Self, BadId> {
                Self::parse(&text)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(/// A customer of the gateway; nothing crosses from one to another.
    TenantId, "ten");
id!(/// A stored credential.
    KeyId, "key");
id!(/// An actor: human, agent or system.
    EntityId, "ent");
id!(/// A conversation.
    SpaceId, "spc");
id!(/// One item of a conversation.
    MessageId, "msg");
id!(/// A stored agent.
    AgentId, "agt");
id!(/// One unit of work with a log.
    RunId, "run");
id!(/// One request to run a tool. Minted here: vendors repeat or omit theirs.
    CallId, "call");
id!(/// One row of the ledger.
    WaitId, "wait");
id!(/// The line of messages a run continues.
    BranchId, "brn");
id!(/// One gateway process.
    NodeId, "node");
id!(/// A connected program that executes tools.
    ClientId, "cli");
id!(/// One socket of a connected program.
    ConnectionId, "con");
id!(/// A remembered permission.
    GrantId, "grt");
id!(/// An uploaded file.
    FileId, "file");
id!(/// An address that wants to hear of runs.
    WebhookId, "whk");
id!(/// What an agent wants to reach.
    GoalId, "goal");
id!(/// Something an agent remembers for somebody.
    MemoryId, "mem");
id!(/// A run that is to start later.
    PlanId, "plan");
id!(/// A document that agents can search.
    DocumentId, "doc");
id!(/// A notification for a person.
    NoticeId, "note");

impl TenantId {
    /// The tenant of keys that come from the environment.
    pub fn default_tenant() -> Self {
        Self(Arc::from("default"))
    }
}

impl BranchId {
    /// The branch every space starts with.
    pub fn main() -> Self {
        Self(Arc::from("main"))
    }
}

impl WaitId {
    /// A call has at most one wait of a kind open at a time, so its id follows
    /// from the call. `round` counts repeated prompts for one call.
    pub fn of(kind: crate::wait::WaitKind, call: &CallId, round: u32) -> Self {
        let call = call.bare();
        match round {
            0 => Self(Arc::from(format!("wait_{}_{call}", kind.as_str()))),
            n => Self(Arc::from(format!("wait_{}{n}_{call}", kind.as_str()))),
        }
    }

    /// The call's own part of the name: its id, perhaps without `call_`.
    pub fn call_text(&self) -> &str {
        let rest = self.bare();
        rest.split_once('_').map_or(rest, |(_, call)| call)
    }
}

impl NoticeId {
    /// The notification of one call: a repeat of the call writes it once.
    pub fn of_call(call: &CallId) -> Self {
        let call = call.bare();
        Self(Arc::from(format!("note_{call}")))
    }
}

impl MessageId {
    /// The assistant message of one turn of a run: every reader and replay
    /// names the same message.
    pub fn of_turn(run: &RunId, turn: u32) -> Self {
        Self(Arc::from(["msg_", run.bare(), "_", &turn.to_string()].concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minted_ids_are_short_different_and_grow() {
        let ids: Vec<RunId> = (0..1000).map(|_| RunId::mint()).collect();
        assert!(ids.iter().all(|id| id.as_str().len() == 30 && RunId::parse(id.as_str()).as_ref() == Ok(id)));
        assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn the_short_form_keeps_every_bit() {
        let form = |bits: u128| short(uuid::Uuid::from_u128(bits));
        assert_eq!(form(0), "0".repeat(26));
        assert_eq!(form(1), format!("{}1", "0".repeat(25)));
        assert_eq!(form(u128::MAX), format!("7{}", "z".repeat(25)));
    }
}
