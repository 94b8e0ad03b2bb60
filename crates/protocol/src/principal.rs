//! Who calls. Decided once at the edge, then passed on as a type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::ids::{ClientId, EntityId, KeyId, TenantId};

/// A backend's key sees all of its tenant; a browser's key sees what its
/// entity may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum KeyKind {
    Secret,
    Public,
}

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub tenant: TenantId,
    pub key: KeyId,
    pub kind: KeyKind,
    /// Always there for a public key; a secret key acts for nobody by itself.
    pub entity: Option<EntityId>,
}

/// A member's standing in one space.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, TS, Default,
)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    #[default]
    Member,
    Admin,
}

/// A principal that looks at one space: what [`crate::visible`] asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewer {
    pub kind: KeyKind,
    pub entity: Option<EntityId>,
    /// Its role in the space that it looks at; none for a secret key that is no member.
    pub role: Option<Role>,
}

impl Viewer {
    /// A backend that sees all.
    pub fn secret() -> Self {
        Self { kind: KeyKind::Secret, entity: None, role: None }
    }
    pub fn public(entity: EntityId, role: Role) -> Self {
        Self { kind: KeyKind::Public, entity: Some(entity), role: Some(role) }
    }
    pub fn sees_all(&self) -> bool {
        self.kind == KeyKind::Secret
    }
}

/// Who did something, as the log keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", tag = "by")]
#[ts(optional_fields)]
pub enum Actor {
    /// A caller with a key.
    #[serde(rename_all = "camelCase")]
    Caller {
        kind: KeyKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entity: Option<EntityId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<ClientId>,
    },
    /// The gateway itself: an executor, the scheduler, the engine.
    #[serde(rename_all = "camelCase")]
    Gateway {},
}

impl Actor {
    pub fn caller(principal: &Principal, client: Option<ClientId>) -> Self {
        Self::Caller { kind: principal.kind, entity: principal.entity.clone(), client }
    }
}
